"""Reads a scenario from a TOML file; errors have the file, line, field and a hint.

    load            a scenario from its file
    load_cluster    the cell and the fleet alone, for a cluster that is to run for real
    read_fleet      a fleet for a given cell
    with_engine     the same scenario with another engine
    as_published    the same scenario with its engine as published
    scenario_digest a digest that identifies the scenario

The keys are those of `argosy.model.scenario`, except where a few lines stand for many values:
machine types, node groups and workloads. `docs/scenarios.md` describes them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import msgspec

from argosy.model.errors import (
    ArgosyError,
    EngineFault,
    EngineNotFound,
    ScenarioError,
    SettingError,
    UnknownEngine,
    excerpt,
)
from argosy.model.job_census import JobCensus
from argosy.model.jobs import Job
from argosy.model.machine_model import MachineModel
from argosy.model.packed_jobs import census_of, packed
from argosy.model.random import Random
from argosy.model.scenario import (
    AgentModel,
    CellSpec,
    Fault,
    FleetEntry,
    Output,
    Scenario,
)
from argosy.model.truth import SimulatedJob, untimed
from argosy.model.units import Time
from argosy.scenarios import checks
from argosy.scenarios.cell_tables import CellTable, make_cell
from argosy.scenarios.changed_values import ChangedValue, with_values
from argosy.scenarios.cluster_tables import (
    FederatedTable,
    FleetTable,
    NetworkTable,
    make_federated_cell,
    make_federation,
)
from argosy.scenarios.fanout_tables import (
    EagleTable,
    FanoutTable,
    Speedup,
    eagle_jobs,
    fanout_jobs,
)
from argosy.scenarios.job_checks import JobChecks
from argosy.scenarios.known_workloads import (
    BRINGING,
    AlibabaTable,
    BringingTable,
    ClusterTable,
    GoogleTable,
    bring_jobs,
    bring_machines,
    brought_devices,
    require_devices,
    without_machines,
)
from argosy.scenarios.kubernetes_tables import (
    PLACE,
    KubernetesTable,
    bring_cluster,
    default_horizon,
    document_of,
    is_cluster_file,
    written_out,
)
from argosy.scenarios.scenario_json import scenario_digest
from argosy.scenarios.toml_files import parse_toml, read_utf8
from argosy.scenarios.toml_places import find_places, line_of
from argosy.scenarios.variants import as_published, with_engine
from argosy.workloads.google_jobs import Notes
from argosy.workloads.job_tables import read_job
from argosy.workloads.synthetic import Synthetic, generate
from argosy.workloads.tables import Converter, Misfit, TablePath, path_text
from argosy.workloads.trace import read_trace

if TYPE_CHECKING:
    from argosy.engines.api import Engine
    from argosy.workloads.pod_workloads import CarriedOver

__all__ = [
    "as_published",
    "load",
    "load_cluster",
    "read_fleet",
    "scenario_digest",
    "with_engine",
]

Seed: TypeAlias = Annotated[
    int, msgspec.Meta(ge=0, le=2**63 - 1, description="a whole number from 0 to 2^63 - 1")
]

_CONVERTER: Final = Converter(ScenarioError)
_SETTINGS: Final = Converter(SettingError)
_SIMULATED_KEYS: Final = (
    "workload", "faults", "network", "agents", "horizon", "failover", "output"
)  # fmt: skip
_EXPECTED: Final = "a scenario in TOML"


class TraceTable(msgspec.Struct, frozen=True, kw_only=True):
    #: Relative to the scenario file.
    path: str
    speedup: Speedup = 1.0


class WorkloadTable(msgspec.Struct, frozen=True, kw_only=True):
    synthetic: Synthetic | None = None
    trace: TraceTable | None = None
    jobs: tuple[Any, ...] | None = None
    eagle: EagleTable | None = None
    fanout: FanoutTable | None = None
    cluster: ClusterTable | None = None
    google2011: GoogleTable | None = None
    google2019: GoogleTable | None = None
    alibaba2023: AlibabaTable | None = None
    kubernetes: KubernetesTable | None = None

    @property
    def brought(self) -> tuple[str, BringingTable] | None:
        """The name and table of a workload that provides its own machines."""
        found = ((name, getattr(self, name)) for name in BRINGING)
        return next((pair for pair in found if pair[1] is not None), None)


class ScenarioTable(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    #: Either this or clusters.
    cell: CellTable | None = None
    clusters: tuple[FederatedTable, ...] | None = None
    workload: WorkloadTable
    fleet: tuple[FleetTable, ...]
    seed: Seed = 1
    network: NetworkTable = NetworkTable()
    machines: MachineModel = MachineModel()
    agents: AgentModel | None = None
    faults: tuple[Fault, ...] = ()
    as_published: bool = False
    horizon: Time | None = None
    failover: Time = 1_000_000
    audit: bool = False
    output: Output = Output()


def load(
    path: Path,
    *,
    seed: int | None = None,
    also: dict[str, type[Engine]] | None = None,
    published: bool = False,
    changes: Sequence[ChangedValue] = (),
) -> Scenario:
    """The scenario in the file at `path`, or of the Kubernetes cluster whose objects the file lists as
    JSON or YAML. `seed` overrides the file's own, `changes` any value in it; `also` adds engines to the
    registered ones; with `published`, `with_engine` accepts published configurations. Every mistake in
    the file is an `ArgosyError` with its place."""

    def read(document: dict[str, Any]) -> Scenario:
        return _scenario(path, with_values(document, changes), seed, also, published)

    return _located(path, read)


def load_cluster(path: Path) -> Scenario:
    """As `load`, but without what only a simulation has: jobs, faults, a network and an end."""

    def read(document: dict[str, Any]) -> Scenario:
        kept = {key: value for key, value in document.items() if key not in _SIMULATED_KEYS}
        kept["workload"] = {"jobs": []}
        return checks.without_devices(_scenario(path, kept, None, None, published=False))

    return _located(path, read)


def read_fleet(
    tables: Sequence[Any], cell: CellSpec, jobs: Iterable[Job] = ()
) -> tuple[FleetEntry, ...]:
    """The fleet described by tables as in `[[fleet]]`, checked against the cell and the jobs that it is
    to take; raises `Misfit`."""
    read: tuple[FleetTable, ...] = _CONVERTER.convert(
        list(tables), tuple[FleetTable, ...], ("fleet",)
    )
    checks.check_takes(tables)
    fleet = _fleet(read, cell, None)
    checks.check_fleet(fleet, checks.cell_dimensions(cell))
    known = tuple(untimed(job) for job in jobs)
    checks.check_kinds(fleet, JobCensus(known))
    _check_engines(Scenario(name="fleet", seed=0, cell=cell, jobs=known, fleet=fleet), None)
    return fleet


def _located(path: Path, read: Callable[[dict[str, Any]], Scenario]) -> Scenario:
    text = "" if is_cluster_file(path) else read_utf8(path, ScenarioError, _EXPECTED)
    try:
        if is_cluster_file(path):
            return read(document_of(path))
        return read(parse_toml(text, str(path), ScenarioError, _EXPECTED))
    except RecursionError:
        raise ScenarioError("nested too deeply", file=str(path), expected=_EXPECTED) from None
    except Misfit as misfit:
        raise misfit.error.located(
            file=str(path),
            line=_line(text, misfit.path),
            field=path_text(misfit.path) or None,
        ) from None


def _line(text: str, path: TablePath) -> int | None:
    try:
        return line_of(find_places(text), path)
    except RecursionError:
        # Some other value is nested too deeply to be skipped.
        return None


def _scenario(
    path: Path,
    document: dict[str, Any],
    seed: int | None,
    also: dict[str, type[Engine]] | None,
    published: bool,
) -> Scenario:
    document = without_machines(written_out(document))
    table: ScenarioTable = _CONVERTER.convert(document, ScenarioTable)
    checks.check_name(table.name)
    checks.check_takes(document["fleet"])
    seed = table.seed if seed is None else _CONVERTER.convert(seed, Seed, ("seed",))
    notes = Notes()
    carried = bring_cluster(path, table.workload.kubernetes) if table.workload.kubernetes else None
    cell = _cell(path, table, carried, notes)
    federation = make_federation(table.clusters, table.fleet, table.network.places)
    fleet = _fleet(table.fleet, cell, also)
    ends = checks.network_ends(federation)
    schedulers = checks.check_fleet(fleet, checks.cell_dimensions(cell), ends)
    checks.check_network(table.network, schedulers, ends)
    checks.check_faults(table.faults, cell, schedulers, federation)
    jobs = _jobs(path, table.workload, cell, seed, carried, notes)
    census = census_of(jobs)
    checks.check_kinds(fleet, census)
    horizon = (
        table.horizon if carried is None or table.horizon is not None else default_horizon(jobs)
    )
    checks.check_horizon(horizon, census, table.faults)
    scenario = Scenario(
        name=table.name,
        seed=seed,
        cell=cell,
        jobs=jobs,
        fleet=fleet,
        network=table.network.plain(),
        machines=table.machines,
        faults=table.faults,
        horizon=horizon,
        failover=table.failover,
        audit=table.audit,
        output=table.output,
        as_published=published,
        left_out=(*notes.sentences(), *(() if carried is None else carried.left_out)),
        federation=federation,
        agents=table.agents,
    )
    _check_engines(scenario, also)
    if not table.as_published:
        return scenario
    try:
        return as_published(scenario)
    except ArgosyError as error:
        raise Misfit(error, ("as_published",)) from None


def _fleet(
    tables: Sequence[FleetTable], cell: CellSpec, also: dict[str, type[Engine]] | None
) -> tuple[FleetEntry, ...]:
    return tuple(
        entry.plain(_settings(entry, index, cell, also)) for index, entry in enumerate(tables)
    )


def _check_engines(scenario: Scenario, also: dict[str, type[Engine]] | None) -> None:
    from argosy.engines.registry import find_engines
    from argosy.scenarios.engine_checks import check_engines

    check_engines(scenario, find_engines(scenario.engine_names(), also))


def _cell(path: Path, table: ScenarioTable, carried: CarriedOver | None, notes: Notes) -> CellSpec:
    """The cell, or the single cell that contains all clusters."""
    if table.clusters is not None:
        if table.cell is not None:
            raise Misfit(
                ScenarioError(
                    "both cell and clusters",
                    expected="[cell] for a cell on its own, or [[clusters]]",
                ),
                ("clusters",),
            )
        return make_federated_cell(table.clusters)
    if table.cell is None:
        _CONVERTER.refuse("missing key 'cell'", (), "cell = { ... }, or [[clusters]]")
    if carried is not None and not table.cell.machines:
        return make_cell(table.cell, carried.machines, carried.groups)
    workload = table.workload.brought
    if table.cell.machines or workload is None:
        return make_cell(table.cell)
    brought = bring_machines(path, *workload, notes)
    return make_cell(table.cell, brought, devices=brought_devices(workload[1]))


def _settings(
    entry: FleetEntry, index: int, cell: CellSpec, also: dict[str, type[Engine]] | None
) -> dict[str, Any]:
    """The given settings as plain values, checked against the engine's."""
    # Importing engines loads the cell and the core; most errors need not wait for that.
    from argosy.engines.registry import find_engine

    try:
        engine = find_engine(entry.engine, also)
    except (EngineFault, EngineNotFound, UnknownEngine) as error:
        raise Misfit(error, ("fleet", index, "engine")) from None
    if engine.capabilities.alone and entry.replicas > 1:
        raise Misfit(
            ScenarioError(
                f"{entry.replicas} replicas of {entry.engine}",
                expected="one: several would be another architecture",
                hint="leave replicas out",
            ),
            ("fleet", index, "replicas"),
        )
    place: TablePath = ("fleet", index, "settings")
    # Third-party engines may have settings with another base class.
    checks.check_moved_settings(entry, getattr(engine.settings_type, "moved", {}), place)
    settings = _SETTINGS.convert(entry.settings, engine.settings_type, place)
    checks.check_group_settings(entry.settings, engine.settings_type, cell, place)
    plain: Mapping[str, Any] = msgspec.to_builtins(settings)
    return {key: plain[key] for key in entry.settings}


def _jobs(
    path: Path,
    workload: WorkloadTable,
    cell: CellSpec,
    seed: int,
    carried: CarriedOver | None,
    notes: Notes,
) -> Sequence[SimulatedJob]:
    given = [name for name in workload.__struct_fields__ if getattr(workload, name) is not None]
    if len(given) != 1:
        raise Misfit(
            ScenarioError(
                f"both {given[0]} and {given[1]}" if given else "no jobs",
                expected="exactly one of " + ", ".join(workload.__struct_fields__),
            ),
            ("workload", *given[1:2]),
        )
    known = JobChecks(cell)
    if workload.jobs is not None:
        return _in_order(_spelled_out(workload.jobs, known))
    if carried is not None:
        for job in carried.jobs:
            known.job(job.job, PLACE, has_groups=True)
        return _in_order(carried.jobs)
    # All others come in order, and may be more than memory can hold as objects.
    jobs: Iterable[SimulatedJob]
    if workload.trace is not None:
        jobs = _traced(path, workload.trace, known)
    elif workload.eagle is not None:
        jobs = eagle_jobs(path, workload.eagle, known, seed)
    elif workload.fanout is not None:
        jobs = fanout_jobs(workload.fanout, known, seed)
    elif workload.brought is not None:
        require_devices(workload.brought[1], cell)
        jobs = bring_jobs(path, *workload.brought, seed, notes)
    else:
        assert workload.synthetic is not None
        jobs = _drawn(workload.synthetic, known, cell, seed)
    return packed(jobs)


def _in_order(jobs: Iterable[SimulatedJob]) -> tuple[SimulatedJob, ...]:
    """Jobs submitted at the same time keep their order."""
    return tuple(sorted(jobs, key=lambda job: job.submit))


def _spelled_out(tables: tuple[Any, ...], known: JobChecks) -> list[SimulatedJob]:
    jobs: list[SimulatedJob] = []
    seen: set[str] = set()
    for index, table in enumerate(tables):
        place: TablePath = ("workload", "jobs", index)
        job = read_job(_CONVERTER, table, place)
        if job.id in seen:
            raise Misfit(
                ScenarioError(f"job {excerpt(job.id)} again", expected="each job id once"),
                (*place, "id"),
            )
        known.job(job.job, place, has_groups="groups" in table)
        seen.add(job.id)
        jobs.append(job)
    return jobs


def _traced(path: Path, trace: TraceTable, known: JobChecks) -> Iterator[SimulatedJob]:
    source = path.parent / trace.path
    try:
        source.open("rb").close()
    except (OSError, ValueError) as error:
        # The mistake is in the scenario that names it.
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Misfit(
            ScenarioError(
                f"trace {excerpt(str(source))} cannot be read: {why}",
                expected="the path of a trace, relative to the scenario",
            ),
            ("workload", "trace", "path"),
        ) from None

    def check(job: SimulatedJob, has_groups: bool) -> None:
        known.job(job.job, (), has_groups=has_groups)

    return read_trace(source, speedup=trace.speedup, check=check)


def _drawn(
    synthetic: Synthetic, known: JobChecks, cell: CellSpec, seed: int
) -> Iterator[SimulatedJob]:
    root: TablePath = ("workload", "synthetic")
    known.kinds(synthetic.kinds, (*root, "kinds"))
    try:
        yield from generate(synthetic, _total(cell), Random(seed).child("workload"))
    except ArgosyError as error:
        inside = error.field.split(".") if error.field else ()
        error.field = None
        raise Misfit(error, (*root, *inside)) from None


def _total(cell: CellSpec) -> dict[str, int]:
    """Total capacity by dimension; not a resource vector, whose amounts are limited to those of one
    machine."""
    amounts: dict[str, int] = {}
    for machine in cell.machines:
        for name, amount in machine.capacity.items():
            amounts[name] = amounts.get(name, 0) + amount
    return amounts
