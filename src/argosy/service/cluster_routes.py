"""Routes about machines, the fleet and the server itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from http import HTTPStatus
from itertools import islice
from typing import Annotated
from urllib.parse import quote

import msgspec
import numpy as np
from aiohttp import web

from argosy.api.values import (
    LARGEST_PAGE,
    ClusterSummary,
    FleetDocument,
    FleetInfo,
    Health,
    MachineInfo,
    MachinePage,
    MachinePatch,
    SchedulerInfo,
    StopRequest,
    WorldName,
)
from argosy.model.errors import did_you_mean, excerpt
from argosy.scenarios.cell_tables import MachineTable
from argosy.scenarios.scenario_tables import fleet_table
from argosy.service.backend import Backend, check_version, etag, is_seen
from argosy.service.metrics import Metrics
from argosy.service.problems import Conflict, NotFound, RequestError
from argosy.service.routes import (
    PLACED,
    PROBES,
    VERSIONED,
    Reply,
    Route,
    TableSchema,
    Text,
    UnfitDocument,
    read_body,
    read_document,
    read_query,
)
from argosy.version import __version__
from argosy.worlds.local.world import LocalWorld


class MachineQuery(msgspec.Struct, frozen=True, kw_only=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_PAGE)] = LARGEST_PAGE
    #: The name of the last machine of the page before.
    after: str | None = None


class ClusterRoutes:
    def __init__(
        self,
        backend: Backend,
        metrics: Metrics,
        shut_down: Callable[[StopRequest], None],
        world: WorldName = "local",
    ) -> None:
        self._backend = backend
        self._metrics = metrics
        self._world: WorldName = world
        self._shut_down = shut_down

    def routes(self) -> list[Route]:
        one = "/v1/machines/{machine}"
        return [
            Route(
                "GET",
                "/v1/machines",
                self.machines,
                "The machines, in the order of joining.",
                MachineQuery,
                result=MachinePage,
                scope="sample",
            ),
            Route(
                "POST",
                "/v1/machines",
                self.add_machine,
                "Add a machine.",
                body=TableSchema("MachineDocument", MachineTable),
                result=MachineInfo,
                status=HTTPStatus.CREATED,
                answers_with=PLACED,
                problems=(409, 422),
            ),
            Route(
                "GET",
                one,
                self.machine,
                "A machine.",
                result=MachineInfo,
                answers_with=VERSIONED,
                headers={"If-None-Match": "The version that the client has."},
                problems=(404,),
                scope="sample",
            ),
            Route(
                "PATCH",
                one,
                self.change_machine,
                "Drain a machine, have it accept tasks again, or resize it.",
                body=MachinePatch,
                result=MachineInfo,
                answers_with=VERSIONED,
                headers={"If-Match": "The version that the change is meant for."},
                problems=(404, 412, 422),
            ),
            Route(
                "DELETE",
                one,
                self.remove_machine,
                "Remove a machine. Tasks that run there are stopped and placed anew.",
                status=HTTPStatus.NO_CONTENT,
                headers={"If-Match": "The version that is to be removed."},
                problems=(404, 412),
            ),
            Route(
                "GET",
                "/v1/fleet",
                self.fleet,
                "The schedulers.",
                result=FleetInfo,
                answers_with=VERSIONED,
            ),
            Route(
                "PUT",
                "/v1/fleet",
                self.change_fleet,
                "Other schedulers from now on. Tasks that run go on.",
                body=FleetDocument,
                result=FleetInfo,
                answers_with=VERSIONED,
                headers={"If-Match": "The version that the change is meant for."},
                problems=(412, 422),
            ),
            Route(
                "GET",
                "/v1/summary",
                self.summary,
                "The cluster in numbers: tasks, resources, schedulers.",
                result=ClusterSummary,
            ),
            Route(
                "GET",
                "/v1/health",
                self.health,
                "Whether the server works. The status is 503 if it does not.",
                result=Health,
                scope="sample",
            ),
            *(
                Route(
                    "GET",
                    path,
                    self.ready if path == "/readyz" else self.alive,
                    text,
                    result=Text("text/plain", "`ok`, or what is wrong."),
                    scope="sample",
                )
                for path, text in PROBES.items()
            ),
            Route(
                "POST",
                "/v1/shutdown",
                self.stop,
                "Stop the server.",
                body=StopRequest,
                body_is_optional=True,
                status=HTTPStatus.ACCEPTED,
            ),
            Route(
                "GET",
                "/metrics",
                self.metrics,
                "Metrics for Prometheus.",
                result=Text("text/plain", "The text format, version 0.0.4."),
                scope="sample",
            ),
        ]

    def _machine_infos(self, numbers: Mapping[str, int]) -> list[MachineInfo]:
        world = self._backend.world
        view, busy = world.host.view, world.projection.busy
        capacity, free = view.capacity(), view.free()
        infos = []
        for name, number in numbers.items():
            spec = world.projection.machines[number]
            used = dict(
                zip(view.dimensions, (capacity[number] - free[number]).tolist(), strict=True)
            )
            infos.append(
                MachineInfo(
                    name=name,
                    capacity={key: amount for key, amount in spec.capacity.items() if amount},
                    used={key: max(0, amount) for key, amount in used.items() if amount > 0},
                    running=busy[name, "running"],
                    queued=busy[name, "queued"],
                    draining=view.is_draining(number),
                    attributes=spec.attributes,
                    joins=spec.joins,
                )
            )
        return infos

    async def machines(self, request: web.Request) -> Reply:
        query = read_query(request, MachineQuery)
        numbers = self._backend.world.machine_numbers()
        first = 0
        if query.after is not None:
            # A machine that was removed meanwhile still has its place.
            known = [machine.name for machine in self._backend.world.projection.machines]
            if query.after not in known:
                raise RequestError(
                    f"unknown machine {excerpt(query.after)}",
                    field="after",
                    expected="what `next` of the page before said",
                )
            last = max(at for at, name in enumerate(known) if name == query.after)
            first = sum(number <= last for number in numbers.values())
        shown = self._machine_infos(dict(islice(numbers.items(), first, first + query.limit)))
        has_more = first + query.limit < len(numbers)
        return Reply(MachinePage(items=tuple(shown), next=shown[-1].name if has_more else None))

    def _info(self, name: str) -> MachineInfo:
        numbers = self._backend.world.machine_numbers()
        if name not in numbers:
            raise NotFound(
                f"unknown machine {excerpt(name)}",
                hint=did_you_mean(name, numbers) or "`argosy machines` lists them",
            )
        return self._machine_infos({name: numbers[name]})[0]

    async def machine(self, request: web.Request) -> Reply:
        reply = self._described(request.match_info["machine"])
        if is_seen(request.headers.get("If-None-Match"), reply.headers["ETag"]):
            return Reply(None, HTTPStatus.NOT_MODIFIED, reply.headers)
        return reply

    def _described(self, name: str, status: int = HTTPStatus.OK) -> Reply:
        info = self._info(name)
        headers = {"ETag": etag(_version(info))}
        if status == HTTPStatus.CREATED:
            headers["Location"] = f"/v1/machines/{quote(name, safe='')}"
        return Reply(info, status, headers)

    def _checked(self, request: web.Request) -> str:
        """The machine to be changed, which must not have changed meanwhile."""
        info = self._info(request.match_info["machine"])
        check_version(request.headers.get("If-Match"), _version(info), f"machine {info.name}")
        return info.name

    async def add_machine(self, request: web.Request) -> Reply:
        machine = self._backend.submissions.machine(await read_body(request))
        if machine.name in self._backend.world.machine_numbers():
            raise Conflict(
                f"there is a machine {machine.name} already", field="name", expected="a new name"
            )
        await self._backend.cluster.do(lambda world: world.add_machine(machine))
        return self._described(machine.name, HTTPStatus.CREATED)

    async def change_machine(self, request: web.Request) -> Reply:
        patch = await read_document(request, MachinePatch)
        if patch.capacity is None and patch.draining is None:
            raise UnfitDocument("nothing to change", expected="draining, capacity or both")
        name = self._checked(request)
        draining = patch.draining
        capacity = (
            None if patch.capacity is None else self._backend.submissions.capacity(patch.capacity)
        )

        def change(world: LocalWorld) -> None:
            if capacity is not None:
                world.resize_machine(name, capacity)
            if draining is not None:
                world.drain_machine(name, draining=draining)

        await self._backend.cluster.do(change)
        return self._described(name)

    async def remove_machine(self, request: web.Request) -> Reply:
        name = self._checked(request)
        await self._backend.cluster.do(lambda world: world.remove_machine(name))
        return Reply(None, HTTPStatus.NO_CONTENT)

    async def fleet(self, request: web.Request) -> Reply:
        info = self._fleet_info()
        return Reply(info, headers={"ETag": etag(info.version)})

    def _fleet_info(self) -> FleetInfo:
        world = self._backend.world
        return FleetInfo(
            version=world.life,
            fleet=tuple(fleet_table(entry) for entry in world.cluster.fleet),
            schedulers=self._schedulers(),
        )

    def _schedulers(self) -> tuple[SchedulerInfo, ...]:
        world = self._backend.world
        lived = max(1, world.now - world.host.setup.began)
        return tuple(
            SchedulerInfo(
                name=scheduler.name,
                engine=scheduler.entry.engine,
                jobs=scheduler.jobs,
                busyness=round(scheduler.busy_time(world.now) / lived, 6),
                is_alive=scheduler.is_alive,
                transactions=scheduler.transactions,
                conflicts=scheduler.conflicts,
            )
            for scheduler in world.host.schedulers
        )

    async def change_fleet(self, request: web.Request) -> Reply:
        document = await read_document(request, FleetDocument)
        backend = self._backend
        check_version(request.headers.get("If-Match"), backend.world.life, "the fleet")
        fleet = backend.submissions.fleet(backend.world, document.fleet)
        await backend.cluster.change_fleet(fleet)
        return await self.fleet(request)

    async def summary(self, request: web.Request) -> Reply:
        backend, world = self._backend, self._backend.world
        view = world.host.view
        status, detail = backend.health()
        return Reply(
            ClusterSummary(
                at=backend.calendar.date(world.now),
                cluster=world.cluster.name,
                version=__version__,
                started=backend.started,
                status=status,
                detail=detail,
                world=self._world,
                open_jobs=len(world.projection.by_id),
                machines=len(world.machine_numbers()),
                accepting=int(np.count_nonzero(view.takes_claims())),
                tasks=self._metrics.tasks(),
                placed=self._metrics.placed,
                capacity=dict(view.capacity_total().items()),
                used=dict(view.used_total().items()),
                schedulers=self._schedulers(),
            )
        )

    async def health(self, request: web.Request) -> Reply:
        backend = self._backend
        world = backend.world
        status, detail = backend.health()
        health = Health(
            status=status,
            detail=detail,
            version=__version__,
            cluster=world.cluster.name,
            started=backend.started,
            open_jobs=len(world.projection.by_id),
            running_tasks=len(world.tries),
            machines=int(np.count_nonzero(world.host.view.takes_claims())),
        )
        return Reply(health, HTTPStatus.OK if status == "ok" else HTTPStatus.SERVICE_UNAVAILABLE)

    async def alive(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def ready(self, request: web.Request) -> web.Response:
        status, detail = self._backend.health()
        if status == "ok":
            return web.Response(text="ok")
        text = f"{status}: {detail}" if detail else status
        return web.Response(text=text, status=HTTPStatus.SERVICE_UNAVAILABLE)

    async def stop(self, request: web.Request) -> Reply:
        self._shut_down(await read_document(request, StopRequest, is_optional=True))
        return Reply(None, HTTPStatus.ACCEPTED)

    async def metrics(self, request: web.Request) -> web.Response:
        return web.Response(
            body=self._metrics.text(),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
        )


def _version(machine: MachineInfo) -> str:
    """Changes with what users can change, not with what runs there."""
    lasting = msgspec.structs.replace(machine, used={}, running=0, queued=0)
    return hashlib.sha256(msgspec.json.encode(lasting, order="sorted")).hexdigest()[:16]
