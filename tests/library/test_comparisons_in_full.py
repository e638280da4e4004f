"""A comparison has all that its contest found, and questions about a run are checked."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_up import summary
from msgspec.structs import replace
from test_library_parts import comparison

import argosy
from argosy.engines.registry import ENGINES
from argosy.library import comparisons
from argosy.library.comparisons import _source
from argosy.library.results import Result
from argosy.model.errors import ArgosyError
from argosy.model.scenario import Scenario
from argosy.report.metrics import find_metric
from argosy.report.verdicts import reasons, verdict
from argosy.scenarios.ignored_demands import IgnoredDemand
from argosy.testing.builders import job, scenario

QUICKSTART = Path(__file__).parents[2] / "scenarios" / "quickstart.toml"


def test_a_comparison_has_all_that_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(scenario("omega", [job("a")], seed=4), left_out=("usage is not told.",))
    runs = {"omega": (summary("omega", jct=1e6), summary("omega", jct=2e6))}
    ignores = {"omega": (IgnoredDemand("omega", "gangs", "1 job asks for one"),), "bad": ()}
    found = SimpleNamespace(runs=runs, ignores=ignores, failures={"bad": "with seed 4: broken"})
    monkeypatch.setattr(comparisons, "hold_contest", lambda *given, **named: found)
    made = argosy.compare(spec, ["omega", "kube"], 2)
    assert made == argosy.Comparison(
        scenario=spec.name,
        seeds=(4, 5),
        runs=runs,
        ignores=ignores,
        failures={"bad": "with seed 4: broken"},
        left_out=("usage is not told.",),
    )


@pytest.mark.parametrize("metric", ["jct", "wait"])
def test_a_verdict_is_followed_by_its_reasons(metric: str) -> None:
    ignored = IgnoredDemand("c", "gangs", "1 job asks for one")
    made = comparison(ignores={"c": (ignored,)}, failures={"d": "with seed 0: broken"})
    ranking = made.ranking(metric)
    assert made.verdict(metric) == [*verdict(ranking, find_metric(metric)), *reasons(ranking)]
    assert made.best(metric) == ranking.best
    assert reasons(ranking)


@pytest.mark.parametrize("published", [False, True])
def test_a_file_that_is_not_drawn_again_keeps_its_form(published: bool) -> None:
    loaded = argosy.load(QUICKSTART, published=published)
    same, is_published = _source(loaded, [loaded.seed, loaded.seed])
    assert (type(same), is_published) == (Scenario, loaded.as_published)
    again = argosy.load(QUICKSTART, published=published)
    assert same == comparisons.plain(again)
    assert _source(loaded, [loaded.seed + 1]) == (QUICKSTART, published)


def test_questions_about_a_run_must_be_about_a_task() -> None:
    run = argosy.run(scenario("omega", [job("a")]))
    for ask in (run.why, run.story):
        with pytest.raises(ArgosyError, match="task 5; expected job/index"):
            ask(5)  # type: ignore[arg-type,operator]
    with pytest.raises(ArgosyError, match="a Result, or the path of a run"):
        argosy.why(5, "a/0")  # type: ignore[arg-type]
    with pytest.raises(ArgosyError, match="metric 5; expected the name of a metric"):
        comparison().ranking(5)  # type: ignore[arg-type]


class Nameless(ENGINES["omega"]):  # type: ignore[misc, valid-type]
    """Known to nobody but this test."""


def test_a_run_of_a_class_is_replayed_with_it_or_says_how() -> None:
    kept = argosy.run(scenario("omega", [job("a")]), Nameless)
    assert kept.replay() == kept.replay(classes=[Nameless])
    forgetful = Result(kept._record)
    header: Any = kept._record.journal.header()
    [name] = {entry.engine for entry in header.setup.fleet}
    assert name.endswith(":Nameless")
    kept._classes.clear()
    assert forgetful.replay(classes=(Nameless,)) == kept.replay(classes=Nameless)  # type: ignore[arg-type]
