"""What `argosy compare` and `argosy sweep` ask for, leave out and show, without running anything."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import Call
from made_up import runs_of, summary

from argosy.cli import compare as comparing
from argosy.engines.registry import ENGINES
from argosy.experiments import contest, execute
from argosy.model.errors import EngineFault, MissingExtra
from argosy.report import compare_report, markdown
from argosy.report.comparison import compare
from argosy.report.metrics import find_metric
from argosy.report.overall import overall
from argosy.scenarios import loader
from argosy.scenarios.ignored_demands import IgnoredDemand

#: A scenario with six jobs that fit nowhere, and one that a gang-less engine does not start as told.
CROWDED = """\
name = "crowded"
seed = 40
horizon = "1min"
[[cell.machines]]
name = "m"
count = 2
capacity = { cpu = 4000, memory = "8GiB" }
[[workload.jobs]]
id = "fits"
gang = true
count = 2
duration = "1s"
request = { cpu = 1000 }
%s
[[fleet]]
name = "s"
engine = "omega"
"""
GIANT = '[[workload.jobs]]\nid = "giant%d"\nduration = "1s"\nrequest = { cpu = 9000 }\n'


def crowded(directory: Path, giants: int) -> Path:
    path = directory / "crowded.toml"
    path.write_text(CROWDED % "".join(GIANT % number for number in range(giants)))
    return path


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The contests that were asked for; each engine is slower than the one before it."""
    given: list[Any] = []

    def hold(source: Any, ignores: Any, seeds: Any, **options: Any) -> contest.Contest:
        tell: Callable[[float], None] = options.pop("tell")
        for share in (0.0, 0.5, 1.0):
            tell(share)
        given.append((source, list(ignores), list(seeds), options))
        runs = {
            name: tuple(summary(name, seed=seed, jct=(at + 1) * 1e7) for seed in seeds)
            for at, name in enumerate(ignores)
        }
        return contest.Contest(runs=runs, ignores=dict(ignores), failures={})

    monkeypatch.setattr(contest, "hold_contest", hold)
    return given


class TestDemands:
    @pytest.mark.parametrize(
        ("giants", "last"),
        [
            (1, "note: can never be met: giant0 "),
            (5, "note: can never be met: giant4 "),
            (6, "note: 1 more demand can never be met: argosy constraints lint "),
            (7, "note: 2 more demands can never be met: argosy constraints lint "),
        ],
    )
    def test_five_demands_are_told_and_the_others_counted(
        self, argosy: Call, held: list[Any], tmp_path: Path, giants: int, last: str
    ) -> None:
        path = crowded(tmp_path, giants)
        told = argosy("compare", path, "--engine", "omega", "-o", "json")
        notes = told.err.splitlines()
        assert len(notes) == min(giants, 6)
        assert notes[-1].startswith(last)
        if giants > 5:
            assert notes[-1].endswith(f"lint {path}")
        document = json.loads(told.out)
        assert [f"note: {text}" for text in document["unmet"]] == notes
        assert (document["left_out"], document["skipped"], document["failures"]) == ([], {}, {})

    def test_a_sweep_says_for_which_value(
        self, argosy: Call, held: list[Any], tmp_path: Path
    ) -> None:
        path = crowded(tmp_path, 6)
        told = argosy("sweep", path, "--vary", "seed=1,2", "-o", "json")
        notes = told.err.splitlines()
        assert len(notes) == 12
        assert notes[5] == "note: with seed = 1: 1 more demand can never be met"
        assert notes[11] == "note: with seed = 2: 1 more demand can never be met"
        assert json.loads(told.out)["unmet"] == [note.removeprefix("note: ") for note in notes]


class TestCompare:
    def test_the_scenario_is_that_of_the_first_seed_asked_for(
        self, argosy: Call, held: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read: list[Any] = []
        real = loader.load

        def load(path: Path, *, seed: int | None, published: bool) -> Any:
            read.append((seed, published))
            return real(path, seed=seed, published=published)

        monkeypatch.setattr(loader, "load", load)
        path = crowded(tmp_path, 0)
        argosy("compare", path, "--engine", "omega", "--seeds", "1")
        argosy("compare", path, "--engine", "omega", "--seed", "0", "--seed", "2")
        argosy("compare", path, "--engine", "omega")
        assert [seeds for _, _, seeds, _ in held] == [[40], [0, 2], [40, 41, 42, 43, 44]]
        assert [options["processes"] for *_, options in held] == [os.cpu_count()] * 3
        assert read == [(None, False), (0, False), (None, False)]

    def test_metrics_are_told_once_each_in_their_order(
        self, argosy: Call, held: list[Any], tmp_path: Path
    ) -> None:
        some = ("compare", crowded(tmp_path, 0), "--engine", "omega", "--seeds", "1", "-o", "json")

        def metrics(*options: str) -> list[str]:
            document = json.loads(argosy(*some, *options).out)
            return [each["metric"] for each in document["comparisons"]]

        assert metrics() == ["jct"]
        assert metrics("--metric", "wait", "--metric", "end", "--metric", "wait") == ["wait", "end"]
        assert metrics("--objective", "end", "--objective", "jct.p99") == ["end", "jct.p99"]

    @pytest.mark.parametrize(
        ("options", "threshold"),
        [((), 0.02), (("--threshold", "0"), 0.0), (("--threshold", "1000"), 10.0)],
    )
    def test_a_threshold_is_in_per_cent(
        self,
        argosy: Call,
        held: list[Any],
        tmp_path: Path,
        options: tuple[str, ...],
        threshold: float,
    ) -> None:
        path = crowded(tmp_path, 0)
        document = json.loads(
            argosy("compare", path, "--engine", "omega", *options, "-o", "json").out
        )
        assert document["comparisons"][0]["threshold"] == threshold

    def test_engines_that_ignore_demands_are_ranked_on_request(
        self, argosy: Call, held: list[Any], tmp_path: Path
    ) -> None:
        path = crowded(tmp_path, 0)
        names = ("--engine", "murmuration", "--engine", "omega", "--seeds", "1", "-o", "json")

        def best(*call: Any) -> Any:
            return json.loads(argosy(*call, *names).out)

        assert best("compare", path)["comparisons"][0]["best"] == "omega"
        assert best("compare", path, "--rank-all")["comparisons"][0]["best"] == "murmuration"
        for options, leader in (((), "omega"), (("--rank-all",), "murmuration")):
            [row] = best("sweep", path, "--vary", "seed=4", *options)["rows"]
            assert row["ranking"]["best"] == leader

    def test_engines_that_cannot_run_are_skipped_with_a_note(
        self, argosy: Call, held: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        taken = EngineFault("taken", hint="name the class")
        lost = EngineFault("lost", hint="install it")
        known = {name: ENGINES[name] for name in ("omega", "sparrow", "kube")}
        monkeypatch.setattr(
            "argosy.engines.registry.survey", lambda: (known, {"omega": taken, "gone": lost})
        )
        real = contest.demands_ignored

        def ignored(scenario: Any, engines: Any, also: Any = None) -> Any:
            if list(engines) == ["sparrow"]:
                raise MissingExtra("sparrow", "ilp")
            return real(scenario, engines, also)

        monkeypatch.setattr(contest, "demands_ignored", ignored)
        told = argosy("compare", crowded(tmp_path, 0), "-o", "json")
        assert told.code == 0
        assert held[0][1] == ["omega", "kube"]
        assert json.loads(told.out)["skipped"] == {
            "gone": "lost; install it",
            "sparrow": str(MissingExtra("sparrow", "ilp")),
        }
        assert told.err.splitlines() == [
            "note: skipped: lost; install it",
            f"note: skipped: {MissingExtra('sparrow', 'ilp')}",
        ]

    def test_published_forms_are_all_that_there_are_or_those_that_are_named(
        self, argosy: Call, held: list[Any], tmp_path: Path
    ) -> None:
        from argosy.engines.registry import forms_compared

        path = crowded(tmp_path, 0)
        assert argosy("compare", path, "--as-published", "--seeds", "1").code == 0
        told = argosy("compare", path, "--as-published", "--seeds", "1", "--engine", "yaq-d")
        assert told.code == 0, told.err
        assert [names for _, names, _, _ in held] == [forms_compared(), ["yaq-d"]]
        assert [options["published"] for *_, options in held] == [True, True]
        unknown = argosy("compare", path, "--as-published", "--engine", "yag-d").complaint
        assert "did you mean 'yaq-d'?" in unknown

    def test_a_long_comparison_says_so_once(
        self, argosy: Call, held: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[tuple[str, float]] = []

        class Forecast:
            def __init__(self, advice: str) -> None:
                self.advice = advice

            def line(self, share: float) -> str | None:
                asked.append((self.advice, share))
                return f"note: at {share}" if share == 0.5 else None

        monkeypatch.setattr(comparing, "Forecast", Forecast)
        told = argosy("compare", crowded(tmp_path, 0), "--engine", "omega")
        assert told.err == "note: at 0.5\n"
        advice = "shorter with fewer --engine or --seeds, or with --time-limit"
        assert asked == [(advice, share) for share in (0.0, 0.5, 1.0)]


class TestReports:
    @pytest.fixture
    def drawn(self, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
        """What reports are made from."""
        made = SimpleNamespace(runs=[], pages=[], marks=[])

        def run(scenario: Any) -> str:
            [entry] = scenario.fleet
            made.runs.append((entry.engine, scenario.seed, entry.replicas))
            return f"run of {entry.engine}"

        def page(*parts: Any) -> str:
            made.pages.append(parts)
            return "a page"

        def text(*parts: Any) -> str:
            made.marks.append(parts)
            return "a text"

        monkeypatch.setattr(execute, "execute_in_memory", run)
        monkeypatch.setattr(compare_report, "compare_page", page)
        monkeypatch.setattr(markdown, "compare_markdown", text)
        monkeypatch.setattr(sys, "argv", ["argosy", "compare", "a b"])
        return made

    def test_engines_run_once_more_with_the_first_seed(
        self, argosy: Call, held: list[Any], drawn: SimpleNamespace, tmp_path: Path
    ) -> None:
        path = crowded(tmp_path, 1)
        names = ("--engine", "mesos", "--engine", "omega", "--seed", "7", "--seed", "3")
        told = argosy("compare", path, *names, "--html", "p.html", "--markdown", "m.md")
        assert told.err.splitlines()[1:] == ["wrote p.html", "wrote m.md"]
        assert (tmp_path / "p.html").read_text() == "a page"
        assert (tmp_path / "m.md").read_text() == "a text"
        assert [(engine, seed) for engine, seed, _ in drawn.runs] == [("mesos", 7), ("omega", 7)]
        [(comparisons, runs, notes, call, by_all)] = drawn.pages
        assert runs == {"mesos": "run of mesos", "omega": "run of omega"}
        assert [each.metric for each in comparisons] == ["jct"]
        assert (len(notes), call, by_all) == (1, "argosy compare 'a b'", None)
        assert drawn.marks == [(comparisons, notes, call, by_all)]

    def test_published_forms_are_drawn_as_they_were_published(
        self,
        argosy: Call,
        held: list[Any],
        drawn: SimpleNamespace,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        formed: list[Any] = []
        real = loader.as_published

        def as_published(scenario: Any) -> Any:
            formed.append((scenario.engine_names(), scenario.seed))
            return real(scenario)

        monkeypatch.setattr(loader, "as_published", as_published)
        names = ("--engine", "yaq-d", "--seed", "6", "--html", "p.html")
        assert argosy("compare", crowded(tmp_path, 0), "--as-published", *names).code == 0
        assert formed[-1] == (["yaq-d"], 6)
        assert [(engine, seed) for engine, seed, _ in drawn.runs] == [("yaq-d", 6)]

    @pytest.mark.parametrize(("options", "count"), [((), 5), (("--all",), 12)])
    def test_not_more_engines_are_drawn_than_are_shown(
        self,
        argosy: Call,
        held: list[Any],
        drawn: SimpleNamespace,
        tmp_path: Path,
        options: tuple[str, ...],
        count: int,
    ) -> None:
        path = crowded(tmp_path, 0)
        argosy("compare", path, "--seeds", "1", "--rank-all", "--html", "p.html", *options)
        assert len(drawn.runs) == count
        [(comparisons, runs, *_)] = drawn.pages
        assert list(runs) == [each.engine for each in comparisons[0].standings][:count]

    @pytest.mark.parametrize("option", ["--html", "--markdown"])
    def test_a_report_that_cannot_be_written_names_its_option(
        self,
        argosy: Call,
        held: list[Any],
        drawn: SimpleNamespace,
        tmp_path: Path,
        option: str,
    ) -> None:
        path = crowded(tmp_path, 0)
        told = argosy("compare", path, "--engine", "omega", option, "none/x")
        assert told.complaint.endswith(f"{option} none/x: No such file or directory")


class TestText:
    def ranking(self, count: int, seeds: int = 1, **options: Any) -> Any:
        runs = runs_of(**{f"e{at}": [(at + 1) * 1e7] * seeds for at in range(count)})
        return compare(runs, find_metric("jct"), **options)

    def headings(self, ranking: Any, **options: Any) -> list[str]:
        return [section[0] for section in comparing.sections([ranking], None, **options)]

    def test_every_part_has_its_heading(self) -> None:
        assert self.headings(self.ranking(2)) == [
            "made-up, seed 0",
            "median JCT",
            "e0 is best by median JCT:",
            "spread of JCT",
            "where a finished job's time goes, on average",
            "why: parts of the mean JCT, conflicts, messages, share of resources in use",
        ]

    @pytest.mark.parametrize(
        ("count", "most", "hidden"), [(6, 5, 1), (5, 5, 0), (9, 5, 4), (9, None, 0), (3, 2, 1)]
    )
    def test_engines_that_are_not_shown_are_counted(
        self, count: int, most: int | None, hidden: int
    ) -> None:
        *_, last = comparing.sections([self.ranking(count)], None, most=most)
        what = "engine" if hidden == 1 else "engines"
        told = [f"{hidden} more {what} in detail: --all"] if hidden else []
        assert [line for line in last if "--all" in line] == told
        shown = count - hidden
        assert [line.split()[0] for line in last[2 : 2 + shown]] == [
            f"e{at}" for at in range(shown)
        ]

    def test_engines_that_are_not_ranked_have_a_part_of_their_own(self) -> None:
        ignores = {"e0": [IgnoredDemand("e0", "gangs", "1 job asks for one")]}
        ranking = self.ranking(3, ignores=ignores)
        parts = {section[0]: section for section in comparing.sections([ranking], None, most=1)}
        assert parts["not ranked"][2].split()[0] == "e0"
        # Only those that are ranked are shown in detail.
        for most, shown, last in (
            (1, ["e1"], "2 more engines"),
            (3, ["e1", "e2"], "1 more engine"),
        ):
            *_, why = comparing.sections([ranking], None, most=most)
            assert [line.split()[0] for line in why[2 : 2 + len(shown)]] == shown
            assert why[-1] == f"{last} in detail: --all"

    def test_objectives_are_told_together_after_those_that_are_not_ranked(self) -> None:
        runs = runs_of(a=[1e7], b=[2e7])
        rankings = [compare(runs, find_metric(name)) for name in ("jct", "end")]
        shown = comparing.sections(rankings, 50, overall=overall(rankings))
        headings = [section[0] for section in shown]
        assert [name for name in headings if name in ("median JCT", find_metric("end").title)] == [
            *("median JCT", find_metric("end").title),
        ]
        at = headings.index("all objectives together")
        assert headings[at + 1] == "spread of JCT"
        assert max(map(len, shown[at])) <= 50

    def test_if_nobody_is_ranked_those_that_ran_are_shown(self) -> None:
        runs = {name: [summary(name, finished=0)] for name in ("e0", "e1")}
        ranking = compare(runs, find_metric("jct"))
        parts = {section[0]: section for section in comparing.sections([ranking], None, most=1)}
        assert "median JCT" not in parts
        assert "where a finished job's time goes, on average" not in parts
        why = parts["why: parts of the mean JCT, conflicts, messages, share of resources in use"]
        assert why[2].split()[0] == "e0"
        assert why[-1] == "1 more engine in detail: --all"

    @pytest.mark.parametrize("width", [60, 90, 200])
    def test_plots_fit_a_terminal_and_are_not_wider_than_a_hundred(self, width: int) -> None:
        sections = comparing.sections([self.ranking(2)], width)
        spread = next(section for section in sections if section[0] == "spread of JCT")
        assert max(map(len, spread[1:])) <= min(width, 100)
        told = next(section for section in sections if "is best" in section[0])
        assert max(map(len, told)) <= width

    def test_long_sentences_continue_with_an_indent(self) -> None:
        lines = ["one two three four", "five"]
        assert comparing._wrapped(lines, None) == lines
        assert comparing._wrapped(lines, 10) == ["one two", "    three", "    four", "five"]

    def test_columns_are_those_of_any_run(self) -> None:
        from msgspec.structs import replace

        runs = runs_of(a=[1e7], b=[1e7])
        runs["b"] = [replace(runs["b"][0], network={"sent": 1, "stolen": 3})]
        heading, first, second = comparing.csv(runs).splitlines()
        names = heading.split(",")
        assert names[0] == "engine"
        assert len(names) == len(set(names))
        for row, engine, stolen, lost in ((first, "a", "", "7"), (second, "b", "3", "")):
            told = dict(zip(names, row.split(","), strict=True))
            found = {name.rpartition("_")[2]: value for name, value in told.items()}
            assert told["engine"] == engine
            assert (found["stolen"], found["lost"]) == (stolen, lost)


def test_a_time_limit_is_a_duration(argosy: Call, held: list[Any], tmp_path: Path) -> None:
    path = crowded(tmp_path, 0)
    argosy("compare", path, "--engine", "omega", "--time-limit", "5min")
    assert held[0][3]["time_limit"] == 300.0
    told = argosy("compare", path, "--time-limit", "5").complaint
    assert re.search(r"--time-limit: .*no unit.*; expected ", told)


def test_a_sweep_names_its_engines_once_and_its_fleet_without_any(
    argosy: Call, held: list[Any], tmp_path: Path
) -> None:
    path = crowded(tmp_path, 0)
    argosy("sweep", path, "--vary", "seed=4", "--engine", "kube", "--engine", "kube")
    argosy("sweep", path, "--vary", "seed=4")
    assert [(names, seeds) for _, names, seeds, _ in held] == [
        (["kube"], [4, 5, 6]),
        (["own fleet"], [4, 5, 6]),
    ]
    assert {options["processes"] for *_, options in held} == {os.cpu_count()}
    unknown = argosy("sweep", path, "--vary", "seed=4", "--engine", "kuba").complaint
    assert "did you mean 'kube'?" in unknown
    assert (
        "0 is not in the range"
        in argosy("sweep", path, "--vary", "seed=4", "--seeds", "0").complaint
    )


def test_a_sweep_heads_its_table_with_what_is_measured(
    argosy: Call, held: list[Any], tmp_path: Path
) -> None:
    out = argosy("sweep", crowded(tmp_path, 0), "--vary", "seed=4,6", "--metric", "wait.p90").out
    assert out.splitlines()[0] == f"crowded: {find_metric('wait.p90').title} by seed"


@pytest.mark.parametrize(("count", "expected"), [(None, 1), (6, 6)])
def test_there_is_a_process_for_each_cpu_or_one_if_nobody_knows(
    argosy: Call,
    held: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: int | None,
    expected: int,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    path = crowded(tmp_path, 0)
    argosy("compare", path, "--engine", "omega")
    argosy("sweep", path, "--vary", "seed=4")
    argosy("sweep", path, "--vary", "seed=4", "--jobs", "2")
    assert [options["processes"] for *_, options in held] == [expected, expected, 2]
