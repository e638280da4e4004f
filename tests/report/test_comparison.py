"""Which engine is best, in tables and sentences, from summaries made up for the purpose."""

from __future__ import annotations

import msgspec
import pytest
from made_up import JCT, runs_of, spread, summary

from argosy.measures.statistics import Ratio
from argosy.model.errors import CommandError, UnknownName
from argosy.records.summary import (
    Distribution,
    KindSummary,
    Summary,
)
from argosy.report import comparison
from argosy.report.comparison import RankingRule, compare
from argosy.report.metrics import METRICS, find_metric
from argosy.report.overall import overall, overall_lines, overall_table
from argosy.report.verdicts import reasons, verdict
from argosy.scenarios.ignored_demands import IgnoredDemand


class TestComparison:
    def test_jobs_that_never_end_are_no_unfinished_ones(self) -> None:
        made = summary(finished=60)
        counts = msgspec.structs.replace(made.counts, jobs_endless=40)
        (standing,) = compare({"a": [msgspec.structs.replace(made, counts=counts)]}, JCT).standings
        assert standing.finished == 1.0

    def test_the_engine_with_the_smallest_median_is_best(self) -> None:
        compared = compare(runs_of(slow=[30e6, 31e6, 29e6], fast=[10e6, 11e6, 9e6]), JCT)
        assert compared.best == "fast"
        assert [s.engine for s in compared.standings] == ["fast", "slow"]
        first, second = verdict(compared, JCT)
        assert first == "fast is best by median JCT:"
        assert second.startswith("  3.00 ± ")
        assert second.endswith(" times faster than slow")

    def test_an_engine_that_comes_close_leaves_the_best_clearly_ahead_of_others(self) -> None:
        close = {"a": [10e6, 14e6, 12e6], "b": [14e6, 10e6, 12.1e6]}
        compared = compare(runs_of(**close, slow=[30e6, 31e6, 29e6]), JCT)
        first, second = verdict(compared, JCT)
        assert first.startswith("a and b tie for first place by median JCT (less than 2 % apart")
        assert second.endswith(" times faster than slow")
        assert [s.place for s in compared.standings] == [1, 1, 2]

    def test_a_difference_within_the_noise_is_called_so(self) -> None:
        compared = compare(runs_of(a=[10e6, 14e6, 12e6], b=[14e6, 10e6, 12.1e6]), JCT)
        assert verdict(compared, JCT) == [
            "All engines tie by median JCT (less than 2 % apart, or no more than chance would explain)."
        ]
        assert compared.leaders == ("a", "b")

    def test_a_difference_that_is_sure_but_small_is_a_tie(self) -> None:
        runs = runs_of(a=[10e6, 11e6, 12e6], b=[10.1e6, 11.1e6, 12.1e6])
        assert compare(runs, JCT).leaders == ("a", "b")
        assert compare(runs, JCT, rule=RankingRule(threshold=0.005)).leaders == ("a",)

    def test_what_two_engines_would_decide_may_be_chance_among_many(self) -> None:
        # In one of eight seeds `b` is better: sure enough for two engines, not for dozens.
        base = [10e6] * 8
        pair = {"a": base, "b": [*[11e6] * 7, 9e6]}
        crowd = {f"c{n}": [30e6 + n] * 8 for n in range(40)}
        assert compare(runs_of(**pair), JCT).leaders == ("a",)
        assert compare(runs_of(**pair, **crowd), JCT).leaders == ("a", "b")

    def test_equal_engines_are_called_equal(self) -> None:
        compared = compare(runs_of(a=[10e6, 14e6], b=[10e6, 14e6]), JCT)
        assert verdict(compared, JCT) == ["All engines are equal by median JCT."]

    def test_equal_engines_with_different_means_are_distinguished_without_contradiction(
        self,
    ) -> None:
        runs = runs_of(a=[10e6, 10e6], b=[10e6, 10e6])
        slower = msgspec.structs.replace(spread(10e6), mean=12e6)
        runs["b"] = [msgspec.structs.replace(s, jct=slower) for s in runs["b"]]
        assert verdict(compare(runs, JCT), JCT) == [
            "All engines are equal by median JCT; their mean JCT differs, from a 10 s to b 12 s.",
        ]

    def test_some_equal_engines_are_best_together(self) -> None:
        runs = runs_of(a=[10e6, 14e6], b=[10e6, 14e6], c=[30e6, 42e6])
        first, second = verdict(compare(runs, JCT), JCT)
        assert first == "a and b are equal by median JCT, and best:"
        assert second.endswith("times faster than c")

    def test_if_every_engine_ignores_something_all_are_ranked_and_it_is_said(self) -> None:
        ignores = {
            "slow": [IgnoredDemand("slow", "gangs", "1 job asks for one")],
            "fast": [IgnoredDemand("fast", "placement constraints", "2 jobs have some")],
        }
        compared = compare(runs_of(slow=[30e6, 31e6], fast=[10e6, 11e6]), JCT, ignores)
        assert compared.best == "fast"
        assert [line for line in verdict(compared, JCT) if "ignores" in line] == [
            "  fast ignores placement constraints (2 jobs have some)",
            "  slow ignores gangs (1 job asks for one)",
        ]

    def test_a_skewed_ratio_shows_its_interval(self) -> None:
        compared = compare(runs_of(a=[10e6] * 5, b=[20e6, 20e6, 20e6, 20e6, 90e6]), JCT)
        ratio = compared.standing("b").ratio
        assert ratio is not None
        skewed = msgspec.structs.replace(ratio, uncertainty=0.5, low=1.9, high=4.0)
        standing = msgspec.structs.replace(compared.standing("b"), ratio=skewed)
        compared = msgspec.structs.replace(compared, standings=(compared.standing("a"), standing))
        assert "  2.00 ± 0.50 times faster than b (95 % from 1.90 to 4.00)" in verdict(
            compared, JCT
        )

    def test_a_skew_that_two_decimals_do_not_show_is_left_out(self) -> None:
        compared = compare(runs_of(a=[10e6] * 5, b=[20e6] * 5), JCT)
        narrow = Ratio(2.0, 0.002, 1.999, 2.005)
        standing = msgspec.structs.replace(compared.standing("b"), ratio=narrow)
        compared = msgspec.structs.replace(compared, standings=(compared.standing("a"), standing))
        assert "  2.00 ± 0.00 times faster than b" in verdict(compared, JCT)

    def test_an_engine_that_starves_jobs_makes_nobody_clearly_best(self) -> None:
        runs = runs_of(a=[10e6, 14e6, 12e6], b=[14e6, 10e6, 12.1e6])
        runs["starving"] = [summary("starving", seed=s, jct=1e6, finished=60) for s in range(3)]
        lines = verdict(compare(runs, JCT), JCT)
        assert lines[0].startswith("All ranked engines tie by median JCT")

    def test_an_engine_that_ignores_demands_never_wins_unless_asked_to(self) -> None:
        ignores = {"fast": [IgnoredDemand("fast", "gangs", "1 job asks for one")]}
        runs = runs_of(slow=[30e6, 31e6], fast=[10e6, 11e6])
        compared = compare(runs, JCT, ignores)
        assert compared.best == "slow"
        apart = compared.standing("fast")
        assert (apart.place, apart.apart) == (None, "ignores gangs")
        first, second = verdict(compared, JCT)
        assert first == "slow is best by median JCT."
        assert second == (
            "  1 engine is not ranked because it ignores what the scenario asks for:"
            " gangs (1 job asks for one)"
        )
        (row,) = comparison.apart_table(compared, JCT).records()
        assert (row["engine"], row["apart"]) == ("fast", "ignores gangs")
        everyone = compare(runs, JCT, ignores, rule=RankingRule(everyone=True))
        assert everyone.best == "fast"
        assert "  fast ignores gangs (1 job asks for one)" in verdict(everyone, JCT)

    def test_how_often_gangs_were_split_is_shown(self) -> None:
        made = runs_of(a=[10e6], b=[20e6])
        made["b"] = [
            msgspec.structs.replace(
                s, counts=msgspec.structs.replace(s.counts, gangs=4, gangs_split=3)
            )
            for s in made["b"]
        ]
        ignores = {"b": [IgnoredDemand("b", "gangs", "4 jobs ask for one")]}
        (row,) = comparison.apart_table(compare(made, JCT, ignores), JCT).records()
        assert row["split_gangs"] == 0.75

    @pytest.mark.parametrize(("passed", "best"), [(10, "fast"), (11, "slow")])
    def test_a_few_jobs_that_were_passed_over_do_not_count(self, passed: int, best: str) -> None:
        made = runs_of(slow=[30e6], fast=[10e6])
        counts = msgspec.structs.replace(
            made["fast"][0].counts, jobs_preceding=1_000, jobs_passed_over=passed
        )
        made["fast"] = [msgspec.structs.replace(made["fast"][0], counts=counts)]
        ignores = {"fast": [IgnoredDemand("fast", "priorities", "1,000 jobs have a higher one")]}
        assert compare(made, JCT, ignores).best == best

    @pytest.mark.parametrize(("passed", "best"), [(0, "fast"), (3, "slow")])
    def test_ignored_priorities_count_if_a_job_was_passed_over(
        self, passed: int, best: str
    ) -> None:
        made = runs_of(slow=[30e6, 31e6], fast=[10e6, 11e6])
        made["fast"] = [
            msgspec.structs.replace(
                s,
                counts=msgspec.structs.replace(
                    s.counts, jobs_preceding=25, jobs_passed_over=passed
                ),
            )
            for s in made["fast"]
        ]
        ignores = {"fast": [IgnoredDemand("fast", "priorities", "25 jobs have a higher one")]}
        compared = compare(made, JCT, ignores)
        assert compared.best == best
        assert compared.standing("fast").passed_over == passed / 25
        assert compared.standing("slow").passed_over is None
        rows = comparison.apart_table(compared, JCT).records()
        told = [
            (0.12, "ignores priorities: 12 % of the jobs of higher precedence were passed over")
        ]
        assert [(row["passed_over"], row["apart"]) for row in rows] == told[: passed and 1]
        is_told = any("priorities" in line for line in verdict(compared, JCT))
        assert is_told is bool(compared.standing("fast").ignores) is bool(passed)
        everyone = compare(made, JCT, ignores, rule=RankingRule(everyone=True))
        shown = f"  fast {told[0][1]}"
        assert (shown in verdict(everyone, JCT)) is bool(passed)

    def test_an_engine_that_finished_fewer_jobs_is_not_said_to_be_apart_for_what_it_ignores(
        self,
    ) -> None:
        made = runs_of(slow=[30e6, 31e6], fast=[10e6, 11e6])
        made["fast"] = [
            msgspec.structs.replace(s, counts=msgspec.structs.replace(s.counts, jobs_finished=0))
            for s in made["fast"]
        ]
        ignores = {name: [IgnoredDemand(name, "gangs", "1 job asks for one")] for name in made}
        compared = compare(made, JCT, ignores)
        assert compared.standing("fast").apart == "finished fewer jobs"
        assert "  slow ignores gangs (1 job asks for one)" in verdict(compared, JCT)

    def test_an_engine_that_failed_is_told_with_its_error(self) -> None:
        compared = compare(runs_of(a=[10e6]), JCT, failures={"b": "with seed 1: no memory"})
        assert "  b failed: with seed 1: no memory" in verdict(compared, JCT)
        (row,) = comparison.apart_table(compared, JCT).records()
        assert (row["engine"], row["apart"]) == ("b", "failed: with seed 1: no memory")

    def test_where_mean_and_tail_name_another_engine_is_told(self) -> None:
        runs = runs_of(a=[10e6, 10e6], b=[20e6, 20e6])
        heavy = Distribution(100, 90e6, 8e6, 100e6, 400e6, 500e6)
        runs["a"] = [msgspec.structs.replace(s, jct=heavy) for s in runs["a"]]
        lines = verdict(compare(runs, JCT), JCT)
        assert lines[0] == "a is best by median JCT:"
        assert lines[2:] == ["  by mean JCT, b is best", "  by p99 JCT, b is best"]

    def test_a_kind_of_job_that_the_best_engine_neglects_is_told(self) -> None:
        def with_kinds(made: Summary, **kinds: tuple[float, int]) -> Summary:
            return msgspec.structs.replace(
                made,
                kinds={
                    kind: KindSummary(
                        jobs=10,
                        jobs_finished=finished,
                        jobs_abandoned=0,
                        wait_time=Distribution(),
                        placement_latency=Distribution(),
                        jct=spread(jct),
                    )
                    for kind, (jct, finished) in kinds.items()
                },
            )

        runs = {
            "a": [
                with_kinds(summary("a", jct=10e6), batch=(10e6, 10), gpu=(5e6, 3), web=(9e6, 10))
            ],
            "b": [
                with_kinds(summary("b", jct=20e6), batch=(20e6, 10), gpu=(5e6, 9), web=(3e6, 10))
            ],
        }
        compared = compare(runs, JCT)
        lines = verdict(compared, JCT)
        assert "  of jobs of kind gpu, a finishes only 30 %, b 90 %" in lines
        assert "  for jobs of kind web, b is 3.00 times faster than a" in lines
        assert not any("batch" in line for line in lines)
        # Whoever finishes only the quick jobs of a kind is not the fastest at it.
        runs["c"] = [
            with_kinds(summary("c", jct=30e6), batch=(1e6, 2), gpu=(5e6, 9), web=(9e6, 10))
        ]
        assert not any("batch" in line for line in verdict(compare(runs, JCT), JCT))
        table = comparison.kinds_table(compared.standings, "kinds")
        assert table is not None
        assert table.records()[0]["gpu_finished"] == 0.3

    def test_objectives_decide_in_their_order_and_show_who_is_beaten(self) -> None:
        runs = {
            "quick": [summary("quick", jct=10e6, wait=3e6)],
            "prompt": [summary("prompt", jct=20e6, wait=1e6)],
            "poor": [summary("poor", jct=20e6, wait=3e6)],
        }
        found = overall([compare(runs, JCT), compare(runs, find_metric("wait"))])
        assert [(r.engine, r.place, r.beaten_by) for r in found.ranks] == [
            ("quick", 1, ""),
            ("prompt", 2, ""),
            ("poor", 3, "quick"),
        ]
        assert overall_lines(found) == [
            "quick is best in this order of objectives.",
            "With another order, one of these may be: prompt.",
        ]
        assert overall_table(found).records()[2]["beaten_by"] == "quick"

    def test_one_seed_claims_no_certainty(self) -> None:
        lines = verdict(compare(runs_of(a=[10e6], b=[20e6]), JCT), JCT)
        assert "  2.00 times faster than b" in lines
        assert "±" not in "\n".join(lines)

    def test_an_engine_that_starves_jobs_cannot_be_best(self) -> None:
        runs = runs_of(honest=[20e6, 20e6])
        runs["starving"] = [summary("starving", seed=s, jct=1e6, finished=60) for s in range(2)]
        compared = compare(runs, JCT)
        assert compared.best == "honest"
        text = "\n".join(verdict(compared, JCT))
        assert "starving finished 60 % of all jobs" in text
        (row,) = comparison.apart_table(compared, JCT).records()
        assert (row["engine"], row["apart"]) == ("starving", "finished fewer jobs")
        (ranked,) = comparison.table(compared, JCT).records()
        assert ranked["engines"] == "honest"

    def test_an_engine_can_be_best_although_no_engine_finishes_nearly_all_jobs(self) -> None:
        jcts = {"slow": 20e6, "fast": 10e6}
        runs = {name: [summary(name, jct=jct, finished=60)] for name, jct in jcts.items()}
        assert compare(runs, JCT).best == "fast"

    def test_an_engine_that_finishes_nothing_stands_last(self) -> None:
        runs = runs_of(works=[20e6])
        runs["stuck"] = [summary("stuck", seed=0, finished=0)]
        compared = compare(runs, JCT)
        assert compared.standings[-1].estimate is None
        assert "stuck has no median JCT" in "\n".join(verdict(compared, JCT))
        (row,) = comparison.apart_table(compared, JCT).records()
        assert (row["engine"], row["apart"]) == ("stuck", "no job finished")

    def test_a_comparison_in_which_no_engine_finishes_says_so(self) -> None:
        compared = compare({"stuck": [summary(finished=0)]}, JCT)
        assert compared.best is None
        assert verdict(compared, JCT) == ["No engine has a median JCT: no job finished."]
        assert reasons(compared) == []

    def test_a_zero_median_gives_a_sentence_instead_of_infinity(self) -> None:
        runs = runs_of(a=[10e6], b=[20e6])
        runs["a"] = [summary("a", seed=0, wait=0)]
        metric = find_metric("wait")
        assert "inf" not in "\n".join(verdict(compare(runs, metric), metric))

    def test_the_reasons_account_for_the_whole_difference(self) -> None:
        runs = {
            "a": [summary("a", jct=10e6, wait=1e6)],
            "b": [summary("b", jct=20e6, wait=4e6)],
        }
        text = "\n".join(reasons(compare(runs, JCT)))
        assert "A finished job took 10 s more on average with b than with a: +3 s waiting" in text
        assert "+3 s being placed, +4 s placed and not yet done" in text

    def test_a_job_that_never_ends_is_not_part_of_the_split(self) -> None:
        # A service placed after an hour moves the mean placement latency, but finishes nothing.
        late = msgspec.structs.replace(summary("a"), placement_latency=spread(3600e6))
        (standing,) = compare({"a": [late]}, JCT).standings
        assert standing.breakdown == comparison.Breakdown(1e6, 1e6, 8e6)

    def test_without_finished_jobs_there_is_no_split(self) -> None:
        compared = compare({"stuck": [summary(finished=0)]}, JCT)
        assert comparison.breakdown(compared.standings, 80) == []
        assert comparison.causes(compared.standings).records()[0]["placing"] is None

    @pytest.mark.parametrize(("violating", "is_shown"), [(None, False), (0.0, True), (0.5, True)])
    def test_violations_are_shown_where_there_are_constraints(
        self, violating: float | None, is_shown: bool
    ) -> None:
        (standing,) = compare({"a": [summary()]}, JCT).standings
        standing = msgspec.structs.replace(standing, violating=violating)
        (row,) = comparison.causes([standing]).records()
        assert ("violating" in row) is is_shown

    def test_a_result_does_not_depend_on_who_else_took_part(self) -> None:
        runs = runs_of(a=[10e6, 12e6, 11e6], b=[20e6, 18e6, 25e6], c=[30e6, 33e6, 31e6])
        both = {name: runs[name] for name in ("b", "a")}
        assert compare(runs, JCT).standing("b") == compare(both, JCT).standing("b")

    def test_engines_under_different_seeds_are_not_compared(self) -> None:
        runs = runs_of(a=[10e6], b=[10e6, 20e6])
        with pytest.raises(CommandError, match="same seeds"):
            compare(runs, JCT)

    def test_an_unknown_metric_offers_the_nearest(self) -> None:
        with pytest.raises(UnknownName, match="unknown metric 'jtc'") as caught:
            find_metric("jtc")
        assert caught.value.hint == "did you mean 'jct'?"

    def test_every_metric_reads_a_summary(self) -> None:
        assert all(metric.value(summary()) is not None for metric in METRICS.values())

    def test_plots_of_a_comparison_fit_their_width(self) -> None:
        compared = compare(runs_of(a=[10e6, 12e6], a_long_name=[500e6, 400e6]), JCT)
        for width in (80, 120):
            for lines in (
                comparison.bars(compared.standings, JCT, width),
                comparison.breakdown(compared.standings, width),
                comparison.spread(compared.standings, width),
            ):
                assert max(map(len, lines)) <= width
