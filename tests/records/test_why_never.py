"""What can never run, in the answer to why a task waits: which demands count for which engine and task,
and what else is told."""

from __future__ import annotations

import io
from typing import Any

import pytest
from msgspec import structs

from argosy.host.journal import Journal
from argosy.host.records import (
    AbandonedRecord,
    EnqueuedRecord,
    ExplainedRecord,
    MachineRecord,
    PlacedRecord,
    ProbedRecord,
    RefusedRecord,
    ScaledRecord,
    SubmittedRecord,
)
from argosy.host.setup import HostSetup
from argosy.model.answers import WhyAnswer
from argosy.model.constraints.text import parse_constraint
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.prices import Price
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec
from argosy.model.transactions import AddMachine, RelabelMachine
from argosy.records.answers import TaskAnswers
from argosy.records.journal_file import JournalFile
from argosy.records.journal_run import JournalRun
from argosy.testing.builders import job, scenario

CELL = CellSpec(machines=tuple(Machine(f"m{n}", Resources(4_000, 8)) for n in range(2)))
NEVER = "a/0 cannot run: a "


def asking(tasks: int = 1, cpu: int = 1_000, **more: Any) -> Job:
    return job("a", tasks, cpu=cpu, memory=1, **more).job


def why(
    *facts: Any, engine: str = "omega", task: str = "a/0", whole: bool = True, **setup: Any
) -> WhyAnswer:
    stream = io.BytesIO()
    journal = Journal(stream)
    journal.begin(
        structs.replace(HostSetup.of(scenario("omega", [], cell=CELL)), **setup)
        if engine == "omega"
        else HostSetup.of(scenario(engine, [], cell=CELL))
    )
    for fact in facts:
        journal.write(fact)
    journal.flush()
    return TaskAnswers(JournalRun(JournalFile(stream.getvalue())), task, whole=whole).why()


def waits(made: Job, *, by: str = "s-0", index: int = 0, **told: Any) -> tuple[Any, Any]:
    """It was submitted, and looked at."""
    explanation = Explanation(**{"looked_at": 2, "ruled_out": {"cpu": 2}, **told})
    return SubmittedRecord(0, 0, made, by), ExplainedRecord(5, "a", [index], by, explanation)


GIANT = asking(cpu=5_000)
APART = parse_constraint("w -> {w, 0, 0} in machine hard")


def test_a_demand_that_nothing_can_meet_is_told_instead_of_what_was_looked_at() -> None:
    miss = Refusal(Why.NO_ROOM, machine=1, dimension="cpu", lacking=1_000)
    assert why(*waits(GIANT, nearest_miss=miss, remedy="help")) == WhyAnswer(
        task="a/0",
        state="pending",
        sentence=f"{NEVER}has tasks that ask for 5 cores; the largest machine has 4 cores.",
        looked_at=2,
        remedy="ask for 1 core less, or add a machine with 5 cores",
    )


def test_machines_that_joined_count_and_machines_that_changed_leave_it_open() -> None:
    large = AddMachine(Machine("large", Resources(5_000, 8)))
    first, then = waits(GIANT)
    assert "cannot run" not in why(first, MachineRecord(1, large), then).sentence
    label = RelabelMachine(0, {"disk": "ssd"}, {})
    assert "cannot run" not in why(first, MachineRecord(1, label), then).sentence


@pytest.mark.parametrize(
    ("engine", "gang", "apart"),
    [("omega", True, False), ("medea", True, True), ("kube", False, False)],
)
def test_what_an_engine_ignores_keeps_nothing_from_running(
    engine: str, gang: bool, apart: bool
) -> None:
    together = asking(3, cpu=4_000, gang=True)
    assert why(*waits(together), engine=engine).sentence.startswith(NEVER) == gang
    alone = asking(3, tags=("w",), constraints=(APART,), kind="service", seconds=None)
    assert why(*waits(alone), engine=engine).sentence.startswith(NEVER) == apart


@pytest.mark.parametrize(("by", "is_known"), [("s-0", True), ("s-0:part", True), ("x-0", False)])
def test_of_an_engine_that_is_not_known_every_demand_counts(by: str, is_known: bool) -> None:
    together = asking(3, cpu=4_000, gang=True)
    sentence = why(*waits(together, by=by), engine="kube").sentence
    assert sentence.startswith(NEVER) == (not is_known)


def test_where_another_system_marks_machines_only_sizes_are_certain() -> None:
    picky = asking(requires={"disk": "ssd"})
    assert why(*waits(picky)).sentence == f"{NEVER}requires disk=ssd, which no machine has."
    assert "cannot run" not in why(*waits(picky), is_overruled=True).sentence
    large = asking(cpu=5_000, requires={"disk": "ssd"})
    assert why(*waits(large), is_overruled=True).sentence == (
        f"{NEVER}has tasks that ask for 5 cores; the largest machine has 4 cores."
    )


@pytest.mark.parametrize("gang", [False, True])
def test_a_demand_of_another_group_counts_for_a_gang(gang: bool) -> None:
    groups = (*asking().groups, *GIANT.groups)
    both = structs.replace(asking(), groups=groups, gang=gang)
    assert ("cannot run" in why(*waits(both)).sentence) == gang
    assert "cannot run" in why(*waits(both, index=1), task="a/1").sentence


def test_a_task_that_its_job_does_not_have_any_more_says_what_was_said() -> None:
    first, then = waits(asking(2, cpu=5_000), index=1)
    fewer = ScaledRecord(6, 0, asking(1, cpu=5_000))
    found = why(first, then, fewer, task="a/1")
    assert (found.state, found.sentence) == (
        "cancelled",
        "a/1 has no machine: none of 2 machines has room free.",
    )


def test_a_task_that_was_given_up_says_so_before_what_could_never_be() -> None:
    first, then = waits(GIANT)
    over = Explanation(refused=Refusal(Why.ATTEMPTS, lacking=3))
    found = why(first, then, AbandonedRecord(9, "a", [0], "s-0", over))
    assert found.sentence.startswith(NEVER)
    assert found.details == ("Given up after 3 attempts.",)
    assert why(first, then).details == ()


class TestLacks:
    FULL = PlacedRecord(0, "a", [1, 2], [0, 1], "s-0")

    def test_who_holds_what_it_lacks_is_told_if_the_journal_is_whole(self) -> None:
        first, then = waits(asking(3, cpu=4_000))
        found = why(first, self.FULL, then)
        assert found.sentence == (
            "a/0 has no machine: none of the 2 machines that could take it (m0 and m1) has 4 cores "
            "free."
        )
        assert found.details == ("The cores there are held by a/1 and a/2; m0 lacks 4 cores.",)
        assert found.remedy == "another machine like m0"
        partly = why(first, self.FULL, then, whole=False)
        assert partly.sentence == (
            "a/0 has no machine: none of 2 machines has 4 cores and 1 B free."
        )
        assert (partly.details, partly.ruled_out) == ((), {"cpu": 2})

    def test_a_price_is_told_beside_what_it_lacks(self) -> None:
        first, then = waits(
            asking(3, cpu=4_000), price=Price(5, 9, 0), remedy="pay more", ruled_out={}
        )
        found = why(first, self.FULL, then)
        assert found.details[-1] == "Waiting costs it 5, and the cheapest place, on m0, 9."
        assert found.remedy == "pay more, or another machine like m0"

    @pytest.mark.parametrize(
        ("told", "is_told"),
        [
            ({}, True),
            ({"forbidden": ("x",)}, False),
            ({"ruled_out": {"queue full": 2}}, False),
            ({"refused": Refusal(Why.NO_ROOM, machine=0, dimension="cpu", lacking=1)}, True),
            ({"refused": Refusal(Why.TOGETHER)}, True),
            ({"refused": Refusal(Why.ATTEMPTS, lacking=2)}, True),
            ({"refused": Refusal(Why.JOB_LIMIT)}, False),
            ({"refused": Refusal(Why.STALE, machine=0)}, False),
        ],
    )
    def test_a_lack_of_room_is_told_unless_there_was_another_reason(
        self, told: dict[str, Any], is_told: bool
    ) -> None:
        first, then = waits(asking(3, cpu=4_000), **told)
        assert bool(why(first, self.FULL, then).details) == is_told

    @pytest.mark.parametrize(
        ("told", "sentence"),
        [
            ({}, "m0 and m1 have room for it, but s-0 did not use it."),
            ({"feasible": 1}, "1 of 2 machines has room for it, and other tasks come first."),
            ({"price": Price(5, 9, 0)}, "waiting costs it 5, and the cheapest place, on m0, 9."),
        ],
    )
    def test_room_that_is_there_is_told_if_the_scheduler_saw_none(
        self, told: dict[str, Any], sentence: str
    ) -> None:
        assert why(*waits(asking(), **told)).sentence == f"a/0 has no machine: {sentence}"


def test_what_a_queued_task_waits_for_is_told_only_while_it_is_queued() -> None:
    first = SubmittedRecord(0, 0, asking(2), "s-0")
    runs = PlacedRecord(1, "a", [1], [0], "s-0")
    found = why(first, runs, EnqueuedRecord(2, "a", [0], [0], "s-0"))
    assert found.details == ("m0 runs a/1.",)
    assert why(first, runs, EnqueuedRecord(2, "a", [0], [1], "s-0")).details == ()
    assert why(first, runs, task="a/1").details == ()


def test_a_probed_task_names_each_machine_once() -> None:
    found = why(SubmittedRecord(0, 0, asking(), "s-0"), ProbedRecord(1, "a", [0], [1, 0, 1], "s-0"))
    assert found == WhyAnswer(
        task="a/0",
        state="queued",
        sentence="a/0 goes to the first machine at which a probe of its job is ready.",
        details=("s-0 sent 3 probes, to m1 and m0.",),
    )


def test_a_task_nobody_has_decided_on_asks_for_time() -> None:
    assert why(SubmittedRecord(0, 0, asking(), "s-0")) == WhyAnswer(
        task="a/0",
        state="pending",
        sentence="a/0 was submitted, but no scheduler has decided on it yet.",
        remedy="more time, or more schedulers: no attempt had begun so far",
    )


def test_a_refusal_that_names_nothing_of_the_first_machine_is_told() -> None:
    codes = [int(Why.MACHINE_DRAINING)]
    refused = RefusedRecord(3, "a", [0], [0], "s-0", codes, [-1], [0])
    found = why(SubmittedRecord(0, 0, asking(), "s-0"), refused)
    assert (found.sentence, found.remedy) == (
        "a/0 has no machine: m0 is draining.",
        "another machine",
    )
