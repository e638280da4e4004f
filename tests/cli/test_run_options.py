"""What `argosy run`, `replay`, `campaign`, `record` and `summary` make of their options."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import QUICKSTART, Call
from made_up import summary

from argosy.campaign.campaign import CampaignResult, CampaignRow
from argosy.cli import campaign, record, run
from argosy.cli.live import ServerChoice
from argosy.experiments import on_recorded
from argosy.model.errors import ReplayDiverged
from argosy.records.replay import Replay
from argosy.scenarios import loader
from argosy.testing.builders import job, scenario

SMALL = """\
name = "small"
horizon = "1min"
%s
[[cell.machines]]
name = "m"
count = 2
capacity = { cpu = 4000, memory = "8GiB" }
[[workload.jobs]]
id = "a"
count = 2
duration = "1s"
request = { cpu = 1000 }
[[fleet]]
name = "s"
engine = "omega"
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL % "")
    return path


class TestRun:
    def test_nothing_is_known_of_single_jobs_without_a_journal(
        self, argosy: Call, small: Path
    ) -> None:
        kept, gone = (
            json.loads(argosy("run", small, *more, "-o", "json").out)
            for more in (("--out", "r"), ("--no-save",))
        )
        assert (kept["directory"], gone["directory"]) == ("r", None)
        assert [each["job"] for each in kept["notable_jobs"]] == ["a"]
        assert gone["notable_jobs"] == []

    def test_a_page_needs_a_journal(self, argosy: Call, tmp_path: Path) -> None:
        silent = tmp_path / "silent.toml"
        silent.write_text(SMALL % '[output]\nlog = "none"')
        told = argosy("run", silent, "--out", "r", "--html", "p.html")
        assert told.complaint.endswith(
            "--html needs the journal of the run; "
            'expected output.log = "replayable", which is the default'
        )
        assert not (tmp_path / "p.html").exists()
        assert argosy("run", silent, "--out", "s").code == 0

    def test_a_page_of_a_run_that_is_not_saved_is_made_in_memory(
        self, argosy: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pages: list[Any] = []

        def page(*parts: Any) -> str:
            pages.append(parts)
            return "a page"

        monkeypatch.setattr("argosy.report.run_report.run_page", page)
        monkeypatch.setattr("sys.argv", ["argosy", "run", "x y"])
        for options in (("--no-save",), ("--out", "r")):
            assert argosy("run", small, "--html", "p.html", *options, "-o", "json").code == 0
        assert [(notes, call) for _, _, notes, call in pages] == [([], "argosy run 'x y'")] * 2
        first, second = (told.counts for _, told, _, _ in pages)
        assert first == second
        assert not (tmp_path / "runs").exists()

    @pytest.mark.parametrize(
        ("size", "most", "has_ends", "is_read"),
        [
            (10, 10, True, True),
            (10, 9, True, False),
            (10, None, True, True),
            (10, None, False, False),
        ],
    )
    def test_only_journals_that_are_read_soon_are_read(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        size: int,
        most: int | None,
        has_ends: bool,
        is_read: bool,
    ) -> None:
        found = SimpleNamespace(journal=SimpleNamespace(has_ends=has_ends))
        monkeypatch.setattr("argosy.records.directory.open_run", lambda directory: found)
        assert run._readable(None, most) is None
        assert run._readable(tmp_path, most) is None
        (tmp_path / "journal.jsonl").write_bytes(b"x" * size)
        assert (run._readable(tmp_path, most) is found) is is_read

    def test_a_journal_of_50_megabytes_is_small(self) -> None:
        assert run.LARGEST_JOURNAL == 50_000_000

    @pytest.mark.parametrize("length", [99, 100, 101, 300])
    def test_a_path_is_shown_up_to_a_hundred_letters(self, length: int) -> None:
        shown = run._shortened("x" * length)
        assert shown == ("x" * length if length <= 100 else "x" * 97 + "...")

    def test_a_published_form_is_that_of_the_fleet_or_of_the_engine_that_is_named(
        self, argosy: Call, small: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[Any] = []
        real = loader.load

        def load(path: Path, *, seed: int | None, published: bool) -> Any:
            seen.append((seed, published))
            return real(path, seed=seed)

        def as_published(given: Any) -> Any:
            seen.append("as published")
            return given

        monkeypatch.setattr(loader, "load", load)
        monkeypatch.setattr(loader, "as_published", as_published)
        argosy("run", small, "--no-save", "--as-published", "--seed", "3")
        argosy("run", small, "--no-save", "--as-published", "--engine", "kube")
        argosy("run", small, "--no-save")
        assert seen == [(3, True), "as published", (None, True), (None, False)]

    def test_a_row_has_the_numbers_of_the_run(self, argosy: Call, small: Path) -> None:
        out = argosy("run", small, "--no-save", "--seed", "4", "--engine", "kube", "-o", "csv").out
        [row] = csv.DictReader(io.StringIO(out))
        assert (row["scenario"], row["seed"], row["fleet"]) == ("small", "4", "kube")

    def test_a_scenario_without_jobs_says_so_after_other_notes(
        self, argosy: Call, small: Path
    ) -> None:
        text = small.read_text()
        jobs = text[text.index("[[workload.jobs]]") : text.index("[[fleet]]")]
        small.write_text(text.replace(jobs, "[workload]\njobs = []\n"))
        told = argosy("run", small, "--no-save", "-o", "json")
        assert told.err == "note: the workload has no jobs\n"
        assert json.loads(told.out)["notes"] == ["the workload has no jobs"]

    def test_where_a_run_is_kept_is_told_with_what_may_come_next(
        self, argosy: Call, small: Path
    ) -> None:
        first, second = (argosy("run", small, *more).err for more in ((), ("--engine", "kube")))
        for err, where in ((first, "runs/small-1"), (second, "runs/small-kube-1")):
            assert err.splitlines()[-2:] == [
                f"saved in {where}",
                f"next: argosy why TASK --run {where}, or argosy compare {small}",
            ]

    def test_a_run_that_cannot_be_saved_has_two_ways_out(
        self, argosy: Call, small: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: Any, **__: Any) -> Any:
            raise OSError(28, "No space left")

        monkeypatch.setattr("argosy.experiments.execute.execute", full)
        assert argosy("run", small, "--out", "r").complaint == (
            "argosy: error[command]: the run cannot be saved in r: No space left; "
            "name another directory with --out, or save nothing with --no-save"
        )


class TestReplay:
    @pytest.fixture
    def kept(self, argosy: Call, small: Path) -> str:
        assert argosy("run", small, "--out", "kept").code == 0
        return "kept"

    def test_each_engine_is_tried_once_and_compared_by_each_metric(
        self, argosy: Call, kept: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tried: list[str] = []

        def attempt(spec: Any, name: str, *, progress: Any) -> Any:
            tried.append(name)
            return on_recorded.RecordedTrial(summary(name), ())

        monkeypatch.setattr(on_recorded, "try_engine", attempt)
        monkeypatch.setattr("argosy.cli.replay.summary_of", lambda run: summary("omega"))
        engines = ("--engine", "kube", "--engine", "mesos", "--engine", "kube")
        document = json.loads(argosy("replay", kept, *engines, "-o", "json").out)
        assert tried == ["kube", "mesos"]
        assert [each["metric"] for each in document["comparisons"]] == ["jct"]
        assert [row["engine"] for row in document["runs"]] == ["recorded", "kube", "mesos"]
        assert document["journal"] == "kept/journal.jsonl"
        options = ("--metric", "wait", "--metric", "end", "--metric", "wait")
        document = json.loads(argosy("replay", kept, *engines, *options, "-o", "json").out)
        assert [each["metric"] for each in document["comparisons"]] == ["wait", "end"]

    def test_a_mistake_in_a_name_is_found_before_the_first_run(
        self, argosy: Call, kept: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(on_recorded, "try_engine", None)
        some = ("--engine", "omega", "--engine", "kuba")
        assert "did you mean 'kube'?" in argosy("replay", kept, *some).complaint
        assert (
            "unknown metric"
            in argosy("replay", kept, "--engine", "kube", "--metric", "x").complaint
        )

    def test_what_differs_may_have_no_other_side(
        self, argosy: Call, kept: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def differs(self: Replay, tell: Any) -> Any:
            raise ReplayDiverged("one line more", line=9)

        monkeypatch.setattr(Replay, "run", differs)
        told = argosy("replay", kept)
        assert (told.code, told.out.splitlines()) == (
            1,
            ["kept/journal.jsonl:9: decisions differ from here on", "replayed: one line more"],
        )
        assert argosy("replay", kept, "-o", "csv").out.splitlines() == [
            "journal,same,line,problem,recorded,hint",
            "kept/journal.jsonl,False,9,one line more,,",
        ]

    def test_the_latest_run_is_replayed_if_none_is_named(self, argosy: Call, small: Path) -> None:
        argosy("run", small)
        assert argosy("replay").out.startswith("runs/small-1/journal.jsonl: same decisions\n")


class TestCampaign:
    @pytest.fixture
    def held(self, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
        """Campaigns that would have been held, and what they found."""
        seen = SimpleNamespace(options=[], drawn=[], shares=[], failures=[])

        class Held:
            def __init__(self, **options: Any) -> None:
                seen.options.append(options)

            def __enter__(self) -> Held:
                return self

            def __exit__(self, *_: object) -> None: ...

            def run(self, chosen: Any, *, folder: Any, tell: Any, tell_shrinking: Any) -> Any:
                seen.drawn.append(list(chosen))
                tell(1, 0)
                tell_shrinking(0, 0)
                tell_shrinking(1, 4)
                row = CampaignRow(engine="omega", runs=2, failed=0, refused=0, checks={})
                return CampaignResult(
                    world="simulated", rows=[row], failures=seen.failures, seconds=0.0
                )

        class Progress:
            def __init__(self, title: str) -> None:
                self.title = title

            def __enter__(self) -> Any:
                return lambda share: seen.shares.append((self.title, share))

            def __exit__(self, *_: object) -> None: ...

        monkeypatch.setattr("argosy.campaign.campaign.Campaign", Held)
        monkeypatch.setattr(campaign, "progress", Progress)
        return seen

    def test_progress_is_a_share_of_all_runs(self, argosy: Call, held: SimpleNamespace) -> None:
        argosy("campaign", "--engine", "omega", "--runs", "4")
        assert held.shares == [
            ("running scenarios", 0.25),
            ("shrinking failures", 0.0),
            ("shrinking failures", 0.25),
        ]

    @pytest.mark.parametrize(("count", "expected"), [(None, 1), (6, 6)])
    def test_there_is_a_worker_for_each_cpu_or_one_if_nobody_knows(
        self,
        argosy: Call,
        held: SimpleNamespace,
        monkeypatch: pytest.MonkeyPatch,
        count: int | None,
        expected: int,
    ) -> None:
        monkeypatch.setattr("os.cpu_count", lambda: count)
        argosy("campaign", "--engine", "omega", "--runs", "1")
        argosy("campaign", "--engine", "omega", "--runs", "1", "--workers", "3")
        assert [options["workers"] for options in held.options] == [expected, 3]

    def test_a_failure_ends_it_with_1(
        self, argosy: Call, held: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("argosy.report.campaigns.sections", lambda result, width: [["found"]])
        monkeypatch.setattr("argosy.report.campaigns.verdict", lambda result: "one is wrong")
        assert argosy("campaign", "--engine", "omega", "--runs", "1") == (
            0,
            "found\n",
            "\none is wrong\n",
        )
        held.failures = ["something"]
        assert argosy("campaign", "--engine", "omega", "--runs", "1").code == 1

    def test_files_have_to_be_scenarios(
        self, argosy: Call, held: SimpleNamespace, small: Path
    ) -> None:
        wrong = small.with_name("wrong.toml")
        wrong.write_text(small.read_text().replace("count = 2", "count = -2", 1))
        for options in ((wrong,), (small, wrong), ("--fleet", wrong)):
            told = argosy("campaign", *options).complaint
            assert told.startswith(f"argosy: error[scenario]: {wrong}:")
        assert held.drawn == []
        argosy("campaign", small)
        [[drawn]] = held.drawn
        assert (drawn.number, drawn.document["name"]) == (0, "small")

    def test_places_of_a_fleet_are_left_out_because_clusters_are_drawn(
        self, argosy: Call, held: SimpleNamespace
    ) -> None:
        vela = QUICKSTART.parent / "vela.toml"
        assert argosy("campaign", "--fleet", vela, "--runs", "1").code == 0
        [[drawn]] = held.drawn
        assert {table["name"] for table in drawn.document["fleet"]} == {"vela"}
        assert all("place" not in table for table in drawn.document["fleet"])

    def test_all_engines_that_can_run_take_part(
        self, argosy: Call, held: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from argosy.engines.registry import ENGINES
        from argosy.model.errors import EngineFault
        from argosy.report import catalogue

        known = {name: ENGINES[name] for name in ("omega", "medea")}
        broken = {"gone": EngineFault("lost")}
        monkeypatch.setattr("argosy.engines.registry.survey", lambda: (known, broken))
        monkeypatch.setattr(
            catalogue, "lacking", lambda engine: "no solver" if engine.name == "medea" else ""
        )
        told = argosy("campaign", "--runs", "3")
        assert told.err.splitlines()[:2] == ["note: skipped: lost", "note: skipped: no solver"]
        [drawn] = held.drawn
        assert {table["engine"] for each in drawn for table in each.document["fleet"]} == {"omega"}

    def test_a_world_has_scenarios_without_what_it_lacks(
        self, argosy: Call, held: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from argosy.campaign.worlds import find_world

        sources: list[Any] = []

        class Source:
            def __init__(self, seed: int, engines: Any, *, without: Any) -> None:
                sources.append((seed, list(engines), without))

        monkeypatch.setattr("argosy.campaign.draw.ScenarioSource", Source)
        monkeypatch.setattr("argosy.campaign.campaign.Campaign.run", None, raising=False)
        names = ("--engine", "kube", "--engine", "omega", "--engine", "kube")
        for world in ("simulated", "local"):
            lacks = find_world(world).lacks
            some = ("--world", world, "--without", "gangs", "--seed", "9", "--runs", "1")
            argosy("campaign", *names, *some)
            assert sources.pop() == (9, ["kube", "omega"], frozenset({"gangs"}) | lacks)
        assert "unknown" in argosy("campaign", *names, "--world", "real").complaint


class TestRecord:
    class Recorded:
        def __enter__(self) -> TestRecord.Recorded:
            return self

        def __exit__(self, *_: object) -> None: ...

        def recording(self) -> list[bytes]:
            job = b'{"id": "%b", "submit": 5, "duration": 7}\n'
            return [b'{"cluster": {"name": "n", "seed": 3}}\n', job % b"a", job % b"b"]

        def journal(self, life: int | None) -> list[bytes]:
            assert life is None
            return [b"x" * 1_000, b"y" * 234]

    @pytest.fixture(autouse=True)
    def cluster(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ServerChoice, "client", lambda self: TestRecord.Recorded())

    def test_one_of_the_two_is_written(self, argosy: Call, tmp_path: Path) -> None:
        assert argosy("record", "-o", "r") == (0, "", "r/scenario.toml: 2 jobs\n")
        assert argosy("record", "--journal", "j") == (0, "", "j: 1,234 bytes\n")
        assert (tmp_path / "j").read_bytes() == b"x" * 1_000 + b"y" * 234
        text = (tmp_path / "r/scenario.toml").read_text()
        assert 'path = "jobs.jsonl"' in text
        assert "seed = 3" in text

    def test_a_file_that_was_there_is_replaced_and_kept_if_writing_fails(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "f"
        path.write_bytes(b"before")

        def break_off() -> None:
            with record._whole(path) as file:
                file.write(b"half")
                raise KeyError

        with pytest.raises(KeyError):
            break_off()
        assert path.read_bytes() == b"before"
        with record._whole(path) as file:
            file.write(b"after")
            assert path.read_bytes() == b"before"
        assert path.read_bytes() == b"after"
        assert list(tmp_path.iterdir()) == [path]

    def test_what_pods_cannot_be_in_a_scenario_is_told(
        self, argosy: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from argosy.cli import record_kubernetes

        asked: list[Any] = []
        made = scenario("omega", [job("a", 3), job("b", 1)])
        carried = SimpleNamespace(
            jobs=[each.job for each in made.jobs],
            machines=made.cell.machines[:1],
            left_out=["less"],
        )

        def watch(kubeconfig: Any, context: Any, duration: Any, *, pinned: bool) -> Any:
            asked.append((kubeconfig, context, duration, pinned))
            return carried

        monkeypatch.setattr(record_kubernetes, "record_kubernetes", watch)
        monkeypatch.setattr(record_kubernetes, "write_cluster", lambda *given: asked.append(given))
        (tmp_path / "k").touch()
        told = argosy(
            *("record", "--kubeconfig", "k", "--context", "c", "--for", "3s", "--pinned", "-o", "r")
        )
        assert told.err.splitlines() == [
            "note: less",
            "r/scenario.toml: 1 machine, 4 pods in 2 jobs",
        ]
        argosy("record", "--context", "c", "-o", "r")
        assert [each for each in asked if len(each) == 4 and each[0] != Path("r")] == [
            (Path("k"), "c", "3s", True),
            (None, "c", None, False),
        ]
        assert asked[1] == (Path("r"), carried, "scenario.toml", "jobs.jsonl")


def test_a_summary_of_a_run_is_found_under_runs(argosy: Call, small: Path) -> None:
    argosy("run", small)
    argosy("run", small, "--seed", "5")
    document = json.loads(argosy("summary", "-o", "json").out)
    assert (document["run"], document["status"], document["seed"]) == (
        "runs/small-2",
        "finished",
        5,
    )
    [heading, row] = argosy("summary", "runs/small-1", "-o", "csv").out.splitlines()
    assert row.startswith("runs/small-1,finished,small,")
    assert len(heading.split(",")) == len(row.split(","))
