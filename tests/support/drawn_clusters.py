"""Draws whole scenarios that are fuller and more eventful than those of campaigns: every field of jobs,
machines, faults and networks is used, settings of engines are drawn from all that they can be, and users
act while the run goes on."""

from __future__ import annotations

from typing import Any, Final

from drawn_settings import draw_settings
from msgspec import structs

from argosy.campaign.dice import Dice
from argosy.engines.registry import ENGINES
from argosy.host.scheduler import make_settings
from argosy.model import scenario as model
from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ArgosyError
from argosy.model.machine_model import MachineModel, Steal
from argosy.model.machines import CLUSTER_GROUP, Cluster, Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job, workers_with_truth
from argosy.scenarios.engine_checks import require_fitting

GIB: Final = 2**30
SECOND: Final = 1_000_000
MS: Final = 1_000
HORIZON: Final = 14 * SECOND
TAGS: Final = ("web", "db", "cache")
OWNERS: Final = ("", "ann", "bob", "cy")
KINDS: Final = ("batch", "batch", "service", "query")
#: How often settings are drawn until some fit.
TRIES: Final = 12


def dice_of(*parts: object) -> Dice:
    return Dice(Random(2027).child(" ".join(map(str, parts))))


def draw_scenario(engine: str, number: int) -> tuple[model.Scenario, list[str]]:
    """The scenario, and what was wrong with settings that were drawn before."""
    dice = dice_of("scenario", engine, number)
    cell, federation = draw_cell(dice.part("cell"))
    groups = ["machine", *(group.name for group in cell.groups)]
    jobs = draw_jobs(dice.part("jobs"), groups, cell)
    refused: list[str] = []
    plain = dice.chance(0.12)
    built: model.Scenario | None = None
    for attempt in range(TRIES):
        part = dice.part(f"fleet {attempt}")
        try:
            fleet = draw_fleet(part, engine, groups, cell, plain=plain or attempt == TRIES - 1)
            built = _built(dice, engine, number, cell, federation, jobs, fleet)
            for entry in fleet:
                make_settings(ENGINES[entry.engine], entry.settings)
            require_fitting(built, {name: ENGINES[name] for name in built.engine_names()})
        except ArgosyError as error:
            refused.append(f"{type(error).__name__}: {error}")
            continue
        break
    assert built is not None
    return built, refused


def _built(
    dice: Dice,
    engine: str,
    number: int,
    cell: model.CellSpec,
    federation: model.Federation | None,
    jobs: tuple[SimulatedJob, ...],
    fleet: tuple[model.FleetEntry, ...],
) -> model.Scenario:
    names = [name for entry in fleet for name in entry.scheduler_names()]
    if federation is not None:
        placed = {name: dice.part(name).one_of(("north", "south", "sea")) for name in names}
        federation = structs.replace(federation, schedulers=placed)
    return model.Scenario(
        name=f"{engine}-{number}",
        seed=dice.part("seed").among(1, 10_000),
        cell=cell,
        jobs=jobs,
        fleet=fleet,
        network=draw_network(dice.part("network"), names),
        machines=draw_machine_model(dice.part("machines")),
        faults=draw_faults(dice.part("faults"), cell, names, federation),
        horizon=HORIZON,
        failover=dice.part("failover").one_of((0, 1, 300 * MS, SECOND)),
        audit=dice.part("audit").chance(0.3),
        output=model.Output(log="everything"),
        federation=federation,
        agents=draw_agents(dice.part("agents")),
    )


def draw_cell(dice: Dice) -> tuple[model.CellSpec, model.Federation | None]:
    count = dice.one_of((1, 3, 5, 6, 8, 12, 24))
    clusters = ("blue", "green", "red")[: dice.among(1, 3)] if dice.chance(0.4) else ()
    zones = ("z0", "z1", "z2")[: dice.among(0, 3)]
    per_rack = dice.among(1, 4)
    has_extras, has_devices = dice.chance(0.4), dice.chance(0.15)
    built = []
    for at in range(count):
        cluster = clusters[at % len(clusters)] if clusters else ""
        extras = {"bandwidth": dice.one_of((500, 1_000, 2_000))} if has_extras else {}
        if has_devices and dice.chance(0.7):
            extras["gpu"] = 1_000 * dice.among(1, 4)
        prefix = f"{cluster}/" if cluster else ""
        joins = {"rack": (f"{prefix}r{at // per_rack}",)}
        if cluster:
            joins[CLUSTER_GROUP] = (cluster,)
        if zones:
            joins["zone"] = tuple(dice.some_of(zones, 0)[:2] or zones[:1])
        attributes = {
            "arch": dice.one_of(("x86", "arm")),
            "disk": dice.one_of(("ssd", "hdd")),
            "battery": str(dice.among(0, 100)),
            "location": f"{dice.among(-9, 9)},{dice.among(-9, 9)}",
            "speed": dice.one_of(("1", "2", "0.5")),
            "volumes": dice.one_of(("v0", "v0,v1", "v1")),
            "gpu-node": "true",
        }
        kept = {key: value for key, value in attributes.items() if dice.chance(0.6)}
        cpu = dice.one_of((1_000, 2_000, 4_000, 4_000, 8_000))
        capacity = Resources(cpu, dice.one_of((2, 4, 8, 16)) * GIB, extras)
        built.append(Machine(f"{prefix}m{at}", capacity, kept, joins))
    found: dict[str, dict[str, None]] = {}
    for machine in built:
        for group, names in machine.joins.items():
            found.setdefault(group, {}).update(dict.fromkeys(names))
    groups = tuple(model.GroupSpec(name=name, sets=tuple(sets)) for name, sets in found.items())
    names = ["machine", *found]
    operator = [draw_constraint(dice, TAGS, names) for _ in range(dice.among(0, 2))]
    constraints = tuple(parse_constraint(text) for text in operator) if dice.chance(0.3) else ()
    fields = {"devices": "gpu"} if has_devices else {}
    spec = model.CellSpec(machines=tuple(built), groups=groups, constraints=constraints, **fields)
    if not clusters:
        return spec, None
    sites = tuple(Cluster(name, dice.one_of(("north", "south"))) for name in clusters)
    delays = {"north<>south": 40 * MS, "south<>sea": 7 * MS}
    distances = model.Places(default=20 * MS, within=dice.one_of((0, 500)), delays=delays)
    return spec, model.Federation(
        clusters=sites, places=distances if dice.chance(0.6) else None, schedulers={}
    )


def draw_constraint(dice: Dice, tags: Any, groups: list[str], depth: int = 0) -> str:
    subject = dice.one_of((*tags, "appID:self")) if tags else "appID:self"
    if dice.chance(0.1):
        subject = f"{subject} & {dice.one_of(TAGS)}"
    group = dice.one_of(groups)

    def atom() -> str:
        other = dice.one_of((*TAGS, subject, "appID:self", "disk:ssd", "gpu-node"))
        least = dice.one_of((0, 0, 0, 1, 2))
        most = dice.one_of(("inf", str(least), str(least + 1), str(least + 3)))
        return f"{{{other}, {least}, {most}}}"

    form = dice.among(0, 6)
    if form == 0:
        text = f"{subject} -> spread {{{dice.among(0, 1)}, {dice.among(1, 3)}}} over {group}"
    elif form == 1:
        text = f"{subject} -> not {atom()} in {group}"
    elif form == 2:
        text = f"{subject} -> {atom()} and {atom()} in {group}"
    elif form == 3:
        text = f"{subject} -> {atom()} or {atom()} in {group}"
    else:
        text = f"{subject} -> {atom()} in {group}"
    if depth:
        return text
    if dice.chance(0.2):
        more = draw_constraint(dice, tags, groups, 1)
        text = f"{text} {dice.one_of(('and', 'or'))} {more}"
    return text + dice.one_of(("", "", " hard", " weight 2.5", " weight 0.1"))


def draw_jobs(dice: Dice, groups: list[str], cell: model.CellSpec) -> tuple[SimulatedJob, ...]:
    jobs = []
    for number in range(dice.one_of((3, 8, 12, 20))):
        part = dice.part(f"job {number}")
        jobs.append(draw_job(part, f"j{number}", groups, cell))
    return tuple(sorted(jobs, key=lambda made: made.submit))


def draw_job(
    dice: Dice, name: str, groups: list[str], cell: model.CellSpec, count: int | None = None
) -> SimulatedJob:
    kind = dice.one_of(KINDS)
    is_service = kind == "service"
    tags = tuple(dice.some_of(TAGS, 0)) if is_service or dice.chance(0.1) else ()
    wants_constraints = (is_service and dice.chance(0.7)) or dice.chance(0.05)
    texts = [draw_constraint(dice, tags, groups) for _ in range(dice.among(1, 3))]
    fields: dict[str, Any] = {
        "kind": kind,
        "submit": dice.one_of((0, 0, 200 * MS, 500 * MS, SECOND, 2 * SECOND, 5 * SECOND))
        + dice.one_of((0, 1, 10 * MS)),
        "precedence": dice.one_of((0, 0, 0, 1, 2, 9, -3)),
        "gang": dice.chance(0.15),
        "owner": dice.one_of(OWNERS),
        "constraints": tuple(map(parse_constraint, texts)) if wants_constraints else (),
        "program": dice.one_of(("", "", "sort", "grep")),
        "name": dice.one_of(("", "nightly", "hourly")),
        "preempts": dice.chance(0.8),
    }
    if not is_service and dice.chance(0.2):
        phases = dice.among(1, 3)
        group = workers_with_truth(
            count or dice.among(1, 4),
            _request(dice, cell),
            tuple(dice.among(1, 10) for _ in range(phases)),
            tuple(dice.one_of((50 * MS, 300 * MS, SECOND)) for _ in range(phases)),
            dice.one_of((None, SECOND)),
        )
        return simulated_job(name, group, **fields)
    if count is not None:
        return simulated_job(name, _group(dice, cell, tags, count, is_service), **fields)
    several = dice.among(2, 3) if dice.chance(0.15) else 1
    parts = [
        _group(dice, cell, tags, dice.one_of((1, 1, 2, 3, 5, 9)), is_service)
        for _ in range(several)
    ]
    return simulated_job(name, *parts, **fields)


def _group(dice: Dice, cell: model.CellSpec, tags: Any, count: int, endless: bool) -> Any:
    times: tuple[int, ...]
    if endless and dice.chance(0.5):
        times = ()
    elif dice.chance(0.2):
        times = tuple(dice.among(0, 40) * 100 * MS for _ in range(count))
    else:
        times = (dice.one_of((0, 1, 50 * MS, 400 * MS, SECOND, 2 * SECOND, 4 * SECOND)),)
    estimate = None
    if times and dice.chance(0.3):
        estimate = dice.one_of((0, 1, SECOND, 30 * SECOND))
    machine = dice.one_of(cell.machines)

    def wish(chance: float) -> dict[str, str]:
        if not machine.attributes or not dice.chance(chance):
            return {}
        key = dice.one_of(list(machine.attributes))
        return {key: machine.attributes[key]}

    demands: dict[str, str] = {}
    if dice.chance(0.25):
        demands["battery"] = str(dice.among(0, 90))
    if dice.chance(0.2):
        demands["location"] = f"{dice.among(-9, 9)},{dice.among(-9, 9)}"
    if dice.chance(0.1):
        demands |= {"volume": dice.one_of(("v0", "v1", "v2")), "volume_scope": "cluster"}
    if dice.chance(0.1):
        demands |= {"near": "north", "latency": dice.one_of(("1", "30", "90"))}
    if dice.chance(0.1):
        demands |= {"objective": "0.2", "users": "north:1,south:2", "work": "0.01"}
    return group_with_truth(
        count,
        _request(dice, cell),
        times,
        estimate,
        tags=tags,
        requires=wish(0.2),
        prefers=wish(0.25),
        wishes={"hot": dice.among(1, 5), "cold": -1} if dice.chance(0.2) else {},
        demands=demands,
        retries=dice.one_of((0, 0, 1, 3)),
        backoff=dice.one_of((0, 10 * MS, SECOND)),
    )


def _request(dice: Dice, cell: model.CellSpec) -> Resources:
    machine = dice.one_of(cell.machines)
    parts = dice.one_of((1, 2, 2, 4, 4, 8))
    extras = {
        name: dice.one_of((300, 700, 1_000, 2_000)) if name == "gpu" else amount // parts
        for name, amount in machine.capacity.extras.items()
        if dice.chance(0.4)
    }
    if dice.chance(0.04):
        return Resources(64_000, GIB)
    if dice.chance(0.03):
        return Resources(0, 0)
    if dice.chance(0.02):
        extras["fpga"] = 1
    memory = machine.capacity.memory // dice.one_of((1, 2, 4, 8))
    return Resources(machine.capacity.cpu // parts, memory, extras)


def draw_fleet(
    dice: Dice, engine: str, groups: list[str], cell: model.CellSpec, *, plain: bool
) -> tuple[model.FleetEntry, ...]:
    names = [engine]
    if dice.chance(0.25):
        names += [dice.one_of(list(ENGINES)) for _ in range(dice.among(1, 2))]
    is_alone = any(ENGINES[name].capabilities.alone for name in names)
    entries = []
    for at, name in enumerate(names):
        part = dice.part(f"entry {at}")
        kinds: tuple[str, ...] = ()
        if len(names) > 1:
            spread = ("batch", "service", "query")
            kinds = tuple(kind for n, kind in enumerate(spread) if n % len(names) == at)
            if not is_alone and part.chance(0.3):
                kinds = spread
        replicas = 1 if ENGINES[name].capabilities.alone else part.one_of((1, 2, 3))
        limits = model.SchedulerLimits()
        if part.chance(0.2):
            limits = model.SchedulerLimits(
                resources=Resources(part.one_of((2_000, 6_000)), 16 * GIB)
                if part.chance(0.6)
                else None,
                jobs=part.one_of((None, 1, 3)),
                precedence=part.one_of((None, 0, 5)),
            )
        times = (
            model.AsTold(),
            model.AsTold(),
            model.Scaled(factor=part.one_of((0.1, 3.0))),
            model.Jittered(low=0.5, high=2.0),
            model.NotModelled(),
        )
        settings = draw_settings(part.part("settings"), ENGINES[name], groups, plain=plain)
        entries.append(
            model.FleetEntry(
                name=f"s{at}",
                engine=name,
                settings=settings,
                replicas=replicas,
                takes=model.Takes(kinds=kinds),
                split=part.one_of(("hash", "round-robin", "random", "owner")),
                limits=limits,
                decision_time=part.one_of(times),
            )
        )
    return tuple(entries)


def draw_network(dice: Dice, names: list[str]) -> model.Network:
    latency: model.Latency = dice.one_of(
        (
            model.ConstantLatency(),
            model.ConstantLatency(delay=dice.one_of((0, 1, 60 * MS))),
            model.UniformLatency(low=0, high=dice.one_of((MS, 80 * MS))),
            model.PairLatency(
                default=MS, delays={f"{names[0]}>cell": 90 * MS, f"{names[-1]}>machines": 0}
            ),
        )
    )
    if dice.chance(0.6):
        return model.Network(latency=latency)
    return model.Network(
        latency=latency,
        loss=dice.one_of((0.0, 0.2)),
        duplication=dice.one_of((0.0, 0.2)),
        reordering=dice.one_of((0.0, 0.3)),
        extra_delay=dice.one_of((0, 50 * MS)),
    )


def draw_machine_model(dice: Dice) -> MachineModel:
    return MachineModel(
        queue=dice.one_of(("fcfs", "shortest-first", "shortest-remaining")),
        slack=dice.one_of((0, 1, 5)),
        limit=dice.one_of((0, 0, 1, 3)),
        start_delay=dice.one_of((0, 0, MS, 200 * MS)),
        long_above=dice.one_of((0, 300 * MS, 3 * SECOND)),
        heartbeat=dice.one_of((0, 100 * MS, SECOND)),
        heartbeat_counts_sent=dice.chance(0.5),
        steal=Steal(attempts=dice.among(1, 5), most=dice.among(1, 3), after=dice.one_of((0, 0.5)))
        if dice.chance(0.4)
        else None,
    )


def draw_agents(dice: Dice) -> model.AgentModel | None:
    if dice.chance(0.3):
        return None
    return model.AgentModel(
        samplers=dice.one_of((0, 1, 2)),
        committers=dice.one_of((0, 1, 3)),
        t_sample=dice.one_of((0, 5 * MS, 50 * MS)),
        t_machine=dice.one_of((0, MS)),
        t_fetch=dice.one_of((0, 10 * MS)),
        t_bind=dice.one_of((0, 20 * MS)),
        refresh=dice.one_of((0, 300 * MS, 2 * SECOND)),
        shards=dice.one_of((1, 1, 2)),
    )


def draw_faults(
    dice: Dice, cell: model.CellSpec, names: list[str], federation: model.Federation | None
) -> tuple[model.Fault, ...]:
    faults: list[model.Fault] = []
    for number in range(dice.one_of((0, 2, 4, 7))):
        part = dice.part(f"fault {number}")
        at = part.one_of((0, 300 * MS, SECOND, 2 * SECOND, 3 * SECOND, 6 * SECOND))
        lasts = part.one_of((None, 0, 300 * MS, 2 * SECOND))
        machine = part.one_of(cell.machines)
        other = part.one_of(cell.machines)
        cluster = part.one_of(federation.clusters).name if federation else ""
        kind = part.among(0, 9)
        capacity = machine.capacity
        match kind:
            case 0:
                faults.append(model.MachineCrash(at=at, machine=machine.name, down=lasts))
            case 1:
                faults.append(model.MachineDrain(at=at, machine=machine.name, lasts=lasts))
            case 2:
                times = part.one_of((0, 1, 2, 4))
                resized = Resources(capacity.cpu * times // 2, capacity.memory, capacity.extras)
                faults.append(model.MachineResize(at=at, machine=machine.name, capacity=resized))
            case 3:
                faults.append(
                    model.MachineRelabel(
                        at=at,
                        machine=machine.name,
                        attributes=other.attributes,
                        joins=other.joins,
                    )
                )
            case 4:
                used = {"cpu": part.one_of((0, capacity.cpu, 3 * capacity.cpu)), "memory": GIB}
                faults.append(model.MachineUse(at=at, machine=machine.name, used=used))
            case 5:
                faults.append(model.SchedulerCrash(at=at, scheduler=part.one_of(names), down=lasts))
            case 6:
                what = part.one_of(("machines", "schedulers"))
                faults.append(
                    model.RandomCrashes(
                        what=what, every=2 * SECOND, down=SECOND, start=at, end=8 * SECOND
                    )
                )
            case 7:
                faults.append(
                    model.Partition(
                        at=at, lasts=lasts or SECOND, isolated=tuple(part.some_of(names))
                    )
                )
            case 8:
                faults.append(model.AgentDown(at=at, cluster=cluster, lasts=lasts))
            case _:
                faults.append(
                    model.AgentSlow(at=at, cluster=cluster, lasts=lasts, extra=400 * MS)
                    if part.chance(0.5)
                    else model.AgentStale(at=at, cluster=cluster, lasts=lasts)
                )
    return tuple(faults)
