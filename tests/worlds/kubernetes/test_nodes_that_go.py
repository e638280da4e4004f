"""A node that goes: what is told in which order, and which of its pods have lost it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import pytest

from argosy.worlds.kubernetes.cluster import PodCluster


class Bench:
    def __init__(self, *, has_machine: bool = True) -> None:
        self.told = Mock()
        self.told.world.has_machine.return_value = has_machine
        made: Any = object.__new__(PodCluster)
        self.cluster = made
        made._world = lambda: self.told.world
        made.rulebook, made._room = self.told.rulebook, self.told.room
        self.told.rulebook.nodes = {"n1": None}
        self.told.rulebook.pods_on.return_value = ["here", "elsewhere", "unknown", "placeless"]
        made._clamped = {"n1": {"here": None}, "n2": {"elsewhere": None}}
        made._lose_node = self.told.lose_node
        made.pods = {
            "here": SimpleNamespace(node="n1"),
            "elsewhere": SimpleNamespace(node="n2"),
            "placeless": SimpleNamespace(node=""),
        }


def test_only_pods_that_are_still_there_lose_their_node() -> None:
    bench = Bench()
    bench.cluster.remove_node("n1")
    assert bench.told.mock_calls == [
        call.rulebook.pods_on("n1"),
        call.rulebook.remove_node("n1"),
        call.world.has_machine("n1"),
        call.world.remove_machine("n1"),
        call.world.settle(),
        call.lose_node(bench.cluster.pods["here"]),
        call.room.remove("n1"),
    ]
    assert list(bench.cluster._clamped) == ["n2"]


def test_pods_that_are_moved_while_the_world_settles_lose_nothing() -> None:
    bench = Bench()
    here = bench.cluster.pods["here"]
    bench.told.world.settle.side_effect = lambda: setattr(here, "node", "n3")
    bench.cluster.remove_node("n1")
    assert bench.told.lose_node.mock_calls == []


@pytest.mark.parametrize("name", ["n2", ""])
def test_a_node_that_is_not_known_goes_without_a_word(name: str) -> None:
    bench = Bench()
    bench.cluster.remove_node(name)
    assert bench.told.mock_calls == []
    assert list(bench.cluster._clamped) == ["n1", "n2"]


def test_a_machine_that_is_gone_already_is_not_removed_twice() -> None:
    bench = Bench(has_machine=False)
    bench.cluster.remove_node("n1")
    assert bench.told.world.remove_machine.mock_calls == []
    assert bench.told.lose_node.mock_calls == [call(bench.cluster.pods["here"])]
