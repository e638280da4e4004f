"""A scheduler over the agents of other clusters: a server whose machines are theirs."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from argosy.api.values import Health
from argosy.client.agent_connection import AgentLink, AgentUnreached
from argosy.client.endpoints import Endpoint, parse_endpoint
from argosy.engines.vela import Vela
from argosy.model.errors import ArgosyError, CommandError
from argosy.model.machines import CLUSTER_GROUP, Cluster, Machine
from argosy.model.scenario import CellSpec, Federation, GroupSpec
from argosy.scenarios.loader import read_fleet
from argosy.service.measured_distances import MeasuredDistances
from argosy.service.remote_agents import FederatedAgents, read_machines
from argosy.service.server import Server, ServerOptions, raise_limits
from argosy.workloads.tables import Misfit, path_text
from argosy.worlds.local.store import holds_cluster
from argosy.worlds.local.turn import LocalCluster

_HEALTH: Final = msgspec.json.Decoder(Health)
#: Documents that are read before they are needed.
_READ_AHEAD: Final = 64
#: How often the distance to an agent is measured before the first job.
_ROUND_TRIPS: Final = 3


class AgentAddress(msgspec.Struct, frozen=True):
    """`name` is empty if the agent is to say it."""

    name: str
    endpoint: Endpoint

    @staticmethod
    def parse(text: str) -> AgentAddress:
        """`URL` or `NAME=URL`."""
        name, separator, url = text.partition("=")
        if not separator or "/" in name or ":" in name:
            name, url = "", text
        return AgentAddress(name, parse_endpoint(url, "the agent's URL"))


class SchedulerOptions(msgspec.Struct, frozen=True, kw_only=True):
    server: ServerOptions
    #: The scheduler's name, which agents see; different for each scheduler that uses the same agents.
    name: str
    engine: str
    settings: dict[str, Any]
    agents: tuple[AgentAddress, ...]
    #: Seconds for each request.
    timeout: float
    token: str = ""
    #: Authorities that sign the agents' certificates; a certificate of its own, with its key.
    ca: Path | None = None
    certificate: Path | None = None
    #: Where the scheduler is, and distances that it cannot measure: microseconds by "one<>other".
    place: str = ""
    distances: dict[str, int] = {}
    #: Job documents that are submitted as they come.
    jobs: Iterator[dict[str, Any]] | None = None


def serve_scheduler(
    options: SchedulerOptions, ready: Callable[[Server], None], log: Callable[[str], None]
) -> None:
    """Until it is told to stop."""
    raise_limits()
    asyncio.run(_main(options, ready, log))


async def _main(
    options: SchedulerOptions, ready: Callable[[Server], None], log: Callable[[str], None]
) -> None:
    tls = _tls(options)
    links = {
        address: AgentLink(address.endpoint, options.token, timeout=options.timeout, tls=tls)
        for address in options.agents
    }
    named = await _named(links)
    distances = MeasuredDistances(options.place, options.distances)
    await asyncio.gather(*(_located(*each, distances) for each in named.items()))
    server_options = options.server
    if not holds_cluster(server_options.directory):
        machines = await asyncio.gather(
            *(_machines(*each, distances, log) for each in named.items())
        )
        clusters = tuple(Cluster(name, distances.place_of(name)) for name in named)
        cluster = _cluster(options, clusters, [m for found in machines for m in found])
        server_options = msgspec.structs.replace(server_options, cluster=cluster)
    agents = FederatedAgents(options.name, named, log, distances)
    server = Server(server_options, log, agents)
    _check_clusters(server, named)
    #: Kept here, because the loop alone does not keep it. It ends with the loop.
    feeding: list[asyncio.Task[None]] = []

    def started() -> None:
        ready(server)
        if options.jobs is not None:
            loop = asyncio.get_running_loop()
            feeding.append(loop.create_task(_feed(server, options.jobs, log)))

    await server.run(started)


def _check_clusters(server: Server, named: dict[str, AgentLink]) -> None:
    federation = server.cluster.world.cluster.federation
    known = set() if federation is None else {cluster.name for cluster in federation.clusters}
    if known != set(named):
        server.close()
        raise CommandError(
            f"the directory is that of a scheduler over {', '.join(sorted(known)) or 'nothing'}",
            expected="the same agents, or another directory (--dir)",
        )


async def _named(links: dict[AgentAddress, AgentLink]) -> dict[str, AgentLink]:
    """The agents by name: what was given, or what each says, or where it is."""
    found: dict[str, AgentLink] = {}
    for address, link in links.items():
        name = address.name or await _own_name(link)
        if name in found:
            raise CommandError(
                f"two agents are called {name}", expected="NAME=URL, with a name for each"
            )
        found[name] = link
    return found


async def _own_name(link: AgentLink) -> str:
    try:
        reply = await link.ask("GET", "/v1/health")
        name = _HEALTH.decode(reply.body).cluster
    except (AgentUnreached, msgspec.MsgspecError) as error:
        raise CommandError(
            f"cannot ask {link.endpoint} for its name: {error}",
            hint="give it one, NAME=URL, to start without it",
        ) from None
    return name.replace("/", "-")


async def _located(name: str, link: AgentLink, distances: MeasuredDistances) -> None:
    """The first round trip is longer, because a connection is made."""
    with contextlib.suppress(AgentUnreached):
        for _ in range(_ROUND_TRIPS):
            await distances.measure(name, link)


async def _machines(
    name: str, link: AgentLink, distances: MeasuredDistances, log: Callable[[str], None]
) -> list[Machine]:
    try:
        return await read_machines(link, name, distances.location_of(name))
    except (AgentUnreached, msgspec.MsgspecError) as error:
        log(f"{name} is away: {error}")
        return []


def _cluster(
    options: SchedulerOptions, clusters: tuple[Cluster, ...], machines: list[Machine]
) -> LocalCluster:
    sets: dict[str, dict[str, None]] = {CLUSTER_GROUP: {each.name: None for each in clusters}}
    for machine in machines:
        for group, joined in machine.joins.items():
            sets.setdefault(group, {}).update(dict.fromkeys(joined))
    groups = tuple(GroupSpec(name=name, sets=tuple(known)) for name, known in sets.items())
    cell = CellSpec(machines=tuple(machines), groups=groups)
    if options.engine != Vela.name:
        raise CommandError(
            f"{options.engine} does not work over agents", expected=f"the engine {Vela.name}"
        )
    table = {"name": options.engine, "engine": options.engine, "settings": options.settings}
    try:
        fleet = read_fleet([table], cell)
    except Misfit as misfit:
        # Of the table above, users have written the settings alone.
        raise misfit.error.located(field=path_text(misfit.path[3:]) or None) from None
    return LocalCluster(
        name=options.name, cell=cell, fleet=fleet, federation=Federation(clusters=clusters)
    )


def _tls(options: SchedulerOptions) -> ssl.SSLContext | None:
    if options.ca is None and options.certificate is None:
        return None
    context = ssl.create_default_context(cafile=options.ca)
    if options.certificate is not None:
        try:
            context.load_cert_chain(options.certificate)
        except (OSError, ssl.SSLError) as error:
            raise CommandError(
                f"cannot use the certificate: {error}", file=str(options.certificate)
            ) from None
    return context


async def _read_beside(jobs: Iterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    """What an iterator yields that may wait for ever. Its thread is left alone at the end: a server
    that is told to stop cannot wait for the next line of its standard input."""
    loop = asyncio.get_running_loop()
    coming: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    room = threading.Semaphore(_READ_AHEAD)

    def read() -> None:
        # After the end, nobody listens.
        with contextlib.suppress(RuntimeError):
            for document in jobs:
                room.acquire()
                loop.call_soon_threadsafe(coming.put_nowait, document)
            loop.call_soon_threadsafe(coming.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()
    while (document := await coming.get()) is not None:
        room.release()
        yield document


async def _feed(server: Server, jobs: Iterator[dict[str, Any]], log: Callable[[str], None]) -> None:
    """Submits jobs as they come. What cannot be submitted is told, and left out."""
    backend = server.backend
    with contextlib.suppress(asyncio.CancelledError):
        async for document in _read_beside(jobs):
            world = server.cluster.world
            try:
                default = "" if document.get("id") else world.new_id()
                job = backend.submissions.read(world, document, default)
                await server.cluster.do(lambda world, job=job: world.submit(job))  # type: ignore[misc]
            except ArgosyError as error:
                log(f"not submitted: {error}")
