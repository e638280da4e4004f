"""Names, amounts and lengths at the edge of what documents may have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from live_bench import LiveBench, job
from test_handler_steps import JobFacts

from argosy.model.errors import ArgosyError
from argosy.model.resources import Resources
from argosy.service import submissions
from argosy.service.submissions import _LONGEST_ALIKE, Submissions


@pytest.mark.parametrize("name", [".", ".."])
def test_no_job_has_a_name_that_clients_take_for_a_directory(live: LiveBench, name: str) -> None:
    made, world = Submissions(), live.server.cluster.world
    with pytest.raises(ArgosyError, match="can be part of a path") as caught:
        made.read(world, job(id=name), "x")
    assert caught.value.field == "id"
    with pytest.raises(ArgosyError) as caught:
        made.read(world, job(id=name), "x", ("jobs", 3))
    assert caught.value.field == "jobs[3].id"
    assert made.read(world, job(id="..."), "x").id == "..."


def test_the_longest_document_that_is_remembered_has_exactly_so_many_bytes(
    live: LiveBench,
) -> None:
    made, world = Submissions(), live.server.cluster.world

    def long(size: int) -> dict[str, Any]:
        bare = len(msgspec.json.encode(job(["true", ""])))
        return job(["true", "x" * (size - bare)])

    for size, is_kept in ((_LONGEST_ALIKE, True), (_LONGEST_ALIKE + 1, False)):
        table = long(size)
        assert len(msgspec.json.encode(table)) == size
        first, second = (made.read(world, table, name) for name in ("a", "b"))
        assert (first.id, second.id) == ("a", "b")
        assert (first.groups is second.groups) == is_kept


def test_many_documents_in_turn_are_counted_by_their_own_tasks(live: LiveBench) -> None:
    """The limit of tasks is for one job, whatever was read before."""
    made, world = Submissions(), live.server.cluster.world
    checks = made._job_checks(world)
    checks.tasks = 5
    assert made._job_checks(world) is checks
    assert checks.tasks == 0
    later: Any = SimpleNamespace(
        life=world.life + 1,
        projection=world.projection,
        cluster=world.cluster,
        present_machines=world.present_machines,
    )
    assert made._job_checks(later) is not checks
    assert made._job_checks(later) is made._job_checks(later)


@pytest.mark.parametrize(
    ("table", "field", "text"),
    [
        (
            {"name": "new", "capacity": {"cpu": "1", "memory": "1"}, "count": 2},
            "count",
            "2 machines",
        ),
        ({"name": ".", "capacity": {"cpu": "1", "memory": "1"}}, "name", "part of a path"),
        (
            {"name": "new", "capacity": {"cpu": "1", "memory": "1", "a b": 1}},
            "capacity",
            "resource 'a b'",
        ),
        (
            {"name": "new", "capacity": {"cpu": "1", "memory": "1"}, "joins": {"a b": ["s"]}},
            "joins",
            "node group 'a b'",
        ),
        (
            {
                "name": "new",
                "capacity": {"cpu": "1", "memory": "1"},
                "joins": {"rack": ["s", "a b"]},
            },
            "joins.rack",
            "set 'a b'",
        ),
    ],
)
def test_a_machine_that_cannot_be_is_refused_where_it_is_wrong(
    table: dict[str, Any], field: str, text: str
) -> None:
    with pytest.raises(ArgosyError) as caught:
        Submissions().machine(table)
    assert caught.value.field == field
    assert text in str(caught.value)


def test_a_machine_has_all_that_its_document_says() -> None:
    document = {
        "name": "new",
        "capacity": {"cpu": "2", "memory": "1KiB", "gpu": 3},
        "attributes": {"zone": "a"},
        "joins": {"rack": ["r1", "r2"]},
        "count": 1,
    }
    made = Submissions().machine(document)
    assert (made.name, made.capacity) == ("new", Resources(2_000, 1_024, {"gpu": 3}))
    assert (dict(made.attributes), dict(made.joins)) == ({"zone": "a"}, {"rack": ("r1", "r2")})


def test_a_capacity_is_read_by_itself() -> None:
    read = Submissions().capacity
    assert read({"cpu": "2", "memory": "1KiB"}) == Resources(2_000, 1_024)
    for table in ({"cpu": "2", "memory": "x"}, {"cpu": "2", "memory": "1", "a b": 1}):
        with pytest.raises(ArgosyError) as caught:
            read(table)
        assert (caught.value.field or "").startswith("capacity")


def test_what_there_is_to_know_of_machines_is_that_of_the_cluster_asked_for(
    live: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    world = live.server.cluster.world
    read = Submissions().read(world, job(id="a"), "")
    monkeypatch.setattr(submissions, "is_checking", lambda engines: True)
    monkeypatch.setattr(submissions, "check_engines", lambda scenario, engines, facts: None)

    def facts_of(scenario: Any) -> Any:
        asked.append(scenario.cell)
        return JobFacts(jobs=[])

    monkeypatch.setattr(submissions, "facts_of", facts_of)
    cell = msgspec.structs.replace(world.cluster.cell)
    other = SimpleNamespace(cluster=msgspec.structs.replace(world.cluster, cell=cell))
    made = Submissions()
    for each in (world, world, other, other, world):
        made._check_engines(each, read)  # type: ignore[arg-type]
    assert [found is cell for found in asked] == [False, True, False]
