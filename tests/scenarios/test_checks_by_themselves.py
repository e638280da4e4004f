"""The checks of a scenario's parts one by one: what is just allowed, and what is just not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from argosy.engines.api import Settings
from argosy.model.job_census import JobCensus
from argosy.model.machines import Cluster, Machine
from argosy.model.resources import Resources
from argosy.model.scenario import (
    AgentDown,
    AgentSlow,
    AgentStale,
    CellSpec,
    ConstantLatency,
    Fault,
    Federation,
    FleetEntry,
    GroupSpec,
    Jittered,
    MachineCrash,
    MachineDrain,
    MachineRelabel,
    MachineResize,
    MachineUse,
    Network,
    PairLatency,
    Partition,
    RandomCrashes,
    SchedulerCrash,
    SchedulerLimits,
    Takes,
    UniformLatency,
)
from argosy.scenarios import checks
from argosy.testing.builders import job, scenario
from argosy.workloads.tables import Misfit

GROUPS = (GroupSpec(name="rack", sets=("r0",)), GroupSpec(name="unit", sets=("u0",)))
CELL = CellSpec(
    machines=(
        Machine("m-0", Resources(8_000, 2**30, {"gpu": 2_000})),
        Machine("m-1", Resources(8_000, 2**30)),
    ),
    groups=GROUPS,
)
DEVICES = msgspec.structs.replace(CELL, devices="gpu")
TWO = Federation(clusters=(Cluster("north", "oslo"), Cluster("south", "rome")))


def mistake(check: Callable[..., Any], *given: Any, **named: Any) -> tuple[str, str | None, Any]:
    """The problem, what was expected, and where."""
    with pytest.raises(Misfit) as caught:
        check(*given, **named)
    return caught.value.error.problem, caught.value.error.expected, caught.value.path


def entry(name: str = "s", **fields: Any) -> FleetEntry:
    return FleetEntry(name=name, engine="e", **fields)


def test_ends_of_the_network_are_the_cell_the_machines_and_each_cluster() -> None:
    assert checks.network_ends(None) == ("cell", "machines")
    assert checks.network_ends(TWO) == ("cell", "machines", "cell:north", "cell:south")


def test_a_fleet_has_schedulers_of_different_names() -> None:
    fleet = (entry(), entry("t", replicas=2), entry("t-2"))
    assert checks.check_fleet(fleet, ("cpu",)) == ("s", "t-0", "t-1", "t-2")
    assert mistake(checks.check_fleet, (), ("cpu",)) == (
        "no schedulers", "at least one [[fleet]]", ("fleet",),
    )  # fmt: skip
    again = "scheduler 't-1' again", "each scheduler name once", ("fleet", 1, "name")
    assert mistake(checks.check_fleet, (entry("t-1"), entry("t", replicas=2)), ()) == again
    taken = "another name", ("fleet", 0, "name")
    for name, ends in (("cell", ()), ("machines", ()), ("cell:north", checks.network_ends(TWO))):
        found = mistake(checks.check_fleet, (entry(name),), (), *([ends] if ends else []))
        assert found == (f"scheduler name '{name}' is reserved", *taken)
    assert checks.check_fleet((entry("cell:north"),), ()) == ("cell:north",)


@pytest.mark.parametrize("name", ["", "a b", "a>b", "a/b", "a\x07"])
def test_a_scheduler_s_name_can_be_an_end_of_a_pair_and_a_part_of_a_path(name: str) -> None:
    problem, expected, path = mistake(checks.check_fleet, (entry(), entry(name)), ())
    assert problem.startswith("scheduler name")
    assert expected == "a printable name without spaces, '>' and '/'"
    assert path == ("fleet", 1, "name")


def test_schedulers_are_counted_over_the_whole_fleet() -> None:
    assert len(checks.check_fleet((entry(replicas=9_999), entry("t")), ())) == 10_000
    assert mistake(checks.check_fleet, (entry(replicas=9_999), entry("t", replicas=2)), ()) == (
        "10,001 schedulers in total", "at most 10,000", ("fleet", 1, "replicas"),
    )  # fmt: skip


def test_limits_name_resources_of_the_cell_if_they_are_more_than_nothing() -> None:
    def limited(**extras: int) -> FleetEntry:
        return entry("t", limits=SchedulerLimits(resources=Resources(1, 2, extras)))

    dimensions = ("cpu", "memory", "gpu")
    assert checks.check_fleet((entry(), limited(gpu=1, tpu=0)), dimensions) == ("s", "t")
    problem, expected, path = mistake(checks.check_fleet, (entry(), limited(tpu=1)), dimensions)
    assert problem == "unknown resource 'tpu'"
    assert expected == "one of cpu, gpu, memory"
    assert path == ("fleet", 1, "limits", "resources", "tpu")


def test_jitter_goes_from_the_smaller_to_the_larger_factor() -> None:
    def jittered(low: float, high: float) -> FleetEntry:
        return entry(decision_time=Jittered(low=low, high=high))

    assert checks.check_fleet((jittered(1.5, 1.5),), ()) == ("s",)
    assert mistake(checks.check_fleet, (jittered(1.5, 1.25),), ()) == (
        "from 1.5 to 1.25", "the smaller one first", ("fleet", 0, "decision_time"),
    )  # fmt: skip


def test_an_entry_takes_some_kinds_or_says_nothing() -> None:
    checks.check_takes([{}, {"takes": {}}, {"takes": {"kinds": ["a"]}}])
    assert mistake(checks.check_takes, [{}, {"takes": {"kinds": []}}]) == (
        "takes no kinds",
        "the kinds it takes, or no takes for all",
        ("fleet", 1, "takes", "kinds"),
    )


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("a", True), ("_", True), ("7", True), ("a.b-c_D9", True), ("x" * 100, True),
        ("", False), (".a", False), ("-a", False), ("a b", False), ("a/b", False),
        ("x" * 101, False), ("ä", False), ("a\n", False),
    ],
)  # fmt: skip
def test_a_scenario_s_name_can_be_part_of_a_file_s(name: str, allowed: bool) -> None:
    if allowed:
        checks.check_name(name)
    else:
        assert mistake(checks.check_name, name)[1:] == (
            "1 to 100 letters, digits, _, - and dots, starting with a letter, digit or _",
            ("name",),
        )


def test_every_kind_of_job_needs_a_scheduler() -> None:
    census = JobCensus((job("a", kind="x"), job("b", kind="y"), job("c", kind="y")))
    takes_x, takes_y = (entry(takes=Takes(kinds=(kind,))) for kind in "xy")
    checks.check_kinds((takes_x, takes_y), census)
    checks.check_kinds((takes_x, entry()), census)
    checks.check_kinds((entry(takes=Takes(kinds=("z", "y", "x"))),), census)
    assert mistake(checks.check_kinds, (takes_x,), census) == (
        "no scheduler takes jobs of kind 'y', such as b",
        "takes.kinds of some [[fleet]] with it, or an entry without takes",
        ("fleet",),
    )


CRASHES = RandomCrashes(what="machines", every=5, down=1)
ENDLESS = JobCensus((job("a"), job("b", seconds=None), job("c", seconds=None)))


@pytest.mark.parametrize(
    ("horizon", "census", "faults", "found"),
    [
        (None, JobCensus(()), (), None),
        (1, ENDLESS, (CRASHES,), None),
        (0, JobCensus(()), (), ("a horizon of 0", 'such as "2h"', ("horizon",))),
        (None, JobCensus((job("a"),)), (msgspec.structs.replace(CRASHES, end=0),), None),
        (
            None,
            ENDLESS,
            (MachineCrash(at=1, machine="m"), CRASHES),
            (
                "crashes without an end, so the run might never end",
                'an `end`, or a horizon for the run such as "2h"',
                ("faults", 1),
            ),
        ),
        (
            None,
            ENDLESS,
            (),
            (
                "job b runs until stopped, so the run would never end",
                'a horizon such as "2h", or a duration for every task',
                (),
            ),
        ),
    ],
)
def test_a_run_has_to_end(
    horizon: int | None, census: JobCensus, faults: tuple[Fault, ...], found: Any
) -> None:
    if found is None:
        checks.check_horizon(horizon, census, faults)
    else:
        assert mistake(checks.check_horizon, horizon, census, faults) == found


def pairs(*names: str) -> Network:
    return Network(latency=PairLatency(default=1, delays=dict.fromkeys(names, 1)))


def test_the_network_is_between_known_ends() -> None:
    ends = ("cell", "machines", "cell:north")
    for network in (
        Network(latency=ConstantLatency(delay=0)),
        Network(latency=UniformLatency(low=5, high=5)),
        pairs("s>t", "t>s", "s>cell:north", "machines>s"),
        Network(reordering=0.5, extra_delay=1),
        Network(extra_delay=1),
    ):
        checks.check_network(network, ("s", "t"), ends)
    place = ("network", "latency")
    upside = Network(latency=UniformLatency(low=2_000, high=1_500))
    assert mistake(checks.check_network, upside, ("s",)) == (
        "from 2 ms to 1.5 ms", "the smaller one first", place,
    )  # fmt: skip
    for pair in ("s", "s<t", ""):
        found = mistake(checks.check_network, pairs("s>t", pair), ("s", "t"), ends)
        assert found == (f"{pair!r} is not a pair", '"sender>receiver"', (*place, "delays", pair))
    for pair, unknown in (("u>s", "u"), ("s>u", "u"), ("s>t>t", "t>t"), (">s", "")):
        problem, _, path = mistake(checks.check_network, pairs(pair), ("s", "t"), ends)
        assert problem == f"unknown scheduler {unknown!r}"
        assert path == (*place, "delays", pair)
    # By itself, a cell that is not a federation has no clusters.
    assert mistake(checks.check_network, pairs("s>cell:north"), ("s",))[0] == (
        "unknown scheduler 'cell:north'"
    )
    late = Network(reordering=0.5)
    assert mistake(checks.check_network, late, ("s",)) == (
        "reordering without extra_delay", 'extra_delay such as "10ms"', ("network", "reordering"),
    )  # fmt: skip


def test_devices_are_for_simulations() -> None:
    made = scenario("omega", [])
    assert checks.without_devices(made) is made
    with_devices = msgspec.structs.replace(made, cell=DEVICES)
    assert mistake(checks.without_devices, with_devices) == (
        "gpu consists of devices, which a live cluster does not assign to tasks",
        "no devices; they are for simulations",
        ("cell", "devices"),
    )


def resize(machine: str = "m-0", **extras: int) -> MachineResize:
    return MachineResize(at=1, machine=machine, capacity=Resources(1, 1, extras))


@pytest.mark.parametrize(
    ("fault", "where"),
    [
        (MachineCrash(at=1, machine="m-2"), ("machine",)),
        (MachineDrain(at=1, machine="m-2"), ("machine",)),
        (MachineRelabel(at=1, machine="m-2"), ("machine",)),
        (resize("m-2"), ("machine",)),
        (MachineUse(at=1, machine="m-2", used={}), ("machine",)),
        (resize(tpu=1), ("capacity", "tpu")),
        (MachineUse(at=1, machine="m-1", used={"cpu": 1, "tpu": 1}), ("used", "tpu")),
        (SchedulerCrash(at=1, scheduler="m-0"), ("scheduler",)),
        (Partition(at=1, lasts=1, isolated=("s", "m-0")), ("isolated", 1)),
    ],
)
def test_faults_are_of_what_there_is(fault: Fault, where: tuple[str | int, ...]) -> None:
    faults = (MachineCrash(at=1, machine="m-0"), fault)
    problem, expected, path = mistake(checks.check_faults, faults, CELL, ("s",))
    assert problem.startswith("unknown ")
    assert expected is not None
    assert path == ("faults", 1, *where)


def test_faults_of_what_there_is_are_no_mistakes() -> None:
    faults = (
        MachineCrash(at=1, machine="m-0"),
        MachineDrain(at=1, machine="m-1"),
        MachineRelabel(at=1, machine="m-1"),
        resize(gpu=1_500),
        resize("m-1", gpu=1_000),
        MachineUse(at=1, machine="m-1", used={"cpu": 1, "memory": 1, "gpu": 1}),
        SchedulerCrash(at=1, scheduler="s"),
        Partition(at=1, lasts=1, isolated=("t", "s")),
        RandomCrashes(what="machines", every=1_000, down=1),
        RandomCrashes(what="machines", every=1_000, down=1, start=5, end=5),
        AgentDown(at=1, cluster="", lasts=1),
    )
    checks.check_faults(faults, CELL, ("s", "t"))
    checks.check_faults((AgentDown(at=1, cluster="south", lasts=1),), CELL, ("s",), TWO)


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (
            Partition(at=1, lasts=1, isolated=()),
            ("no scheduler is isolated", "at least one scheduler's name", ("isolated",)),
        ),
        (
            RandomCrashes(what="machines", every=999, down=1),
            ("a crash every 999 µs", 'a mean of at least "1ms", such as "10min"', ("every",)),
        ),
        (
            RandomCrashes(what="machines", every=1_000, down=1, start=2_000, end=1_000),
            ("from 2 ms to 1 ms", "the smaller one first", ("end",)),
        ),
    ],
)
def test_faults_that_are_none(fault: Fault, found: tuple[str, str, tuple[str, ...]]) -> None:
    problem, expected, path = found
    assert mistake(checks.check_faults, (fault,), CELL, ("s",)) == (
        problem, expected, ("faults", 0, *path),
    )  # fmt: skip


def test_a_resize_keeps_whole_devices() -> None:
    checks.check_faults((resize(gpu=3_000), resize()), DEVICES, ("s",))
    problem, expected, path = mistake(checks.check_faults, (resize(gpu=1_500),), DEVICES, ("s",))
    assert "gpu" in problem
    assert expected is not None
    assert path == ("faults", 0, "capacity", "gpu")


@pytest.mark.parametrize("kind", [AgentDown, AgentSlow, AgentStale])
def test_agents_are_those_of_the_clusters(kind: Any) -> None:
    def fault(cluster: str) -> Any:
        needed = {
            field.name: 1
            for field in msgspec.structs.fields(kind)
            if field.required and field.name != "cluster"
        }
        return kind(cluster=cluster, **needed)

    checks.check_faults((fault("north"),), CELL, ("s",), TWO)
    checks.check_faults((fault(""),), CELL, ("s",))
    assert mistake(checks.check_faults, (fault("west"),), CELL, ("s",), TWO) == (
        "unknown cluster 'west'", "one of north, south", ("faults", 0, "cluster"),
    )  # fmt: skip
    assert mistake(checks.check_faults, (fault(""),), CELL, ("s",), TWO)[0] == "unknown cluster ''"
    assert mistake(checks.check_faults, (fault("north"),), CELL, ("s",)) == (
        "cluster 'north'",
        "no cluster: a cell that is not a federation has one agent without a name",
        ("faults", 0, "cluster"),
    )


class Grouped(Settings, frozen=True, kw_only=True):
    plain: str = "nowhere"


def test_groups_in_settings_are_those_of_the_cell() -> None:
    from argosy.engines.registry import ENGINES

    grouped = [
        (engine, field.name)
        for engine in ENGINES.values()
        for field in msgspec.structs.fields(engine.settings_type)
        if checks.GROUP_NAME in checks.get_args(field.type)
    ]
    assert grouped, "some engine has a setting that names a group"
    engine, name = grouped[0]
    for known in ("rack", "unit", "machine"):
        checks.check_group_settings({name: known}, engine.settings_type, CELL, ("at",))
    checks.check_group_settings({name: ""}, engine.settings_type, CELL, ("at",))
    checks.check_group_settings({name: ["rack", "unit"]}, engine.settings_type, CELL, ("at",))
    checks.check_group_settings({}, engine.settings_type, CELL, ("at",))
    checks.check_group_settings({"plain": "nowhere"}, Grouped, CELL, ("at",))
    for value in ("rick", ["rack", "rick"]):
        assert mistake(
            checks.check_group_settings, {name: value}, engine.settings_type, CELL, ("at",)
        ) == ("unknown node group 'rick'", "one of machine, rack, unit", ("at", name))


def test_a_setting_that_moved_says_where() -> None:
    moved = {"old": "machines.slack", "older": "x"}
    checks.check_moved_settings(entry(settings={"new": 1}), moved, ("at",))
    with pytest.raises(Misfit) as caught:
        checks.check_moved_settings(entry(settings={"new": 1, "old": 2}), moved, ("at",))
    assert caught.value.error.problem == "old is no longer a setting of e"
    assert caught.value.error.hint == "say it as machines.slack"
    assert caught.value.path == ("at", "old")


def test_a_dozen_names_are_listed_and_more_are_not() -> None:
    names = [f"n{number:02}" for number in range(13)]
    checks.check_known("machine", "n12", names, ())
    few = mistake(checks.check_known, "machine", "m", names[:12], ("at",))
    assert few == ("unknown machine 'm'", "one of " + ", ".join(names[:12]), ("at",))
    many = mistake(checks.check_known, "machine", "m", names[::-1], ("at",))
    assert many == ("unknown machine 'm'", "one of n00, n01, ... n12", ("at",))


def test_dimensions_are_those_of_all_machines() -> None:
    assert checks.cell_dimensions(CELL) == ("cpu", "memory", "gpu")
