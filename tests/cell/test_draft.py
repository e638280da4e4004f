"""Drafts, what would help a search, and the names and limits that a cell keeps."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.cell.bitmaps import to_bitmap
from argosy.cell.cell import Cell
from argosy.cell.draft import Draft
from argosy.cell.search import Found, Rule
from argosy.model.errors import ModelError
from argosy.model.explanations import Refusal, Why
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Claims, RelabelMachine, Transaction


def cell_of(*sizes: int, arch: tuple[str, ...] = ()) -> Cell:
    """Machines with this much cpu, and the architecture given for each."""
    cell = Cell(("cpu", "memory"), audited=True)
    kinds = arch or ("x86",) * len(sizes)
    machines = [
        AddMachine(Machine(f"m{n}", Resources(size, 100), attributes={"arch": kind}))
        for n, (size, kind) in enumerate(zip(sizes, kinds, strict=True))
    ]
    cell.commit(Transaction(OPERATOR, machines=tuple(machines)))
    return cell


def tasks(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(numbers, np.int64)


def only(cell: Cell, *machines: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return to_bitmap(np.isin(np.arange(cell.machines), machines))


class TestDraft:
    def test_each_place_sees_the_room_that_earlier_ones_took(self) -> None:
        cell = cell_of(4, 4)
        draft = Draft(cell.view())
        large, small = cell.shape(Resources(3, 1)), cell.shape(Resources(1, 1))
        _, left = draft.place(tasks(1, 2, 3), large, Rule.BEST, Random(1))
        assert left.tolist() == [3]
        found, left = draft.place(tasks(4, 5, 6), small, Rule.BEST, Random(1))
        assert (len(found), left.tolist()) == (2, [6])
        claims = draft.claims()
        assert claims.tasks.tolist() == [1, 2, 4, 5]
        assert sorted(claims.machines.tolist()) == [0, 0, 1, 1]
        assert claims.shapes.tolist() == [large, large, small, small]
        assert draft.count == 4
        assert draft.unplaced().tolist() == [3, 6]
        assert cell.commit(Transaction("s", claims)).all_accepted

    def test_a_draft_of_nothing_claims_nothing(self) -> None:
        cell = cell_of(4)
        draft = Draft(cell.view())
        assert (len(draft.claims()), len(draft.unplaced()), draft.count) == (0, 0, 0)
        found, left = draft.place(tasks(), cell.shape(Resources(1, 1)), Rule.FIRST, Random(1))
        assert (len(found), len(left), len(draft.claims())) == (0, 0, 0)

    def test_preferred_machines_come_first_up_to_their_number(self) -> None:
        cell = cell_of(9, 9, 9, 9)
        one = cell.shape(Resources(1, 1))
        draft = Draft(cell.view())
        prefer = [(only(cell, 3), 2), (only(cell, 1, 2), 1)]
        _, left = draft.place(
            tasks(1, 2, 3, 4), one, Rule.BEST, Random(1), within=only(cell, 0, 2, 3), prefer=prefer
        )
        assert len(left) == 0
        # Best fit: what is left over goes to the machine that already has the most.
        assert draft.claims().machines.tolist() == [3, 3, 2, 3]

    def test_a_preference_for_more_than_there_are_tasks_takes_them_all(self) -> None:
        cell = cell_of(9, 9)
        draft = Draft(cell.view())
        prefer = [(only(cell, 1), 5), (only(cell, 0), 5)]
        found, left = draft.place(
            tasks(1, 2), cell.shape(Resources(1, 1)), Rule.FIRST, Random(1), prefer=prefer
        )
        assert draft.claims().machines.tolist() == [1, 1]
        assert (len(left), found.machines.tolist()) == (0, [1, 1])

    def test_required_attributes_hold_within_what_is_allowed(self) -> None:
        cell = cell_of(9, 9, 9, arch=("arm", "arm", "x86"))
        one = cell.shape(Resources(1, 1))
        draft = Draft(cell.view())
        arm = {"arch": "arm"}
        draft.place(tasks(1), one, Rule.FIRST, Random(1), requires=arm, within=only(cell, 1, 2))
        assert draft.claims().machines.tolist() == [1]
        found, left = draft.place(
            tasks(2), one, Rule.FIRST, Random(1), requires=arm, within=only(cell, 2)
        )
        assert left.tolist() == [2]
        assert found.explanation().remedy == (
            "relax the task's machine requirements (arch=arm), or add a machine that meets them"
        )

    def test_a_correction_of_the_view_counts_beside_earlier_placements(self) -> None:
        cell = cell_of(4, 4)
        adjust = np.array([[-2, 0], [1, 0]], np.int64)
        draft = Draft(cell.view(), adjust)
        one = cell.shape(Resources(1, 1))
        _, left = draft.place(tasks(1, 2, 3, 4), one, Rule.FIRST, Random(1))
        assert len(left) == 0
        _, left = draft.place(tasks(*range(5, 10)), one, Rule.FIRST, Random(1))
        assert np.bincount(draft.claims().machines).tolist() == [2, 5]
        assert left.tolist() == [8, 9]
        assert adjust.tolist() == [[-2, 0], [1, 0]]

    @pytest.mark.parametrize(("apart", "expected"), [(False, [0, 0]), (True, [0, 1])])
    def test_tasks_apart_preempt_on_machines_of_their_own(
        self, apart: bool, expected: list[int]
    ) -> None:
        """On the first machine one has to go for each task, on the second two."""
        cell = cell_of(4, 4)
        high = cell.shape(Resources(2, 1), (), 5)
        half, slim = (cell.shape(Resources(cpu, 1)) for cpu in (2, 1))
        where = np.array([0, 0, 1, 1, 1, 1], np.int32)
        shapes = np.array([half, half, slim, slim, slim, slim], np.int32)
        held = Claims(tasks(1, 2, 3, 4, 5, 6), where, shapes, cell.versions(where))
        assert cell.commit(Transaction("s", held)).all_accepted
        draft = Draft(cell.view())
        _, left = draft.place(tasks(8, 9), high, Rule.BEST, Random(1), preempt_below=5, apart=apart)
        assert not len(left)
        assert sorted(draft.claims().machines.tolist()) == expected

    @pytest.mark.parametrize(("free", "expected"), [(0, [4, 4]), (1, [5, 4])])
    def test_victims_are_shared_out_even_where_this_draft_has_taken_what_was_free(
        self, free: int, expected: list[int]
    ) -> None:
        cell = cell_of(8, 8)
        rows = np.repeat(np.array([0, 1], np.int32), [8 - free, 8])
        shapes = np.full(len(rows), cell.shape(Resources(1, 1)), np.int32)
        held = Claims(tasks(*range(100, 100 + len(rows))), rows, shapes, cell.versions(rows))
        assert cell.commit(Transaction("s", held)).all_accepted
        draft, shape = Draft(cell.view()), cell.shape(Resources(1, 1), (), 5)
        mine = tasks(*range(sum(expected)))
        _, left = draft.place(mine, shape, Rule.FIRST, Random(1), preempt_below=5)
        assert len(left) == 0
        assert np.bincount(draft.claims().machines).tolist() == expected

    def test_room_of_lower_precedence_is_used_only_when_there_is_no_other(self) -> None:
        cell = cell_of(4, 4)
        low, high = (cell.shape(Resources(3, 1), precedence=p) for p in (0, 5))
        cell.commit(
            Transaction(
                "s",
                Claims(
                    tasks(1),
                    np.array([0], np.int32),
                    np.array([low], np.int32),
                    cell.versions(np.array([0], np.int32)),
                ),
            )
        )
        draft = Draft(cell.view())
        _, left = draft.place(tasks(2), high, Rule.FIRST, Random(1), preempt_below=5)
        assert draft.claims().machines.tolist() == [1]
        _, left = draft.place(tasks(3), high, Rule.FIRST, Random(1))
        assert left.tolist() == [3]
        _, left = draft.place(tasks(4), high, Rule.FIRST, Random(1), preempt_below=0)
        assert left.tolist() == [4]
        _, left = draft.place(tasks(5), high, Rule.FIRST, Random(1), preempt_below=1)
        assert (left.tolist(), draft.claims().machines.tolist()) == ([], [1, 0])


def found(ruled_out: dict[str, int] | None = None, **fields: object) -> Found:
    base = {"asked": 1, "rule": Rule.BEST, "looked_at": 3, "feasible": 0}
    nowhere = {"machines": np.empty(0, np.int32), "versions": np.empty(0, np.uint32)}
    counts = {"down": 0, "filtered": 0, **(ruled_out or {})}
    reasons = {"reasons": tuple(counts), "counts": list(counts.values())}
    return Found(**{**nowhere, **base, **reasons, **fields})


class TestRemedies:
    @pytest.mark.parametrize(
        ("seen", "remedy"),
        [
            (found(), "add a machine"),
            (found(asked=0), ""),
            (found(ruled_out={"down": 1}), "bring back a machine that is gone or draining"),
            (
                found(ruled_out={"filtered": 1, "down": 1}),
                "relax the task's machine requirements, or add a machine that meets them",
            ),
            (
                found(ruled_out={"filtered": 1}, requires={"a": "1", "b": "2"}),
                "relax the task's machine requirements (a=1, b=2), or add a machine that meets them",
            ),
            (
                found(nearest_miss=Refusal(Why.NO_ROOM, dimension="cpu", lacking=1_000)),
                "no machine is large enough, even if empty: ask for 1 core less, or add a larger "
                "one",
            ),
            (
                found(
                    nearest_miss=Refusal(Why.NO_ROOM, dimension="memory", lacking=2**30),
                    could_fit=True,
                    ruled_out={"filtered": 1},
                ),
                "free 1 GiB on the nearest machine, or ask for 1 GiB less",
            ),
        ],
    )
    def test_what_would_help_is_what_stood_in_the_way(self, seen: Found, remedy: str) -> None:
        assert seen.explanation().remedy == remedy

    def test_what_keys_count_is_room_unless_the_engine_says_otherwise(self) -> None:
        cell = cell_of(4, 9)
        one = cell.shape(Resources(1, 1))
        for rule, measure in ((Rule.BEST, "room"), (Rule.WORST, "room"), (Rule.FIRST, "")):
            assert cell.find(one, 1, rule, Random(1)).explanation().measure == measure
        told = cell.find(one, 1, Rule.BEST, Random(1)).explanation("own rule", "wait")
        assert (told.rule, told.measure) == ("own rule", "wait")

    def test_an_explanation_has_everything_the_search_saw(self) -> None:
        seen = found(score=4, second=2, second_score=7, feasible=2, ruled_out={"cpu": 1})
        told = seen.explanation()
        assert (told.rule, told.score, told.second, told.second_score) == ("best fit", 4, 2, 7)
        assert (told.looked_at, told.feasible, told.ruled_out) == (3, 2, {"cpu": 1})


class TestNames:
    def test_a_machine_is_known_by_its_number_and_its_name(self) -> None:
        cell = cell_of(1, 2)
        view = cell.view()
        assert (view.machine_name(1), view.machine_number("m1")) == ("m1", 1)
        for number in (-1, 2):
            with pytest.raises(ModelError, match=f"no machine {number}; expected 0 to 1"):
                view.machine_name(number)
        with pytest.raises(ModelError, match="no machine 'mm1'; did you mean 'm1'"):
            view.machine_number("mm1")
        with pytest.raises(ModelError, match="expected none yet: the cell is empty"):
            Cell(("cpu", "memory")).machine_name(0)

    def test_a_machine_is_a_set_of_its_own(self) -> None:
        cell = cell_of(1, 2, 3)
        assert cell.sets_of(1, "machine") == ("m1",)
        assert cell.sets_in("machine") == ("m0", "m1", "m2")
        assert cell.members("machine", "m1").tolist() == [0b010]
        assert cell.between(1, 3).tolist() == [0b110]

    def test_an_attribute_no_machine_ever_had_is_nowhere(self) -> None:
        cell = cell_of(1, 1, arch=("arm", "x86"))
        assert cell.where({"arch": "arm"}).tolist() == [0b01]
        assert cell.where({"arch": "arm", "os": "linux"}).tolist() == [0]
        assert cell.attribute_numbers({"arch": "s390"}) is None
        cell.commit(Transaction(OPERATOR, machines=(RelabelMachine(1, {"arch": "arm"}),)))
        assert cell.where({"arch": "arm"}).tolist() == [0b11]
        assert cell.labels_version == 1
        cell.commit(Transaction(OPERATOR, machines=(RelabelMachine(1, {"arch": "arm"}),)))
        assert cell.labels_version == 1


class TestLimits:
    def test_limits_that_are_refused_leave_the_old_ones(self) -> None:
        cell = cell_of(9)
        cell.set_limits("s", Resources(5, 0), 3, 7)
        for jobs, precedence in ((-1, None), (None, 32_768), (None, -32_769)):
            with pytest.raises(ModelError, match="a limit of "):
                cell.set_limits("s", None, jobs, precedence)
        assert cell.highest_precedence("s") == 7
        # A new resource extends the limits that hold.
        gpu = AddMachine(Machine("late", Resources(1, 1, {"gpu": 1})))
        assert cell.commit(Transaction(OPERATOR, machines=(gpu,))).added == (1,)
        assert cell.highest_precedence("s") == 7
        with pytest.raises(ModelError, match="the operator has no limits"):
            cell.set_limits(OPERATOR, None, None)

    def test_a_part_of_a_scheduler_has_the_limits_of_the_whole(self) -> None:
        cell = cell_of(9)
        cell.set_limits("s", None, None, 7)
        cell.set_limits("other", None, 0, -32_768)
        numbers = [cell.scheduler_number(name) for name in ("s:part", "other:part", "third:part")]
        assert [cell.scheduler_name(number) for number in numbers] == [
            "s:part",
            "other:part",
            "third:part",
        ]
        assert cell.highest_precedence("s:part") == 7
        assert cell.highest_precedence("other:part") == -32_768
        assert cell.highest_precedence("third:part") == 32_767

    def test_a_limit_of_no_jobs_admits_none(self) -> None:
        cell = cell_of(9)
        cell.set_limits("s", None, 0)
        draft = Draft(cell.view())
        draft.place(tasks(1), cell.shape(Resources(1, 1)), Rule.FIRST, Random(1))
        (refusal,) = cell.commit(Transaction("s", draft.claims())).refusals(draft.claims())
        assert refusal.why is Why.JOB_LIMIT
        cell.set_limits("s", None, None)
        assert cell.commit(Transaction("s", draft.claims())).all_accepted


def test_a_machine_that_names_a_set_twice_is_in_it_once() -> None:
    cell = Cell(("cpu", "memory"))
    machine = Machine("m", Resources(4, 4), joins={"rack": ("r0", "r0")})
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    assert cell.sets_of(0, "rack") == ("r0",)


def test_nothing_of_an_unknown_resource_is_nothing() -> None:
    cell = cell_of(4)
    shape = cell.shape(Resources(1, 1, {"gpu": 0}))
    assert shape == cell.shape(Resources(1, 1))
    assert cell.unknown_resource(shape) is None
    assert cell.unknown_resource(cell.shape(Resources(1, 1, {"gpu": 1}))) == "gpu"


@pytest.mark.parametrize(("size", "measure"), [(4, "room"), (9, "")])
def test_a_search_that_found_nothing_has_measured_nothing(size: int, measure: str) -> None:
    cell = cell_of(4)
    found = cell.find(cell.shape(Resources(size, 1)), 1, Rule.BEST, Random(1))
    assert found.explanation().measure == measure
