"""The cell's one door: what it lets in, what it refuses, and what it says about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from argosy.cell.audit import AuditFailure
from argosy.cell.cell import Cell
from argosy.model.errors import ModelError
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    Claims,
    DrainMachine,
    MachineChange,
    Outcome,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
    Transaction,
    Wants,
)

DIMENSIONS = ("cpu", "memory")
#: More resources than a cell can have.
MANY = {f"r{number}": 1 for number in range(7)}


def cell_of(*capacities: tuple[int, int], **joins: tuple[str, ...]) -> Cell:
    """A cell of machines m0, m1, … in the racks r0 and r1, all in the sets of `joins`."""
    cell = Cell(DIMENSIONS, {"rack": ["r0", "r1"], "zone": ["z0"]}, audited=True)
    change(
        cell,
        *(
            AddMachine(Machine(f"m{number}", Resources(*capacity), joins=dict(joins)))
            for number, capacity in enumerate(capacities)
        ),
    )
    return cell


def change(cell: Cell, *changes: MachineChange) -> Outcome:
    return cell.commit(Transaction(OPERATOR, machines=changes))


def rows(
    cell: Cell,
    claims: Sequence[tuple[int, int, int]],
    *,
    gangs: Sequence[int] | None = None,
    versions: Sequence[int] | None = None,
) -> Claims:
    """Rows of (task, machine, shape)."""
    tasks, machines, shapes = (list(column) for column in zip(*claims, strict=True))
    seen = cell.versions()
    known = [int(seen[m]) if 0 <= m < cell.machines else 0 for m in machines]
    return Claims(
        np.array(tasks, np.int64),
        np.array(machines, np.int32),
        np.array(shapes, np.int32),
        np.array(known if versions is None else versions, np.uint32),
        None if gangs is None else np.array(gangs, np.int32),
    )


def claim(
    cell: Cell, *claims: tuple[int, int, int], scheduler: str = "anna", **terms: Any
) -> Outcome:
    columns = {name: terms.pop(name, None) for name in ("gangs", "versions")}
    return cell.commit(Transaction(scheduler, rows(cell, claims, **columns), **terms))


def release(cell: Cell, *tasks: int, scheduler: str = "anna", **terms: Any) -> Outcome:
    return cell.commit(Transaction(scheduler, releases=np.array(tasks, np.int64), **terms))


def whys(outcome: Outcome) -> list[Why]:
    return [Why(int(why)) for why in outcome.whys]


def test_a_claim_takes_room_and_a_release_gives_it_back() -> None:
    cell = cell_of((4, 10))
    shape = cell.shape(Resources(3, 4))
    assert claim(cell, (1, 0, shape)).all_accepted
    assert cell.free().tolist() == [[1, 6]]
    assert cell.machine_of(1) == 0
    assert cell.scheduler_of(1) == "anna"
    assert release(cell, 1).unreleased == ()
    assert cell.free().tolist() == [[4, 10]]
    assert cell.machine_of(1) is None


def test_a_full_machine_says_what_it_lacks() -> None:
    cell = cell_of((4, 10))
    big = cell.shape(Resources(3, 8))
    outcome = claim(cell, (1, 0, big), (2, 0, big))
    assert whys(outcome) == [Why.NONE, Why.NO_ROOM]
    refusal = outcome.refusal(rows(cell, [(1, 0, big), (2, 0, big)]), 1)
    assert (refusal.task, refusal.dimension, refusal.lacking) == (2, "cpu", 2)
    assert outcome.has_conflict


def test_the_first_reason_that_holds_is_the_one_reported() -> None:
    cell = cell_of((4, 10), (4, 10), (4, 10))
    shape = cell.shape(Resources(1, 1))
    change(cell, RemoveMachine(1), DrainMachine(2))
    claim(cell, (7, 0, shape))
    outcome = claim(cell, *((7, machine, shape) for machine in (9, -1, 1, 2, 0)))
    assert whys(outcome) == [
        Why.MACHINE_UNKNOWN,
        Why.MACHINE_UNKNOWN,
        Why.MACHINE_GONE,
        Why.MACHINE_DRAINING,
        Why.DUPLICATE,
    ]


def test_coarse_refuses_a_machine_that_moved_on_and_fine_does_not() -> None:
    cell = cell_of((9, 9))
    shape = cell.shape(Resources(1, 1))
    old = int(cell.versions()[0])
    claim(cell, (1, 0, shape))
    claim(cell, (2, 0, shape))
    outcome = claim(cell, (3, 0, shape), versions=[old], coarse=True)
    assert whys(outcome) == [Why.STALE]
    assert outcome.amounts.tolist() == [2]
    assert claim(cell, (3, 0, shape), versions=[old]).all_accepted


def test_sequence_numbers_count_claims_and_not_ends() -> None:
    cell = cell_of((9, 9))
    shape = cell.shape(Resources(1, 1))
    claim(cell, (1, 0, shape))
    seen, version = int(cell.sequences()[0]), int(cell.versions()[0])
    release(cell, 1)
    assert int(cell.versions()[0]) == version + 1
    terms: dict[str, Any] = {"coarse": True, "by_claims": True}
    assert whys(claim(cell, (2, 0, shape), versions=[version], coarse=True)) == [Why.STALE]
    assert claim(cell, (2, 0, shape), (3, 0, shape), versions=[seen, seen], **terms).all_accepted
    late = claim(cell, (4, 0, shape), versions=[seen], **terms)
    assert whys(late) == [Why.STALE]
    assert late.amounts.tolist() == [1]


def test_a_claim_that_is_rolled_back_leaves_its_sequence_number_raised() -> None:
    cell = cell_of((9, 9), (1, 1))
    large = cell.shape(Resources(5, 5))
    seen, versions = cell.sequences().tolist(), cell.versions().tolist()
    outcome = claim(cell, (1, 0, large), (2, 1, large), atomic=True)
    assert not outcome.all_accepted
    assert cell.versions().tolist() == versions
    assert cell.sequences().tolist() == [seen[0] + 1, seen[1]]


def test_claims_of_one_transaction_do_not_make_each_other_stale() -> None:
    cell = cell_of((9, 9))
    shape = cell.shape(Resources(1, 1))
    before = int(cell.versions()[0])
    assert claim(cell, *((task, 0, shape) for task in range(5)), coarse=True).all_accepted
    assert int(cell.versions()[0]) == before + 1


def test_an_atomic_transaction_takes_all_or_nothing() -> None:
    cell = cell_of((4, 4))
    shape = cell.shape(Resources(2, 2), ("web",))
    claim(cell, (9, 0, shape))
    before = cell.versions().tolist()
    transaction = Transaction(
        "anna",
        rows(cell, [(1, 0, shape), (2, 0, shape), (3, 0, shape), (4, 0, shape)]),
        releases=np.array([9], np.int64),
        atomic=True,
    )
    outcome = cell.commit(transaction)
    assert whys(outcome) == [Why.TOGETHER, Why.TOGETHER, Why.NO_ROOM, Why.TOGETHER]
    assert [(refused.task, refused.why) for refused in outcome.unreleased] == [(9, Why.TOGETHER)]
    assert cell.machine_of(9) == 0
    assert cell.versions().tolist() == before
    assert cell.tag_count("web", 0) == 1


def test_a_gang_stands_or_falls_while_its_neighbours_stand_alone() -> None:
    cell = cell_of((5, 5))
    shape = cell.shape(Resources(2, 2))
    outcome = claim(
        cell,
        *((task, 0, shape) for task in range(6)),
        gangs=[-1, 4, 4, 4, -1, -1],
    )
    assert whys(outcome) == [
        Why.NONE,
        Why.TOGETHER,
        Why.NO_ROOM,
        Why.TOGETHER,
        Why.NONE,
        Why.NO_ROOM,
    ]


def test_preemption_takes_the_least_and_youngest_and_spares_whom_it_can() -> None:
    cell = cell_of((10, 10))
    shapes = {
        "least": cell.shape(Resources(1, 1), precedence=0),
        "middle": cell.shape(Resources(4, 4), precedence=1),
        "equal": cell.shape(Resources(4, 4), precedence=5),
        "new": cell.shape(Resources(3, 3), precedence=5),
    }
    claim(cell, (1, 0, shapes["least"]), (2, 0, shapes["equal"]), (3, 0, shapes["middle"]))
    claim(cell, (4, 0, shapes["least"]))
    assert whys(claim(cell, (5, 0, shapes["new"]), scheduler="bert")) == [Why.NO_ROOM]
    outcome = claim(cell, (5, 0, shapes["new"]), scheduler="bert", preempt=True)
    # 4 and 1 go first and do not suffice; with 3 gone neither of them is needed.
    assert outcome.evicted.tolist() == [3]
    assert outcome.evicted_from.tolist() == [0]
    assert sorted(cell.tasks_on(0).tolist()) == [1, 2, 4, 5]


def test_equals_are_never_preempted_and_the_rest_that_lacks_is_told() -> None:
    cell = cell_of((10, 10))
    low, high = (cell.shape(Resources(5, 1), precedence=p) for p in (0, 3))
    large = cell.shape(Resources(9, 1), precedence=3)
    claim(cell, (1, 0, low), (2, 0, high))
    outcome = claim(cell, (3, 0, large), preempt=True)
    assert whys(outcome) == [Why.NO_ROOM]
    assert outcome.amounts.tolist() == [4]
    assert outcome.evicted.tolist() == []


def test_a_transaction_never_preempts_what_it_claims_itself() -> None:
    cell = cell_of((10, 10))
    low, high = (cell.shape(Resources(6, 1), precedence=p) for p in (0, 3))
    outcome = claim(cell, (1, 0, low), (2, 0, high), preempt=True)
    assert whys(outcome) == [Why.NONE, Why.NO_ROOM]
    assert outcome.evicted.tolist() == []
    assert cell.tasks_on(0).tolist() == [1]


def test_a_transaction_never_preempts_what_it_moves_itself() -> None:
    cell = cell_of((10, 10), (10, 10))
    low, high = (cell.shape(Resources(6, 1), precedence=p) for p in (0, 3))
    claim(cell, (1, 0, low))
    outcome = claim(cell, (2, 0, high), (1, 1, low), preempt=True, move=True)
    assert whys(outcome) == [Why.NO_ROOM, Why.NONE]
    assert outcome.evicted.tolist() == []
    outcome = claim(cell, (1, 0, low), (2, 0, high), (1, 1, low), preempt=True, move=True)
    assert whys(outcome) == [Why.NONE, Why.NO_ROOM, Why.NONE]


def test_a_move_takes_the_old_place_off_and_puts_it_back_if_refused() -> None:
    cell = cell_of((4, 4), (1, 1))
    shape = cell.shape(Resources(3, 3))
    claim(cell, (1, 0, shape))
    sequence = cell.native.claim(1)[3]
    before = cell.versions().tolist()
    assert whys(claim(cell, (1, 1, shape), move=True)) == [Why.NO_ROOM]
    assert cell.native.claim(1)[3] == sequence
    assert cell.versions().tolist() == before
    assert whys(claim(cell, (1, 1, shape), move=True, scheduler="bert")) == [Why.NOT_YOURS]
    change(cell, ResizeMachine(1, Resources(3, 3)))
    assert claim(cell, (1, 1, shape), move=True).all_accepted
    assert cell.machine_of(1) == 1
    assert cell.free(np.array([0], np.int32)).tolist() == [[4, 4]]


def test_a_limit_on_one_resource_does_not_limit_others() -> None:
    cell = Cell(("cpu", "memory"))
    machine = Machine("m", Resources(10, 10))
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    cell.set_limits("anna", Resources(cpu=5), None)
    shape = np.full(1, cell.shape(Resources(4, 10)), np.int32)
    nought = np.zeros(1, np.int32)
    claims = Claims(np.zeros(1, np.int64), nought, shape, np.zeros(1, np.uint32))
    assert cell.commit(Transaction("anna", claims)).all_accepted


def test_a_scheduler_is_held_to_its_limits_and_the_operator_is_not() -> None:
    cell = cell_of((100, 100))
    shape = cell.shape(Resources(2, 3))
    cell.set_limits("anna", Resources(5, 100), 2)
    first, second, third = (task_number(job, 0) for job in (1, 2, 3))
    assert claim(cell, (first, 0, shape), (second, 0, shape)).all_accepted
    outcome = claim(cell, (third, 0, shape), (task_number(1, 1), 0, shape))
    assert whys(outcome) == [Why.JOB_LIMIT, Why.RESOURCE_LIMIT]
    assert (outcome.details.tolist(), outcome.amounts.tolist()) == ([-1, 0], [0, 1])
    assert claim(cell, (third, 0, shape), scheduler=OPERATOR).all_accepted
    usage = cell.usage()["anna"]
    assert (usage.resources, usage.tasks, usage.jobs) == ({"cpu": 4, "memory": 6}, 2, 2)


def test_a_scheduler_wields_no_higher_precedence_than_it_may() -> None:
    cell = cell_of((100, 100))
    cell.set_limits("anna", None, None, 3)
    high, low = (cell.shape(Resources(1, 1), precedence=rank) for rank in (5, 3))
    outcome = claim(cell, (task_number(1, 0), 0, high), (task_number(1, 1), 0, low))
    assert whys(outcome) == [Why.PRECEDENCE_LIMIT, Why.NONE]
    assert outcome.amounts.tolist() == [2, 0]
    assert claim(cell, (task_number(1, 0), 0, high), scheduler="bert").all_accepted
    assert [cell.highest_precedence(name) for name in ("anna", "bert")] == [3, 32_767]


def test_what_a_scheduler_wants_is_kept_for_the_others_if_it_makes_sense() -> None:
    cell = cell_of((4, 4))
    wants = Wants(2.0, (3, 5), 100)
    cell.commit(Transaction("anna", wants=wants))
    assert cell.view().wants() == {"anna": wants}
    for bad in (Wants(0.0, (3, 5), 100), Wants(1.0, (3,), 100), Wants(1.0, (3, -5), 100)):
        with pytest.raises(ModelError, match="wants"):
            cell.commit(Transaction("anna", wants=bad))


def test_a_finished_job_makes_way_for_the_next() -> None:
    cell = cell_of((100, 100))
    shape = cell.shape(Resources(1, 1))
    cell.set_limits("anna", None, 1)
    claim(cell, (task_number(1, 0), 0, shape))
    release(cell, task_number(1, 0))
    assert claim(cell, (task_number(2, 0), 0, shape)).all_accepted


def test_only_the_owner_or_the_operator_releases() -> None:
    cell = cell_of((9, 9))
    shape = cell.shape(Resources(1, 1))
    claim(cell, (1, 0, shape))
    refused = release(cell, 1, 2, scheduler="bert").unreleased
    assert [(refusal.task, refusal.why) for refusal in refused] == [
        (1, Why.NOT_YOURS),
        (2, Why.NOT_CLAIMED),
    ]
    assert release(cell, 1, scheduler=OPERATOR).unreleased == ()


def test_a_removed_machine_loses_its_tasks_and_comes_back_empty() -> None:
    cell = cell_of((9, 9))
    low, high = (cell.shape(Resources(1, 1), precedence=p) for p in (0, 1))
    claim(cell, (1, 0, high), (2, 0, low), (3, 0, low))
    assert change(cell, RemoveMachine(0)).evicted.tolist() == [3, 2, 1]
    assert not cell.is_up(0)
    assert cell.capacity_total() == {"cpu": 0, "memory": 0}
    change(cell, ReviveMachine(0))
    assert cell.is_up(0)
    assert cell.free().tolist() == [[9, 9]]


def test_a_shrunk_machine_evicts_until_the_rest_fits() -> None:
    cell = cell_of((9, 9))
    shape = cell.shape(Resources(3, 1))
    claim(cell, *((task, 0, shape) for task in (1, 2, 3)))
    assert change(cell, ResizeMachine(0, Resources(4, 9))).evicted.tolist() == [3, 2]
    assert cell.free().tolist() == [[1, 8]]


def test_a_change_that_changes_nothing_moves_no_version_on() -> None:
    cell = cell_of((9, 9))
    before = cell.versions().tolist()
    change(cell, DrainMachine(0, False), ReviveMachine(0), ResizeMachine(0, Resources(9, 9)))
    assert cell.versions().tolist() == before


def test_tags_are_counted_per_machine_and_per_node_set() -> None:
    cell = cell_of((9, 9), (9, 9), rack=("r0", "r1"), zone=("z0",))
    web = cell.shape(Resources(1, 1), ("web", "web", "db"))
    claim(cell, (1, 0, web), (2, 1, web), (3, 1, web))
    assert [cell.tag_count("web", machine) for machine in (0, 1)] == [1, 2]
    assert cell.tag_count_in("db", "rack", "r1") == 3
    assert cell.tag_count_in("db", "machine", "m1") == 2
    assert cell.sets_of(0, "rack") == ("r0", "r1")
    assert cell.sets_of(0, "machine") == ("m0",)
    assert cell.where_tags("web", "machine", 2).tolist() == [2]
    assert cell.where_tags("web", "zone", 0, 2).tolist() == [0]
    assert cell.where_tags("web", "zone", 3, 3).tolist() == [3]


def test_attributes_select_machines() -> None:
    cell = Cell(DIMENSIONS)
    change(
        cell,
        *(
            AddMachine(Machine(f"m{i}", Resources(1, 1), {"arch": arch, "disk": "ssd"}))
            for i, arch in enumerate(["x86", "arm"] * 35)
        ),
    )
    everyone = cell.where({"disk": "ssd"})
    assert [int(word).bit_count() for word in everyone] == [64, 6]
    arm = cell.where({"arch": "arm", "disk": "ssd"})
    assert arm.tolist() == [0xAAAAAAAAAAAAAAAA, 0b101010]
    assert cell.where({"arch": "riscv"}).tolist() == [0, 0]
    assert cell.where({}).tolist() == everyone.tolist()


def test_names_that_are_not_known_come_with_a_hint() -> None:
    cell = cell_of((1, 1))
    with pytest.raises(ModelError, match="did you mean 'rack'"):
        cell.sets_of(0, "rak")
    with pytest.raises(ModelError, match="has no set 'r9'"):
        cell.tag_count_in("web", "rack", "r9")
    with pytest.raises(ModelError, match="did you mean 'm0'"):
        cell.machine_number("m00")
    with pytest.raises(ModelError, match=r"machine x: joins .* leave it out"):
        change(cell, AddMachine(Machine("x", Resources(), joins={"machine": ("r0",)})))
    with pytest.raises(ModelError, match="leave it out"):
        Cell(DIMENSIONS, {"machine": ["m0"]})
    with pytest.raises(ModelError, match="twice"):
        Cell(DIMENSIONS, {"rack": ["r0", "r0"]})


def test_a_transaction_that_makes_no_sense_changes_nothing() -> None:
    cell = cell_of((4, 4))
    shape = cell.shape(Resources(1, 1))
    good = rows(cell, [(1, 0, shape), (2, 0, shape)])
    before = (cell.versions().tolist(), cell.machines)
    drain = (DrainMachine(0),)
    nonsense = [
        Transaction("anna", rows(cell, [(-1, 0, shape)]), machines=drain),
        Transaction("anna", rows(cell, [(1, 0, 99)]), machines=drain),
        Transaction("anna", rows(cell, [(1, 0, -1)])),
        Transaction("anna", rows(cell, [(n, 0, shape) for n in range(3)], gangs=[1, 2, 1])),
        Transaction("anna", Claims(good.tasks[1:], good.machines, good.shapes, good.versions)),
        Transaction(
            "anna",
            Claims(good.tasks.astype(np.float64), good.machines, good.shapes, good.versions),
        ),
        Transaction("anna", releases=np.array([-5], np.int64)),
        Transaction("anna", good, machines=drain, atomic=True),
        Transaction(OPERATOR, machines=(*drain, RemoveMachine(1))),
        Transaction(OPERATOR, machines=(*drain, AddMachine(Machine("m0", Resources())))),
        Transaction(OPERATOR, machines=(AddMachine(Machine("x", Resources(1, 1, MANY))),)),
        Transaction("anna", confirms=np.array([-5], np.int64)),
    ]
    for transaction in nonsense:
        with pytest.raises(ModelError):
            cell.commit(transaction)
        assert (cell.versions().tolist(), cell.machines, cell.claims()) == (*before, 0)


def test_capacities_that_would_overflow_are_refused() -> None:
    cell = Cell(DIMENSIONS)
    huge = [AddMachine(Machine(f"m{i}", Resources(2**53, 0))) for i in range(513)]
    with pytest.raises(ModelError, match=r"more than 2\^62"):
        change(cell, *huge)
    assert cell.machines == 0
    change(cell, *huge[:512])
    assert cell.capacity_total()["cpu"] == 2**62


def test_the_native_columns_refuse_what_is_not_there() -> None:
    cell = cell_of((4, 4))
    native = cell.native
    for call in (
        lambda: native.is_up(5),
        lambda: native.free(np.array([7], np.int32)),
        lambda: native.claims_on(-1),
        lambda: native.tag_count(-1, 0),
        lambda: native.set_tag_count(0, 99),
        lambda: native.in_sets_with_tag(0, np.array([0, 99], np.int32), 0, 0),
        lambda: native.shape([1], [], 0),
        lambda: native.shape([1, -1], [], 0),
        lambda: native.shape([1, 1], [], 40_000),
        lambda: native.set_limits(9, [], 1, 0),
        lambda: native.drain(3, True),
        lambda: native.resize(0, [1]),
        lambda: native.add_machines(np.ones((1, 2), np.int64), [[5]], [[]]),
        lambda: native.add_machines(np.ones((1, 2), np.int64), [[]], [[2**31 - 1]]),
        lambda: native.add_machines(-np.ones((1, 2), np.int64), [[]], [[]]),
    ):
        with pytest.raises(ValueError, match=r"."):
            call()
    assert cell.audit() == []


def test_strided_arrays_are_read_as_they_are() -> None:
    cell = cell_of((9, 9))
    shape = cell.shape(Resources(1, 1))
    table = np.array([[1, 0], [2, 0], [3, 0]], np.int64)
    columns = np.zeros((3, 2), np.int32)
    columns[:, 1] = shape
    claims = Claims(table[:, 0], columns[:, 0], columns[:, 1], np.zeros(6, np.uint32)[::2])
    assert cell.commit(Transaction("anna", claims)).all_accepted
    assert cell.tasks_on(0).tolist() == [1, 2, 3]
    release(cell, *table[::-2, 0])
    assert cell.tasks_on(0).tolist() == [2]


def test_a_view_has_no_door_and_a_snapshot_no_later_machines() -> None:
    cell = cell_of((4, 4))
    live, snapshot = cell.view(), cell.snapshot()
    change(cell, AddMachine(Machine("late", Resources(1, 1))))
    assert not hasattr(live, "commit")
    assert live.machine_number("late") == 1
    assert (snapshot.machines, snapshot.where({}).tolist()) == (1, [1])
    with pytest.raises(ModelError, match="no machine 'late'"):
        snapshot.machine_number("late")


def test_a_snapshot_knows_what_schedulers_hold_and_of_how_many_jobs() -> None:
    cell = cell_of((100, 100))
    shape = cell.shape(Resources(2, 3))
    first, second, third = (task_number(0, 0), task_number(0, 1), task_number(1, 0))
    assert claim(cell, (first, 0, shape), (second, 0, shape), (third, 0, shape)).all_accepted
    snapshot = cell.snapshot()
    cell.commit(Transaction("anna", releases=np.array([third])))
    assert snapshot.held_by("anna") == {"cpu": 6, "memory": 9}
    number = snapshot._scheduler("anna")
    assert [*snapshot._columns.usage(number)][1:] == [3, 2]


def test_a_snapshot_does_not_show_later_schedulers_attributes_or_wants() -> None:
    cell = cell_of((4, 4))
    snapshot = cell.snapshot()
    change(cell, AddMachine(Machine("late", Resources(1, 1), attributes={"arch": "arm"})))
    cell.commit(Transaction("late", wants=Wants(1.0, (1, 1), 9)))
    cell.set_limits("late", None, None, 3)
    assert cell.attributes == (("arch", "arm"),)
    assert snapshot.attributes == ()
    assert (cell.wants().keys(), snapshot.wants()) == ({"late"}, {})
    assert (cell.highest_precedence("late"), snapshot.highest_precedence("late")) == (3, 32_767)
    assert snapshot.held_by("late") == {"cpu": 0, "memory": 0}


def test_the_operator_holds_what_it_claims() -> None:
    cell = cell_of((4, 4))
    assert claim(cell, (0, 0, cell.shape(Resources(3, 2))), scheduler=OPERATOR).all_accepted
    assert cell.held_by(OPERATOR) == {"cpu": 3, "memory": 2}


def test_an_audited_cell_stops_at_the_first_discrepancy() -> None:
    class Miscounting(Cell):
        def audit(self) -> list[str]:
            return ["free is kept as 1 but recounts to 2"]

    cell = Miscounting(DIMENSIONS, audited=True)
    with pytest.raises(AuditFailure, match="recounts to 2"):
        change(cell, AddMachine(Machine("m0", Resources(1, 1))))


def test_a_full_queue_is_not_taken_for_a_limit_of_precedence() -> None:
    assert len(Why.__members__) == len({*Why})
    assert Refusal(Why.QUEUE_FULL).sentence("m1") == "m1 had a full queue"
    assert "above the highest" in Refusal(Why.PRECEDENCE_LIMIT, lacking=2).sentence()


def test_a_gang_that_is_refused_leaves_the_version_to_the_next_claim() -> None:
    cell = cell_of((4, 8), (1, 8))
    shape = cell.shape(Resources(2, 1))
    before = cell.versions().tolist()
    outcome = claim(cell, (1, 0, shape), (2, 1, shape), (3, 0, shape), gangs=[0, 0, -1])
    assert outcome.accepted.tolist() == [False, False, True]
    assert cell.versions().tolist() == [before[0] + 1, before[1]]


@pytest.mark.parametrize("names", ["", "abcdefghi", "aba"])
def test_a_cell_has_one_to_eight_resources_of_different_names(names: str) -> None:
    with pytest.raises(ModelError, match="expected 1 to 8 distinct names"):
        Cell(tuple(names))
    assert Cell(tuple("abcdefgh")).dimensions == tuple("abcdefgh")
    assert Cell(("a",)).dimensions == ("a",)


def test_a_plain_request_asks_for_nothing_of_other_resources() -> None:
    cell = Cell(("cpu", "memory", "gpu", "net"))
    for request, expected in (
        (Resources(5, 6), (5, 6, 0, 0)),
        (Resources(5, 6, {"net": 7}), (5, 6, 0, 7)),
        (Resources(5, 6, {"disk": 7}), (5, 6, 0, 0)),
    ):
        assert tuple(cell.shape_request(cell.shape(request))) == expected
    assert cell.unknown_resource(cell.shape(Resources(5, 6))) is None
    assert cell.unknown_resource(cell.shape(Resources(5, 6, {"disk": 7}))) is not None
