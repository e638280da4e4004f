"""The whole story of each finding: whom it names, when it was, and how much there was."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs
from test_good_reasons import NEXT, PATIENCE, placed, with_entry, world
from test_recounted_lives import SPEC, header, restored

from argosy.campaign.findings import CHECKS, Finding
from argosy.campaign.processes import _innermost
from argosy.campaign.recordings import WorldRecording
from argosy.campaign.recount import CampaignRule, CountedMachine, Recount, Where, total
from argosy.campaign.rules import (
    HEARD,
    GangsStartTogether,
    HardConstraintsAreKept,
    LimitsAreKept,
    MachinesAreThere,
    NothingIsOversubscribed,
    RequirementsAreMet,
)
from argosy.campaign.trial import _compare_processes, failure
from argosy.campaign.waiting import (
    JobsAreSubmitted,
    NoTaskIsForgotten,
    QueuesMove,
    TasksEnd,
    WaitingIsExplained,
)
from argosy.engines.registry import ENGINES
from argosy.host import records
from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import EngineFault, ScenarioError
from argosy.model.explanations import Explanation
from argosy.model.jobs import task_number
from argosy.model.resources import Resources
from argosy.model.scenario import Scenario, SchedulerLimits
from argosy.model.transactions import DrainMachine, RemoveMachine
from argosy.testing.builders import SECOND, cell, job, scenario

DRAINS = records.MachineRecord(SECOND, DrainMachine(0))
GONE = records.MachineRecord(SECOND, RemoveMachine(0))


def details(
    rule: type[CampaignRule], spec: Scenario, *journal: records.JournalRecord, at: int = PATIENCE
) -> list[tuple[str, str, str]]:
    """What a rule tells at the end, after all jobs of the scenario were submitted at 0."""
    recount = Recount(spec, ENGINES)
    submitted = [
        records.SubmittedRecord(made.submit, number, made.job, "s")
        for number, made in enumerate(spec.jobs)
    ]
    made = rule(recount)
    recount.read([*submitted, *journal], [made])
    recount.finish(at, [made])
    return [(each.check, each.kind, each.detail) for each in recount.findings.values()]


def several(*jobs: Any, engine: str = "omega", machines: int = 2) -> Scenario:
    return scenario(engine, list(jobs), replicas=1, cell=cell(machines))


class TestRules:
    def test_a_machine_that_holds_too_much_is_told_with_both_amounts(self) -> None:
        spec = several(job("a", 2, cpu=3_000, seconds=10))
        assert details(NothingIsOversubscribed, spec, placed(1, 0, (0, 1))) == [
            (
                "oversubscribed",
                "capacity",
                "m1 has 4 cores at 0 µs, but its tasks hold 6 cores",
            )
        ]
        assert details(NothingIsOversubscribed, spec, placed(0), placed(1, 0, (1,))) == []
        full = several(job("a", 2, cpu=2_000, seconds=10))
        assert details(NothingIsOversubscribed, full, placed(1, 0, (0, 1))) == []

    def test_a_machine_that_is_gone_runs_nothing(self) -> None:
        spec = several(job("a", 2, cpu=1, seconds=10))
        assert details(NothingIsOversubscribed, spec, placed(0, 0, (1, 0)), GONE) == [
            ("oversubscribed", "gone", "m0 is gone at 1 s and still runs a/0, a/1")
        ]

    def test_what_a_machine_does_not_have_is_told(self) -> None:
        spec = several(job("a", 1, seconds=10, requires={"disk": "ssd"}))
        story = "a/0 requires disk = ssd and runs on m1, which has none, at 2 s; it was {}"
        assert details(RequirementsAreMet, spec, placed(1, 2 * SECOND)) == [
            ("requires", "claimed", story.format("claimed"))
        ]
        queued = records.EnqueuedRecord(0, "a", [0], [1], "s")
        started = records.StartedRecord(2 * SECOND, [0], [1])
        assert details(RequirementsAreMet, spec, queued, started)[0][1:] == (
            "queued",
            story.format("queued"),
        )
        elsewhere = records.EnqueuedRecord(0, "a", [0], [0], "s")
        assert details(RequirementsAreMet, spec, elsewhere, started)[0][1] == "stolen"
        moved = details(RequirementsAreMet, spec, placed(0), NEXT, placed(1, 2 * SECOND))
        assert [kind for _, kind, _ in moved] == ["claimed"]

    def test_a_part_of_a_gang_is_counted(self) -> None:
        spec = several(job("a", 3, seconds=10, gang=True))
        assert details(GangsStartTogether, spec, placed(0, 2 * SECOND, (0, 2))) == [
            (
                "gang",
                "",
                "gang a has 3 tasks, of which 2 were placed at 2 s without the others",
            )
        ]
        together = (placed(0, SECOND, (0, 2)), placed(1, SECOND, (1,)))
        assert details(GangsStartTogether, spec, *together) == []

    @pytest.mark.parametrize(("change", "what"), [(DRAINS, "draining"), (GONE, "gone")])
    def test_a_machine_that_takes_nothing_is_named(self, change: Any, what: str) -> None:
        spec = several(job("a", seconds=10))
        assert details(MachinesAreThere, spec, change, placed(0, 2 * SECOND)) == [
            ("machine-state", what, f"a/0 was placed on m0 at 2 s, which is {what}")
        ]

    def test_what_is_sent_long_after_everybody_has_heard_is_told(self) -> None:
        spec = several(job("a", seconds=10), engine="murmuration")

        def sent(at: int) -> list[tuple[str, str, str]]:
            queued = records.EnqueuedRecord(at, "a", [0], [0], "s")
            started = records.StartedRecord(at + SECOND, [0], [0])
            return details(MachinesAreThere, spec, DRAINS, queued, NEXT, started)

        assert sent(SECOND + HEARD) == []
        late = "draining, and it was sent there long afterwards"
        [(check, kind, told)] = sent(SECOND + HEARD + 1)
        assert (check, kind) == ("machine-state", late)
        assert told == f"a/0 was placed on m0 at 1.03 min, which is {late}"

    @pytest.mark.parametrize(
        ("limits", "kind", "told"),
        [
            (
                SchedulerLimits(resources=Resources(5_999)),
                "resources",
                "s holds 6 cores at 2 s, and may hold 5.999 cores",
            ),
            (SchedulerLimits(resources=Resources(6_000)), None, ""),
            (SchedulerLimits(jobs=1), "jobs", "s has 2 jobs at 2 s, and may have 1"),
            (SchedulerLimits(jobs=2), None, ""),
            (
                SchedulerLimits(precedence=4),
                "precedence",
                "s placed b of precedence 5, and may claim with 4 at most",
            ),
            (SchedulerLimits(precedence=5), None, ""),
        ],
    )
    def test_a_limit_is_told_with_what_is_held(
        self, limits: SchedulerLimits, kind: str | None, told: str
    ) -> None:
        jobs = (job("a", cpu=2_000, seconds=9), job("b", cpu=4_000, seconds=9, precedence=5))
        spec = with_entry(several(*jobs), limits=limits)
        starts = (placed(0), records.PlacedRecord(2 * SECOND, "b", [0], [1], "s"))
        expected = [] if kind is None else [("limits", kind, told)]
        assert details(LimitsAreKept, spec, *starts) == expected

    def test_a_broken_constraint_is_told_with_those_who_broke_it(self) -> None:
        alone = parse_constraint("a -> {a, 0, 0} in machine hard")
        spec = several(
            job("a", 2, seconds=9, tags=("a",), constraints=(alone,), kind="service"),
            engine="medea",
        )
        [(check, kind, told)] = details(
            HardConstraintsAreKept, spec, placed(0), NEXT, placed(0, 3 * SECOND, (1,))
        )
        assert (check, kind) == ("hard-constraint", "")
        assert told.endswith("is broken by placing a/1 at 3 s")
        assert details(HardConstraintsAreKept, spec, placed(0), placed(1, 0, (1,))) == []


class TestEnds:
    def test_jobs_that_never_came_are_told_with_their_time(self) -> None:
        late = scenario("omega", [job("a", submit=7)], replicas=1)
        recount = Recount(late, ENGINES)
        for at, expected in (
            (7 * SECOND, []),
            (7 * SECOND + 1, [Finding("submissions", "missing", "a was due at 7 s")]),
        ):
            recount.finish(at, [JobsAreSubmitted(recount)])
            assert list(recount.findings.values()) == expected

    def test_a_task_that_runs_on_is_told_with_how_long_it_takes(self) -> None:
        story = "a/0 has run since 2 s and takes 10 s, but still runs at 12 s"
        for at, expected in (
            (12 * SECOND, []),
            (12 * SECOND + 1, [("running-time", "still running", story)]),
        ):
            assert details(TasksEnd, world(), placed(0, 2 * SECOND), at=at) == expected
        endless = world(seconds=None)
        assert details(TasksEnd, endless, placed(0)) == []

    def test_a_task_that_ends_at_another_time_is_told_with_both(self) -> None:
        ended = records.EndedRecord(11 * SECOND, [0])
        [found] = details(TasksEnd, world(), placed(0, 2 * SECOND), ended)
        assert found == (
            "running-time",
            "ended",
            "a/0 ran for 9000000 µs, but takes 10000000 µs",
        )

    def test_silence_is_told_with_since_when(self) -> None:
        assert details(WaitingIsExplained, world(), at=PATIENCE + 5 * SECOND) == [
            (
                "unexplained",
                "waiting",
                "a/0 has waited since 0 µs, and at 4.08 min nobody has said why",
            )
        ]
        given_up = records.AbandonedRecord(SECOND, "a", [0], "s", Explanation())
        assert details(WaitingIsExplained, world(), given_up) == [
            ("unexplained", "abandoned", "a/0 was abandoned, and nobody says why")
        ]

    def test_an_idle_machine_is_named(self) -> None:
        [found] = details(NoTaskIsForgotten, world(machines=2))
        assert found == (
            "forgotten",
            "",
            "a/0 has waited since 0 µs, and m0, which could run it, has been idle since 0 µs",
        )
        queued = records.EnqueuedRecord(SECOND, "a", [0], [1], "s")
        [found] = details(QueuesMove, world(machines=2), queued, at=PATIENCE + SECOND)
        assert found == (
            "stuck-queue",
            "queue",
            "a/0 has been queued at m1 since 1 s, which has been idle since 0 µs",
        )
        probed = records.ProbedRecord(SECOND, "a", [0], [1, 0], "s")
        [found] = details(QueuesMove, world(machines=2), probed, at=PATIENCE + SECOND)
        assert found[1] == "probe"


class TestRecount:
    def test_an_impossible_step_is_told_with_where_the_task_was(self) -> None:
        ended = records.EndedRecord(SECOND, [0])
        [(check, kind, told)] = details(JobsAreSubmitted, world(), ended)
        assert (check, kind) == ("task-steps", "pending, then ended")
        assert told == "a/0 was pending and is ended at 1000000 µs"

    @pytest.mark.parametrize(("at", "said"), [(0, 1), (2, 1)])
    def test_a_job_at_another_time_is_told_with_both_times(self, at: int, said: int) -> None:
        spec = scenario("omega", [structs.replace(job("a"), submit=said)], replicas=1)
        recount = Recount(spec, ENGINES)
        recount.read(
            [
                records.Header(1, header().setup),
                records.SubmittedRecord(at, 0, spec.jobs[0].job, "s"),
            ],
            [],
        )
        [found] = recount.findings.values()
        assert (found.kind, found.detail) == (
            "time",
            f"a was submitted at {at} µs, not at {said} µs",
        )

    def test_what_is_not_restored_is_named(self) -> None:
        recount = Recount(SPEC, ENGINES)
        made = SPEC.jobs[0]
        recount.read([header(), records.SubmittedRecord(0, 0, made.job, "s")], [])
        recount.read([header(SECOND), records.DueRecord(SECOND, 1)], [])
        [found] = recount.findings.values()
        assert found == Finding("restored", "missing", "a was not over, and is not restored")

    def test_a_task_that_is_restored_elsewhere_is_told_with_both_machines(self) -> None:
        recount = Recount(SPEC, ENGINES)
        made = SPEC.jobs[0]
        first = [header(), records.SubmittedRecord(0, 0, made.job, "s"), placed(0)]
        recount.read(first, [])
        recount.read([header(SECOND), restored(0, made, SECOND, running=(0,), machines=(2,))], [])
        [found] = recount.findings.values()
        assert found == Finding(
            "restored",
            "elsewhere",
            "a/0 was running and is restored as running, on m2 instead of m0",
        )

    def test_a_mark_is_an_attribute_of_its_own(self) -> None:
        machine = CountedMachine("m", {}, {"disk": "ssd"}, {"rack": ("r0", "r1")})
        machine.marks.add("open")
        assert [machine.attribute(key) for key in ("disk", "open", "arch")] == [
            "ssd",
            "true",
            None,
        ]
        assert machine.is_in("machine", ["m"])
        assert not machine.is_in("machine", ["n"])
        assert machine.is_in("rack", ["r1", "x"])
        assert not machine.is_in("rack", ["x"])
        assert not machine.is_in("zone", ["r0"])

    def test_vectors_add_up_by_resource(self) -> None:
        assert total([{"cpu": 1}, {"cpu": 2, "gpu": 3}, {}]) == {"cpu": 3, "gpu": 3}
        assert total([]) == {}


class TestTrials:
    def test_processes_and_tasks_are_told_with_their_machines(self) -> None:
        recount: Any = SimpleNamespace(
            tasks={
                0: SimpleNamespace(where=Where.RUNNING, machine=1),
                1: SimpleNamespace(where=Where.PENDING, machine=-1),
            },
            machines=[SimpleNamespace(name="m0"), SimpleNamespace(name="m1")],
            name=lambda task: f"a/{task}",
        )
        story = "{} runs on {} by the journal, and on {} by its process"
        for processes, expected in (
            (None, None),
            ({"a/0": "m1"}, None),
            ({"a/0": "m0"}, ("a/0", "m1", "m0")),
            ({}, ("a/0", "m1", "no machine")),
            ({"a/0": "m1", "b/0": "m0"}, ("b/0", "no machine", "m0")),
        ):
            told: list[tuple[str, str, str]] = []
            recount.complain = lambda *all, told=told: told.append(all)
            _compare_processes(recount, processes)
            assert told == (
                [] if expected is None else [("processes", "", story.format(*expected))]
            )

    def test_mistakes_that_differ_in_names_and_numbers_alone_are_one(self) -> None:
        def kind(text: str) -> str:
            return failure(EngineFault(text)).kind

        assert kind("s-1 (omega) decides on job 7, which is not its own") == (
            "_ (omega) decides on job _ which is not its own"
        )
        assert kind("s sends to 'x', which is not \"y z\"") == "s sends to _, which is not _"
        assert kind("s-1 takes 5") == kind("s-22 takes 7x")

    def test_an_engines_mistake_is_known_by_its_place(self) -> None:
        error = EngineFault("s failed on X at 3 µs, engine.py:12 in handle: 'gone'")
        error.__cause__ = KeyError("gone")
        found = failure(error)
        assert (found.check, found.kind) == ("engine-fault", "KeyError engine.py:12 in handle")
        assert found.detail == str(error)

    def test_other_errors_are_crashes_and_bugs_come_with_their_traces(self) -> None:
        def raised(error: Exception) -> Finding:
            try:
                raise error
            except Exception as caught:
                return failure(caught)

        told = raised(ScenarioError("bad"))
        assert told.check == "crash"
        assert told.kind.startswith("ScenarioError ")
        assert told.detail.startswith("ScenarioError: bad, ")
        assert "Traceback" not in told.detail
        bug = raised(ZeroDivisionError("by zero"))
        assert bug.kind.startswith("ZeroDivisionError ")
        assert "Traceback" in bug.detail

    def test_a_finding_is_known_by_its_check_and_kind(self) -> None:
        assert Finding("gang", "k", "x").signature == ("gang", "k")
        with pytest.raises(AssertionError, match="unknown"):
            Finding("unknown", "", "")
        assert len(CHECKS) == 20

    def test_journals_are_read_in_the_order_of_their_disks_and_servers(self) -> None:
        recording = WorldRecording(b"2", 0, later=(b"3", b"4"), lost=((b"0",), (b"1", b"1b")))
        assert recording.journals == (b"2", b"3", b"4")
        assert recording.all_journals == (b"0", b"1", b"1b", b"2", b"3", b"4")

    def test_the_innermost_place_of_a_stack_is_its_first(self) -> None:
        stack = 'Current thread:\n  File "a.py", line 3 in f\n  File "b.py", line 4 in g\n'
        assert _innermost(stack) == ', in "a.py", line 3 in f'
        assert _innermost("Current thread:\n") == ""


def test_tasks_are_named_after_their_jobs_and_extra_workers_are_like_the_last() -> None:
    recount = Recount(world(), ENGINES)
    recount.read([records.SubmittedRecord(0, 0, world().jobs[0].job, "s")], [])
    assert (recount.name(0), recount.name(5)) == ("a/0", "a/5")
    assert recount.group(task_number(0, 5)) is recount.jobs[0].groups[0]
    assert recount.running_time(0) == 10 * SECOND
    assert recount.running_time(5) is None
