"""What places cost under each policy of the flow schedulers, recounted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs

from argosy.engines.api import RunFacts
from argosy.engines.families.flow.policies import policy_mismatch
from argosy.engines.families.flow.policies.load_spreading import LoadSpreading
from argosy.engines.families.flow.policies.multi_dimensional import MultiDimensional
from argosy.engines.families.flow.policies.network_aware import NetworkAware
from argosy.engines.families.flow.policies.quincy import QuincyPolicy, _largest
from argosy.engines.families.flow.policy import NewGroup, plain_wishes, rank
from argosy.engines.families.flow.settings import DataSettings, FlowSettings
from argosy.engines.families.flow.statistics import ClusterStatistics
from argosy.testing.builders import job

ALL = np.arange(2)
#: These policies ask nothing of it.
NO_CLUSTER: Any = None


def numbers(*values: Any) -> Any:
    return np.array(values, np.int64)


def statistics(**fields: Any) -> ClusterStatistics:
    """Two machines with ten and twenty of one resource, and a hundred of another each."""
    capacity = numbers([10, 100], [20, 100])
    usual: dict[str, Any] = {
        "dimensions": ("cpu", "memory"),
        "usable": np.ones(2, np.bool_),
        "capacity": capacity,
        "free": capacity.copy(),
        "own": np.zeros((2, 2), np.int64),
        "own_tasks": numbers(0, 0),
        "pinned_tasks": numbers(0, 0),
        "owner_tasks": numbers(),
        "demands": np.zeros((0, 2), np.int64),
    }
    return ClusterStatistics(**{**usual, **fields})


def test_what_is_used_is_what_is_not_free() -> None:
    found = statistics(free=numbers([4, 100], [20, 30])).used
    assert found.tolist() == [[6, 0], [0, 70]]


def test_spreading_load_charges_each_task_for_those_that_are_there() -> None:
    policy = LoadSpreading(FlowSettings(per_task=7), NO_CLUSTER, ("cpu", "memory"))
    policy.gather(statistics(pinned_tasks=numbers(3, 0), own_tasks=numbers(5, 5)))
    terms = policy.sink_terms(ALL)
    assert (np.asarray(terms.costs).tolist(), terms.steps) == ([21, 0], 7)


def test_several_resources_cost_their_mean_use_with_the_task_there() -> None:
    policy = MultiDimensional(FlowSettings(), NO_CLUSTER, ("cpu", "memory"))
    policy.gather(statistics(free=numbers([8, 100], [20, 50])))
    terms = policy.pool_terms(numbers([2, 10], [40, 0]), ALL)
    # In thousandths: 200 and 0 in use on the first, 0 and 500 on the second.
    added = [[200 + 100, 100 + 100], [1_000, 1_000]]
    used = [200, 500]
    expected = [[(use + more) // 2 for use, more in zip(used, row, strict=True)] for row in added]
    assert np.asarray(terms.costs).tolist() == expected
    assert np.asarray(terms.steps).tolist() == [[more // 2 for more in row] for row in added]


def test_packing_prefers_the_machine_in_use() -> None:
    policy = MultiDimensional(FlowSettings(prefer="pack"), NO_CLUSTER, ("cpu", "memory"))
    policy.gather(statistics(free=numbers([8, 100], [20, 50])))
    terms = policy.pool_terms(numbers([2, 10]), ALL)
    assert np.asarray(terms.costs).tolist() == [[(2_000 - 200) // 2, (2_000 - 500) // 2]]


def test_tasks_beyond_an_equal_dominant_share_may_wait_at_no_extra_cost() -> None:
    policy = MultiDimensional(FlowSettings(fairness=500), NO_CLUSTER, ("cpu", "memory"))
    # Of 30 cores and 200 of memory, owners 0 and 2 ask for all cores and for half of the memory.
    tasks, demands = numbers(10, 0, 4), numbers([30, 10], [0, 0], [2, 100])
    policy.gather(statistics(owner_tasks=tasks, demands=demands))
    assert list(policy.owner_terms()) == [(5, 500), (0, 0), (0, 500)]
    # Machines that take nothing are not shared out.
    usable = np.array([False, True])
    policy.gather(statistics(owner_tasks=tasks, demands=demands, usable=usable))
    assert policy.owner_terms()[0] == (10 - 3, 500)
    # Who is alone has no share, nor has anyone without fairness.
    policy.gather(statistics(owner_tasks=numbers(10), demands=numbers([60, 10])))
    assert list(policy.owner_terms()) == [(0, 0)]
    unfair = MultiDimensional(FlowSettings(fairness=0), NO_CLUSTER, ("cpu", "memory"))
    unfair.gather(statistics(owner_tasks=tasks, demands=demands))
    assert list(unfair.owner_terms()) == [(0, 0)] * 3


def test_links_cost_what_is_asked_of_them_and_what_is_in_use() -> None:
    policy = NetworkAware(FlowSettings(bandwidth="cpu"), NO_CLUSTER, ("cpu", "memory"))
    policy.gather(statistics(free=numbers([6, 100], [20, 100])))
    terms = policy.pool_terms(numbers([5, 0], [90, 0]), ALL)
    # Thousandths of the largest link, which has twenty.
    assert np.asarray(terms.costs).tolist() == [[450, 250], [1_200, 1_000]]
    assert np.asarray(terms.steps).tolist() == [[250], [1_000]]


def test_waiting_costs_more_with_precedence_but_never_less_than_usual() -> None:
    settings = FlowSettings(waiting=100, per_precedence=30, preemption=9)
    groups = []
    for number, precedence in enumerate((0, 2, -3)):
        made = job(f"j{number}", 2, precedence=precedence).job
        rows = np.arange(2)
        groups.append(NewGroup(made, number, made.groups[0], rows, rows, 0, 0, 0))
    wishes = plain_wishes(groups, settings)
    assert wishes.waiting.tolist() == [100, 160, 100]
    assert (len(wishes.pool), wishes.preemption) == (6, 9)


def test_services_wait_at_a_higher_cost_only_if_they_are_to_go_first() -> None:
    settings = FlowSettings(waiting=100, per_precedence=30, services=1_000)
    groups = []
    for number, kind in enumerate(("batch", "service")):
        made = job(f"j{number}", 2, precedence=1, kind=kind).job
        rows = np.arange(2)
        groups.append(NewGroup(made, number, made.groups[0], rows, rows, 0, 0, 0))
    batch, service = (group.job for group in groups)
    assert plain_wishes(groups, settings).waiting.tolist() == [130, 1_130]
    assert (rank(batch, settings), rank(service, settings)) == (30, 1_030)
    alike = structs.replace(settings, services=0)
    assert plain_wishes(groups, alike).waiting.tolist() == [130, 130]
    assert rank(batch, alike) == rank(service, alike) == 1


def quincy(**data: Any) -> QuincyPolicy:
    class Racks:
        racks = numbers(0, 0, 1)

    settings = FlowSettings(policy="quincy", data=DataSettings(**data))
    return QuincyPolicy(settings, Racks(), ("cpu", "memory"))  # type: ignore[arg-type]


def test_input_costs_nothing_from_the_machine_and_more_from_other_racks_than_from_its_own() -> None:
    policy = quincy(in_rack=10, cross_rack=100)
    size, blocks = numbers(*[8 * 2**30] * 4), numbers(4, 4, 4, 4)
    here, beside = numbers(4, 0, 0, 1), numbers(0, 4, 0, 2)
    # 2 GiB a block: all here, all in the rack, all elsewhere; and one here, two beside, one elsewhere.
    assert policy._cost(size, here, beside, blocks).tolist() == [0, 80, 800, 40 + 200]


def test_only_batch_tasks_with_an_estimate_have_input() -> None:
    policy, groups = quincy(rate=2**26), []
    rows = np.arange(2)
    for number, fields in enumerate(
        ({"kind": "batch"}, {"kind": "service"}, {"kind": "batch", "seconds": None})
    ):
        made = job(f"j{number}", 2, **{"seconds": 30, **fields}).job
        groups.append(NewGroup(made, number, made.groups[0], rows + 2 * number, rows, 0, 0, 0))
    wishes = policy.wishes(groups)
    assert wishes.each.tolist() == [True, False, False]
    assert (wishes.pool[:2] > 0).all()
    assert not wishes.pool[2:].any()
    assert wishes.preferences is not None
    assert set(wishes.preferences.tasks.tolist()) <= {0, 1}


def test_the_places_with_most_of_the_input_are_preferred() -> None:
    tasks, places, blocks = (
        numbers(0, 0, 0, 0, 1, 1),
        numbers(3, 5, 1, 4, 2, 7),
        numbers(2, 9, 5, 5, 1, 4),
    )
    least = np.array([2.0] * 4 + [4.0] * 2)
    kept = _largest(tasks, places, blocks, least, 3)
    assert [column.tolist() for column in kept] == [[0, 0, 0, 1], [5, 1, 4, 7], [9, 5, 5, 4]]
    assert _largest(tasks, places, blocks, least, 4)[1].tolist() == [5, 1, 4, 3, 7]


@pytest.mark.parametrize(
    ("settings", "is_wrong"),
    [
        ({"policy": "network-aware"}, True),
        ({"policy": "network-aware", "bandwidth": "memory"}, False),
        ({"policy": "quincy"}, False),
    ],
)
def test_only_network_awareness_needs_links(settings: dict[str, Any], is_wrong: bool) -> None:
    facts = RunFacts(("cpu", "memory"), 1, {}, frozenset(), (), ())
    found = policy_mismatch(structs.replace(FlowSettings(), **settings), facts)
    assert (found is not None) == is_wrong
