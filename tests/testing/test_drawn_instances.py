"""What random placement problems reach: machines, zones, running containers, forms of constraints."""

from __future__ import annotations

from collections import Counter

import pytest

from argosy.model.constraints.text import format_constraint
from argosy.model.random import Random
from argosy.testing.placements import TAGS, PlacementInstance, random_constraint, random_instance

SEEDS = range(300)


@pytest.fixture(scope="module")
def drawn() -> list[PlacementInstance]:
    return [random_instance(Random(seed)) for seed in SEEDS]


def zones(instance: PlacementInstance) -> list[tuple[str, ...]]:
    """Of each machine, all in which it is."""
    return [machine.joins.get("zone", ()) for machine in instance.machines]


def test_machines_are_few_and_in_racks_of_two(drawn: list[PlacementInstance]) -> None:
    sizes: Counter[int] = Counter()
    for instance in drawn:
        sizes[len(instance.machines)] += 1
        for at, machine in enumerate(instance.machines):
            assert machine.name == f"m{at}"
            assert machine.joins["rack"] == (f"r{at // 2}",)
            assert 4 <= machine.capacity.memory <= 8
    assert set(sizes) == {3, 4}
    assert min(sizes.values()) > 100
    with_gpu = sum("gpu" in m.attributes for each in drawn for m in each.machines)
    assert 0.2 < with_gpu / sum(len(each.machines) for each in drawn) < 0.4


def test_the_first_machine_is_in_no_zone_unless_problems_are_plain(
    drawn: list[PlacementInstance],
) -> None:
    between: Counter[tuple[str, ...]] = Counter()
    for instance in drawn:
        found = zones(instance)
        assert found[0] == ()
        # Every other one is in the second zone, and those between in the first, the second or both.
        assert found[2] == ("z1",)
        between.update(found[1::2])
    assert set(between) == {("z0",), ("z0", "z1")}
    assert min(between.values()) > 100
    plain = [random_instance(Random(seed), plain=True) for seed in SEEDS]
    assert {zones(each)[0] for each in plain} == {("z1",)}


def test_what_runs_fits_where_it_runs(drawn: list[PlacementInstance]) -> None:
    counts: Counter[int] = Counter()
    for instance in drawn:
        counts[len(instance.running)] += 1
        used: Counter[int] = Counter()
        for tags, machine, memory in instance.running:
            used[machine] += memory
            assert tags <= set(TAGS)
            assert memory == 1
        for machine, memory in used.items():
            assert memory <= instance.machines[machine].capacity.memory
    assert set(counts) == {0, 1, 2, 3}
    none = [random_instance(Random(seed), running=0) for seed in range(20)]
    assert not any(each.running for each in none)


def test_one_or_two_applications_ask_for_up_to_eight_containers(
    drawn: list[PlacementInstance],
) -> None:
    apps, kinds, counts, sizes = set(), set(), set(), set()
    for instance in drawn:
        numbers = [app for app, _, _, _ in instance.kinds]
        assert numbers == sorted(numbers)
        assert numbers[0] == 0
        apps.add(len(set(numbers)))
        kinds.add(len(numbers))
        sizes.update(memory for _, _, memory, _ in instance.kinds)
        counts.update(count for *_, count in instance.kinds)
    assert (apps, kinds, sizes, counts) == ({1, 2}, {1, 2, 3, 4}, {1, 2, 3}, {1, 2})
    assert {len(each.constraints) for each in drawn} == {1, 2, 3}


def test_every_form_of_constraint_is_drawn_and_only_one_for_plain_problems() -> None:
    texts = [format_constraint(random_constraint(Random(seed))) for seed in SEEDS]
    forms = {
        "spread": sum(" spread {" in text for text in texts),
        "or": sum("} or {" in text for text in texts),
        "and": sum("} and {" in text for text in texts),
        "not": sum(" not {" in text for text in texts),
        "two rules, one of them": sum(text.count("->") == 2 and " or " in text for text in texts),
        "two rules, both": sum(text.count("->") == 2 and " and " in text for text in texts),
        "hard": sum(text.endswith(" hard") for text in texts),
        "zone": sum("zone" in text for text in texts),
        "no bound": sum("inf" in text for text in texts),
    }
    assert all(9 <= count <= 200 for count in forms.values()), forms
    assert 30 < forms["hard"] < 100
    plain = [format_constraint(random_constraint(Random(seed), plain=True)) for seed in SEEDS]
    for text in plain:
        assert text.count("->") == 1
        assert not {"spread", "not", "or", "and", "zone"} & set(text.split())
    always = [random_constraint(Random(seed), hard=1.0) for seed in range(20)]
    assert all(each.hard for each in always)
    assert not any(random_constraint(Random(seed), hard=0.0).hard for seed in range(20))


def test_the_same_seed_draws_the_same_problem() -> None:
    assert [random_instance(Random(seed)) for seed in range(9)] == [
        random_instance(Random(seed)) for seed in range(9)
    ]
