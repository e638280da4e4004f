"""Small values that everyone shares: transactions, outcomes, machines, devices, counts of jobs, budgets
and lists in words."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import numpy as np
import pytest

from argosy.model import entry_points
from argosy.model.budgets import UNTIMED, WorkBudget, WorkBudgets
from argosy.model.constraints.kubernetes import to_kubernetes
from argosy.model.constraints.text import parse_constraint
from argosy.model.devices import MachineDevices, empty_slots, not_devices, place_of
from argosy.model.entry_points import installed
from argosy.model.errors import ArgosyError, ModelError, ServerError, SettingError
from argosy.model.explanations import Refusal, Why
from argosy.model.job_census import JobCensus, JobClass
from argosy.model.machines import Machine, static_tags
from argosy.model.resources import Resources, dimensions_of
from argosy.model.transactions import Claims, DrainMachine, Outcome, Transaction, Wants
from argosy.model.wording import format_request, format_requires, listed, listed_names
from argosy.testing.builders import GIB, job

TASKS = np.array([3, 4, 5])


def claims(**fields: Any) -> Claims:
    zeros = np.zeros(3, np.int32)
    return Claims(TASKS, np.array([7, 8, 9], np.int32), zeros, zeros.astype(np.uint32), **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"claims": None},
        {"claims": claims(gangs=np.zeros(3, np.int32))},
        {"claims": claims(alternatives=np.zeros((3, 1), np.int32))},
        {"releases": TASKS},
        {"confirms": TASKS},
        {"forgets": TASKS},
        {"wants": Wants(1.0, (1, 1), 9)},
        {"machines": (DrainMachine(0),)},
        {"move": True},
        {"assume": True},
        {"by_claims": True},
    ],
)
def test_a_transaction_of_claims_alone_has_nothing_else(fields: dict[str, Any]) -> None:
    assert not Transaction("s", **{"claims": claims(), **fields}).only_claims
    for terms in ({}, {"atomic": True, "coarse": True, "preempt": True}):
        assert Transaction("s", claims(), **terms).only_claims  # type: ignore[arg-type]


class TestOutcomes:
    def outcome(self, **fields: Any) -> Outcome:
        given: dict[str, Any] = {
            "accepted": np.array([True, False, False]),
            "whys": np.array([0, int(Why.NO_ROOM), int(Why.JOB_LIMIT)], np.uint8),
            "details": np.array([-1, 1, -1], np.int8),
            "amounts": np.array([0, 500, 0]),
            "evicted": np.empty(0, np.int64),
            "evicted_from": np.empty(0, np.int32),
            "unreleased": (),
            "dimensions": ("cpu", "memory"),
            "all_accepted": False,
            "machines": np.array([7, 8, 2], np.int32),
        }
        return Outcome(**{**given, **fields})

    def test_refusals_name_machine_resource_and_amount(self) -> None:
        assert self.outcome().refusals(claims()) == [
            Refusal(Why.NO_ROOM, task=4, machine=8, dimension="memory", lacking=500),
            Refusal(Why.JOB_LIMIT, task=5, machine=2),
        ]
        nowhere = self.outcome(machines=np.empty(0, np.int32))
        assert [each.machine for each in nowhere.refusals(claims())] == [8, 9]
        first = self.outcome(details=np.array([-1, 0, -1], np.int8)).refusal(claims(), 1)
        assert first.dimension == "cpu"

    def test_only_a_changed_cell_is_a_conflict(self) -> None:
        assert self.outcome().has_conflict
        limits = np.array([0, int(Why.JOB_LIMIT), int(Why.DUPLICATE)], np.uint8)
        assert not self.outcome(whys=limits).has_conflict
        assert not self.outcome(all_accepted=True).has_conflict

    def test_an_answer_about_some_claims_keeps_their_rows(self) -> None:
        last = self.outcome().where(np.array([False, True, True]))
        columns = (last.accepted, last.whys, last.details, last.amounts, last.machines)
        assert [column.tolist() for column in columns] == [
            [False, False],
            [int(Why.NO_ROOM), int(Why.JOB_LIMIT)],
            [1, -1],
            [500, 0],
            [8, 2],
        ]
        assert not last.all_accepted
        assert self.outcome().where(np.array([True, False, False])).all_accepted


class TestMachines:
    def test_a_machine_is_enlarged_to_the_larger_amount_of_each_resource(self) -> None:
        machine = Machine("m", Resources(4, 8, {"gpu": 1}), {"disk": "ssd"})
        larger = machine.enlarged(Resources(2, 9, {"gpu": 1, "net": 3}))
        assert larger.capacity == Resources(4, 9, {"gpu": 1, "net": 3})
        assert (larger.name, larger.attributes) == ("m", {"disk": "ssd"})

    def test_attributes_that_are_true_are_tags_of_their_own(self) -> None:
        tags = static_tags({"gpu": "true", "disk": "ssd", "old": "false"})
        assert tags == {"gpu", "gpu:true", "disk:ssd", "old:false"}

    def test_eight_resources_are_enough_and_nine_too_many(self) -> None:
        six = dict.fromkeys("fedcba", 1)
        assert dimensions_of([Resources(1, 1, six)]) == ("cpu", "memory", *"abcdef")
        with pytest.raises(ModelError, match="9 resource dimensions; expected at most 8"):
            dimensions_of([Resources(1, 1, six), Resources(0, 0, {"g": 1})])


class TestDevices:
    @pytest.mark.parametrize(
        ("amount", "is_wrong"),
        [(0, False), (1000, False), (16_000, False), (17_000, True), (500, True)],
    )
    def test_a_machine_has_up_to_sixteen_whole_devices(self, amount: int, is_wrong: bool) -> None:
        found = not_devices(Resources(1, 1, {"gpu": amount}), "gpu")
        assert found == (f"gpu = {amount}" if is_wrong else None)

    def test_shares_fill_devices_and_others_need_whole_ones(self) -> None:
        devices = MachineDevices(3_000)
        devices.hold(1, 600)
        devices.hold(2, 300)
        devices.hold(3, 200)
        assert devices.free == [100, 800, 1000]
        assert (devices.slots(100), devices.slots(400), devices.slots(1000)) == (19, 4, 1)
        assert devices.usable() == 1000
        devices.hold(4, 1000)
        assert (devices.usable(), devices.slots(1000)) == (800, 0)
        devices.release(1)
        assert devices.free == [700, 800, 0]
        devices.release(1)
        # Without room, those with most are taken.
        devices.hold(5, 1500)
        assert devices.free == [-300, -200, 0]
        assert devices.slots(100) == 0
        devices.release(5)
        devices.hold(6, 0)
        assert devices.free == [700, 800, 0]

    @pytest.mark.parametrize(
        ("amount", "slots"), [(999, 3), (500, 6), (1000, 3), (1001, 1), (2000, 1), (3001, 0)]
    )
    def test_an_empty_machine_has_room_for_so_many(self, amount: int, slots: int) -> None:
        assert empty_slots(3_999, amount) == slots

    def test_where_a_request_has_to_fit(self) -> None:
        assert [place_of(amount) for amount in (999, 1000)] == ["on one device", "in whole devices"]


def test_a_census_counts_jobs_between_which_no_check_tells() -> None:
    jobs = [
        job("a", 1),
        job("b", 2, seconds=None),
        job("c", 1, precedence=3),
        job("d", 1, kind="service", seconds=None),
        job("e", 2, gang=True),
    ]
    census = JobCensus(jobs)
    assert census.counts == {
        JobClass("batch", 0, False, ()): 2,
        JobClass("batch", 3, False, ()): 1,
        JobClass("service", 0, False, ()): 1,
        JobClass("batch", 0, True, ()): 1,
    }
    assert census.first_of_kind == {"batch": "a", "service": "d"}
    assert census.first_endless == "b"
    assert JobCensus().first_endless is None


@pytest.mark.parametrize(("rate", "limit", "steps"), [(0, 5, -1), (2, 0, -1), (2, 3, 6), (1, 1, 1)])
def test_a_budget_of_steps_lasts_so_many(rate: int, limit: int, steps: int) -> None:
    budget = WorkBudgets(rate).start(limit)
    assert isinstance(budget, WorkBudget)
    unlimited = UNTIMED.start(1)
    assert isinstance(unlimited, WorkBudget)
    assert budget.limit == (unlimited.limit if steps < 0 else steps)


class TestEntryPoints:
    def test_one_name_stands_for_one_thing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def entry(name: str, value: str) -> metadata.EntryPoint:
            return metadata.EntryPoint(name, value, "some.group")

        entries = [
            entry("dumps", "json:dumps"),
            entry("dumps", "json:dumps"),
            entry("both", "json:dumps"),
            entry("both", "json:loads"),
            entry("gone", "no_such_module:it"),
        ]
        monkeypatch.setattr(
            entry_points.metadata,
            "entry_points",
            lambda group: entries if group == "some.group" else [],
        )
        found = installed("some.group", "dumps", "policy")
        assert found is not None
        assert (found[0].__name__, found[1]) == ("dumps", "json:dumps")
        assert installed("some.group", "other", "policy") is None
        assert installed("other.group", "dumps", "policy") is None
        with pytest.raises(SettingError, match="policy 'both' is declared by several packages"):
            installed("some.group", "both", "policy")
        with pytest.raises(SettingError, match="'gone': no_such_module:it cannot be imported"):
            installed("some.group", "gone", "policy")


def test_what_a_server_says_keeps_its_status_and_code() -> None:
    told = ServerError("no such job", status=404, code="unknown-job", hint="look again")
    assert (told.status, told.code, told.hint, str(told)) == (
        404,
        "unknown-job",
        "look again",
        "no such job",
    )
    assert ServerError("broken", status=500).code == ServerError.code


class TestWords:
    @pytest.mark.parametrize(
        ("parts", "most", "expected"),
        [
            ([], 4, ""),
            (["a"], 4, "a"),
            (["a", "b"], 4, "a and b"),
            (list("abcde"), 4, "a, b, c, d and e"),
            (list("abcdef"), 4, "a, b, c, d and 2 more"),
            (list("abc"), 1, "a and 2 more"),
        ],
    )
    def test_lists(self, parts: list[str], most: int, expected: str) -> None:
        assert listed(parts, most) == expected

    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (["m0", "m1", "m2", "big"], "m0 to m2 and big"),
            (["m0", "m1"], "m0 and m1"),
            (["m0", "m2", "m3", "n4"], "m0, m2, m3 and n4"),
            (["m9", "m10", "m11"], "m9 to m11"),
            (["a", "a1"], "a and a1"),
        ],
    )
    def test_numbered_neighbours_are_a_range(self, names: list[str], expected: str) -> None:
        assert listed_names(names) == expected

    def test_requests_and_requirements(self) -> None:
        request = Resources(4_000, 32 * GIB, {"gpu": 8, "net": 0})
        assert format_request(request) == "4 cores, 32 GiB and 8 gpu"
        assert format_requires({"accel": "a100", "disk": "ssd"}) == "accel=a100 and disk=ssd"


def test_kubernetes_takes_all_of_several_constraints_but_not_one_of_them() -> None:
    text = "a -> {{a, 0, 0}} in machine {} a -> {{b, 1, inf}} in machine hard"
    affinity = to_kubernetes([parse_constraint(text.format("and"))], ["a"])["affinity"]
    assert set(affinity) == {"podAffinity", "podAntiAffinity"}
    either = parse_constraint(text.format("or"))
    with pytest.raises(ArgosyError, match="no 'or' between constraints"):
        to_kubernetes([either], ["a"])
    # A pod that only one of the alternatives concerns has no choice.
    other = parse_constraint("a -> {a, 0, 0} in machine or b -> {b, 1, inf} in machine hard")
    assert set(to_kubernetes([other], ["a"])["affinity"]) == {"podAntiAffinity"}
