"""Fit search against a plain reading of its rules, and the explanations it leaves."""

from __future__ import annotations

import threading
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from argosy.cell.cell import Cell
from argosy.cell.draft import Draft
from argosy.cell.search import Found, Rule
from argosy.model.errors import ModelError
from argosy.model.explanations import Why
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    Claims,
    DrainMachine,
    Outcome,
    Transaction,
)

RANKED = (Rule.BEST, Rule.WORST, Rule.SMALLEST_KEY)


def cell_of(*capacities: tuple[int, ...], dimensions: tuple[str, ...] = ("cpu", "memory")) -> Cell:
    cell = Cell(dimensions)
    machines = [
        Machine(
            f"m{number}",
            Resources(
                capacity[0], capacity[1], dict(zip(dimensions[2:], capacity[2:], strict=True))
            ),
        )
        for number, capacity in enumerate(capacities)
    ]
    cell.commit(Transaction(OPERATOR, machines=tuple(AddMachine(machine) for machine in machines)))
    return cell


def drain(cell: Cell, *machines: int) -> None:
    changes = tuple(DrainMachine(machine) for machine in machines)
    cell.commit(Transaction(OPERATOR, machines=changes))


def bitmap(machines: int, chosen: set[int]) -> NDArray[np.uint64]:
    words = [0] * ((machines + 63) // 64)
    for machine in chosen:
        words[machine // 64] |= 1 << machine % 64
    return np.array(words, np.uint64)


def commit(cell: Cell, found: Found, shape: int, first_task: int) -> None:
    tasks = np.arange(first_task, first_task + len(found), dtype=np.int64)
    shapes = np.full(len(found), shape, np.int32)
    outcome = cell.commit(
        Transaction("s", Claims(tasks, found.machines, shapes, found.versions), coarse=True)
    )
    assert outcome.all_accepted


def left_over(free: list[int], request: tuple[int, ...], capacity: list[int]) -> int:
    return sum(
        int((have - want) * (2**20 / whole))
        for have, want, whole in zip(free, request, capacity, strict=True)
        if whole
    )


@st.composite
def questions(draw: st.DrawFn) -> tuple[Cell, int, dict[str, object], Rule, int]:
    """A cell with some machines drained, a shape, and a search over it."""
    dimensions = draw(st.sampled_from([("cpu", "memory"), ("cpu", "memory", "a", "b", "c")]))
    amounts = st.tuples(*[st.integers(2, 9)] * len(dimensions))
    capacities = draw(st.lists(amounts, min_size=1, max_size=90))
    cell = cell_of(*capacities, dimensions=dimensions)
    numbers = st.integers(0, len(capacities) - 1)
    drain(cell, *draw(st.sets(numbers, max_size=5)))
    wanted = draw(st.tuples(*[st.integers(0, 4)] * len(dimensions)))
    extras = dict(zip(dimensions[2:], wanted[2:], strict=True))
    shape = cell.shape(Resources(wanted[0], wanted[1], extras))
    rule = draw(st.sampled_from(list(Rule)))
    options: dict[str, object] = {"per_machine": draw(st.sampled_from([0, 0, 1, 2]))}
    if draw(st.booleans()):
        options["within"] = bitmap(
            len(capacities), {*range(len(capacities))} - draw(st.sets(numbers))
        )
    if rule == Rule.SMALLEST_KEY:
        keys = st.lists(st.integers(-5, 5), min_size=len(capacities), max_size=len(capacities))
        options["keys"] = np.array(draw(keys), np.int64)
        options["step"] = draw(st.integers(-2, 3))
        options["needs_room"] = draw(st.booleans())
    return cell, shape, options, rule, draw(st.integers(0, 60))


@settings(max_examples=300)
@given(questions(), st.integers(0, 2**32))
def test_every_placement_is_one_the_rule_allows(
    question: tuple[Cell, int, dict[str, object], Rule, int], seed: int
) -> None:
    cell, shape, options, rule, count = question
    found = cell.find(shape, count, rule, Random(seed), **options)  # type: ignore[arg-type]
    request = cell.shape_request(shape)
    capacity, room = cell.capacity().tolist(), cell.free().tolist()
    within = options.get("within")
    most = int(options["per_machine"]) if rule != Rule.SAMPLE else 1  # type: ignore[call-overload]
    keys = [int(key) for key in options.get("keys", ())]  # type: ignore[attr-defined]
    taken = [0] * cell.machines

    def fits(machine: int) -> bool:
        if cell.is_draining(machine) or (most and taken[machine] >= most):
            return False
        if isinstance(within, np.ndarray) and not int(within[machine // 64]) >> machine % 64 & 1:
            return False
        have = room[machine] if options.get("needs_room", True) else capacity[machine]
        return all(amount >= want for amount, want in zip(have, request, strict=True))

    def rank(machine: int) -> int:
        if rule == Rule.SMALLEST_KEY:
            return keys[machine]
        left = left_over(room[machine], request, capacity[machine])
        return left if rule == Rule.BEST else -left

    assert found.versions.tolist() == cell.versions()[found.machines].tolist()
    for machine in found.machines.tolist():
        assert fits(machine)
        if rule in RANKED:
            best = min(rank(other) for other in range(cell.machines) if fits(other))
            assert rank(machine) == best
        if keys:
            keys[machine] += int(options["step"])  # type: ignore[call-overload]
        taken[machine] += 1
        room[machine] = [
            amount - (want if rule != Rule.SAMPLE else 0)
            for amount, want in zip(room[machine], request, strict=True)
        ]
    if not found.is_complete:
        assert not any(fits(machine) for machine in range(cell.machines))
    assert found.looked_at == found.feasible + sum(found.ruled_out.values())


def ranked_question(random: Random) -> tuple[Cell, int, dict[str, object], Rule, int]:
    """As above, where some machines fit and others do not."""
    dimensions = ("cpu", "memory", "a")[: 2 + random.below(2)]
    machines = 1 + random.below(12)
    cell = cell_of(
        *[tuple(random.below(10) for _ in dimensions) for _ in range(machines)],
        dimensions=dimensions,
    )
    drain(cell, *{random.below(machines) for _ in range(random.below(3))})
    cpu, memory, extra = (random.below(6) for _ in range(3))
    shape = cell.shape(Resources(cpu, memory, {"a": extra} if "a" in dimensions else {}))
    rule = RANKED[random.below(3)]
    options: dict[str, object] = {"per_machine": random.below(3)}
    if random.below(3) == 0:
        inside = {machine for machine in range(machines) if random.below(3)}
        options["within"] = bitmap(machines, inside)
    if rule == Rule.SMALLEST_KEY:
        options["keys"] = np.array([random.below(11) - 5 for _ in range(machines)], np.int64)
        options["step"] = random.below(6) - 2
        options["needs_room"] = random.below(2) == 0
    return cell, shape, options, rule, 1 + random.below(30)


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_a_search_that_ranks_explains_itself_as_its_plain_reading_does(seed: int) -> None:
    cell, shape, options, rule, count = ranked_question(Random(seed))
    found = cell.find(shape, count, rule, Random(seed), **options)  # type: ignore[arg-type]
    request, names = cell.shape_request(shape), cell.dimensions
    capacity, room = cell.capacity().tolist(), cell.free().tolist()
    within, needs_room = options.get("within"), bool(options.get("needs_room", True))
    taken = [0] * cell.machines

    def reason(machine: int) -> str:
        if cell.is_draining(machine):
            return "down"
        is_in = not isinstance(within, np.ndarray) or int(within[machine // 64]) >> machine % 64 & 1
        if not is_in or 0 < int(options["per_machine"]) <= taken[machine]:  # type: ignore[call-overload]
            return "filtered"
        return next((name for name, lack in lacking(machine).items() if lack > 0), "")

    def lacking(machine: int) -> dict[str, int]:
        has = room[machine] if needs_room else capacity[machine]
        asked = [want * (taken[machine] + 1 if needs_room else 1) for want in request]
        return dict(zip(names, np.subtract(asked, has).tolist(), strict=True))

    def score(machine: int) -> int:
        if rule == Rule.SMALLEST_KEY:
            return int(options["keys"][machine])  # type: ignore[index]
        return left_over(room[machine], request, capacity[machine])

    reasons = [reason(machine) for machine in range(cell.machines)]
    assert found.ruled_out == dict(Counter(why for why in reasons if why))
    assert (found.looked_at, found.feasible) == (cell.machines, reasons.count(""))
    fitting = sorted(map(score, np.flatnonzero(np.array(reasons) == "").tolist()))
    if rule == Rule.WORST:
        fitting.reverse()
    best, second = [*fitting, None, None][:2]
    assert (found.score, found.second_score if second is not None else None) == (best, second)
    if second is not None:
        assert found.second is not None
        assert found.second != found.machines[0]
        assert (reasons[found.second], score(found.second)) == ("", second)
    for machine in found.machines.tolist():
        taken[machine] += 1
    expected: tuple[object, ...] | None = None
    wanted = dict(zip(names, request, strict=True))
    for machine in range(cell.machines) if not found.is_complete else ():
        if reason(machine) in ("down", "filtered", ""):
            continue
        is_small = any(want > has for want, has in zip(request, capacity[machine], strict=True))
        short = {name: lack for name, lack in lacking(machine).items() if lack > 0}
        share, name = max(
            ((Fraction(lack, wanted[name]), name) for name, lack in short.items()),
            key=lambda each: (each[0], -names.index(each[1])),
        )
        miss = (is_small, share, machine, name, short[name])
        expected = miss if expected is None else min(expected, miss)
    told = found.nearest_miss
    assert (told and (told.machine, told.dimension, told.lacking)) == (expected and expected[2:])
    assert found.could_fit == (expected is not None and not expected[0])


@pytest.mark.parametrize("rule", Rule)
def test_the_same_stream_gives_the_same_answer_and_leaves_no_trace(rule: Rule) -> None:
    cell = cell_of(*[(8, 8)] * 300)
    shape = cell.shape(Resources(2, 1))
    keys = np.zeros(300, np.int64)
    before = cell.free().tolist()
    answers = [
        cell.find(shape, 100, rule, Random(5), keys=keys, step=1).machines.tolist()
        for _ in range(3)
    ]
    assert answers[0] == answers[1] == answers[2]
    frozen = cell.snapshot().find(shape, 100, rule, Random(5), keys=keys, step=1)
    assert frozen.machines.tolist() == answers[0]
    assert cell.free().tolist() == before


@pytest.mark.parametrize("rule", [Rule.FIRST, *RANKED, Rule.SAMPLE])
def test_ties_fall_differently_for_different_streams(rule: Rule) -> None:
    cell = cell_of(*[(8, 8)] * 300)
    shape = cell.shape(Resources(2, 1))
    keys = np.zeros(300, np.int64)
    first = {
        int(cell.find(shape, 1, rule, Random(seed), keys=keys).machines[0]) for seed in range(40)
    }
    assert len(first) > 30


def test_tasks_of_one_search_see_each_other() -> None:
    cell = cell_of((4, 4), (4, 4))
    shape = cell.shape(Resources(3, 1))
    for rule in (Rule.FIRST, Rule.BEST, Rule.WORST):
        found = cell.find(shape, 5, rule, Random(1))
        assert sorted(found.machines.tolist()) == [0, 1]
        assert not found.is_complete


def test_what_is_found_can_be_committed_until_the_cell_is_full() -> None:
    cell = cell_of(*[(10, 10)] * 20)
    shape = cell.shape(Resources(3, 1))
    random = Random(2)
    for round_ in range(6):
        commit(cell, cell.find(shape, 10, Rule.FIRST, random), shape, 100 * round_)
    assert cell.claims() == 60
    assert len(cell.find(shape, 1, Rule.FIRST, random)) == 0


def test_a_search_that_fails_names_the_nearest_miss_and_a_remedy() -> None:
    cell = cell_of((1_000, 2**33), (1_500, 2**33), (4_000, 2**30), (9_000, 2**40))
    drain(cell, 3)
    shape = cell.shape(Resources(2_000, 2**32))
    explanation = cell.find(shape, 1, Rule.BEST, Random(1)).explanation()
    assert explanation.ruled_out == {"cpu": 2, "memory": 1, "down": 1}
    assert (explanation.looked_at, explanation.feasible) == (4, 0)
    miss = explanation.nearest_miss
    assert miss is not None
    assert (miss.why, miss.machine, miss.dimension, miss.lacking) == (Why.NO_ROOM, 1, "cpu", 500)
    assert explanation.remedy == (
        "no machine is large enough, even if empty: ask for 0.5 cores less, or add a larger one"
    )


@pytest.mark.parametrize("large", [0, 1])
def test_the_nearest_miss_is_where_room_could_be_made(large: int) -> None:
    cell = cell_of(*((8_000 if at == large else 2_000, 2**30) for at in range(2)))
    filler = cell.shape(Resources(8_000, 0))
    commit(cell, cell.find(filler, 1, Rule.FIRST, Random(1)), filler, 0)
    explanation = cell.find(cell.shape(Resources(2_500, 0)), 1, Rule.BEST, Random(1)).explanation()
    assert explanation.nearest_miss is not None
    assert (explanation.nearest_miss.machine, explanation.nearest_miss.lacking) == (large, 2_500)
    assert explanation.remedy.startswith("free 2.5 cores")


def test_remedies_fit_what_stood_in_the_way() -> None:
    cell = cell_of((4, 4))
    shape = cell.shape(Resources(1, 1))
    nobody = bitmap(1, set())
    filtered = cell.find(shape, 1, Rule.FIRST, Random(1), within=nobody)
    assert filtered.ruled_out == {"filtered": 1}
    assert filtered.explanation().remedy.startswith("relax")
    drain(cell, 0)
    assert cell.find(shape, 1, Rule.BEST, Random(1)).explanation().remedy.startswith("bring back")
    empty = Cell(("cpu", "memory"))
    found = empty.find(empty.shape(Resources(1, 1)), 1, Rule.BEST, Random(1))
    assert found.explanation().remedy == "add a machine"


def test_a_placement_says_why_here_and_who_came_second() -> None:
    cell = cell_of((4, 4), (8, 8), (16, 16))
    shape = cell.shape(Resources(4, 4))
    explanation = cell.find(shape, 1, Rule.BEST, Random(1)).explanation()
    assert (explanation.rule, explanation.score, explanation.second) == ("best fit", 0, 1)
    assert explanation.second_score == 2**20
    assert cell.find(shape, 1, Rule.WORST, Random(1)).machines.tolist() == [2]


def test_keys_do_not_overflow() -> None:
    cell = cell_of((4, 4))
    shape = cell.shape(Resources(0, 0))
    keys = np.array([2**63 - 1], np.int64)
    found = cell.find(shape, 3, Rule.SMALLEST_KEY, Random(1), keys=keys, step=2**62)
    assert (found.machines.tolist(), found.score) == ([0, 0, 0], 2**63 - 1)


def test_adjustments_correct_what_is_free() -> None:
    cell = cell_of((4, 4), (4, 4))
    shape = cell.shape(Resources(4, 4))
    adjust = np.array([[-1, 0], [4, 4]], np.int64)
    for rule in (Rule.FIRST, Rule.BEST, Rule.WORST):
        found = cell.find(shape, 5, rule, Random(1), adjust=adjust)
        assert found.machines.tolist() == [1, 1]


def test_questions_that_make_no_sense_are_refused() -> None:
    cell = cell_of((4, 4), (4, 4))
    shape, random = cell.shape(Resources(1, 1)), Random(1)
    with pytest.raises(ValueError, match="no such shape"):
        cell.find(99, 1, Rule.FIRST, random)
    with pytest.raises(ValueError, match="0 to 2"):
        cell.find(shape, -1, Rule.FIRST, random)
    with pytest.raises(ValueError, match="one key per machine"):
        cell.find(shape, 1, Rule.SMALLEST_KEY, random)
    with pytest.raises(ValueError, match="one key per machine"):
        cell.find(shape, 1, Rule.SMALLEST_KEY, random, keys=np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="need room"):
        cell.find(shape, 1, Rule.BEST, random, needs_room=False)
    with pytest.raises(ValueError, match="per_machine"):
        cell.find(shape, 1, Rule.FIRST, random, per_machine=-1)
    with pytest.raises(TypeError):
        cell.native.find(shape, 1, 9, random)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="within holds float64; expected an array of uint64"):
        cell.find(shape, 1, Rule.FIRST, random, within=np.zeros(1))  # type: ignore[arg-type]


def test_a_snapshot_is_searched_while_the_cell_changes() -> None:
    cell = cell_of(*[(100, 100)] * 2_000)
    shape = cell.shape(Resources(1, 1))
    snapshot = cell.snapshot()
    answers: list[list[int]] = []

    def search() -> None:
        answers.extend(
            snapshot.find(shape, 50, Rule.WORST, Random(9)).machines.tolist() for _ in range(20)
        )

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    for round_ in range(40):
        commit(cell, cell.find(shape, 50, Rule.BEST, Random(round_)), shape, 1_000 * round_)
    for thread in threads:
        thread.join()
    assert all(answer == answers[0] for answer in answers)


def test_each_machine_may_have_a_step_of_its_own() -> None:
    cell = cell_of((9, 9), (9, 9))
    shape = cell.shape(Resources(1, 1))
    steps = np.array([1, 10], np.int64)
    keys = np.array([0, 5], np.int64)
    found = cell.find(shape, 8, Rule.SMALLEST_KEY, Random(1), keys=keys, step=steps)
    # Machine 0 at keys 0 to 5 and machine 1 at 5 tie once; then 0 is the smaller until 15.
    assert sorted(found.machines.tolist()) == [0] * 7 + [1]


def test_what_lower_precedences_hold_is_given_per_machine() -> None:
    cell = cell_of((9, 9), (9, 9))
    low, high = (cell.shape(Resources(2, 1), precedence=p) for p in (0, 5))
    claims = Claims(
        np.array([1, 2, 3], np.int64),
        np.array([0, 0, 1], np.int32),
        np.array([low, low, high], np.int32),
        cell.versions(np.array([0, 0, 1], np.int32)),
    )
    assert cell.commit(Transaction("s", claims)).all_accepted
    assert cell.view().evictable(5).tolist() == [[4, 2], [0, 0]]
    assert cell.view().evictable(6).tolist() == [[4, 2], [2, 1]]


def test_room_that_a_draft_would_preempt_is_taken_once() -> None:
    cell = cell_of((4, 9), (4, 9))
    low, high = (cell.shape(Resources(3, 1), precedence=p) for p in (0, 5))
    found = cell.find(low, 2, Rule.FIRST, Random(1))
    commit(cell, found, low, 1)
    draft = Draft(cell.view())
    for task, expected in ((11, 0), (12, 0), (13, 1)):
        _, left = draft.place(
            np.array([task], np.int64), high, Rule.FIRST, Random(1), preempt_below=5
        )
        assert len(left) == expected
    assert sorted(draft.claims().machines.tolist()) == [0, 1]


def test_a_task_that_preempts_goes_where_the_fewest_make_way() -> None:
    cell = cell_of((4, 9), (4, 9), (4, 9))
    small, large, high = (
        cell.shape(Resources(cpu, 1), precedence=p) for cpu, p in ((1, 0), (4, 0), (4, 5))
    )
    for machine, shape, count in ((0, small, 4), (1, large, 1), (2, small, 3)):
        at = np.full(count, machine, np.int32)
        tasks = np.arange(count, dtype=np.int64) + 100 * (machine + 1)
        shapes = np.full(count, shape, np.int32)
        assert cell.commit(
            Transaction("s", Claims(tasks, at, shapes, cell.versions(at)))
        ).all_accepted
    assert cell.view().victims_for(high, 5).tolist() == [4, 1, 3]
    assert cell.view().victims_for(high, 0).tolist() == [-1, -1, -1]
    assert cell.view().victims_for(small, 5).tolist() == [1, 1, 0]
    for rule in (Rule.FIRST, Rule.BEST, Rule.WORST):
        draft = Draft(cell.view())
        found, _ = draft.place(np.array([1, 2], np.int64), high, rule, Random(1), preempt_below=5)
        assert draft.claims().machines.tolist() == [1, 2]
        told = found.explanation("own words")
        assert (told.rule, told.measure, told.score, told.second_score) == (
            "fewest victims",
            "victims",
            1,
            3,
        )


def test_a_first_fit_that_falls_short_counts_each_machine_once() -> None:
    cell = cell_of(*[(4, 4)] * 15, *[(1, 4)] * 5)
    found = cell.find(cell.shape(Resources(2, 1)), 100, Rule.FIRST, Random(1))
    assert len(found) == 30
    assert (found.looked_at, found.feasible, found.ruled_out) == (20, 15, {"cpu": 5})


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize(("count", "tried"), [(1, 1), (3, 3), (7, 7), (8, 8), (12, 12), (20, 13)])
def test_first_fit_draws_once_for_each_task_it_searches_for(
    count: int, tried: int, is_frozen: bool
) -> None:
    """However far ahead it draws: what the stream gives next does not depend on that."""
    cell = cell_of(*[(10, 10)] * 12)
    shape = cell.shape(Resources(cpu=10, memory=1))
    random, other = Random(3), Random(3)
    searched = cell.snapshot() if is_frozen else cell
    searched.find(shape, count, Rule.FIRST, random)
    for _ in range(tried):
        other.below(12)
    assert random.bits() == other.bits()


def _claim(cell: Cell, task: int, machine: int, shape: int, **terms: bool) -> Outcome:
    where = np.array([machine], np.int32)
    claims = Claims(
        np.array([task], np.int64), where, np.array([shape], np.int32), cell.versions(where)
    )
    return cell.commit(Transaction("s", claims, **terms))


def test_room_is_looked_for_only_where_something_has_changed() -> None:
    cell = cell_of((4, 9), (4, 9), (4, 9))
    view = cell.view()
    half, whole = cell.shape(Resources(2, 1)), cell.shape(Resources(4, 1))
    since = view.last_change
    assert not view.fits_since(since, half)
    for machine in (0, 1):
        assert _claim(cell, machine, machine, half).all_accepted
    assert view.fits_since(since, half)
    # Machine 2 has room, but had it before.
    assert not view.fits_since(since, whole)
    assert not view.fits_since(view.last_change, half)
    since = view.last_change
    cell.commit(Transaction("s", releases=np.array([1], np.int64)))
    assert view.fits_since(since, whole)
    assert view.fits_since(since, whole, within=view.between(1, 2))
    assert not view.fits_since(since, whole, within=view.between(2, 3))
    # A snapshot cannot tell.
    assert cell.snapshot().fits_since(0, whole)


def test_a_set_made_when_there_were_no_machines_stays_empty() -> None:
    cell = Cell(("cpu", "memory"))
    view = cell.view()
    none, since = view.between(0, 0), view.last_change
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(Machine("m", Resources(4, 9))),)))
    shape = cell.shape(Resources(1, 1))
    assert view.fits_since(since, shape)
    assert not view.fits_since(since, shape, within=none)


def test_room_that_preemption_would_make_counts_if_asked_for() -> None:
    cell = cell_of((4, 9))
    view = cell.view()
    low, high = (cell.shape(Resources(3, 1), precedence=p) for p in (0, 5))
    since = view.last_change
    assert _claim(cell, 1, 0, low).all_accepted
    assert not view.fits_since(since, high)
    assert view.fits_since(since, high, preempt_below=5)
    assert not view.fits_since(since, high, preempt_below=0)
    assert view.may_evict(1)
    assert not view.may_evict(0)


def test_a_change_is_remembered_through_one_that_is_undone() -> None:
    cell = cell_of((4, 9), (4, 9))
    view = cell.view()
    whole = cell.shape(Resources(4, 1))
    assert _claim(cell, 1, 0, whole).all_accepted
    since = view.last_change
    cell.commit(Transaction("s", releases=np.array([1], np.int64)))
    where = np.array([0, 0], np.int32)
    both = Claims(
        np.array([2, 3], np.int64), where, np.array([whole] * 2, np.int32), cell.versions(where)
    )
    assert not cell.commit(Transaction("s", both, atomic=True)).accepted.any()
    assert view.fits_since(since, whole)


@pytest.mark.parametrize("rule", [Rule.FIRST, Rule.BEST, Rule.WORST, Rule.SAMPLE])
@pytest.mark.parametrize("count", [0, 1, 5, 12])
def test_a_plain_search_finds_the_same_and_says_why_only_if_it_falls_short(
    rule: Rule, count: int
) -> None:
    cell = cell_of(*[(3, 3)] * 4)
    drain(cell, 2)
    shape = cell.shape(Resources(1, 1))
    streams = Random(8), Random(8)
    found = cell.find(shape, count, rule, streams[0])
    machines, versions, short = cell.find_plainly(shape, count, rule, streams[1])
    assert machines.tolist() == found.machines.tolist()
    assert versions.tolist() == found.versions.tolist()
    assert (short is None) == found.is_complete
    if short is not None:
        assert short.explanation() == found.explanation()
    assert streams[0].bits() == streams[1].bits()


def test_a_plain_search_has_no_keys() -> None:
    cell = cell_of((3, 3))
    with pytest.raises(ValueError, match="one key per machine"):
        cell.find_plainly(cell.shape(Resources(1, 1)), 1, Rule.SMALLEST_KEY, Random(1))


@pytest.mark.parametrize("rule", [Rule.FIRST, Rule.SAMPLE, *RANKED])
def test_a_machine_is_ruled_out_for_the_first_of_several_reasons(rule: Rule) -> None:
    """Down, then filtered, then the first resource that it lacks."""
    cell = cell_of((1, 1), (9, 9), (1, 1), (1, 1), (9, 1))
    drain(cell, 0, 1)
    view = cell.view()
    shape = view.shape(Resources(5, 5))
    keys = np.zeros(5, np.int64) if rule is Rule.SMALLEST_KEY else None
    found = view.find(shape, 2, rule, Random(1), within=bitmap(5, {0, 3, 4}), keys=keys)
    assert found.ruled_out == {"down": 2, "filtered": 1, "cpu": 1, "memory": 1}
