"""What is told of an answer that breaks constraints, of machines without room, and of what to relax."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from serial_attempts import cell_of

from argosy.cell import Cell
from argosy.engines.families.lra.memory import Memory
from argosy.engines.families.lra.reasons import _containers, _lacks, unplaced, violated
from argosy.engines.families.lra.relaxing import Asked, remedy
from argosy.model.constraints.text import parse_constraint
from argosy.model.explanations import Refusal, Why
from argosy.solvers.placement import ContainerKind, Objective, PlacementAnswer
from argosy.solvers.placement.answer import appraise


def numbers(*values: Any) -> Any:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("whom", "told"),
    [
        ({"a": 1}, "1 container of a"),
        ({"a": 2}, "2 containers of a"),
        ({"": 1}, "1 container"),
        ({"": 3, "a": 1}, "3 containers and 1 container of a"),
        ({"a": 1, "b": 3, "c": 2}, "3 containers of b and 2 containers of c and 1 container of a"),
        (
            {"a": 1, "b": 3, "c": 2, "d": 4},
            "4 containers of d and 3 containers of b and 2 containers of c and those of 1 more",
        ),
        (
            {"a": 1, "b": 9, "c": 8, "d": 7, "e": 1},
            "9 containers of b and 8 containers of c and 7 containers of d and those of 2 more",
        ),
    ],
)
def test_containers_are_counted_by_application_the_largest_first(
    whom: dict[str, int], told: str
) -> None:
    assert _containers(Counter(whom)) == told


def asked(tags: str, count: int = 1, app: int = 0, **fields: Any) -> ContainerKind:
    return ContainerKind(app, frozenset(tags.split()), numbers(1_000, 1), count, **fields)


class TestViolated:
    TEXTS = (
        "a -> {a, 0, 0} in machine",
        "a -> {b, 0, 0} in machine weight 5",
        "b -> {a, 0, 1} in machine",
        "c -> {a, 0, 0} in machine",
        "z -> {z, 0, 0} in machine",
    )

    def told(
        self,
        texts: Sequence[str],
        kinds: Sequence[ContainerKind],
        *machines: Sequence[int],
        running: Sequence[str] = (),
        **fields: Any,
    ) -> tuple[str, tuple[str, ...]]:
        """On a cell of two machines; `running` are tags of containers on the first."""
        cell = cell_of(16, 16)
        memory = Memory(cell, "s", tuple(map(parse_constraint, texts)))
        for tags in running:
            memory.ledger.start(frozenset(tags.split()), 0)
        problem = memory.ledger.problem(cell.free(), cell.capacity(), kinds)
        rows = np.array([n for n, where in enumerate(machines) for _ in where], np.int32)
        places = np.array([at for where in machines for at in where], np.int32)
        worth = appraise(problem, Objective(), rows, places)
        answer = PlacementAnswer(rows, places, worth, "serial", **fields)
        before = memory.ledger.count(frozenset("a")).tolist()
        found = violated(memory, problem, answer)
        assert found.looked_at == 2
        assert memory.ledger.count(frozenset("a")).tolist() == before
        return found.rule, found.violated

    def test_an_answer_is_proven_best_or_so_far_below_it(self) -> None:
        kinds = [asked("a")]
        usual = "serial for the whole job"
        assert self.told((), kinds, [0]) == (usual, ())
        assert self.told((), kinds, [0], status="optimal")[0] == f"{usual}, proven best"
        worth = Objective().whole
        for beyond, told in (
            (0.0, ""),
            (1e-9, ""),
            (0.12345, ", at most 0.123 below the best"),
            (20.0, ", at most 20 below the best"),
        ):
            found = self.told((), kinds, [0], status="feasible", bound=worth + beyond)
            assert found[0] == usual + told

    def test_what_is_broken_is_told_worst_first_and_how_much_more_there_is(self) -> None:
        kinds = [asked("a appID:one", 3), asked("b appID:two", app=1), asked("c", app=2)]
        assert self.told(self.TEXTS, kinds, [0, 0, 0], [0], [0])[1] == (
            # Each of three sees one, which weighs five times as much.
            "'a -> {b, 0, 0} in machine weight 5' is broken for 3 containers of one, by 3 in all",
            # Each of three sees two.
            "'a -> {a, 0, 0} in machine' is broken for 3 containers of one, by 6 in all",
            "'c -> {a, 0, 0} in machine' is broken for 1 container, by 3 in all",
            "1 more constraint is broken",
        )
        more = (*self.TEXTS, "b -> {a, 0, 0} in machine")
        assert self.told(more, kinds, [0, 0, 0], [0], [0])[1][-1] == "2 more constraints are broken"

    def test_what_was_broken_before_is_told_only_as_far_as_it_is_worse(self) -> None:
        texts, running = self.TEXTS[:1], ("a appID:old", "a appID:old")
        kinds = [asked("a appID:one")]
        assert self.told(texts, kinds, [1], running=running)[1] == ()
        assert self.told(texts, kinds, [0], running=running)[1] == (
            # Both saw one and see two; the new one sees two.
            "'a -> {a, 0, 0} in machine' is broken for "
            "2 containers of old and 1 container of one, by 4 in all",
        )

    def test_constraints_that_concern_others_are_not_looked_at(self) -> None:
        kinds = [asked("a appID:one")]
        running = ("z", "z")
        assert self.told(self.TEXTS, kinds, [0], running=running)[1] == ()


class TestLacks:
    """Three machines; a container asks for 4 cores and 10 of memory."""

    KIND = ContainerKind(0, frozenset("a"), numbers(4_000, 10), 1)

    def lacks(
        self, free: Sequence[Sequence[int]], allowed: Sequence[bool] | None = None
    ) -> tuple[dict[str, int], Refusal | None]:
        cell = cell_of(8, 8, 8)
        rows = numbers(*free)
        only = None if allowed is None else np.array(allowed)
        kind = structs.replace(self.KIND, allowed=only)
        fits = np.all(rows >= kind.request, axis=1)
        return _lacks(kind, rows, fits if only is None else fits & only, cell)

    def test_machines_are_counted_by_the_first_resource_that_they_lack(self) -> None:
        ruled_out, miss = self.lacks([[3_000, 9], [4_000, 5], [4_000, 10]])
        assert ruled_out == {"cpu": 1, "memory": 1}
        # The last lacks nothing.
        assert miss == Refusal(Why.NO_ROOM, machine=2, dimension="cpu", lacking=0)

    def test_the_nearest_lacks_the_smallest_share_of_what_is_asked(self) -> None:
        # Half of the cores; a tenth of the memory; a quarter of the cores and a fifth of the memory.
        _, miss = self.lacks([[2_000, 10], [4_000, 9], [3_000, 8]])
        assert miss == Refusal(Why.NO_ROOM, machine=1, dimension="memory", lacking=1)
        _, miss = self.lacks([[2_000, 10], [4_000, 7], [3_000, 8]])
        assert miss == Refusal(Why.NO_ROOM, machine=2, dimension="cpu", lacking=1_000)
        _, miss = self.lacks([[2_000, 4], [4_000, 0], [1_000, 10]])
        assert miss == Refusal(Why.NO_ROOM, machine=0, dimension="memory", lacking=6)

    def test_machines_that_are_not_allowed_are_no_misses(self) -> None:
        free = [[4_000, 9], [3_000, 10], [4_000, 10]]
        ruled_out, miss = self.lacks(free, [False, True, False])
        assert ruled_out == {"filtered": 2, "cpu": 1}
        assert miss == Refusal(Why.NO_ROOM, machine=1, dimension="cpu", lacking=1_000)
        assert self.lacks(free, [False] * 3) == ({"filtered": 3}, None)
        assert self.lacks(free, [True] * 3)[0] == {"memory": 1, "cpu": 1}


class TestRemedies:
    def advice(
        self,
        cores: Sequence[int],
        kinds: Sequence[ContainerKind],
        *texts: str,
        running: Sequence[tuple[str, int]] = (),
    ) -> tuple[str, tuple[str, ...]]:
        cell = cell_of(*cores)
        memory = Memory(cell, "s", tuple(map(parse_constraint, texts)))
        for tags, machine in running:
            memory.ledger.start(frozenset(tags.split()), machine)
        given = Asked(memory.ledger, kinds, cell.free(), cell.capacity(), (0, 0))
        return remedy(given, memory.manager, 7, {})

    def test_without_room_nothing_needs_to_be_relaxed(self) -> None:
        kinds = [asked("a", 3), asked("b", 2)]
        found = self.advice([2, 2], kinds, "a -> {b, 0, 0} in machine hard")
        assert found == ("room for all 5 containers at once", ())

    def test_the_constraint_in_the_way_is_named(self) -> None:
        text = "a -> {a, 0, 0} in machine hard"
        soft = "a -> {b, 0, 0} in machine"
        found = self.advice([4, 4], [asked("a", 3)], soft, text, "x -> {x, 0, 0} in machine hard")
        named = f"'{text}', the operator's"
        assert found == (f"relax the hard constraint {named}", (named,))

    def test_several_in_the_way_are_named_together(self) -> None:
        texts = ("a -> {a, 0, 0} in machine hard", "a -> {b, 0, 0} in machine hard")
        found = self.advice([4, 4], [asked("a", 3)], *texts, running=[("b", 0), ("b", 1)])
        names = tuple(f"'{text}', the operator's" for text in texts)
        assert found == (f"relax these 2 hard constraints together: {'; '.join(names)}", names)

    def test_nothing_is_in_the_way_of_one_that_is_alone(self) -> None:
        found = self.advice([4, 4], [asked("a", 2)], "a -> {a, 0, 0} in machine hard")
        told = "another attempt: alone it has room, beside the others of its interval it had not"
        assert found == (told, ())


def test_an_application_without_a_place_is_told_about_its_tightest_kind() -> None:
    cell = cell_of(2, 4)
    memory = Memory(cell, "s")
    large = ContainerKind(0, frozenset("b"), numbers(3_000, 1), 2)
    told = unplaced(memory, 0, [asked("a", 2), large], cell.free(), cell, (0, 0))
    assert (told.looked_at, told.feasible, told.ruled_out) == (2, 1, {"cpu": 1})
    assert told.nearest_miss is None
    assert told.remedy == "room for all 4 containers at once"
    larger = structs.replace(large, request=numbers(5_000, 1))
    told = unplaced(memory, 0, [asked("a", 2), larger], cell.free(), cell, (0, 0))
    assert (told.feasible, told.ruled_out) == (0, {"cpu": 2})
    assert told.nearest_miss == Refusal(Why.NO_ROOM, machine=1, dimension="cpu", lacking=1_000)
    empty = Cell(("cpu", "memory"))
    told = unplaced(Memory(empty, "s"), 0, [asked("a")], empty.free(), empty, (0, 0))
    assert (told.remedy, told.looked_at) == ("add a machine", 0)
