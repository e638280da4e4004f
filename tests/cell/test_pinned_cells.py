"""Cells through random sequences of transactions of every kind: each answer, each refusal, and all that
can be read of the cell after it; drafts; and views of expected waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from drawn_clusters import dice_of
from msgspec import structs
from pinned_digests import require_digests
from told_values import outcome, told

from argosy._core import MachineDraw
from argosy.campaign.dice import Dice
from argosy.cell import Cell, Draft, Rule, View
from argosy.cell.draft import claims_of, room_without
from argosy.cell.search import title_of
from argosy.cell.waits import WaitRules, columns_of, feed, new_wait_view, state_of
from argosy.model.jobs import task_number
from argosy.model.machines import Machine
from argosy.model.messages import EndsReported, WaitUpdate
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.tasks import task_numbers
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    Claims,
    DrainMachine,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
    Transaction,
    Wants,
)

PINNED: Final = Path(__file__).parent / "pinned"
SCHEDULERS: Final = ("one", "two", "two:part", OPERATOR)
GROUPS: Final = {"rack": ("r0", "r1"), "zone": ("z0",)}


class DrawnCell:
    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.has_devices = dice.chance(0.3)
        dimensions = ("cpu", "memory", *(("gpu",) if self.has_devices else ()))
        devices = "gpu" if self.has_devices else None
        self.cell = Cell(dimensions, GROUPS, audited=True, devices=devices)
        self.machines = 0
        self.tasks = 0
        for _ in range(dice.among(1, 6)):
            self.commit(OPERATOR, machines=(self.machine(),))
        if dice.chance(0.5):
            self.cell.set_limits("one", Resources(3_000, 9), dice.one_of((None, 2)), 4)

    def capacity(self) -> Resources:
        dice = self.dice
        extras = {"gpu": 1_000 * dice.among(0, 3)} if self.has_devices else {}
        if dice.chance(0.1):
            extras["net"] = 5
        return Resources(1_000 * dice.among(0, 4), dice.among(1, 9), extras)

    def machine(self) -> AddMachine:
        dice = self.dice
        name = f"m{self.machines if dice.chance(0.97) else 0}"
        self.machines += 1
        joins = {"rack": (f"r{dice.among(0, 2)}",)} if dice.chance(0.7) else {}
        attributes = {"disk": dice.one_of(("ssd", "hdd"))} if dice.chance(0.5) else {}
        return AddMachine(Machine(name, self.capacity(), attributes, joins))

    def shape(self) -> int:
        dice = self.dice
        extras = {"gpu": dice.one_of((300, 1_000, 2_000))} if self.has_devices else {}
        if dice.chance(0.05):
            extras["fpga"] = 1
        tags = tuple(dice.some_of(("web", "db"), 0))
        request = Resources(250 * dice.among(0, 8), dice.among(0, 3), extras)
        return self.cell.shape(request, tags, dice.one_of((0, 0, 1, 5, -2)))

    def some_tasks(self) -> Any:
        held = [task_number(job, 0) for job in range(self.tasks + 1) if self.dice.chance(0.2)]
        return np.array(held, np.int64)

    def claims(self) -> Claims:
        dice = self.dice
        count = dice.among(0, 5)
        tasks = []
        for _ in range(count):
            self.tasks += dice.one_of((1, 1, 1, 0))
            tasks.append(task_number(self.tasks, 0))
        most = self.cell.machines
        machines = [dice.among(0, most - 1) if dice.chance(0.97) else most for _ in tasks]
        known = np.array([m for m in machines if m < most], np.int32)
        versions = dict(zip(known.tolist(), self.cell.versions(known).tolist(), strict=True))
        stale = 1 if dice.chance(0.3) else 0
        fields: dict[str, Any] = {}
        if dice.chance(0.2):
            fields["gangs"] = np.array(
                [row // 2 if row < 4 else -1 for row in range(count)], np.int32
            )
        if dice.chance(0.2):
            rows = [[dice.among(-1, most - 1) for _ in range(2)] for _ in tasks]
            fields["alternatives"] = np.array(rows, np.int32).reshape(count, 2)
        return Claims(
            np.array(tasks, np.int64),
            np.array(machines, np.int32),
            np.array([self.shape() for _ in tasks], np.int32),
            np.array([max(0, versions.get(m, 0) - stale) for m in machines], np.uint32),
            **fields,
        )

    def commit(self, scheduler: str, **fields: Any) -> str:
        return outcome(lambda: self.cell.commit(Transaction(scheduler, **fields)))

    def step(self) -> str:
        dice, cell = self.dice, self.cell
        scheduler = dice.one_of(SCHEDULERS)
        machine = dice.among(0, cell.machines - 1)
        match dice.among(0, 13):
            case 0:
                changes: tuple[Any, ...] = (
                    self.machine(),
                    DrainMachine(machine, dice.chance(0.6)),
                    RemoveMachine(machine),
                    ReviveMachine(machine),
                    ResizeMachine(machine, self.capacity()),
                    RelabelMachine(machine, {"disk": "ssd"}, {"rack": ("r1",), "zone": ("z0",)}),
                    DrainMachine(cell.machines),
                )
                return self.commit(OPERATOR, machines=tuple(dice.some_of(changes)[:3]))
            case 1:
                return self.commit(scheduler, releases=self.some_tasks())
            case 2:
                return self.commit(scheduler, confirms=self.some_tasks(), forgets=self.some_tasks())
            case 3:
                return outcome(cell.end, self.some_tasks()[:3])
            case 4:
                bitmap = cell.between(0, dice.among(0, cell.machines))
                return outcome(cell.mark, "hot", bitmap, is_given=dice.chance(0.7))
            case 5:
                wants = Wants(
                    1.0, (1,) * dice.one_of((2, len(cell.dimensions), len(cell.dimensions))), 9
                )
                return self.commit(scheduler, wants=wants)
            case 6:
                amount = dice.one_of((None, Resources(2_000, 4)))
                return outcome(cell.set_limits, scheduler, amount, dice.one_of((None, 1)), 3)
            case _:
                return self.commit(
                    scheduler,
                    claims=self.claims(),
                    releases=self.some_tasks()[:1] if dice.chance(0.2) else None,
                    atomic=dice.chance(0.2),
                    coarse=dice.chance(0.2),
                    preempt=dice.chance(0.3),
                    move=dice.chance(0.1),
                    assume=dice.chance(0.2),
                    by_claims=dice.chance(0.1),
                )


def told_view(view: View) -> Iterator[str]:
    every = range(view.machines)
    yield told([view.dimensions, view.machines, view.groups, view.attributes])
    yield told([view.free(), view.capacity(), view.versions(), view.sequences()])
    yield told([view.takes_claims(), view.used_total(), view.capacity_total()])
    yield told([view.wants(), view.may_evict(0), view.may_evict(9)])
    yield told([view.labels_version, view.applications_version])
    yield told([(view.is_up(m), view.is_draining(m), view.machine_name(m)) for m in every])
    yield told([[view.sets_of(m, group) for group in view.groups] for m in every])
    yield told([[view.tag_count(tag, m) for tag in ("web", "db", "none")] for m in every])
    yield told([view.tag_count_in("web", "rack", name) for name in view.sets_in("rack")])
    yield told([view.members("rack", name) for name in view.sets_in("rack")])
    yield told([view.where({"disk": "ssd"}), view.where({"hot": "true"}), view.where({})])
    yield told([view.where_tags("web", "rack", 1), view.where_tags("db", most=0)])
    yield told([(view.held_by(name), view.highest_precedence(name)) for name in SCHEDULERS])
    yield told([view.evictable(precedence) for precedence in (0, 3)])


def told_searches(cell: DrawnCell) -> Iterator[str]:
    dice, view = cell.dice, cell.cell
    shape, random = cell.shape(), Random(dice.among(0, 99))
    keys = np.array([dice.among(0, 3) for _ in range(view.machines)], np.int64)
    for rule in Rule:
        options: dict[str, Any] = {
            "within": view.between(0, dice.among(0, view.machines)) if dice.chance(0.3) else None,
            "needs_room": dice.chance(0.8),
            "per_machine": dice.one_of((0, 0, 1, 2)),
        }
        if rule is Rule.SMALLEST_KEY:
            options |= {"keys": keys, "step": dice.one_of((0, 2, keys))}
        if dice.chance(0.2):
            options["adjust"] = -(view.free() // 2)
        found = outcome(view.find, shape, dice.among(0, 6), rule, random, **options)
        yield f"{title_of(rule)} {found}"
    for rule in (Rule.FIRST, Rule.SAMPLE):
        yield outcome(view.find_plainly, shape, dice.among(0, 4), rule, random)
    found_one = view.find(shape, 1, Rule.FIRST, random)
    yield told([found_one.explanation("a rule"), found_one.is_complete, found_one.ruled_out])
    yield outcome(view.victims_for, shape, dice.among(-1, 6))
    yield told(view.fits_since(max(0, view.last_change - 2), shape, preempt_below=3))
    yield told(view.fits_since(view.last_change, shape))
    yield told([view.shape_request(shape), view.shape_tags(shape), view.unknown_resource(shape)])
    order = MachineDraw(np.arange(view.machines, dtype=np.int32))
    request = [1_000] + [0] * (len(view.dimensions) - 1)
    for rounds, most in ((0, 0), (2, 3)):
        yield outcome(
            view.draw, order, request, 2, random, rounds=rounds, most=most, is_cut=rounds > 0
        )


def told_draft(cell: DrawnCell) -> Iterator[str]:
    dice, view = cell.dice, cell.cell
    visits = np.arange(view.machines, dtype=np.int64)[::-1].copy() if dice.chance(0.2) else None
    adjust = -(view.free() // 3) if dice.chance(0.3) else None
    draft = Draft(view, adjust, visits)
    for number in range(dice.among(1, 3)):
        tasks = task_numbers(900 + number, list(range(dice.among(0, 4))))
        near = view.members("rack", "r0")
        yield outcome(
            draft.place,
            tasks,
            cell.shape(),
            dice.one_of((Rule.FIRST, Rule.BEST, Rule.WORST)),
            Random(3),
            requires={"disk": "ssd"} if dice.chance(0.2) else None,
            within=near if dice.chance(0.2) else None,
            prefer=[(near, dice.among(1, 3))] if dice.chance(0.3) else (),
            preempt_below=dice.one_of((None, 2)),
            apart=dice.chance(0.2),
        )
    yield told([draft.count, draft.claims(), draft.unplaced()])
    yield outcome(room_without, draft.claims(), view)


@pytest.mark.parametrize("part", range(3))
def test_transactions_and_what_is_read_after_them_are_pinned(
    part: int, request: pytest.FixtureRequest
) -> None:
    outcomes = {}
    for number in range(40):
        drawn = DrawnCell(dice_of("cell", part, number))
        lines = []
        snapshot = drawn.cell.snapshot()
        for step in range(14):
            lines.append(drawn.step())
            lines += told_view(drawn.cell)
            lines.append(told([drawn.cell.claims, drawn.cell.assumed(), drawn.cell.audit()]))
            lines.append(told(drawn.cell.usage()))
            lines += [told(drawn.cell.tasks_on(m)) for m in range(drawn.cell.machines)]
            tasks = [task_number(job, 0) for job in range(drawn.tasks + 1)]
            lines.append(told([drawn.cell.scheduler_of(task) for task in tasks]))
            if step % 3 == 0:
                lines += told_searches(drawn)
                lines += told_draft(drawn)
            if step == 7:
                snapshot = drawn.cell.snapshot()
        lines += told_view(snapshot)
        outcomes[f"{part} {number}"] = "\n".join(lines)
    require_digests(PINNED / f"cells_{part}.txt", outcomes, request.config)


def test_what_cells_refuse_is_pinned(request: pytest.FixtureRequest) -> None:
    cell = DrawnCell(dice_of("refusing cell")).cell
    calls: dict[str, tuple[Any, ...]] = {
        "no dimension": (Cell, ()),
        "twice": (Cell, ("cpu", "cpu")),
        "nine": (Cell, tuple(map(str, range(9)))),
        "own group": (Cell, ("cpu",), {"machine": ("a",)}),
        "machine": (cell.machine_name, 99),
        "number": (cell.machine_number, "m99"),
        "similar": (cell.machine_number, "m00"),
        "group": (cell.sets_in, "rak"),
        "set": (cell.members, "rack", "r7"),
        "sets of": (cell.sets_of, 99, "rack"),
        "up": (cell.is_up, 99),
        "rows": (cell.free, np.array([99], np.int32)),
        "type": (cell.free, np.array([0], np.int64)),
        "versions": (cell.versions, np.array([0.5])),
        "find": (cell.find, 10**6, 1, Rule.FIRST, Random(1)),
        "keys": (lambda: cell.find(0, 1, Rule.SMALLEST_KEY, Random(1)),),
        "many": (cell.find, 0, -1, Rule.FIRST, Random(1)),
        "limits": (cell.set_limits, "one", Resources(1, 1, {"unknown": 3}), None),
        "negative": (cell.set_limits, "one", None, -1),
        "tags": (cell.tag_count_in, "web", "rack", "none"),
        "shape": (cell.shape_request, 10**6),
        "precedence": (lambda: cell.shape(Resources(1, 1), (), 40_000),),
        "claims": (lambda: claims_of(np.arange(1), 0, cell.find(0, 1, Rule.FIRST, Random(1))),),
    }
    outcomes = {name: outcome(call, *args) for name, (call, *args) in calls.items()}
    require_digests(PINNED / "refusing_cells.txt", outcomes, request.config)


@pytest.mark.parametrize("part", range(2))
def test_views_of_expected_waits_are_pinned(part: int, request: pytest.FixtureRequest) -> None:
    outcomes = {}
    for number in range(40):
        dice = dice_of("waits", part, number)
        rules = WaitRules(
            as_published=dice.chance(0.3),
            lag=dice.one_of((0, 0, 50)),
            plain=dice.chance(0.3),
            cost=dice.one_of((0, 0, 7)),
        )
        view, other = new_wait_view(rules), new_wait_view(rules)
        machines = dice.among(1, 6)
        capacity = np.array([[4, 8]] * machines, np.int64)
        for each in (view, other):
            each.learn(capacity.reshape(-1), np.ones(machines, np.uint8))
            for shape in range(3):
                each.know_shape(shape, np.array([1 + shape, 2], np.int64))
        view.record_times()
        random, now, lines = Random(number), 0, []
        for job in range(16):
            now += dice.one_of((0, 10, 60))
            lines.append(outcome(_step, dice, view, other, job, now, random, machines))
            view.settle(now)
            lines.append(
                told([view.machines, view.waiting, view.blocked, view.work(), view.held()])
            )
            lines.append(told([view.digest, view.digests(), view.times_to_come()]))
            columns = columns_of(view.state())
            lines.append(told([columns, state_of(columns) == view.state(), view.take_times()]))
        other.settle(now)
        jobs, digests = other.digests()
        lines.append(outcome(view.differing, jobs, digests))
        lines.append(outcome(view.join, other.state()))
        lines.append(told(structs.astuple(columns_of(view.state()))))
        outcomes[f"{part} {number}"] = "\n".join(lines)
    require_digests(PINNED / f"waits_{part}.txt", outcomes, request.config)


def _step(
    dice: Dice, view: Any, other: Any, job: int, now: int, random: Random, machines: int
) -> Any:
    count = dice.among(1, 4)
    tasks = task_numbers(job, list(range(count)))
    shape, estimate = dice.among(0, 2), dice.one_of((0, 5, 40, 300))
    machine = dice.among(0, machines - 1)
    match dice.among(0, 9):
        case 0:
            return view.block(machine)
        case 1:
            return view.empty(machine)
        case 2:
            return view.occupy(now + 20)
        case 3:
            return view.undo(task_numbers(max(0, job - 1), [0, 1]))
        case 4:
            columns = np.zeros(count, np.int64) + estimate
            where = np.full(count, machine, np.int32)
            shapes = np.full(count, shape, np.int32)
            earlier = task_numbers(max(0, job - 2), list(range(count)))
            report = EndsReported(earlier, where, columns, shapes, columns * 0 + max(0, now - 30))
            return feed(view, report, now + dice.one_of((0, 15)), now)
        case 5:
            where = np.array([dice.among(0, machines - 1) for _ in range(count)], np.int32)
            versions = np.zeros(count, np.uint8)
            request = (1 + shape, 2)
            per_task = dice.chance(0.3)
            update = WaitUpdate(
                tasks, versions, where, estimate, shape, request, count, now, per_task
            )
            feed(other, update, now, now)
            return feed(view, update, now + dice.one_of((0, 15)), now)
        case _:
            near = np.array([dice.among(0, 1) for _ in range(machines)], np.uint8)
            wished = near if dice.chance(0.3) else None
            far = dice.one_of((0, 25))
            return view.choose(
                tasks,
                count,
                shape,
                estimate,
                now,
                random,
                near=wished,
                far=far if wished is not None else 0,
            )
