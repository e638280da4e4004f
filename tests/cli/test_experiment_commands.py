"""What commands that run simulations ask for, without running any."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import QUICKSTART, Call
from made_up import summary

from argosy.campaign.campaign import CampaignResult, CampaignRow
from argosy.cli.compare import _seed_words, _seeds
from argosy.experiments import contest
from argosy.model.errors import CommandError


class TestContests:
    @pytest.fixture
    def held(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
        """What contests were asked for; each engine has the runs that it needs, one of them fails."""
        given: list[tuple[Any, ...]] = []

        def hold(source: Any, ignores: Any, seeds: Any, **options: Any) -> contest.Contest:
            tell: Callable[[float], None] = options.pop("tell")
            tell(0.5)
            given.append((source, list(ignores), list(seeds), options))
            runs = {
                name: tuple(summary(name, seed=seed, jct=(at + 1) * 1e7) for seed in seeds)
                for at, name in enumerate(ignores)
            }
            failures = {"omega": "with seed 1: broken"} if "omega" in ignores else {}
            runs = {name: ran for name, ran in runs.items() if name not in failures}
            return contest.Contest(runs=runs, ignores=dict(ignores), failures=failures)

        monkeypatch.setattr(contest, "hold_contest", hold)
        return given

    def test_compare_runs_what_it_is_told_to(self, argosy: Call, held: list[Any]) -> None:
        names = ["--engine", "sparrow", "--engine", "mesos", "--engine", "sparrow"]
        result = argosy(
            *("compare", QUICKSTART, *names, "--seed", "7", "--seed", "3", "--seed", "7"),
            *("--time-limit", "1.5s", "--jobs", "3", "--metric", "wait", "--metric", "end"),
            *("--threshold", "400", "-o", "json"),
        )
        assert result.code == 0, result.err
        options = {"published": False, "processes": 3, "time_limit": 1.5}
        assert held == [(QUICKSTART, ["sparrow", "mesos"], [7, 3], options)]
        document = json.loads(result.out)
        assert document["seeds"] == [7, 3]
        assert [each["metric"] for each in document["comparisons"]] == ["wait", "end"]
        assert document["comparisons"][0]["threshold"] == 4.0
        assert document["overall"] is None
        assert [(row["engine"], row["seed"]) for row in document["runs"]] == [
            ("sparrow", 7), ("sparrow", 3), ("mesos", 7), ("mesos", 3),
        ]  # fmt: skip

    def test_a_failure_ends_a_comparison_with_1(self, argosy: Call, held: list[Any]) -> None:
        result = argosy(
            "compare", QUICKSTART, "--engine", "omega", "--engine", "mesos", "--seeds", "2"
        )
        assert result.code == 1
        assert "omega" in result.out
        assert "failed: with seed 1: broken" in result.out
        assert held[0][3] == {"published": False, "processes": os.cpu_count(), "time_limit": None}
        first = held[0][2][0]
        assert held[0][2] == [first, first + 1]

    def test_objectives_are_ranked_together(self, argosy: Call, held: list[Any]) -> None:
        names = ["--engine", "sparrow", "--engine", "mesos"]
        options = ["--objective", "jct", "--objective", "end", "--rank-all", "-o", "json"]
        document = json.loads(argosy("compare", QUICKSTART, *names, *options).out)
        assert document["overall"]["objectives"] == ["jct", "end"]
        assert len(held[0][2]) == 5

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            (["--seeds", "10001"], "--seeds 10001; expected at most 10,000"),
            (["--seeds", "2", "--seed", "1"], "both --seeds and --seed"),
            (["--metric", "jct", "--objective", "end"], "both --metric and --objective"),
            (["--time-limit", "soon"], "--time-limit: "),
        ],
    )
    def test_what_contradicts_itself_is_refused(
        self, argosy: Call, held: list[Any], options: list[str], says: str
    ) -> None:
        assert says in argosy("compare", QUICKSTART, *options).complaint
        assert held == []

    def test_seeds_count_up_from_the_scenario_s_own(self) -> None:
        spec: Any = SimpleNamespace(seed=2**63 - 3)
        assert _seeds(spec, 3) == [2**63 - 3, 2**63 - 2, 2**63 - 1]
        with pytest.raises(CommandError, match="would go beyond"):
            _seeds(spec, 4)
        words = [_seed_words(seeds) for seeds in ((4,), (4, 5, 6), (4, 6), (5, 4))]
        assert words == ["seed 4", "seeds 4 to 6", "seeds 4, 6", "seeds 5, 4"]

    def test_sweep_varies_one_value_for_every_engine(
        self, argosy: Call, held: list[Any], tmp_path: Path
    ) -> None:
        result = argosy(
            *(
                "sweep",
                QUICKSTART,
                "--vary",
                "seed=4,6",
                "--engine",
                "sparrow",
                "--engine",
                "mesos",
            ),
            *("--seeds", "2", "--metric", "wait", "--jobs", "2", "--html", "p.html", "-o", "json"),
        )
        assert result.code == 0, result.err
        assert result.err.endswith("wrote p.html\n")
        assert "<h1>" in (tmp_path / "p.html").read_text()
        assert [(names, seeds) for _, names, seeds, _ in held] == [
            (["sparrow", "mesos"], [4, 5]),
            (["sparrow", "mesos"], [6, 7]),
        ]
        assert [options["changes"][0].value for *_, options in held] == [4, 6]
        assert {options["processes"] for *_, options in held} == {2}
        document = json.loads(result.out)
        assert (document["varied"], document["metric"]) == ("seed", "wait")
        assert [row["value"] for row in document["rows"]] == [4, 6]
        assert document["changes"] == []
        failed = argosy(
            "sweep", QUICKSTART, "--vary", "seed=4", "--engine", "omega", "--engine", "mesos"
        )
        assert failed.code == 1


class TestCampaigns:
    @pytest.fixture
    def campaigns(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        given: list[Any] = []

        class Held:
            def __init__(self, **options: Any) -> None:
                given.append(options)

            def __enter__(self) -> Held:
                return self

            def __exit__(self, *_: object) -> None: ...

            def run(
                self, chosen: Any, *, folder: Any, tell: Any, tell_shrinking: Any
            ) -> CampaignResult:
                tell(1, 0)
                tell_shrinking(0, 0)
                given.append((list(chosen), folder))
                row = CampaignRow(engine="omega", runs=2, failed=0, refused=0, checks={})
                return CampaignResult(world="simulated", rows=[row], failures=[], seconds=0.0)

        monkeypatch.setattr("argosy.campaign.campaign.Campaign", Held)
        return given

    def test_scenarios_are_drawn_as_told(self, argosy: Call, campaigns: list[Any]) -> None:
        result = argosy(
            *("campaign", "--engine", "omega", "--runs", "2", "--seed", "5", "--first", "3"),
            *("--world", "scripted", "--time-limit", "7", "--workers", "2", "--out", "there"),
            *("-o", "json"),
        )
        assert result.code == 0, result.err
        assert result.err == "\n2 runs, nothing wrong\n"
        options, (drawn, folder) = campaigns
        assert options == {"world": "scripted", "seconds": 7.0, "workers": 2}
        assert (folder, [each.number for each in drawn]) == (Path("there"), [3, 4])
        assert {table["engine"] for each in drawn for table in each.document["fleet"]} == {"omega"}
        document = json.loads(result.out)
        assert (document["seed"], document["first"], document["runs"]) == (5, 3, 2)
        again = argosy(
            "campaign", "--engine", "omega", "--runs", "1", "--seed", "5", "--first", "4"
        )
        assert again.code == 0
        assert campaigns[3][0][0].document == drawn[1].document

    def test_the_defaults(self, argosy: Call, campaigns: list[Any]) -> None:
        argosy("campaign", "--engine", "omega", "--without", "gangs")
        options, (drawn, folder) = campaigns
        assert options == {"world": "simulated", "seconds": 20.0, "workers": os.cpu_count()}
        assert (len(drawn), folder) == (100, Path("campaign"))
        assert not any(
            job.get("gang") for each in drawn for job in each.document["workload"].get("jobs", [])
        )

    def test_given_scenarios_are_checked_instead(
        self, argosy: Call, campaigns: list[Any], tmp_path: Path
    ) -> None:
        argosy("campaign", QUICKSTART, QUICKSTART)
        drawn, folder = campaigns[1]
        assert folder is None
        assert [each.number for each in drawn] == [0, 1]
        for options in (
            ["--engine", "omega"],
            ["--runs", "1"],
            ["--without", "gangs"],
            ["--first", "1"],
        ):
            assert (
                "both scenarios and options" in argosy("campaign", QUICKSTART, *options).complaint
            )
        both = argosy("campaign", "--engine", "omega", "--fleet", QUICKSTART)
        assert "both --engine and --fleet" in both.complaint

    def test_a_fleet_can_be_that_of_a_scenario(self, argosy: Call, campaigns: list[Any]) -> None:
        import tomllib

        argosy("campaign", "--fleet", QUICKSTART, "--runs", "1")
        [drawn] = campaigns[1][0]
        names = [table["name"] for table in tomllib.loads(QUICKSTART.read_text())["fleet"]]
        assert [table["name"] for table in drawn.document["fleet"]] == names


class TestRuns:
    def test_a_run_is_asked_for_as_told(
        self, argosy: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given: list[Any] = []

        def execute(spec: Any, directory: Any, *, command: Any, progress: Any) -> Any:
            given.append((spec.seed, spec.engine_names(), directory, command))
            return summary()

        monkeypatch.setattr("argosy.experiments.execute.execute", execute)
        monkeypatch.setattr(sys, "argv", ["argosy", "run", "x"])
        result = argosy(
            "run", QUICKSTART, "--seed", "9", "--engine", "sparrow", "--out", "o", "-o", "json"
        )
        assert given.pop() == (9, ["sparrow"], Path("o"), ["argosy", "run", "x"])
        assert json.loads(result.out)["directory"] == "o"
        assert "\n\nsaved in o\nnext: argosy why TASK --run o, or argosy compare " in result.err
        result = argosy("run", QUICKSTART, "--no-save", "-o", "json")
        assert given.pop()[2] is None
        assert json.loads(result.out)["directory"] is None
        assert "saved" not in result.err
        argosy("run", QUICKSTART)
        assert str(given.pop()[2]).startswith("runs/")
        assert (
            "both --no-save and --out"
            in argosy("run", QUICKSTART, "--no-save", "--out", "o").complaint
        )

        def full(*_: Any, **__: Any) -> Any:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("argosy.experiments.execute.execute", full)
        complaint = argosy("run", QUICKSTART, "--out", "o" * 300).complaint
        assert "cannot be saved in " in complaint
        assert "...: No space left on device" in complaint


class TestPapers:
    def test_a_paper_is_run_as_told(
        self, argosy: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        from argosy.papers.claims import Claim
        from argosy.papers.experiment import ExperimentPoint

        def point(name: str, size: int = 5) -> ExperimentPoint:
            values: dict[str, str | int | float] = {"name": name, "size": size}
            return ExperimentPoint(paper="p", figure="2", parameters=values, seed=1, scale="quick")

        def traced(point: ExperimentPoint, trace: Path) -> str:
            return f"{point.parameters['name']}@{trace}"

        given: list[Any] = []
        claims = (
            Claim(
                id="a",
                figure="2",
                paper="fast",
                here="faster",
                tolerance="2x",
                holds=True,
                setup="s",
                note="n",
            ),
            Claim(id="b", figure="3", paper="slow", here="slower", tolerance="no", holds=False),
        )
        paper = SimpleNamespace(
            name="p", title="The Paper", figures=("1", "2", "3"), on_request=("1",), alone=("alone",),
            scales={
                name: SimpleNamespace(name=name, about=f"is {name}")
                for name in ("full", "quick", "smoke")
            },
            plan=lambda size, chosen: given.append((size, chosen)) or [point("x"), point("y")],
            usual={},
            traced=traced,
            runner="runner",
            claims=lambda found, chosen: claims,
            notes=lambda chosen: ["smaller"],
            draw=lambda found, chosen: [],
        )  # fmt: skip

        def run_points(points: Any, runner: Any, store: Any, **options: Any) -> dict[str, Any]:
            options.pop("tell")
            given.append((points, runner, store.directory, options))
            return {}

        monkeypatch.setattr("argosy.papers.registry.find_paper", lambda name: paper)
        monkeypatch.setattr("argosy.papers.experiment.run_points", run_points)
        monkeypatch.setattr("argosy.report.html.page", lambda *parts: "page")
        result = argosy("paper", "p")
        assert result.code == 0, result.err
        usual = {"processes": os.cpu_count(), "again": False, "alone": ("alone",)}
        assert given == [
            ("quick", ["2", "3"]),
            ([point("x"), point("y")], "runner", Path("runs/paper-p-quick"), usual),
        ]
        lines = result.out.splitlines()
        assert lines[:3] == ["The Paper", "scale quick: is quick", "1 of 2 claims hold"]
        assert lines[4:10] == [
            "holds: a",
            "  paper      fast",
            "  set-up     s",
            "  here       faster",
            "  tolerance  2x",
            "  note       n",
        ]
        assert lines[11] == "does not hold: b"
        assert result.err.startswith("note: smaller\n")
        assert (tmp_path / "runs/paper-p.html").read_text() == "page"
        given.clear()
        (tmp_path / "t").mkdir()
        options = [
            "--figure",
            "3",
            "--figure",
            "1",
            "--trace",
            "t",
            "--state",
            "s",
            "--again",
            "--jobs",
            "4",
        ]
        result = argosy("paper", "p", "--smoke", *options, "--html", "h.html", "-o", "csv")
        assert given == [
            ("smoke", ["1", "3"]),
            (
                ["x@t", "y@t"],
                "runner",
                Path("s"),
                {"processes": 4, "again": True, "alone": ("alone",)},
            ),
        ]
        assert result.out.splitlines() == [
            "id,figure,paper,here,tolerance,holds,setup,note",
            "a,2,fast,faster,2x,holds,s,n",
            "b,3,slow,slower,no,does not hold,,",
        ]
        assert (tmp_path / "h.html").exists()
        given.clear()
        part = argosy("paper", "p", "--where", "name=y", "--set", "size=7")
        assert part.code == 0
        assert "note: claims are about 1 of 2 points with size=7" in part.err
        assert given[1][0] == [point("y", size=7)]
        assert "unknown figure of p:" in argosy("paper", "p", "--figure", "9").complaint
        assert (
            "unknown value of name here: 'z'" in argosy("paper", "p", "--where", "name=z").complaint
        )
        assert "NAME=VALUE" in argosy("paper", "p", "--set", "size").complaint
        paper.traced = None
        assert "p has no recorded input" in argosy("paper", "p", "--trace", "t").complaint
