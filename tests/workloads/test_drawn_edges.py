"""Drawn and assembled jobs where a draw is at its limit."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from test_trace_parts import ENDED, SCHEDULED, STOPPED, assembled, of_task
from test_workload_parts import Chosen

from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.units import Micros
from argosy.testing.builders import SECOND, job
from argosy.workloads import clusters, fanout, mapreduce
from argosy.workloads.cluster_specs import cluster
from argosy.workloads.distributions import Constant
from argosy.workloads.google_jobs import APART, Ask, TraceEvent
from argosy.workloads.synthetic import (
    Estimates,
    JobKind,
    Synthetic,
    WeightedRequest,
    _KindDraws,
    generate,
)


def chosen(**draws: list[float]) -> Any:
    return Chosen(**draws)


class TestSynthetic:
    def draws(self, random: Any, span: int = 100, **fields: Any) -> _KindDraws:
        given: dict[str, Any] = {
            "requests": (WeightedRequest(request=Resources(1, 1)),),
            "tasks": Constant(3),
            "duration": Constant(Micros(10)),
        }
        return _KindDraws("k", JobKind(**{**given, **fields}), span, random)

    def test_a_share_stands_and_a_share_are_gangs(self) -> None:
        for stands, gang, expected in (
            (0.29, 0.39, (True, True)),
            (0.3, 0.4, (False, False)),
            (0.0, 0.99, (True, False)),
        ):
            made = self.draws(chosen(uniform=[stands, gang, 0.5]), standing=0.3, gang=0.4)
            drawn = made.count()
            assert (drawn.stands, drawn.is_gang) == expected
            assert (made.standing, made.arriving) == (int(expected[0]), int(not expected[0]))

    def test_times_vary_about_the_jobs_own(self) -> None:
        kind = {"variation": 0.5, "estimates": Estimates(low=0.5, high=2.5)}
        random = chosen(uniform=[0.9, 0.9, 0.5, 0.0, 0.5, 0.999, 0.25])
        drawn = self.draws(random, **kind).count()
        assert (drawn.tasks, drawn.durations) == (3, (5, 10, 14))
        # Their mean is 9, rounded down, and the guess a quarter of the way from a half to 2.5 times.
        assert drawn.estimate == 9
        plain = self.draws(chosen(uniform=[0.9, 0.9, 0.5])).count()
        assert (plain.durations, plain.estimate) == ((10,), None)
        endless = self.draws(chosen(uniform=[0.9, 0.9, 0.5]), duration=None, **kind).count()
        assert (endless.durations, endless.estimate) == ((), None)

    def test_the_last_request_is_there_for_rounding(self) -> None:
        choices = tuple(
            WeightedRequest(request=Resources(cpu, 1), weight=weight)
            for cpu, weight in ((1, 1.0), (2, 3.0))
        )
        for at, cpu in ((0.0, 1), (0.2499, 1), (0.25, 2), (1.0, 2)):
            made = self.draws(chosen(uniform=[0.9, 0.9, at]), requests=choices)
            assert made.count().request.cpu == cpu

    @pytest.mark.parametrize(
        ("durations", "count", "stands", "expected"),
        [
            ((10,), 3, False, 3 * (10 - 100 // 200)),
            ((40,), 2, False, 2 * (40 - 1_600 // 200)),
            ((100,), 1, False, 50),
            ((500,), 1, False, 50),
            ((500,), 2, True, 200),
            ((40,), 1, True, 40),
            ((), 2, True, 200),
            ((), 2, False, 100),
            ((10, 500), 2, True, 110),
        ],
    )
    def test_the_time_within_the_span(
        self, durations: tuple[int, ...], count: int, stands: bool, expected: int
    ) -> None:
        made = self.draws(chosen())
        assert made._time_within(durations, count, stands) == expected

    def test_work_is_offered_of_every_resource_and_counted_by_the_scarcest(self) -> None:
        random = chosen(uniform=[0.0, 0.9, 0.5])
        request = WeightedRequest(request=Resources(2, 8, {"gpu": 1}))
        made = self.draws(random, requests=(request,), standing=1.0)
        drawn = made.count()
        work = made.offer(drawn, {"cpu": 10, "memory": 16, "net": 5})
        # Three tasks of ten microseconds each.
        assert work == {"cpu": 60, "memory": 240, "net": 0}
        assert made.work == 240 / 16

    def test_jobs_that_stand_come_first_and_are_numbered_with_the_others(self) -> None:
        kinds = {
            "b": JobKind(
                requests=(WeightedRequest(request=Resources(100, 0)),),
                tasks=Constant(1),
                duration=Constant(Micros(SECOND)),
                standing=0.5,
                owner="ann",
                requires={"disk": "ssd"},
            )
        }
        made = list(
            generate(
                Synthetic(span=10 * SECOND, utilisation=1.0, kinds=kinds),
                {"cpu": 1_000, "memory": 0},
                Random(3),
            )
        )
        assert [each.id for each in made] == [f"b-{at:03}" for at in range(len(made))]
        standing = [each.submit == 0 for each in made]
        assert standing == sorted(standing, reverse=True)
        assert 20 < sum(standing) < 80
        assert {(each.job.owner, each.groups[0].requires["disk"]) for each in made} == {
            ("ann", "ssd")
        }
        work = sum(SECOND if each else SECOND * 95 // 100 for each in standing) * 100
        assert 10 * SECOND * 1_000 <= work < 10 * SECOND * 1_000 + 100 * SECOND


class TestOneByOne:
    def test_the_peak_is_in_the_first_half_of_the_periods(self) -> None:
        bounds: list[int] = []

        class Peak:
            def child(self, name: str) -> Peak:
                assert name == "peak"
                return self

            def below(self, bound: int) -> int:
                bounds.append(bound)
                return 0

            def normal(self) -> float:
                return 0.0

        random: Any = Peak()
        tasks = 1_000
        found = list(fanout.one_by_one([job("a", tasks)], "A", random))
        # At the mean rate, 1,000 tasks take so many periods of ten seconds.
        periods = tasks / fanout.PATTERNS["A"].mean / 10
        assert bounds == [int(periods / 2)]
        # The first period has the peak: 28 a second; then the median follows.
        submits = [each.submit for each in found]
        assert submits[:3] == [0, SECOND // 28, 2 * SECOND // 28]
        assert sum(submit < 10 * SECOND for submit in submits) in (280, 281)
        assert submits[300] - submits[292] == pytest.approx(SECOND, abs=2)
        list(fanout.one_by_one([job("a", 1)], "A", random))
        assert bounds[1:] == [1]


class TestFill:
    def test_a_fill_that_turns_over_has_times_and_new_jobs(self) -> None:
        spec = cluster("D")
        endless = list(clusters.fill(spec, Random(2), scale=0.02))
        made = list(clusters.fill(spec, Random(2), scale=0.02, turnover=SECOND, span=3 * SECOND))
        first = made[: len(endless)]
        assert [each.tasks for each in first] == [each.tasks for each in endless]
        assert {each.submit for each in first} == {0}
        assert all(each.truth[0].durations[0] >= 1 for each in made)
        later = made[len(endless) :]
        # As many in each turnover as there were at first.
        assert len(later) == pytest.approx(3 * len(endless), rel=0.25)
        assert 0 < later[0].submit <= later[-1].submit < 3 * SECOND
        assert [each.id for each in made] == [f"fill-{at}" for at in range(len(made))]
        assert {each.tasks for each in later} == {spec.fill.tasks}
        short = clusters.fill(spec, Random(2), scale=0.02, turnover=SECOND)
        assert len(list(short)) == len(endless)


class TestMapReduce:
    def test_programs_repeat_and_their_runs_differ_a_little(self) -> None:
        made = [
            each
            for each in islice(mapreduce.jobs(cluster("D"), 10**12, Random(1)), 3_000)
            if each.kind == "mapreduce"
        ]
        assert [each.id for each in made] == [f"mapreduce-{at}" for at in range(len(made))]
        workers = {choice.count for choice in mapreduce.shape().workers}
        assert {each.tasks for each in made} <= workers
        assert {each.job.precedence for each in made} == {cluster("D").kinds["batch"].precedence}
        for each in made:
            maps, reduces = each.job.activities
            assert maps >= 1
            assert reduces >= 1
            assert len(each.truth[0].phases) == 2
            assert each.job.program.startswith("program-")

    def test_rates_are_of_all_kinds_or_of_those_that_are_named(self) -> None:
        def counts(**options: Any) -> dict[str, int]:
            found: dict[str, int] = {}
            for each in mapreduce.jobs(cluster("D"), 4 * 10**9, Random(1), **options):
                found[each.kind] = found.get(each.kind, 0) + 1
            return found

        usual, double = counts(), counts(rate=2.0)
        for kind in ("batch", "mapreduce"):
            assert double[kind] == pytest.approx(2 * usual[kind], rel=0.3)
        more = counts(rate={"mapreduce": 2.0})
        assert more["mapreduce"] == double["mapreduce"]
        assert (more["batch"], more.get("service")) == (usual["batch"], usual.get("service"))
        assert "mapreduce" not in counts(rate={"mapreduce": 0})


class TestAssembly:
    def test_a_job_is_apart_if_one_of_its_events_says_so(self) -> None:
        run = [of_task(6, SCHEDULED), of_task(9, STOPPED)]
        [plain], _ = assembled(*run, TraceEvent(20, ENDED, 1))
        assert plain.job.constraints == ()
        apart = run[0]._replace(is_apart=True)
        [found], _ = assembled(apart, run[1], TraceEvent(20, ENDED, 1))
        assert found.job.constraints == (APART,)
        assert APART.hard

    def test_what_the_job_says_of_itself_is_worth_more_than_what_its_tasks_say(self) -> None:
        ask = Ask(Resources(1, 1))
        of_a_task = TraceEvent(1, SCHEDULED, 1, 0, ask, priority=3, is_batch=True, owner="ann")
        of_itself = TraceEvent(2, SCHEDULED, 1, priority=9, is_batch=False, owner="bob")
        another = TraceEvent(3, STOPPED, 1, 0, ask, priority=5, is_batch=True)
        for events in (
            (of_a_task, of_itself, another),
            (of_itself._replace(time=0), of_a_task, another),
        ):
            [found], _ = assembled(*events)
            assert (found.job.precedence, found.job.kind) == (9, "service")
        [first], _ = assembled(of_a_task, another)
        assert (first.job.precedence, first.job.owner) == (3, "ann")
        [silent], _ = assembled(TraceEvent(1, SCHEDULED, 1, 0, ask))
        assert (silent.job.precedence, silent.job.kind, silent.job.owner) == (0, "batch", "")
