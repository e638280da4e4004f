"""The server: a directory, a live cluster, and the sockets that answer for it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import re
import resource
import secrets
import signal
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec
from aiohttp import web

from argosy.api.sockets import PORT, SOCKET, short_path
from argosy.api.values import StopRequest, WorldName
from argosy.engines.api import Engine
from argosy.engines.registry import find_engine
from argosy.host.protocols import Deliberator
from argosy.model.errors import CommandError
from argosy.model.units import format_count
from argosy.service.agent import AgentOptions, LiveAgent
from argosy.service.agent_routes import AgentRoutes
from argosy.service.backend import Backend
from argosy.service.callers import SHORTEST_TOKEN, Callers, read_tokens
from argosy.service.cluster_routes import ClusterRoutes
from argosy.service.doors import MOST_CONNECTIONS, Door
from argosy.service.event_log import EventLog
from argosy.service.guard import HEAD_TIMEOUT, Guard, scoped
from argosy.service.job_routes import JobRoutes
from argosy.service.kubernetes.agent_terms import PodTerms
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.live import LiveCluster
from argosy.service.metrics import Metrics
from argosy.service.openapi import describe
from argosy.service.remote_agents import FederatedAgents
from argosy.service.remote_runner import RemoteRunner
from argosy.service.retention import KeptJobs, OldJob, Retention, remove
from argosy.service.routes import LARGEST_BODY, PROBES, Reply, Route
from argosy.service.stream_routes import StreamRoutes
from argosy.service.web_page import WebPage
from argosy.worlds.local.isolation import detect_isolation
from argosy.worlds.local.overruled import OverruledWorld
from argosy.worlds.local.runner import ProcessRunner
from argosy.worlds.local.simulated import SimulatedRunner
from argosy.worlds.local.store import LocalStore, StoreError
from argosy.worlds.local.turn import LocalCluster, ServedRunner, TryResult
from argosy.worlds.local.world import LocalWorld

TOKEN: Final = "token"
#: Variables of the server's environment that tasks get as well.
_PASSED_ON: Final = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR")
#: Seconds that requests in progress have to end when the server stops.
_GOODBYE: Final = 2.0
#: Seconds that the rest of a refused body is read for, so that the client sees the answer.
_LINGER: Final = 1.0
#: Seconds between two looks for jobs that need not be kept.
FORGET_EVERY: Final = 10.0
#: Seconds between two looks whether stopped tasks have ended.
_LOOK: Final = 0.05
_MICRO: Final = 1_000_000
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
#: Objects that are made before the garbage collector looks for cycles among them.
_YOUNG: Final = 10_000
_SILENT: Final = logging.getLogger("argosy.silent")
_SILENT.disabled = True


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    directory: Path
    #: What a new directory gets; one that is known goes on as it was.
    cluster: LocalCluster | None = None
    #: None: only the socket in the directory.
    host: str | None = "127.0.0.1"
    port: int = PORT
    token_file: Path | None = None
    #: The certificate and its key, for TLS.
    certificate: Path | None = None
    key: Path | None = None
    #: Clients need a certificate as well, signed by one of these authorities.
    client_ca: Path | None = None
    #: Tokens of schedulers, each with a scope and limits.
    tokens: Path | None = None
    agent: AgentOptions = AgentOptions()
    kept: KeptJobs = KeptJobs()
    #: Whether tasks are processes, or only take their time.
    tasks: Literal["processes", "simulated"] = "processes"
    #: Whether what is answered survives a crash of this computer.
    is_lasting: bool = True


class FoundEngines(dict[str, type[Engine]]):
    """Engines by name, found when they are asked for."""

    def __missing__(self, name: str) -> type[Engine]:
        self[name] = found = find_engine(name)
        return found


class Server:
    """Made inside a running loop. `log` gets lines for the operator. With `agents`, it has no machines
    of its own: jobs run in the clusters of these. With an `overseer`, its tasks are pods."""

    def __init__(
        self,
        options: ServerOptions,
        log: Callable[[str], None],
        agents: FederatedAgents | None = None,
        overseer: PodOverseer | None = None,
    ) -> None:
        self._options = options
        self._overseer = overseer
        #: The agents of other clusters, if jobs run there.
        self._agents = agents
        self._log = log
        self._stopping = asyncio.Event()
        self._stops_tasks = False
        self._callers = _callers(options)
        self.store = LocalStore(options.directory, is_lasting=options.is_lasting)
        try:
            self.runner = self._make_runner()
            self.engines = FoundEngines()
            self.cluster = LiveCluster(self._build, self.runner, log)
        except BaseException:
            self.store.close()
            raise
        self.backend = Backend(self.cluster, self.store, self.runner, self.engines)
        self.events = EventLog(self.store)
        if agents is not None:
            agents.cluster = self.cluster
        self.agent = self._make_agent()
        distances = None if agents is None else agents.distances
        self.metrics = Metrics(self.cluster, self.events, self.agent, distances)
        self.cluster.listeners += [self.events.turn_ended, self.metrics.turn_ended]
        self.retention = Retention(self.store, options.kept, self.runner.directory_of)
        self.routes = self._routes()
        self._page = WebPage()
        self._sockets: list[asyncio.Server] = []
        #: Where it can be reached over the network; empty: nowhere.
        self.url = ""

    def _make_agent(self) -> LiveAgent | None:
        """None if schedulers elsewhere cannot commit jobs here."""
        terms, overseer = None, self._overseer
        if overseer is not None:
            terms = PodTerms(overseer) if overseer.serves_commits else None
        if self._agents is not None or (overseer is not None and terms is None):
            return None
        return LiveAgent(self.cluster, self.store, self._options.agent, terms)

    def _make_runner(self) -> ServedRunner:
        options, loop = self._options, asyncio.get_running_loop()
        if self._agents is not None:
            self._agents.runner = RemoteRunner(self._ended, self._agents.release, loop.call_soon)
            return self._agents.runner
        if self._overseer is not None:
            self._overseer.connect(self._ended, loop.call_soon)
            return self._overseer
        if options.tasks == "simulated":
            return SimulatedRunner(loop.call_later, self._ended)
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return ProcessRunner(
            options.directory,
            self._ended,
            environment={"PATH": os.defpath, **environment},
            isolation=detect_isolation(),
        )

    def _build(self, deliberator: Deliberator) -> LocalWorld:
        began = time.time_ns() // 1000 - self.store.origin
        if self._overseer is not None:
            cluster = self._options.cluster
            assert cluster is not None
            return OverruledWorld(
                self.store,
                self.engines,
                self.runner,
                _clock,
                self._overseer,
                cluster=cluster,
                deliberator=deliberator,
                began=began,
            )
        if self._agents is not None:
            self._agents.release_unwritten()
        return LocalWorld(
            self.store,
            self.engines,
            self.runner,
            _clock,
            cluster=self._options.cluster,
            deliberator=deliberator,
            agents=self._agents,
            began=began,
        )

    def _ended(self, number: int, result: TryResult | None) -> None:
        self.cluster.ended(number, result)

    def _routes(self) -> list[Route]:
        routes = [
            *JobRoutes(self.backend).routes(),
            *StreamRoutes(self.backend, self.events, self._stopping).routes(),
            *ClusterRoutes(self.backend, self.metrics, self._shut_down, self._world()).routes(),
        ]
        if self._overseer is not None:
            # Pods and nodes are changed by `kubectl`, and its users have the rights for it.
            routes = [route for route in routes if route.method == "GET" or not _changes(route)]
        if self.agent is not None:
            routes += AgentRoutes(self.backend, self.agent, self.events).routes()
        elif self._overseer is None:
            routes = [route for route in routes if not _is_for_own_machines(route)]
        description = describe(routes)

        async def openapi(request: web.Request) -> Reply:
            return Reply(description)

        return [
            *routes,
            Route("GET", "/v1/openapi.json", openapi, "This description.", scope="sample"),
        ]

    def _world(self) -> WorldName:
        if self._agents is not None:
            return "federation"
        return "local" if self._overseer is None else "kubernetes"

    def _shut_down(self, how: StopRequest) -> None:
        self._stops_tasks = self._stops_tasks or how.stop_tasks
        # The answer goes out first.
        asyncio.get_running_loop().call_soon(self._stopping.set)

    def stop(self) -> None:
        self._stopping.set()

    async def run(self, ready: Callable[[], None]) -> None:
        """Until it is told to stop. `ready` is called as soon as requests are answered."""
        loop = asyncio.get_running_loop()
        runner = self._web_runner()
        await runner.setup()
        living = loop.create_task(self.cluster.run())
        # If the cluster cannot go on, the server ends.
        living.add_done_callback(lambda _: self._stopping.set())
        forgetting = loop.create_task(self._forget())
        reports = self.runner.report_fd
        if reports is not None:
            loop.add_reader(reports, self.runner.hear)
        try:
            await self._listen(runner)
            if self._agents is not None:
                self._agents.start()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, self._stopping.set)
            ready()
            await self._stopping.wait()
            if self._stops_tasks and not living.done():
                await self._stop_tasks()
        finally:
            forgetting.cancel()
            if self._agents is not None:
                await self._agents.close()
            self.cluster.stop()
            for listening in self._sockets:
                listening.close()
            await runner.cleanup()
            if reports is not None:
                loop.remove_reader(reports)
            try:
                await living
            finally:
                self.close()

    async def _forget(self) -> None:
        """Forgets jobs that need not be kept, a few at a time."""
        while not self._options.kept.is_everything:
            found: list[OldJob] = []
            try:
                if found := self.retention.superfluous(self.cluster.world.now):
                    # Files take longest, and nobody waits for them.
                    await asyncio.to_thread(remove, self.retention.directories(found))
                    self.retention.forget(found)
            except StoreError as error:
                found = []
                self._log(f"cannot forget jobs: {error}")
            await asyncio.sleep(0 if found else FORGET_EVERY)

    def close(self) -> None:
        self.runner.close()
        self.store.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._options.directory / SOCKET)

    async def _stop_tasks(self) -> None:
        """Cancels every job, and waits until their processes are gone."""
        names = list(self.cluster.world.projection.by_id)
        self._log(f"cancelling {format_count(len(names), 'job')}")

        def cancel(world: LocalWorld) -> None:
            for name in names:
                world.cancel(name)

        await self.cluster.do(cancel)
        while not self.runner.is_idle:
            await asyncio.sleep(_LOOK)
            self.runner.sweep()

    def _web_runner(self) -> web.AppRunner:
        public = {*PROBES, *self._page.paths}
        guard = Guard(self._callers, self.metrics.request_ended, self._log, public)
        app = web.Application(
            middlewares=[guard.middleware],  # type: ignore[list-item]
            client_max_size=LARGEST_BODY,
        )
        for route in self.routes:
            app.router.add_route(
                route.method,
                _PARAMETER.sub(r"{\1:[^/]+}", route.path),
                scoped(route.handler, route.scope),  # type: ignore[arg-type]
            )
        for path in self._page.paths:
            app.router.add_route("GET", path, self._page.file)
        app.on_response_prepare.append(_sign)
        return web.AppRunner(
            app,
            access_log=None,
            # The guard tells the operator what matters; what strangers send does not.
            logger=_SILENT,
            handle_signals=False,
            keepalive_timeout=HEAD_TIMEOUT,
            shutdown_timeout=_GOODBYE,
            lingering_time=_LINGER,
            handler_cancellation=True,
        )

    async def _listen(self, runner: web.AppRunner) -> None:
        options, loop, answering = self._options, asyncio.get_running_loop(), runner.server
        assert answering is not None
        self.answering = answering
        self._sockets.append(
            await loop.create_unix_server(
                Door(answering, MOST_CONNECTIONS), sock=_unix_socket(options.directory)
            )
        )
        if options.host is None:
            return
        context = _tls(options)
        try:
            listening = await loop.create_server(
                Door(answering, MOST_CONNECTIONS),
                options.host,
                options.port,
                ssl=context,
                ssl_handshake_timeout=None if context is None else HEAD_TIMEOUT,
            )
        except OSError as error:
            raise CommandError(
                f"cannot listen on {options.host}:{options.port}: {error.strerror}",
                hint="name another address with --listen, or `--listen none` for none",
            ) from None
        self._sockets.append(listening)
        port = listening.sockets[0].getsockname()[1]
        shown = f"[{options.host}]" if ":" in options.host else options.host
        self.url = f"{'http' if context is None else 'https'}://{shown}:{port}"


def _clock() -> int:
    return time.monotonic_ns() // 1000


def _is_for_own_machines(route: Route) -> bool:
    """Machines elsewhere cannot be changed from here, only agents know what is free on them, and not
    every engine asks agents."""
    changes = route.method != "GET" and route.path.startswith(("/v1/machines", "/v1/fleet"))
    return changes or route.path == "/v1/plan"


def _changes(route: Route) -> bool:
    return route.path.startswith(("/v1/jobs", "/v1/machines", "/v1/plan"))


async def _sign(request: web.Request, response: web.StreamResponse) -> None:
    """Who answers, without the versions of what it is made of."""
    response.headers["Server"] = "argosy"


def _unix_socket(directory: Path) -> socket.socket:
    """Only the owner of the directory can connect to it."""
    path = directory / SOCKET
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    with short_path(str(path)) as short:
        listening.bind(short)
    os.chmod(path, 0o600)
    listening.setblocking(False)
    return listening


def _is_local(host: str | None) -> bool:
    from ipaddress import ip_address

    if host in (None, "localhost"):
        return True
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return False


def _callers(options: ServerOptions) -> Callers:
    return Callers(_token(options), () if options.tokens is None else read_tokens(options.tokens))


def _token(options: ServerOptions) -> str | None:
    """The operator's token. None if nobody but this computer can connect."""
    if options.token_file is None and _is_local(options.host):
        return None
    path = options.token_file or options.directory / TOKEN
    try:
        if options.token_file is None and not path.exists():
            options.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
        token = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"cannot read the token: {error}", file=str(path)) from None
    if len(token) < SHORTEST_TOKEN:
        raise CommandError(
            f"a token of {len(token)} characters",
            file=str(path),
            expected=f"at least {SHORTEST_TOKEN}",
        )
    return token


def _tls(options: ServerOptions) -> ssl.SSLContext | None:
    if options.certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(options.certificate, options.key)
        if options.client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(options.client_ca)
    except (OSError, ssl.SSLError) as error:
        raise CommandError(
            f"cannot use the certificate: {error}", file=str(options.certificate)
        ) from None
    return context


def raise_limits() -> None:
    """As many connections as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def serve(
    options: ServerOptions, ready: Callable[[Server], None], log: Callable[[str], None]
) -> bool:
    """Runs a server until it is told to stop. Returns whether tasks were left running."""
    raise_limits()

    async def main() -> bool:
        server = Server(options, log)
        # What there is now stays: modules, classes, routes. The collector need not look at it again and
        # again, and what comes and goes hardly ever forms cycles.
        gc.freeze()
        gc.set_threshold(_YOUNG)
        await server.run(lambda: ready(server))
        return not server.runner.is_idle

    usual = gc.get_threshold()
    try:
        return asyncio.run(main())
    finally:
        gc.unfreeze()
        gc.set_threshold(*usual)
