"""Turns documents of users into jobs and machines that fit the cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from argosy.engines.api import RunFacts
from argosy.engines.registry import find_engines
from argosy.model.constraints.constraint import Constraint
from argosy.model.errors import EngineFault, FleetRefused, ModelError, excerpt
from argosy.model.jobs import Job, is_name
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry, Scenario
from argosy.model.truth import untimed
from argosy.scenarios.cell_tables import CellTable, MachineTable, make_cell
from argosy.scenarios.engine_checks import check_engines, facts_of, is_checking
from argosy.scenarios.ignored_demands import ignored_demands
from argosy.scenarios.job_checks import JobChecks
from argosy.scenarios.loader import read_fleet
from argosy.scenarios.missing_extras import missing
from argosy.service.routes import UnfitDocument, located
from argosy.workloads.live_jobs import read_live_job
from argosy.workloads.tables import Converter, Misfit, TablePath
from argosy.worlds.local.world import LocalWorld

_CONVERTER: Final = Converter(UnfitDocument)
_MOST_NOTES: Final = 1_000
_MOST_ALIKE: Final = 256
#: Bytes; longer documents are read anew each time.
_LONGEST_ALIKE: Final = 4_096
_ENCODE: Final = msgspec.json.Encoder().encode


class Submissions:
    """`world` is the one that the checks are made against; machines come and go."""

    def __init__(self) -> None:
        self._checks: tuple[int, int, JobChecks] | None = None
        #: Notes on jobs by their demands, in one life of the cluster: many jobs are alike.
        self._notes: dict[tuple[str, bool, tuple[Constraint, ...]], tuple[str, ...]] = {}
        self._noted_life = 0
        self._facts: tuple[CellSpec, RunFacts] | None = None
        #: Jobs by their documents, as long as the same machines and schedulers are there: who submits
        #: many jobs without ids mostly submits the same one.
        self._alike: dict[bytes, Job] = {}
        self._alike_since = (0, 0)

    def read(self, world: LocalWorld, table: Any, default_id: str, path: TablePath = ()) -> Job:
        """The job that a document describes, if this cluster can run it. `path` is its place in the
        request's document."""
        if not default_id or path:
            return self._read(world, table, default_id, path)
        known = (world.life, world.projection.machine_version)
        if self._alike_since != known or len(self._alike) >= _MOST_ALIKE:
            self._alike, self._alike_since = {}, known
        text = _ENCODE(table)
        if (job := self._alike.get(text)) is not None:
            return msgspec.structs.replace(job, id=default_id)
        job = self._read(world, table, default_id, path)
        if len(text) <= _LONGEST_ALIKE:
            self._alike[text] = job
        return job

    def _read(self, world: LocalWorld, table: Any, default_id: str, path: TablePath) -> Job:
        try:
            job = read_live_job(table, default_id=default_id, path=path)
            self._job_checks(world).job(job, path, has_groups="groups" in table)
            _check_addressable(job.id, (*path, "id"))
            self._check_engines(world, job)
        except Misfit as misfit:
            raise located(misfit) from None
        return job

    def _check_engines(self, world: LocalWorld, job: Job) -> None:
        """The machines that the cluster was made with do not change, so what there is to know about
        them is found once."""
        engines = _engines(world.cluster.fleet)
        if not is_checking(engines):
            return
        scenario, facts = _scenario(world, (job,)), None
        if not job.constraints:
            if self._facts is None or self._facts[0] is not world.cluster.cell:
                self._facts = world.cluster.cell, facts_of(_scenario(world, ()))
            facts = msgspec.structs.replace(self._facts[1], jobs=[job])
        check_engines(scenario, engines, facts)

    def notes(self, world: LocalWorld, job: Job) -> tuple[str, ...]:
        """Demands of the job that its schedulers ignore."""
        if self._noted_life != world.life or len(self._notes) >= _MOST_NOTES:
            self._notes, self._noted_life = {}, world.life
        # All that the notes depend on, besides the fleet.
        demands = (job.kind, job.gang, job.constraints)
        if demands not in self._notes:
            found = ignored_demands(_scenario(world, (job,)), _engines(world.cluster.fleet))
            self._notes[demands] = tuple(map(str, found))
        return self._notes[demands]

    def _job_checks(self, world: LocalWorld) -> JobChecks:
        life, version = world.life, world.projection.machine_version
        if self._checks is None or self._checks[:2] != (life, version):
            self._checks = (life, version, JobChecks(present_cell(world)))
        checks = self._checks[2]
        # The limit is for one job; the cluster goes on for ever.
        checks.tasks = 0
        return checks

    def fleet(
        self, world: LocalWorld, tables: tuple[dict[str, Any], ...]
    ) -> tuple[FleetEntry, ...]:
        """The fleet that a document describes, if it can take every job."""
        jobs = [row.job for row in world.open_rows()]
        try:
            fleet = read_fleet(tables, present_cell(world), jobs)
        except Misfit as misfit:
            if isinstance(misfit.error, EngineFault):
                # Nothing has failed yet: it is the document that names what is no engine.
                raise located(Misfit(FleetRefused.by(misfit.error), misfit.path)) from None
            raise located(misfit) from None
        lack = missing(_scenario(world, (), fleet), _engines(fleet))
        if lack is not None:
            raise lack
        return fleet

    def machine(self, table: Any) -> Machine:
        try:
            read: MachineTable = _CONVERTER.convert(table, MachineTable)
            if read.count != 1:
                raise Misfit(UnfitDocument(f"{read.count} machines", expected="one"), ("count",))
            _check_addressable(read.name, ("name",))
            _check_resources(read.capacity, ("capacity",))
            _check_joins(read.joins, ("joins",))
            # Groups that the cell does not know yet come to be with the machine.
            make_cell(CellTable(machines=(msgspec.structs.replace(read, joins={}),)))
        except Misfit as misfit:
            path = misfit.path
            if path[:2] == ("cell", "machines"):
                misfit = Misfit(misfit.error, path[3:])
            raise located(misfit) from None
        return Machine(read.name, read.capacity, read.attributes, read.joins)

    def capacity(self, table: Any) -> Resources:
        try:
            capacity: Resources = _CONVERTER.convert(table, Resources, ("capacity",))
            _check_resources(capacity, ("capacity",))
        except Misfit as misfit:
            raise located(misfit) from None
        return capacity


def _check_addressable(name: str, path: TablePath) -> None:
    """Clients take `.` and `..` in a path for directories."""
    if name in (".", ".."):
        error = UnfitDocument(excerpt(name), expected="a name that can be part of a path")
        raise Misfit(error, path)


def _check_resources(capacity: Resources, path: TablePath) -> None:
    for name in capacity.extras:
        _check_name("resource", name, path)


def _check_joins(joins: Mapping[str, tuple[str, ...]], path: TablePath) -> None:
    for group, sets in joins.items():
        _check_name("node group", group, path)
        for each in sets:
            _check_name("set", each, (*path, group))


def _check_name(what: str, name: str, path: TablePath) -> None:
    if not is_name(name):
        error = UnfitDocument(f"{what} {excerpt(name)}", expected="a printable name without spaces")
        raise Misfit(error, path)


def digest_of(table: Any) -> bytes:
    """Equal for equal documents, whatever the order of their keys."""
    return hashlib.sha256(msgspec.json.encode(table, order="sorted")).digest()


def scaled(job: Job, tasks: int) -> Job:
    """The job with so many tasks; those of the last group come and go."""
    *first, last = job.groups
    others = job.tasks - last.count
    if tasks <= others:
        raise ModelError(
            f"{tasks} tasks",
            field="tasks",
            expected=f"more than the {others} of the groups before the last" if others else "1",
        )
    try:
        group = msgspec.structs.replace(last, count=tasks - others)
    except ModelError as error:
        raise ModelError(error.problem, field="tasks", expected=error.expected) from None
    return msgspec.structs.replace(job, groups=(*first, group))


def present_cell(world: LocalWorld) -> CellSpec:
    """The cell with the machines of now, and the sets that they have joined."""
    machines = tuple(machine for machine, _ in world.present_machines())
    return msgspec.structs.replace(world.cluster.cell, machines=machines)


def _scenario(
    world: LocalWorld, jobs: tuple[Job, ...], fleet: tuple[FleetEntry, ...] | None = None
) -> Scenario:
    """What checks of scenarios need to know."""
    return Scenario(
        name=world.cluster.name,
        seed=0,
        cell=present_cell(world) if any(job.constraints for job in jobs) else world.cluster.cell,
        jobs=tuple(untimed(job) for job in jobs),
        fleet=world.cluster.fleet if fleet is None else fleet,
    )


def _engines(fleet: tuple[FleetEntry, ...]) -> Any:
    return find_engines([entry.engine for entry in fleet])
