"""What a task that waits lacks, on machines as a journal leaves them."""

from __future__ import annotations

import io
from typing import Any

import pytest
from msgspec import UNSET, structs

from argosy.host.journal import Journal
from argosy.host.records import PlacedRecord, SubmittedRecord
from argosy.host.setup import HostSetup
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec
from argosy.records.journal_file import JournalFile
from argosy.records.occupancy import Occupancy
from argosy.records.shortages import Shortage, shortage
from argosy.records.state import RunState
from argosy.testing.builders import job, scenario

FULL = Resources(8_000, 8)


def asking(name: str, tasks: int = 1, *, cpu: int = 4_000, memory: int = 1, **more: Any) -> Job:
    extras = more.pop("extras", {})
    return job(name, tasks, request=Resources(cpu, memory, extras), **more).job


def together(name: str, *parts: Job) -> Job:
    """A gang with the groups of these jobs."""
    groups = tuple(group for part in parts for group in part.groups)
    return structs.replace(parts[0], id=name, groups=groups, gang=True)


def plain(count: int) -> list[Machine]:
    return [Machine(f"m{n}", FULL) for n in range(count)]


def occupied(
    machines: list[Machine],
    held: list[tuple[Resources, int]],
    *waiting: Job,
    devices: Any = UNSET,
) -> Occupancy:
    """`held` are requests, of a task each, and the numbers of their machines."""
    stream = io.BytesIO()
    journal = Journal(stream)
    cell = CellSpec(machines=tuple(machines), devices=devices)
    journal.begin(HostSetup.of(scenario("omega", [], cell=cell)))
    for number, (request, machine) in enumerate(held):
        journal.write(SubmittedRecord(0, number, job(f"h{number}", request=request).job, "s-0"))
        journal.write(PlacedRecord(0, f"h{number}", [0], [machine], "s-0"))
    for number, each in enumerate(waiting, len(held)):
        journal.write(SubmittedRecord(0, number, each, "s-0"))
    journal.flush()
    return Occupancy(RunState.of(JournalFile(stream.getvalue()), 10), 5)


def lack(wanted: Job, cell: Occupancy, group: int = 0, *, is_gang: bool = False) -> Shortage:
    found = shortage(wanted, wanted.groups[group], cell, "s-0", is_gang=is_gang)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("large", "small", "which"),
    [
        (2, 0, "2 machines that could take it (m0 and m1)"),
        (4, 0, "4 machines that could take it (m0 to m3)"),
        (5, 0, "5 machines that could take it"),
        (5, 1, "5 machines that could take it (m0 to m4)"),
    ],
)
def test_machines_are_named_if_they_are_few_or_not_all(large: int, small: int, which: str) -> None:
    wanted = asking("a")
    machines = [*plain(large), *(Machine(f"s{n}", Resources(2_000, 8)) for n in range(small))]
    cell = occupied(machines, [(FULL, at) for at in range(large)], wanted)
    assert lack(wanted, cell).cause == f"none of the {which} has 4 cores and 1 B free"


@pytest.mark.parametrize(
    ("memory", "held", "miss"),
    [
        # Of m0 a quarter is missing, of m1 half of another resource.
        (4, [Resources(5_000, 0), Resources(0, 6)], "m0 lacks 1 core"),
        (4, [Resources(0, 6), Resources(5_000, 0)], "m1 lacks 1 core"),
        # What counts on each machine is what it lacks most.
        (4, [Resources(8_000, 5), Resources(6_000, 8)], "m0 lacks 4 cores"),
        (4, [Resources(7_000, 5), Resources(4_001, 8)], "m0 lacks 3 cores"),
        (1, [Resources(0, 8), Resources(7_000, 0)], "m1 lacks 3 cores"),
        (1, [Resources(4_001, 0), Resources(0, 8)], "m0 lacks 0.001 cores"),
        # Of two that are equally near, the first.
        (4, [Resources(5_000, 0), Resources(5_000, 0)], "m0 lacks 1 core"),
    ],
)
def test_the_nearest_machine_lacks_the_smallest_share_of_the_request(
    memory: int, held: list[Resources], miss: str
) -> None:
    wanted = asking("a", memory=memory)
    cell = occupied(plain(2), [(each, at) for at, each in enumerate(held)], wanted)
    assert lack(wanted, cell).nearest_miss == miss


def test_of_resources_that_are_equally_short_an_extra_one_is_told() -> None:
    machine = Machine("m0", Resources(8_000, 8, {"gpu": 2}))
    wanted = asking("a", cpu=8_000, extras={"gpu": 2})
    cell = occupied([machine], [(Resources(8_000, 0, {"gpu": 2}), 0)], wanted)
    assert lack(wanted, cell) == Shortage(
        "m0, the only machine that could take it, does not have 8 cores and 2 gpu free",
        ("The gpu there is held by h0/0.",),
        "another machine like m0",
        "m0 lacks 2 gpu",
    )


class TestGangs:
    def test_a_gang_of_which_a_part_fits_is_told_what_most_machines_lack(self) -> None:
        wanted = asking("a", 3, gang=True)
        held = [(Resources(4_000, 0), 0), (Resources(0, 8), 1), (Resources(0, 8), 2)]
        cell = occupied(plain(4), [*held, (Resources(8_000, 0), 3)], wanted)
        assert lack(wanted, cell, is_gang=True) == Shortage(
            "it is one of a gang of 3 tasks, and only 1 of the 3 that each ask for 4 cores and 1 B "
            "fit at once",
            ("The memory there is held by h1/0 and h2/0.",),
            "2 more machines like m0, enough for all 3 tasks that wait",
        )

    def test_the_first_group_that_lacks_room_is_told_with_what_it_requires(self) -> None:
        ssd = Machine("fast", FULL, {"disk": "ssd"})
        gang = together(
            "a",
            asking("nothing", 9, cpu=0, memory=0),
            asking("giant", 2, cpu=9_000),
            asking("fits", 2, cpu=1_000),
            asking("lacks", 3, requires={"disk": "ssd"}),
            asking("later", 9),
        )
        cell = occupied([Machine("m0", FULL), ssd], [(Resources(1_000, 0), 1)], gang)
        found = lack(gang, cell, is_gang=True)
        assert found.cause == (
            "it is one of a gang of 25 tasks, and only 1 of the 3 that each ask for 4 cores and 1 B "
            "on machines with disk=ssd fit at once"
        )
        assert found.nearest_miss == ""

    @pytest.mark.parametrize(
        ("count", "cause"),
        [
            (2, "there was room for it, but s-0 did not use it"),
            (
                3,
                "it is one of a gang of 3 tasks, and only 2 of the 3 that each ask for 4 cores and "
                "1 B fit at once",
            ),
        ],
    )
    def test_a_gang_with_room_for_each_group_by_itself_was_not_placed(
        self, count: int, cause: str
    ) -> None:
        wanted = asking("a", count, gang=True)
        assert lack(wanted, occupied(plain(1), [], wanted), is_gang=True).cause == cause

    def test_who_ignores_gangs_needs_room_for_one_task(self) -> None:
        wanted = asking("a", 3, gang=True)
        cell = occupied(plain(1), [], wanted)
        assert lack(wanted, cell).cause == "m0 has room for it, but s-0 did not use it"


class TestDevices:
    MACHINE = Machine("m0", Resources(8_000, 8, {"gpu": 4_000}))

    def cell(self, held: list[int], *waiting: Job) -> Occupancy:
        taken = [(Resources(0, 0, {"gpu": amount}), 0) for amount in held]
        return occupied([self.MACHINE], taken, *waiting, devices="gpu")

    @pytest.mark.parametrize(
        ("amount", "held", "wanted", "miss"),
        [
            (500, [600] * 4, "500 gpu free on one device", "m0 lacks 100 gpu on one device"),
            (
                2_000,
                [1_000] * 3,
                "2000 gpu free in whole devices",
                "m0 lacks 1000 gpu in whole devices",
            ),
        ],
    )
    def test_a_lack_says_where_a_share_or_whole_devices_have_to_fit(
        self, amount: int, held: list[int], wanted: str, miss: str
    ) -> None:
        asked = asking("a", cpu=0, memory=0, extras={"gpu": amount})
        found = lack(asked, self.cell(held, asked))
        assert (found.cause.partition("have ")[2], found.nearest_miss) == (wanted, miss)

    def test_another_resource_that_is_lacking_is_on_no_device(self) -> None:
        asked = asking("a", cpu=8_000, memory=0, extras={"gpu": 500})
        cell = occupied([self.MACHINE], [(Resources(1_000, 0), 0)], asked, devices="gpu")
        found = lack(asked, cell)
        assert found.cause.endswith("does not have 8 cores free")
        assert found.nearest_miss == "m0 lacks 1 core"

    @pytest.mark.parametrize(
        ("tasks", "cpu", "amount", "machines"),
        [
            # One of 600 fits on each device.
            (4, 0, 600, "another machine like m0"),
            (5, 0, 600, "2 more machines like m0"),
            (8, 0, 500, "another machine like m0"),
            (9, 0, 500, "2 more machines like m0"),
            # Two cores' worth of tasks fit, however many devices there are.
            (2, 4_000, 500, "another machine like m0"),
            (3, 4_000, 500, "2 more machines like m0"),
        ],
    )
    def test_machines_that_would_be_enough_have_room_on_their_devices(
        self, tasks: int, cpu: int, amount: int, machines: str
    ) -> None:
        asked = asking("a", tasks, cpu=cpu, memory=0, extras={"gpu": amount})
        told = lack(asked, self.cell([1_000] * 4, asked)).remedy
        assert told == f"{machines}, enough for all {tasks} tasks that wait"
