"""Engines for applications one beside the other: which algorithm decides, what each remembers and sees;
and how Eagle passes on probes that are refused."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from serial_attempts import cell_of, tasks_of

from argosy.engines.api import Context
from argosy.engines.eagle import Eagle
from argosy.engines.families.lra.memory import Memory
from argosy.engines.registry import ENGINES
from argosy.host.scheduler import make_settings
from argosy.model.budgets import UNTIMED
from argosy.model.constraints.text import format_constraint, parse_constraint
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Claims, Transaction
from argosy.solvers.placement import ContainerKind
from argosy.solvers.placement.program import has_solver
from argosy.testing.builders import GIB, SECOND

APART = parse_constraint("w -> {w, 0, 0} in machine")


def an_engine(name: str, *constraints: str, **settings: Any) -> Any:
    engine = ENGINES[name]
    context = Context("s", (), Random(1), constraints=tuple(map(parse_constraint, constraints)))
    return engine(make_settings(engine, settings), context)


class TestAlgorithms:
    @pytest.mark.parametrize(
        ("engine", "settings", "algorithm", "is_long"),
        [
            ("medea", {"algorithm": "ilp-printed"}, "ilp-printed", True),
            ("medea", {"algorithm": "tag-popularity"}, "tag-popularity", False),
            ("medea", {"algorithm": "node-candidates"}, "node-candidates", False),
            ("medea", {"algorithm": "serial"}, "serial", False),
            (
                "medea",
                {"algorithm": "tag-popularity-first-fit"},
                "tag-popularity-first-fit",
                False,
            ),
            ("medea", {"algorithm": "serial-first-fit"}, "serial-first-fit", False),
            ("medea", {"algorithm": "tag-popularity-plain"}, "tag-popularity-plain", False),
            ("medea", {"algorithm": "node-candidates-plain"}, "node-candidates-plain", False),
            ("medea", {"algorithm": "serial-plain"}, "serial-plain", False),
            ("jkube", {}, "kube", False),
            ("jkube", {"reading": "plain"}, "jkube-plain", False),
            ("jkube++", {}, "kube", False),
            ("kube-modern", {}, "kube", False),
        ],
    )
    def test_the_algorithm_that_is_set_decides(
        self, engine: str, settings: dict[str, Any], algorithm: str, is_long: bool
    ) -> None:
        if algorithm == "ilp-printed" and not has_solver():
            pytest.skip("the extra ilp is not installed")
        cell = cell_of(8, 8, 8)
        memory = Memory(cell, "s", (APART,))
        kinds = [ContainerKind(0, frozenset("w"), np.array([1_000, GIB]), 2)]
        problem = memory.ledger.problem(cell.free(), cell.capacity(), kinds, (1, 1))
        made = an_engine(engine, **settings)
        answer = made.decide(problem, Random(1), UNTIMED.start(10 * SECOND))
        assert answer.algorithm == algorithm
        assert len(set(answer.machines.tolist())) == 2
        assert made.is_long is is_long

    def test_decisions_are_long_that_solve_a_program_without_reserving(self) -> None:
        found = {
            (algorithm, conflict): an_engine(
                "medea", algorithm=algorithm, conflict=conflict
            ).is_long
            for algorithm in ("ilp", "ilp-printed", "serial")
            for conflict in ("resubmit", "reserve")
        }
        assert found == {
            ("ilp", "resubmit"): True,
            ("ilp", "reserve"): False,
            ("ilp-printed", "resubmit"): True,
            ("ilp-printed", "reserve"): False,
            ("serial", "resubmit"): False,
            ("serial", "reserve"): False,
        }
        assert an_engine("medea", budget=5_000).time_limit == 5_000
        assert an_engine("jkube").time_limit == 0


class TestRemembered:
    @pytest.mark.parametrize(
        ("engine", "seen"),
        [
            ("medea", ["a -> {b, 0, 0} in machine", "a -> {b, 0, 2} in machine", "x"]),
            ("jkube", ["a -> {b, 0, 0} in machine"]),
            ("jkube++", ["a -> {b, 0, 0} in machine", "a -> {b, 0, 2} in machine", "x"]),
            ("kube-modern", ["a -> {b, 0, 0} in machine", "a -> {b, 0, 2} in machine hard", "x"]),
        ],
    )
    def test_constraints_of_the_cell_and_of_the_settings_are_the_operators(
        self, engine: str, seen: list[str]
    ) -> None:
        own = "c -> {c, 0, 3} in machine"
        operator = ["a -> {b, 0, 2} in machine", own]
        hard = " hard" if engine == "kube-modern" else ""
        settings = [msgspec.to_builtins(parse_constraint(each)) for each in operator]
        made = an_engine(engine, "a -> {b, 0, 0} in machine", operator=settings)
        manager = made.remember(cell_of(8)).manager
        assert [format_constraint(each) for each in manager.operator] == [
            "a -> {b, 0, 0} in machine",
            *operator,
        ]
        expected = [own + hard if each == "x" else each for each in seen]
        assert [format_constraint(each) for each in manager.operator_seen] == expected

    def test_a_memory_is_used_again_by_one_deliberation_at_a_time(self) -> None:
        made, cell = an_engine("medea"), cell_of(8, 8)
        first, second = made._memory_of(cell), made._memory_of(cell)
        assert first is not second
        made._idle.append(first)
        rows = np.array([1], np.int32)
        shape = cell.shape(Resources(1_000, GIB), frozenset({"w"}))
        claims = Claims(tasks_of(0, 0), rows, np.full(1, shape, np.int32), cell.versions(rows))
        assert cell.commit(Transaction("s", claims)).all_accepted
        assert made._memory_of(cell) is first
        # It has been brought up to date.
        assert first.is_running(int(claims.tasks[0]), 1)
        assert [row[:2] for row in first.own_containers()] == [(int(claims.tasks[0]), 1)]
        made._idle.append(first)
        machine = Machine("m2", Resources(8_000, 64 * GIB))
        cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
        later = made._memory_of(cell)
        assert (later is first, later.machines) == (False, 3)


class TestEagle:
    def probed(
        self,
        lengths: list[int],
        count: int,
        apart: list[int],
        placed: tuple[tuple[list[int], list[int]], ...] = (),
        **settings: Any,
    ) -> list[int]:
        """How often each machine is probed; `placed` has machines of long jobs, each with the lengths
        of queues before."""
        made = Eagle(
            make_settings(Eagle, {"cutoff": SECOND, "stale_state": bool(placed), **settings}),
            Context("s", (), Random(7)),
        )
        for machines, before in placed:
            made.placed_long(np.array(machines, np.int32), np.array(before, np.int64))
        machines = np.arange(len(lengths), dtype=np.int32)
        found = made.probed(machines, np.array(apart, np.int32), count, np.array(lengths, np.int64))
        assert len(found) == count
        counts: list[int] = np.bincount(found, minlength=len(lengths)).tolist()
        return counts

    def test_refused_probes_go_to_machines_without_long_tasks(self) -> None:
        # One each; the two refused go to the others, no two to the same.
        assert sorted(self.probed([1, 1, 0, 0], 4, [3])) == [0, 0, 2, 2]
        assert self.probed([0, 0, 0], 3, []) == [1, 1, 1]
        assert self.probed([0, 0, 0], 6, []) == [2, 2, 2]

    def test_where_all_have_long_tasks_those_for_short_ones_are_probed_or_any(self) -> None:
        assert self.probed([1, 2, 1], 3, [2]) == [0, 0, 3]
        assert self.probed([1, 2, 1], 4, [1, 2]) == [0, 2, 2]
        assert self.probed([1, 2, 1], 3, []) == [1, 1, 1]

    def test_the_freshest_state_that_is_heard_of_is_believed(self) -> None:
        """First machine 0 gets a long task and then machine 1, as the first one's has ended."""
        placed = (([0], [0, 0, 0, 0]), ([1], [0, 0, 0, 0]))
        # Both have long tasks by now; the refused probes go to machines that machine 1 says are free,
        # machine 0 among them, which refuses again.
        counts = self.probed([1, 1, 0, 0], 4, [3], placed)
        assert sum(counts[:2]) == 0
        assert sum(counts) == 4
        # By the state of machine 1, all others are free: where nobody knows of a long task, nobody is
        # asked twice.
        assert self.probed([0, 0, 0, 0], 4, [3], placed) == [1, 1, 1, 1]

    @pytest.mark.parametrize(
        "placed",
        [
            (([0, 2], [0, 0, 0, 0]),),
            (([3], [0, 0, 0, 0]), ([0, 2], [0, 0, 0, 0])),
        ],
    )
    def test_what_is_heard_is_believed_though_it_is_no_longer_true(self, placed: Any) -> None:
        """Machine 1 got a long task that nobody knows of, and that of machine 2 has ended. One of the
        refused probes goes to machine 1, which refuses it, and then to the machine for short jobs."""
        assert self.probed([1, 1, 0, 0], 4, [3], placed) == [0, 0, 1, 3]

    def test_machines_that_joined_later_have_no_state(self) -> None:
        placed = (([0], [0, 0]), ([1], [1, 0, 0]))
        counts = self.probed([1, 1, 0], 3, [], placed)
        assert counts[:2] == [0, 0]
        assert counts[2] == 3
