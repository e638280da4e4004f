"""Demands that can never be met are found; those that can are not."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.constraints.text import parse_constraint
from argosy.model.feasibility import Feasibility
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.wording import format_request, listed, listed_names

GIB = 2**30
MACHINES = tuple(
    Machine(f"cpu-{n}", Resources(16_000, 64 * GIB), joins={"rack": (f"r{n // 4}",)})
    for n in range(16)
) + tuple(
    Machine(
        f"gpu-{n}",
        Resources(32_000, 256 * GIB, {"gpu": 8}),
        attributes={"accel": "a100"},
        joins={"rack": ("r4",)},
    )
    for n in range(4)
)


def group(count: int = 1, **changes: Any) -> TaskGroup:
    fields = {"request": Resources(1_000, GIB), "estimate": 1_000_000, **changes}
    if fields.get("endless"):
        fields["estimate"] = None
    return TaskGroup(count, **fields)


def found(job: Job, *operator: str) -> list[str]:
    feasibility = Feasibility(MACHINES, map(parse_constraint, operator))
    return [demand.code for demand in feasibility.of(job)]


def only(job: Job, *operator: str) -> str:
    (demand,) = Feasibility(MACHINES, map(parse_constraint, operator)).of(job)
    return f"{demand}; {demand.remedy}"


class TestTooLarge:
    def test_a_task_larger_than_any_machine_names_both_sizes(self) -> None:
        job = Job("giant", (group(request=Resources(64_000)),))
        assert only(job) == (
            "giant has tasks that ask for 64 cores; the largest machine has 32 cores; "
            "ask for 32 cores less, or add a machine with 64 cores"
        )

    def test_the_largest_machine_is_one_that_may_be_used(self) -> None:
        job = Job("g", (group(request=Resources(9_000, 300 * GIB), requires={"accel": "a100"}),))
        assert "the largest machine of those with accel=a100 has 256 GiB" in only(job)

    def test_a_resource_that_no_machine_has(self) -> None:
        job = Job("g", (group(request=Resources(1, 1, {"tpu": 1})),))
        assert "ask for 1 tpu; no machine has any" in only(job)

    def test_amounts_that_exist_only_on_different_machines(self) -> None:
        wide = Machine("wide", Resources(64_000, GIB))
        feasibility = Feasibility((*MACHINES, wide))
        (demand,) = feasibility.of(Job("g", (group(request=Resources(64_000, 64 * GIB)),)))
        assert "64 cores and 64 GiB together, which no one machine has" in demand.problem

    def test_an_attribute_that_no_machine_has(self) -> None:
        job = Job("g", (group(requires={"accel": "h100"}),))
        assert only(job).startswith("g requires accel=h100, which no machine has")

    def test_a_task_that_just_fits_is_no_finding(self) -> None:
        assert not found(Job("g", (group(request=Resources(32_000, 256 * GIB, {"gpu": 8})),)))


class TestTogether:
    GPU = Resources(4_000, 32 * GIB, {"gpu": 8})

    def test_a_gang_larger_than_the_empty_cluster(self) -> None:
        job = Job("train", (group(6, request=self.GPU),), gang=True)
        assert only(job) == (
            "train is a gang of 6 tasks, each asking for 4 cores, 32 GiB and 8 gpu: even if empty, "
            "the cluster holds 4 of them, on gpu-0 to gpu-3; 2 tasks fewer, or machines for 2 more"
        )

    @pytest.mark.parametrize("count", [4, 1])
    def test_a_gang_that_fits_is_no_finding(self, count: int) -> None:
        assert not found(Job("train", (group(count, request=self.GPU),), gang=True))

    def test_tasks_that_end_may_take_turns(self) -> None:
        assert not found(Job("infer", (group(60, request=self.GPU),)))

    def test_tasks_that_never_end_cannot(self) -> None:
        assert found(Job("serve", (group(5, request=self.GPU, endless=True),))) == ["service"]


class TestApart:
    ALONE = "web -> {web, 0, 0} in machine hard"

    def web(self, count: int, rule: str = ALONE, **changes: Any) -> Job:
        constraints = (parse_constraint(rule),) if rule else ()
        fields: dict[str, Any] = {"kind": "service", **changes}
        return Job("web", (group(count, tags=("web",)),), constraints=constraints, **fields)

    def test_more_tasks_than_machines_to_be_alone_on(self) -> None:
        assert only(self.web(30)) == (
            "web has 30 tasks that must run at once, but 'web -> {web, 0, 0} in machine hard' allows "
            "1 task per machine, so 20 machines with room can take only 20; 10 tasks fewer, another "
            "machine, or a constraint that is not hard"
        )

    @pytest.mark.parametrize(
        ("job", "operator"),
        [
            ((20, ALONE), ()),
            ((30, "web -> {web, 0, 0} in machine"), ()),
            ((30, "web -> {web, 0, 1} in machine hard"), ()),
            ((30, "db -> {db, 0, 0} in machine hard"), ()),
            ((30, "web -> {web, 0, 0} in machine or web -> {web, 0, 9} in rack hard"), ()),
        ],
    )
    def test_what_can_be_kept_is_no_finding(
        self, job: tuple[int, str], operator: tuple[str, ...]
    ) -> None:
        assert not found(self.web(*job), *operator)

    def test_the_operators_constraints_count_too(self) -> None:
        assert found(self.web(30, ""), self.ALONE) == ["apart"]

    def test_a_limit_per_rack_counts_racks(self) -> None:
        assert found(self.web(11, "web -> {web, 0, 1} in rack hard")) == ["apart"]
        assert not found(self.web(10, "web -> {web, 0, 1} in rack hard"))

    def test_batch_tasks_may_take_turns_unless_they_are_a_gang(self) -> None:
        assert not found(self.web(30, kind="batch"))
        assert found(self.web(30, kind="batch", gang=True)) == ["apart"]


def test_names_become_ranges() -> None:
    assert listed_names(["a-1", "a-2", "a-3", "b", "c-7", "c-8"]) == "a-1 to a-3, b, c-7 and c-8"
    assert listed_names(["web/3"]) == "web/3"
    assert listed([str(n) for n in range(9)]) == "0, 1, 2, 3 and 5 more"
    assert format_request(Resources(500, 0, {"gpu": 1})) == "0.5 cores and 1 gpu"
