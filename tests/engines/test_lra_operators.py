"""Whose constraints hold: the operator's over those of applications, as both change."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from application_runs import run, service, where
from msgspec import structs

from argosy.engines.families.lra.manager import ConstraintManager
from argosy.model.constraints.text import format_constraint, parse_constraint
from argosy.model.errors import ModelError
from argosy.model.jobs import Job, TaskGroup
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    MachineRelabel,
)
from argosy.model.truth import group_with_truth, simulated_job
from argosy.solvers.placement import ContainerKind, Family, PlacementState, place
from argosy.testing.builders import SECOND, cell, job


def test_the_operator_overrides_what_contradicts_it() -> None:
    ledger = PlacementState(4, {"rack": Family.of("rack", [[0], [0], [1], [1]], 2)})
    operator = [parse_constraint("spark -> {spark, 0, 3} in rack")]
    manager = ConstraintManager(ledger, operator)
    group = TaskGroup(1, Resources(1), tags=("spark",))
    texts = [
        "spark & x -> {spark, 4, inf} in rack",
        "spark -> {spark, 5, 9} in machine",
        "spark -> {spark, 0, 2} in rack",
        "other -> {spark, 4, inf} in rack",
    ]
    manager.submit(1, Job("j", (group,), constraints=tuple(map(parse_constraint, texts))))
    assert [format_constraint(c) for c in manager.active(1)] == [
        "spark & x -> {spark, 3, inf} in rack weight 0.5",
        "spark -> {spark, 3, 9} in machine weight 0.5",
        *texts[2:],
    ]


@pytest.mark.parametrize("strength", ["", " weight 20", " weight 20 hard"])
@pytest.mark.parametrize("size", [5, 10])
def test_the_operator_overrides_constraints_within_one_application(
    strength: str, size: int
) -> None:
    """At most four in a rack, whatever the application wants more of."""
    gathered = "appID:self & w -> {appID:self & w, 4, inf} in rack" + strength
    operator = (parse_constraint("w -> {w, 0, 3} in rack"),)
    four_racks = structs.replace(cell(16), constraints=operator)
    trial = run("medea", [service("a", size, gathered, cpu=100)], cell=four_racks)
    racks = Counter(machine // 4 for machine in where(trial, "a"))
    assert sum(racks.values()) == size
    assert max(racks.values()) <= 4


def test_what_contradicts_the_operator_weighs_no_more_than_the_operators_constraint() -> None:
    ledger = PlacementState(4, {"rack": Family.of("rack", [[0], [0], [1], [1]], 2)})
    manager = ConstraintManager(ledger, [parse_constraint("w -> {w, 2, 3} in rack weight 2")])
    texts = [
        "w & x -> {w & x, 4, inf} in rack weight 20",
        "w -> {w, 0, 1} in rack hard",
        "w & x -> {w & x, 0, 1} in rack weight 20",
    ]
    group = TaskGroup(1, Resources(1), tags=("w",))
    manager.submit(1, Job("j", (group,), constraints=tuple(map(parse_constraint, texts))))
    assert [format_constraint(c) for c in manager.active(1)] == [
        "w & x -> {w & x, 3, inf} in rack",
        "w -> {w, 0, 2} in rack",
        # Few of its own may well be in a rack with more of others.
        texts[2],
    ]
    manager.withdraw(1)
    assert manager.active(1) == ()
    with pytest.raises(ModelError, match="can never hold"):
        manager.submit(2, Job("k", (group,), constraints=(
            parse_constraint("spark -> not {spark, 0, inf} in rack"),)))  # fmt: skip


@pytest.mark.parametrize(("application", "count"), [("appID:shop/web", 1), ("", 3)])
def test_what_all_jobs_of_an_application_ask_for_counts_once(application: str, count: int) -> None:
    ledger = PlacementState(4, {"rack": Family.of("rack", [[0], [0], [1], [1]], 2)})
    manager = ConstraintManager(ledger)
    tags = ("web", application) if application else ("web",)
    group, apart = TaskGroup(1, Resources(1), tags=tags), "web -> {web, 0, 0} in rack"
    jobs = [Job(f"pod-{n}", (group,), constraints=(parse_constraint(apart),)) for n in range(3)]
    for number, each in enumerate(jobs):
        manager.submit(number, each)
    assert [format_constraint(c) for c in manager.everything()] == [apart] * count
    assert _extent(ledger) == count
    # It stays as long as one of them does, whichever that is.
    manager.withdraw(0)
    manager.withdraw(2)
    assert [format_constraint(c) for c in manager.everything()] == [apart]
    assert _extent(ledger) == 1
    manager.withdraw(1)
    assert manager.is_idle
    assert _extent(ledger) == 0


def test_every_job_of_an_application_that_asks_for_too_much_is_refused() -> None:
    ledger = PlacementState(4, {})
    manager = ConstraintManager(ledger)
    many = " or ".join(f"{{b{number}, 1, inf}}" for number in range(257))
    texts = ("web -> {web, 0, 1} in machine", f"web -> {many} in machine")
    group = TaskGroup(1, Resources(1), tags=("web", "appID:shop/web"))
    for number in range(3):
        asked = Job(f"pod-{number}", (group,), constraints=tuple(map(parse_constraint, texts)))
        with pytest.raises(ModelError, match="257 alternatives"):
            manager.submit(number, asked)
        assert manager.is_idle
        assert list(manager.everything()) == []


def _extent(ledger: PlacementState) -> float:
    """What it costs to start two web containers in one rack."""
    kinds = [ContainerKind(0, frozenset({"web"}), np.array([1]), 2)]
    room = np.array([[2], [0], [0], [0]], np.int64)
    problem = ledger.problem(room, room, kinds, (1,))
    answer = place(problem, "serial", Random(1))
    return answer.worth.violation / 2


def test_an_operator_that_says_several_things_at_once_overrides_with_each() -> None:
    ledger = PlacementState(4, {"rack": Family.of("rack", [[0], [0], [1], [1]], 2)})
    operator = ["a -> {b, 0, 3} and {c, 2, inf} in rack and a -> {b, 0, 1} in machine"]
    manager = ConstraintManager(ledger, map(parse_constraint, operator))
    texts = ["a -> {b, 5, inf} in rack", "a -> {c, 0, 1} in rack", "a -> {b, 2, 2} in machine"]
    group = TaskGroup(1, Resources(1), tags=("a",))
    manager.submit(1, Job("j", (group,), constraints=tuple(map(parse_constraint, texts))))
    assert [format_constraint(c) for c in manager.active(1)] == [
        "a -> {b, 3, inf} in rack",
        "a -> {c, 0, 2} in rack",
        "a -> {b, 1, 2} in machine",
    ]


@pytest.mark.parametrize("owner", ["admin", "ann"])
def test_operators_add_and_withdraw_constraints_while_applications_come(owner: str) -> None:
    """A job of the operator's owner carries the constraint for twenty seconds."""
    rule = job(
        "rule",
        1,
        request=Resources(0, 0),
        seconds=20,
        submit=2,
        owner=owner,
        constraints=(parse_constraint("w -> {w, 0, 3} in rack"),),
    )
    gathered = "appID:self & w -> {appID:self & w, 4, inf} in rack weight 20"
    jobs = [
        rule,
        service("early", 5, gathered, cpu=100, submit=3),
        service("late", 5, gathered, cpu=100, submit=23),
    ]
    trial = run("medea", jobs, {"operators": ["admin"]}, cell=cell(16))
    racks = {n: Counter(m // 4 for m in where(trial, n)) for n in ("early", "late")}
    assert (max(racks["early"].values()) <= 4) is (owner == "admin")
    assert max(racks["late"].values()) == 5


def test_node_sets_that_change_while_applications_come_count_as_they_are() -> None:
    """One machine of each rack moves to a new one, which comes with a group of its own."""
    together = "appID:self -> {appID:self, 3, inf} in rack"
    joins: dict[str, tuple[str, ...]] = {"rack": ("new",), "hall": ("h",)}
    faults = tuple(
        MachineRelabel(at=15 * SECOND, machine=f"m{i}", joins=joins) for i in (0, 5, 10, 15)
    )
    inside = "appID:self -> {appID:self, 3, inf} in hall"
    jobs = [service("a", 4, together, cpu=3_000, submit=20)]
    jobs.append(service("b", 4, inside, cpu=500, submit=30))
    trial = run("medea", jobs, cell=cell(16), faults=faults)
    assert set(where(trial, "b")) <= {0, 5, 10, 15}
    sets = [{0, 5, 10, 15}, {1, 2, 3}, {4, 6, 7}, {8, 9, 11}, {12, 13, 14}]
    assert any(set(where(trial, "a")) <= each for each in sets)


def test_a_constraint_can_name_a_single_container_of_another_application() -> None:
    pair = simulated_job(
        "db",
        group_with_truth(1, Resources(3_000), tags=("db",)),
        group_with_truth(1, Resources(3_000), tags=("db",)),
        group_with_truth(2, Resources(3_000), tags=("db",)),
        kind="service",
    )
    for index in (0, 1):
        near = f"appID:self -> {{containerID:db/{index}, 1, inf}} in machine"
        trial = run("medea", [pair, service("web", 1, near, cpu=1_000, submit=20)])
        assert where(trial, "web") == [where(trial, "db")[index]]
