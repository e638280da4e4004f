"""Cells that grow and change while they run, and claims whose truth is elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from argosy.cell.audit import AuditFailure
from argosy.cell.cell import Cell
from argosy.cell.search import Rule
from argosy.cell.waits import WaitView
from argosy.engines.registry import all_engines
from argosy.model.errors import ModelError
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import task_number
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    Claims,
    DrainMachine,
    MachineChange,
    Outcome,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    Transaction,
    Wants,
)
from argosy.testing.builders import SECOND, job, scenario
from argosy.worlds.sim.world import SimulatedWorld

#: A task's last state on the board of the simulated machines.
FINISHED = 3
GPU = Resources(1, 1, {"gpu": 1})


def cell_of(count: int, cpu: int = 4) -> Cell:
    cell = Cell(("cpu", "memory"), {"rack": ["r0"]}, audited=True)
    machines = (Machine(f"m{n}", Resources(cpu, 8), joins={"rack": ("r0",)}) for n in range(count))
    change(cell, *map(AddMachine, machines))
    return cell


def change(cell: Cell, *changes: MachineChange) -> Outcome:
    return cell.commit(Transaction(OPERATOR, machines=changes))


def rows(*claims: tuple[int, int, int], others: Sequence[Sequence[int]] | None = None) -> Claims:
    """Rows of (task, machine, shape), and the machines to try after the first."""
    tasks, machines, shapes = (list(column) for column in zip(*claims, strict=True))
    return Claims(
        np.array(tasks, np.int64),
        np.array(machines, np.int32),
        np.array(shapes, np.int32),
        np.zeros(len(tasks), np.uint32),
        alternatives=None if others is None else np.array(others, np.int32),
    )


def claim(cell: Cell, *claims: tuple[int, int, int], **terms: Any) -> Outcome:
    others = terms.pop("others", None)
    return cell.commit(Transaction("anna", rows(*claims, others=others), **terms))


def tasks(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def test_a_machine_brings_a_resource_that_no_other_has() -> None:
    cell = cell_of(2)
    before = cell.shape(Resources(1, 1))
    claim(cell, (1, 0, before))
    change(cell, AddMachine(Machine("big", Resources(8, 8, {"gpu": 2}))))
    assert cell.dimensions == ("cpu", "memory", "gpu")
    assert cell.free().tolist() == [[3, 7, 0], [4, 8, 0], [8, 8, 2]]
    assert cell.shape(Resources(1, 1)) == before
    assert cell.shape_request(before) == (1, 1, 0)
    assert claim(cell, (2, 2, cell.shape(GPU))).all_accepted
    assert cell.held_by("anna") == {"cpu": 2, "memory": 2, "gpu": 1}
    change(cell, ResizeMachine(0, Resources(4, 8, {"disk": 5})))
    assert cell.capacity_total() == {"cpu": 16, "memory": 24, "gpu": 2, "disk": 5}


def test_a_request_for_what_no_machine_has_finds_no_room_of_it_until_one_has() -> None:
    cell = cell_of(1)
    shape = cell.shape(GPU)
    assert cell.unknown_resource(shape) == "gpu"
    claims = rows((1, 0, shape))
    outcome = cell.commit(Transaction("anna", claims))
    assert outcome.refusals(claims) == [Refusal(Why.NO_ROOM, 1, 0, "gpu", 1)]
    assert outcome.has_conflict
    found = cell.find(shape, 1, Rule.FIRST, Random(1))
    assert (len(found), found.ruled_out) == (0, {"gpu": 1})
    assert found.nearest_miss == Refusal(Why.NO_ROOM, machine=0, dimension="gpu", lacking=1)
    assert "no machine is large enough" in found.explanation().remedy
    change(cell, ResizeMachine(0, Resources(4, 8, {"gpu": 1})))
    assert (cell.shape(GPU), cell.unknown_resource(shape)) == (shape, None)
    assert cell.commit(Transaction("anna", claims)).all_accepted


def test_what_is_not_known_never_hides_what_lacks_before_it() -> None:
    cell = cell_of(2)
    change(cell, DrainMachine(1))
    large = cell.shape(Resources(9, 1, {"gpu": 1}))
    claims = rows((1, 0, large))
    assert cell.commit(Transaction("anna", claims)).refusal(claims, 0).dimension == "cpu"
    assert cell.find(large, 1, Rule.BEST, Random(1)).ruled_out == {"cpu": 1, "down": 1}


def test_a_claim_for_an_unknown_resource_preempts_nothing() -> None:
    cell = cell_of(1)
    claim(cell, (1, 0, cell.shape(Resources(4, 1))))
    greedy = cell.shape(Resources(4, 1, {"gpu": 1}), precedence=9)
    outcome = claim(cell, (2, 0, greedy), preempt=True)
    assert (outcome.evicted.tolist(), cell.machine_of(1)) == ([], 0)


def test_the_number_of_resources_is_limited() -> None:
    cell = cell_of(1)
    extras = {f"x{n}": 1 for n in range(6)}
    change(cell, AddMachine(Machine("all", Resources(1, 1, extras))))
    with pytest.raises(ModelError, match=r"machine more: 'x6' .* at most 8: there are cpu, memory"):
        change(cell, AddMachine(Machine("more", Resources(1, 1, {"x6": 1}))))
    change(cell, AddMachine(Machine("none", Resources(1, 1, {"x6": 0}))))
    assert len(cell.dimensions) == 8
    assert cell.machines == 3


def test_limits_and_wants_reach_over_resources_that_come_later() -> None:
    cell = cell_of(1)
    cell.set_limits("anna", Resources(extras={"gpu": 1}), None)
    cell.commit(Transaction("anna", wants=Wants(1.0, (1, 2), 9)))
    change(cell, ResizeMachine(0, Resources(4, 8, {"gpu": 4})))
    assert cell.wants()["anna"].amounts == (1, 2, 0)
    cell.commit(Transaction("bert", wants=Wants(1.0, (1, 2), 9)))
    assert cell.wants()["bert"].amounts == (1, 2, 0)
    shape = cell.shape(GPU)
    outcome = claim(cell, (1, 0, shape), (2, 0, shape))
    assert outcome.whys.tolist() == [Why.NONE, Why.RESOURCE_LIMIT]


def test_machines_join_sets_and_groups_that_nobody_declared() -> None:
    cell = cell_of(1)
    old = cell.snapshot()
    web = cell.shape(Resources(1, 1), ("web",))
    late = Machine("late", Resources(4, 8), joins={"rack": ("r1",), "zone": ("z0", "z1")})
    change(cell, AddMachine(late))
    claim(cell, (1, 1, web))
    assert (cell.groups, cell.sets_in("rack")) == (("rack", "zone"), ("r0", "r1"))
    assert cell.sets_of(1, "zone") == ("z0", "z1")
    assert cell.tag_count_in("web", "rack", "r1") == 1
    assert cell.where_tags("web", "zone", 1).tolist() == [2]
    assert cell.where_tags("web", "rack", 0, 0).tolist() == [1]
    assert (old.groups, old.sets_in("rack")) == (("rack",), ("r0",))
    assert cell.sets_in("machine") == (*old.sets_in("machine"), "late")
    with pytest.raises(ModelError, match="unknown node group 'zone'"):
        old.members("zone", "z0")


def test_a_relabelled_machine_takes_its_tags_to_its_new_sets_and_evicts_nothing() -> None:
    cell = cell_of(2)
    web = cell.shape(Resources(1, 1), ("web",))
    claim(cell, (1, 0, web), (2, 1, web))
    old, version = cell.snapshot(), int(cell.versions()[0])
    outcome = change(cell, RelabelMachine(0, {"disk": "ssd"}, {"rack": ("r7",)}))
    assert outcome.evicted.tolist() == []
    counts = [cell.tag_count_in("web", "rack", name) for name in cell.sets_in("rack")]
    assert (cell.sets_in("rack"), counts) == (("r0", "r7"), [1, 1])
    assert cell.members("rack", "r0").tolist() == [2]
    assert cell.where({"disk": "ssd"}).tolist() == [1]
    assert (int(cell.versions()[0]), cell.labels_version) == (version + 1, 1)
    assert old.members("rack", "r0").tolist() == [3]
    assert old.tag_count_in("web", "rack", "r0") == 2
    assert old.where({"disk": "ssd"}).tolist() == [0]
    assert (old.attributes, old.labels_version) == ((), 0)


def test_a_machine_that_is_labelled_as_before_does_not_move_on() -> None:
    cell = cell_of(1)
    change(cell, RelabelMachine(0, {"a": "1", "b": "2"}, {"rack": ("r0", "r1")}))
    before = cell.versions().tolist(), cell.labels_version
    change(cell, RelabelMachine(0, {"b": "2", "a": "1"}, {"rack": ("r1", "r0")}))
    assert (cell.versions().tolist(), cell.labels_version) == before


def test_labels_that_come_and_go_leave_nothing_behind() -> None:
    cell = cell_of(3)
    for turn in range(600):
        sets = tuple(f"s{n}" for n in range(turn % 7))
        change(cell, RelabelMachine(turn % 3, {}, {"slot": sets}))
    assert [len(cell.sets_of(n, "slot")) for n in range(3)] == [597 % 7, 598 % 7, 599 % 7]
    assert cell.members("slot", "s5").tolist() == [0]


def test_capacities_add_up_to_at_most_2_to_the_62_after_every_change() -> None:
    most = 2**53

    def resized(machine: int, cpu: int) -> MachineChange:
        return ResizeMachine(machine, Resources(cpu, 8))

    cell = cell_of(2**9, cpu=most)
    refused = (
        [AddMachine(Machine("one more", Resources(1, 0)))],
        [resized(0, 0), AddMachine(Machine("another", Resources(1, 0))), resized(0, most)],
        [resized(0, 0), resized(0, most), AddMachine(Machine("a third", Resources(1, 0)))],
    )
    for changes in refused:
        with pytest.raises(ModelError, match=r"add up to more than 2\^62"):
            change(cell, *changes)
    change(
        cell,
        *(resized(0, 1), resized(0, 2), resized(0, most - 1)),
        AddMachine(Machine("fits", Resources(1, 0))),
    )
    assert cell.view().capacity_total()["cpu"] == 2**62


def test_a_snapshot_keeps_its_resources_and_finds_no_room_of_later_ones() -> None:
    cell = cell_of(1)
    old = cell.snapshot()
    change(cell, ResizeMachine(0, Resources(4, 8, {"gpu": 1})))
    shape = cell.shape(GPU)
    assert (old.dimensions, old.free().tolist()) == (("cpu", "memory"), [[4, 8]])
    assert old.find(shape, 1, Rule.FIRST, Random(1)).ruled_out == {"gpu": 1}
    assert old.shape(GPU) == shape
    assert len(cell.snapshot().find(shape, 1, Rule.FIRST, Random(1))) == 1


def test_a_snapshot_lists_the_applications_of_its_moment() -> None:
    cell = cell_of(1)
    cell.admit(1, job("first", 1))
    old = cell.snapshot()
    cell.admit(2, job("second", 1))
    cell.retire(1)
    assert (list(old.applications()), old.applications_version) == ([1], 1)
    assert (list(cell.applications()), cell.applications_version) == ([2], 3)


def test_an_assumed_claim_takes_room_until_it_is_forgotten() -> None:
    cell = cell_of(1)
    shape = cell.shape(Resources(3, 1))
    claim(cell, (1, 0, shape), assume=True)
    assert (cell.assumed().tolist(), cell.free().tolist()) == ([1], [[1, 7]])
    assert cell.snapshot().free().tolist() == [[1, 7]]
    version = int(cell.versions()[0])
    outcome = cell.forget(tasks(1, 2))
    assert outcome.unforgotten == (Refusal(Why.NOT_CLAIMED, 2),)
    assert (cell.free().tolist(), int(cell.versions()[0])) == ([[4, 8]], version + 1)
    assert (cell.machine_of(1), cell.assumed().tolist()) == (None, [])


def test_a_confirmed_claim_is_not_forgotten() -> None:
    cell = cell_of(1)
    shape = cell.shape(Resources(1, 1))
    claim(cell, (1, 0, shape), (2, 0, shape), assume=True)
    claim(cell, (3, 0, shape))
    version = int(cell.versions()[0])
    assert cell.confirm(tasks(1)).unconfirmed == ()
    assert int(cell.versions()[0]) == version
    assert cell.confirm(tasks(1)).unconfirmed == (Refusal(Why.NOT_ASSUMED, 1),)
    refused = cell.forget(tasks(1, 2, 3)).unforgotten
    assert [(refusal.task, refusal.why) for refusal in refused] == [
        (1, Why.NOT_ASSUMED),
        (3, Why.NOT_ASSUMED),
    ]
    assert cell.tasks_on(0).tolist() == [1, 3]
    assert refused[0].sentence() == "the task's claim is already confirmed"


def test_only_the_owner_or_the_operator_settles_a_claim() -> None:
    cell = cell_of(1)
    claim(cell, (1, 0, cell.shape(Resources(1, 1))), assume=True)
    outcome = cell.commit(Transaction("bert", confirms=tasks(1), forgets=tasks(1)))
    assert outcome.unconfirmed == outcome.unforgotten == (Refusal(Why.NOT_YOURS, 1),)
    assert cell.commit(Transaction("anna", confirms=tasks(1))).unconfirmed == ()


def test_an_atomic_transaction_that_fails_settles_nothing() -> None:
    cell = cell_of(1)
    shape, huge = cell.shape(Resources(1, 1)), cell.shape(Resources(9, 9))
    claim(cell, (1, 0, shape), (2, 0, shape), assume=True)
    outcome = claim(cell, (3, 0, huge), atomic=True, confirms=tasks(1), forgets=tasks(2))
    assert outcome.unconfirmed == (Refusal(Why.TOGETHER, 1),)
    assert outcome.unforgotten == (Refusal(Why.TOGETHER, 2),)
    assert cell.assumed().tolist() == [1, 2]


def test_whom_a_forgotten_claim_preempted_does_not_come_back() -> None:
    cell = cell_of(1)
    claim(cell, (1, 0, cell.shape(Resources(4, 1))))
    high = cell.shape(Resources(4, 1), precedence=1)
    assert claim(cell, (2, 0, high), preempt=True, assume=True).evicted.tolist() == [1]
    cell.forget(tasks(2))
    assert cell.tasks_on(0).tolist() == []


def test_ends_free_room_for_any_scheduler_and_name_unknown_tasks() -> None:
    cell = cell_of(1)
    shape = cell.shape(Resources(1, 1))
    claim(cell, (1, 0, shape), (2, 0, shape))
    version = int(cell.versions()[0])
    assert cell.end(tasks(1, 2, 1, -4)) == (
        Refusal(Why.NOT_CLAIMED, 1),
        Refusal(Why.NOT_CLAIMED, -4),
    )
    assert (cell.claims(), int(cell.versions()[0])) == (0, version + 1)
    with pytest.raises(ModelError, match="tasks holds float64; expected an array of int64"):
        cell.end(np.zeros(1))


def test_an_audit_failure_is_a_failed_assertion() -> None:
    assert issubclass(AuditFailure, AssertionError)


def test_a_refused_claim_goes_to_its_next_best_machine() -> None:
    cell = cell_of(5)
    shape = cell.shape(Resources(3, 1))
    change(cell, RemoveMachine(1), DrainMachine(2))
    claim(cell, (1, 0, shape))
    claims = rows((2, 0, shape), (3, 4, shape), others=[[1, 2, -1, 3], [3, -1, -1, -1]])
    outcome = cell.commit(Transaction("anna", claims))
    assert outcome.all_accepted
    assert outcome.machines.tolist() == [3, 4]
    assert (cell.machine_of(2), cell.machine_of(3)) == (3, 4)
    assert claims.machines.tolist() == [0, 4]


def test_if_all_candidates_conflict_the_first_says_why() -> None:
    cell = cell_of(2)
    shape = cell.shape(Resources(3, 1))
    claim(cell, (1, 0, shape))
    change(cell, DrainMachine(1))
    claims = rows((2, 0, shape), others=[[1]])
    outcome = cell.commit(Transaction("anna", claims))
    assert outcome.refusals(claims) == [Refusal(Why.NO_ROOM, 2, 0, "cpu", 2)]


def test_a_reason_that_holds_everywhere_ends_the_search_among_alternatives() -> None:
    cell = cell_of(3)
    shape = cell.shape(Resources(1, 1))
    cell.set_limits("anna", None, 0)
    change(cell, DrainMachine(0))
    claims = rows((1, 0, shape), (2, 1, shape), others=[[1, 2], [2, -1]])
    outcome = cell.commit(Transaction("anna", claims))
    assert outcome.whys.tolist() == [Why.JOB_LIMIT, Why.JOB_LIMIT]
    assert outcome.machines.tolist() == [1, 1]
    assert not outcome.has_conflict


def test_coarse_detection_is_about_the_first_choice() -> None:
    cell = cell_of(2)
    shape = cell.shape(Resources(1, 1))
    assert claim(cell, (1, 0, shape), coarse=True).whys.tolist() == [Why.STALE]
    outcome = claim(cell, (1, 0, shape), others=[[1]], coarse=True)
    assert (outcome.all_accepted, outcome.machines.tolist()) == (True, [1])


def test_a_gang_with_alternatives_is_still_all_or_nothing() -> None:
    cell = cell_of(2)
    shape = cell.shape(Resources(3, 1))
    three = [(task, 0, shape) for task in (1, 2, 3)]
    outcome = claim(cell, *three, others=[[1]] * 3, atomic=True)
    assert outcome.whys.tolist() == [Why.TOGETHER, Why.TOGETHER, Why.NO_ROOM]
    assert (outcome.machines.tolist(), cell.claims()) == ([0, 0, 0], 0)
    outcome = claim(cell, *three[:2], others=[[1]] * 2, atomic=True)
    assert (outcome.all_accepted, outcome.machines.tolist()) == (True, [0, 1])


def test_a_limit_is_not_a_conflict() -> None:
    cell = cell_of(1)
    cell.set_limits("anna", None, 0)
    outcome = claim(cell, (1, 0, cell.shape(Resources(1, 1))))
    assert (outcome.all_accepted, outcome.has_conflict) == (False, False)


@pytest.mark.parametrize(
    ("column", "given", "sentence"),
    [
        ("tasks", np.zeros(1), "claims.tasks holds float64; expected an array of int64"),
        (
            "versions",
            np.zeros(1, np.int64),
            "claims.versions holds int64; expected an array of uint32",
        ),
        ("machines", [0], "claims.machines is a list; expected an array of int32"),
        (
            "shapes",
            np.zeros((1, 1), np.int32),
            "claims.shapes has 2 axes; expected an array of int32",
        ),
        (
            "alternatives",
            np.zeros(1, np.int32),
            "claims.alternatives has 1 axes; expected a table of int32",
        ),
    ],
)
def test_a_column_of_the_wrong_type_is_named(column: str, given: Any, sentence: str) -> None:
    cell = cell_of(1)
    good = rows((1, 0, cell.shape(Resources(1, 1))))
    columns = {name: getattr(good, name) for name in good.__struct_fields__}
    with pytest.raises(ModelError, match=f"a transaction of anna: {sentence}"):
        cell.commit(Transaction("anna", Claims(**{**columns, column: given})))
    with pytest.raises(ModelError, match="machines holds int64; expected an array of int32"):
        cell.free(np.zeros(1, np.int64))


def test_expected_waits_go_on_when_a_resource_comes() -> None:
    waits = WaitView()
    everyone = np.ones(2, np.uint8)
    waits.learn(np.array([4, 8, 4, 8], np.int64), everyone)
    waits.know_shape(0, np.array([2, 1], np.int64))
    chosen = waits.choose(tasks(1, 2), 2, 0, 100, 0, Random(1))[0]
    before, held = waits.work().tolist(), waits.held().tolist()
    waits.learn(np.array([4, 8, 0, 4, 8, 2], np.int64), everyone)
    assert waits.work().tolist() == before
    assert waits.held().tolist() == [[*row, 0] for row in held]
    waits.know_shape(1, np.array([1, 1, 1], np.int64))
    assert waits.choose(tasks(3), 1, 1, 100, 0, Random(1))[0].tolist() == [1]
    peer = WaitView()
    peer.learn(np.array([4, 8, 4, 8], np.int64), everyone)
    peer.join(waits.state())
    assert sorted(peer.work().tolist()) != [0, 0]
    assert len(chosen) == 2


@pytest.mark.parametrize("engine", sorted(all_engines()))
def test_every_engine_leaves_waiting_what_asks_for_a_resource_that_no_machine_has(
    engine: str,
) -> None:
    jobs = [job("odd", 3, request=Resources(100, 100, {"gpu": 1})), job("plain", 2)]
    spec = scenario(engine, jobs, horizon=100 * SECOND)
    world = SimulatedWorld(spec, all_engines())
    world.run()
    states = [world.host.board.state(task_number(number, 0)) for number in (0, 1)]
    assert [state == FINISHED for state in states] == [False, True]


def test_a_group_that_a_machine_joins_no_set_of_is_known_all_the_same() -> None:
    cell = Cell(("cpu", "memory"))
    machine = Machine("m", Resources(4_000, 1), joins={"zone": ()})
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    assert cell.groups == ("zone",)
    assert cell.sets_in("zone") == cell.sets_of(0, "zone") == ()
