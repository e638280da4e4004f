"""How engines are ranked just where a rule begins to hold, and what intervals are drawn from."""

from __future__ import annotations

from typing import Any

import pytest
from made_up import JCT, runs_of, spread, summary
from msgspec import structs

from argosy.measures.statistics import median, ratio_of_medians
from argosy.model.random import Random
from argosy.records.summary import Distribution, KindSummary, Placement, Summary, Use
from argosy.report.comparison import NEARLY_ALL, RankingRule, compare, table
from argosy.report.verdicts import verdict
from argosy.scenarios.ignored_demands import IgnoredDemand

GANGS = IgnoredDemand(engine="c", what="gangs", asked="1 job asks for one")


def finishing(**jobs: int) -> dict[str, list[Summary]]:
    """Engines that finish so many of 100 jobs, all in the same time."""
    return {engine: [summary(engine, finished=count)] for engine, count in jobs.items()}


def changed(made: Summary, **fields: Any) -> Summary:
    return structs.replace(made, **fields)


def test_a_difference_of_just_the_threshold_is_one() -> None:
    runs = runs_of(a=[10e6], b=[15e6])
    assert compare(runs, JCT, rule=RankingRule(threshold=0.5)).leaders == ("a",)
    assert compare(runs, JCT, rule=RankingRule(threshold=0.51)).leaders == ("a", "b")


def test_an_interval_that_reaches_one_leaves_a_tie() -> None:
    # With 26 % of resamples, most of b's are as good as a's.
    assert compare(runs_of(a=[10e6] * 3, b=[11e6, 11e6, 10e6]), JCT).leaders == ("a", "b")
    assert compare(runs_of(a=[10e6] * 3, b=[11e6, 11e6, 10.9e6]), JCT).leaders == ("a",)


def test_who_ties_with_the_best_stands_before_who_is_surely_worse() -> None:
    # The median of c is the largest, but may be so by chance.
    runs = runs_of(a=[10e6] * 5, b=[11e6] * 5, c=[5e6, 6e6, 12e6, 13e6, 14e6])
    compared = compare(runs, JCT)
    assert compared.leaders == ("a", "c")
    assert [(s.engine, s.place) for s in compared.standings] == [("a", 1), ("c", 1), ("b", 2)]


def test_of_equal_medians_the_smaller_mean_leads() -> None:
    runs = runs_of(a=[10e6], b=[10e6], c=[10e6])
    for engine, mean in (("a", 12e6), ("b", 11e6), ("c", 11e6)):
        runs[engine] = [
            changed(made, jct=structs.replace(spread(10e6), mean=mean)) for made in runs[engine]
        ]
    compared = compare(runs, JCT)
    assert (compared.best, compared.leaders) == ("b", ("b", "c", "a"))
    assert [standing.engine for standing in compared.standings] == ["b", "c", "a"]


def test_intervals_come_from_streams_named_after_the_metric_and_the_engines() -> None:
    times = {
        "a": [8.0, 16.0, 24.0, 9.0],
        "b": [16.0, 8.0, 48.0, 41.0],
        "c": [90.0, 91.0, 92.0, 9.0],
    }
    compared = compare(runs_of(**{name: [1.25 * t for t in ts] for name, ts in times.items()}), JCT)
    stream = Random(0).child("jct")
    for standing in compared.standings:
        own = stream.child(standing.engine)
        mine = times[standing.engine]
        assert standing.estimate == median(mine, own)
        expected = None
        if standing.engine != "a":
            expected = ratio_of_medians(mine, times["a"], own.child("a"))
        assert standing.ratio == expected


def test_who_finishes_nearly_all_that_others_finish_is_ranked() -> None:
    assert NEARLY_ALL == 0.99
    compared = compare(finishing(a=100, b=99, c=98), JCT)
    assert {s.engine: s.apart for s in compared.standings} == {
        "a": "",
        "b": "",
        "c": "finished fewer jobs",
    }


def test_engines_that_ignore_demands_set_no_standard_for_others() -> None:
    runs = finishing(a=50, b=50, c=100)
    assert compare(runs, JCT, {"c": [GANGS]}).leaders == ("a", "b")
    everyone = compare(runs, JCT, {"c": [GANGS]}, rule=RankingRule(everyone=True))
    assert everyone.leaders == ("c",)
    # If all of them ignore something, they are ranked among themselves.
    assert compare(runs, JCT, {engine: [GANGS] for engine in runs}).leaders == ("c",)


def test_who_finished_nothing_is_apart_for_that_even_if_it_ignores_something() -> None:
    compared = compare(finishing(a=100, c=0), JCT, {"c": [GANGS]})
    assert compared.standing("c").apart == "no job finished"
    assert [s.engine for s in compared.standings] == ["a", "c"]


def test_what_is_missing_in_a_run_is_not_used_there() -> None:
    with_gpu = changed(summary(), utilisation={"cpu": 0.5, "gpu": 0.4})
    without = changed(summary(seed=2), utilisation={"cpu": 0.7})
    (standing,) = compare({"a": [with_gpu, without]}, JCT).standings
    assert standing.utilisation == pytest.approx({"cpu": 0.6, "gpu": 0.2})


def test_a_run_in_which_no_rule_was_broken_counts_for_the_median() -> None:
    def placing(seed: int, concerned: float, violating: float) -> Summary:
        mean = Use(concerned=concerned, violating=violating)
        return changed(summary(seed=seed), placement=Placement(looks=1, mean=mean, end=Use()))

    runs = [placing(1, 10, 0), placing(2, 10, 4), placing(3, 10, 1), placing(4, 0, 0)]
    (standing,) = compare({"a": runs}, JCT).standings
    assert standing.violating == 0.1
    (standing,) = compare({"a": runs[3:]}, JCT).standings
    assert standing.violating is None


def test_a_place_shows_the_least_that_one_of_its_engines_finished() -> None:
    compared = compare(finishing(a=100, b=99), JCT)
    assert table(compared, JCT).records() == [
        {
            "place": 1,
            "median": 8e6,
            "low": 8e6,
            "high": 8e6,
            "ratio": 1.0,
            "finished": 0.99,
            "engines": "a, b",
        }
    ]


def test_of_engines_that_are_not_ranked_those_without_a_value_come_last() -> None:
    runs = runs_of(best=[10e6], slow=[50e6]) | {"none": [summary(seed=0, finished=0)]}
    compared = compare(runs, JCT, {"slow": [GANGS]})
    assert [standing.engine for standing in compared.standings] == ["best", "slow", "none"]
    assert [standing.place for standing in compared.standings] == [1, None, None]


def test_slower_engines_that_are_not_listed_are_counted() -> None:
    compared = compare(runs_of(a=[10e6], b=[20e6], c=[30e6], d=[40e6]), JCT)
    times = [f"  {n}.00 times faster than {engine}" for n, engine in ((2, "b"), (3, "c"), (4, "d"))]
    first = "a is best by median JCT:"
    assert verdict(compared, JCT, has_seeds=False) == [first, *times]
    assert verdict(compared, JCT, has_seeds=False, most=3) == [first, *times]
    assert verdict(compared, JCT, has_seeds=False, most=2) == [
        first,
        *times[:2],
        "  ... and 1 more",
    ]


@pytest.mark.parametrize(
    ("mean", "threshold", "is_told"),
    [(15e6, 0.5, True), (14.9e6, 0.5, False), (10e6, 0.0, False), (10.1e6, 0.0, True)],
)
def test_engines_that_tie_differ_in_their_means_from_the_threshold_on(
    mean: float, threshold: float, is_told: bool
) -> None:
    runs = runs_of(a=[10e6], b=[10e6])
    other = structs.replace(spread(10e6), mean=mean)
    runs["b"] = [changed(made, jct=other) for made in runs["b"]]
    compared = compare(runs, JCT, rule=RankingRule(threshold=threshold))
    (told,) = verdict(compared, JCT, has_seeds=False)
    assert ("their mean JCT differs" in told) == is_told


@pytest.mark.parametrize(
    ("jct", "finished", "told"),
    [
        (15e6, 100, "  for jobs of kind batch, b is 1.50 times faster than a"),
        (14.9e6, 100, None),
        (10e6, 99, None),
        (10e6, 98, "  of jobs of kind batch, a finishes only 98 %, b 100 %"),
    ],
)
def test_the_best_may_not_be_the_best_for_one_kind_of_jobs(
    jct: float, finished: int, told: str | None
) -> None:
    def kind(time: float, count: int = 100) -> KindSummary:
        none, times = Distribution(), Distribution(count=count, p50=time)
        return KindSummary(
            jobs=100, jobs_finished=count, jobs_abandoned=0, wait_time=none,
            placement_latency=none, jct=times,
        )  # fmt: skip

    runs = runs_of(a=[10e6], b=[30e6])
    other = kind(1e6)
    for engine, batch in (("a", kind(jct, finished)), ("b", kind(10e6))):
        kinds = {"batch": batch, "service": other}
        runs[engine] = [changed(made, kinds=kinds) for made in runs[engine]]
    compared = compare(runs, JCT, rule=RankingRule(threshold=0.5))
    lines = verdict(compared, JCT, has_seeds=False)
    assert [line for line in lines if "batch" in line] == ([] if told is None else [told])
