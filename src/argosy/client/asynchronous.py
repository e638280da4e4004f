"""The asynchronous client, on aiohttp (the extra `serve`)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from argosy.api.agent_values import (
    ClusterPlace,
    CommitInfo,
    CommitOrder,
    CommitResult,
    ReleaseResult,
    ReservationInfo,
    ReservationRequest,
    SampleRequest,
    SampleResult,
)
from argosy.api.sockets import short_path
from argosy.api.values import (
    LARGEST_PAGE,
    CancelResult,
    ClusterSummary,
    FleetInfo,
    Health,
    JobDetails,
    JobSummary,
    MachineInfo,
    MachinePatch,
    PlanResult,
    StoryDocument,
    StreamName,
    TaskDetails,
    TaskSummary,
    WhyDocument,
)
from argosy.client import agent_calls, calls, flows
from argosy.client.calls import ApiCall, ServerReply
from argosy.client.endpoints import find_endpoint, find_token
from argosy.client.flows import (
    CloseStream,
    Flow,
    Give,
    Lost,
    OpenStream,
    Patience,
    ReadStream,
    SendCall,
    Sleep,
)
from argosy.client.server_sent import StreamedEvent
from argosy.client.unreachable import broken_off, no_connection
from argosy.model.errors import MissingExtra

try:
    import aiohttp
    import yarl
except ModuleNotFoundError:
    raise MissingExtra("argosy.AsyncClient", "serve", "use argosy.Client") from None

Yielded = TypeVar("Yielded")


class AsyncClient:
    """Like `Client`, for asyncio.

    async with argosy.AsyncClient() as client:
        job = await client.submit({"command": "sleep 5", "request": {"cpu": 1000}})
        print((await client.wait(job.id)).exit_code)
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        directory: str | os.PathLike[str] | None = None,
        token: str | None = None,
        token_file: str | os.PathLike[str] | None = None,
        timeout: float = 30.0,
        patience: float = 10.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = tls
        self.endpoint = find_endpoint(server, directory)
        self._token = find_token(token, token_file)
        self._timeout = timeout
        self._patience = Patience(patience)
        #: By whether their connections are kept; made when they are needed.
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._opened = contextlib.ExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        while self._sessions:
            _, session = self._sessions.popitem()
            await session.close()
        self._opened.close()

    # Jobs

    async def submit(self, document: Mapping[str, Any], *, key: str | None = None) -> JobDetails:
        """Submits a job: `document` has the keys of a job file. A server accepts one job per `key`, so
        that a repeated submission has no effect; by default, each submission is a new job."""
        return await self._one(calls.submit(document, key or calls.new_key()))

    def jobs(
        self,
        *,
        state: str | None = None,
        kind: str | None = None,
        owner: str | None = None,
        match: str | None = None,
        is_open: bool | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[JobSummary]:
        """Jobs, newest first; `is_open` chooses those that are not over, or those that are, and
        `match` those with this text in their id or name."""
        page = partial(
            calls.jobs,
            state=state,
            kind=kind,
            owner=owner,
            match=match,
            is_open=is_open,
            limit=flows.page_size(limit),
        )
        return self._drive(flows.all_pages(page, limit, self._patience))

    async def job(self, job_id: str) -> JobDetails:
        return await self._one(calls.job(job_id))

    async def wait(self, job_id: str, *, timeout: float | None = None) -> JobDetails:
        """The job when it is over, or after `timeout` seconds as it is then."""
        async for job in self.watch(job_id, timeout=timeout):
            last = job
        return last

    def watch(self, job_id: str, *, timeout: float | None = None) -> AsyncIterator[JobDetails]:
        """The job now, and again whenever it has changed, until it is over."""
        return self._drive(flows.watch(job_id, self._patience, timeout))

    async def scale(self, job_id: str, tasks: int, *, version: int | None = None) -> JobDetails:
        """Gives the job's last group so many tasks; with `version`, only if the job still has it."""
        return await self._one(calls.scale(job_id, tasks, version=version))

    async def cancel(
        self, job_id: str, tasks: Sequence[int] | None = None, *, version: int | None = None
    ) -> CancelResult:
        """Cancels the job, or these of its tasks."""
        return await self._one(calls.cancel(job_id, tasks, version=version))

    async def plan(self, documents: Sequence[Mapping[str, Any]]) -> PlanResult:
        """What would happen if these jobs were submitted now; changes nothing."""
        return await self._one(calls.plan(documents))

    # Tasks

    def tasks(
        self, job_id: str, *, state: str | None = None, limit: int | None = None
    ) -> AsyncIterator[TaskSummary]:
        page = partial(calls.tasks, job_id, state=state, limit=flows.page_size(limit))
        return self._drive(flows.all_pages(page, limit, self._patience))

    def open_tasks(
        self, *, state: str | None = None, machine: str | None = None, limit: int | None = None
    ) -> AsyncIterator[TaskSummary]:
        """The tasks of all jobs that run or wait; those of the newest jobs first. With a
        machine, only those that it runs or has in its queue."""
        page = partial(calls.open_tasks, state=state, machine=machine, limit=flows.page_size(limit))
        return self._drive(flows.all_pages(page, limit, self._patience))

    async def task(self, job_id: str, index: int) -> TaskDetails:
        return await self._one(calls.task(job_id, index))

    async def why(self, job_id: str, index: int) -> WhyDocument:
        return await self._one(calls.why(job_id, index))

    async def story(self, job_id: str, index: int) -> StoryDocument:
        return await self._one(calls.story(job_id, index))

    async def logs(
        self,
        job_id: str,
        index: int,
        *,
        stream: StreamName = "stdout",
        try_number: int | None = None,
        offset: int | None = None,
        tail: int | None = None,
    ) -> bytes:
        """What a try has written so far; by default the latest try, all of it that is kept."""
        return await self._one(
            calls.logs(
                job_id, index, stream=stream, try_number=try_number, offset=offset, tail=tail
            )
        )

    def follow_logs(
        self,
        job_id: str,
        index: int,
        *,
        stream: StreamName = "stdout",
        tail: int | None = None,
    ) -> AsyncIterator[bytes]:
        """What the task writes, from its latest try on, until it is over."""
        return self._drive(flows.follow_task(job_id, index, stream, tail, self._patience))

    # The cluster

    def machines(self) -> AsyncIterator[MachineInfo]:
        page = partial(calls.machines, limit=LARGEST_PAGE)
        return self._drive(flows.all_pages(page, None, self._patience))

    async def machine(self, name: str) -> MachineInfo:
        return await self._one(calls.machine(name))

    async def add_machine(self, document: Mapping[str, Any]) -> MachineInfo:
        """`document` has the keys of `[[cell.machines]]` in a scenario."""
        return await self._one(calls.add_machine(document))

    async def change_machine(self, name: str, patch: MachinePatch) -> MachineInfo:
        return await self._one(calls.change_machine(name, patch))

    async def drain(self, name: str, *, undo: bool = False) -> MachineInfo:
        """A draining machine gets no new tasks; with `undo`, it gets some again."""
        return await self.change_machine(name, MachinePatch(draining=not undo))

    async def remove_machine(self, name: str) -> None:
        await self._one(calls.remove_machine(name))

    async def fleet(self) -> FleetInfo:
        return await self._one(calls.fleet())

    async def set_fleet(
        self, entries: Sequence[Mapping[str, Any]], *, version: int | None = None
    ) -> FleetInfo:
        """Replaces the fleet; `entries` have the keys of `[[fleet]]` in a scenario."""
        return await self._one(calls.set_fleet(entries, version=version))

    def events(
        self, *, job_id: str | None = None, after: str | None = None
    ) -> AsyncIterator[StreamedEvent]:
        """Everything that happens from now on, or after the event with this id ("0": from the
        beginning), without an end. If the connection breaks, it is made again, and nothing is missed."""
        return self._drive(flows.events(job_id, after, self._patience))

    def recording(self) -> AsyncIterator[bytes]:
        """The cluster and all its jobs as a workload, in pieces of JSON lines."""
        return self._drive(flows.whole_stream(calls.recording(), self._patience))

    def journal(self, life: int | None = None) -> AsyncIterator[bytes]:
        """The journal of one life of the server, by default the present one, in pieces."""
        return self._drive(flows.whole_stream(calls.journal(life), self._patience))

    async def summary(self) -> ClusterSummary:
        """The cluster in numbers."""
        return await self._one(calls.summary())

    async def health(self) -> Health:
        return await self._one(calls.health())

    async def shutdown(self, *, stop_tasks: bool = False) -> None:
        """Stops the server. Its tasks go on, unless they are to stop as well."""
        await self._one(calls.shutdown(stop_tasks=stop_tasks))

    # The cluster as an agent

    async def place(self) -> ClusterPlace:
        """Where the cluster is."""
        return await self._one(agent_calls.place())

    async def sample(self, asked: SampleRequest) -> SampleResult:
        """Machines that can take a task, with scores; changes nothing."""
        return await self._one(agent_calls.sample(asked))

    async def commit(self, order: CommitOrder, *, key: str | None = None) -> CommitResult:
        """Commits a job of one task to the first of some machines that takes it; `CommitRefused` if none
        does. Repeated with the same `key`, it is made once; by default, each commit is a new one."""
        return await self._one(agent_calls.commit(order, key or calls.new_key()))

    def commits(self) -> AsyncIterator[CommitResult]:
        """This caller's committed jobs that are not over, by key. Their ends are among the `events`."""
        return self._drive(flows.all_pages(agent_calls.commits, None, self._patience))

    async def commit_info(self, key: str) -> CommitInfo:
        """A commit, and what has become of its job."""
        return await self._one(agent_calls.commit_info(key))

    async def release(self, key: str) -> ReleaseResult:
        """Undoes a commit: its job is cancelled, or refused if the commit comes later."""
        return await self._one(agent_calls.release(key))

    async def reserve(self, asked: ReservationRequest) -> ReservationInfo:
        """Keeps room on a machine for a commit to come, until the lease is over."""
        return await self._one(agent_calls.reserve(asked))

    async def reservations(self) -> Sequence[ReservationInfo]:
        """This caller's reservations, oldest first."""
        return (await self._one(agent_calls.reservations())).items

    async def unreserve(self, reservation: str) -> None:
        """Gives up a reservation."""
        await self._one(agent_calls.unreserve(reservation))

    # Carrying flows out

    async def _one(self, call: ApiCall[Yielded]) -> Yielded:
        async with contextlib.aclosing(self._drive(flows.one(call, self._patience))) as items:
            return await anext(items)

    async def _drive(self, flow: Flow[Yielded]) -> AsyncGenerator[Yielded]:
        result: Any = None
        failure: Lost | None = None
        stream: aiohttp.ClientResponse | None = None
        try:
            while True:
                try:
                    step = flow.send(result) if failure is None else flow.throw(failure)
                except StopIteration:
                    return
                result, failure = None, None
                try:
                    match step:
                        case Give(item=item):
                            yield item
                        case SendCall(call=call):
                            result = await self._exchange(call)
                        case OpenStream(call=call):
                            if stream is not None:
                                stream.close()
                            stream = await self._request(call, is_stream=True)
                            result = await self._begun(stream)
                        case ReadStream(seconds=seconds):
                            assert stream is not None
                            result = await self._read(stream, seconds)
                        case CloseStream():
                            if stream is not None:
                                stream.close()
                        case Sleep(seconds=seconds):
                            await asyncio.sleep(seconds)
                except Lost as lost:
                    failure = lost
        finally:
            if stream is not None:
                stream.close()

    async def _exchange(self, call: ApiCall[Any]) -> ServerReply:
        response = await self._request(call)
        try:
            return ServerReply(response.status, _lowered(response), await response.read())
        except (OSError, aiohttp.ClientError) as error:
            raise Lost(broken_off(self.endpoint, error), is_sent=True) from None
        finally:
            response.release()

    async def _request(
        self, call: ApiCall[Any], *, is_stream: bool = False
    ) -> aiohttp.ClientResponse:
        headers = {"Host": self.endpoint.authority, **call.headers}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if not call.is_repeatable:
            headers["Connection"] = "close"
        # Responses that are read as they arrive have no limit in all, but begin in time.
        limit = aiohttp.ClientTimeout(
            total=None if is_stream else self._timeout, sock_connect=self._timeout
        )
        base = "http://localhost" if self.endpoint.socket else str(self.endpoint)
        try:
            session = self._connected(keeps=call.is_repeatable)
        except OSError as error:
            raise Lost(no_connection(self.endpoint, error), is_sent=False) from None
        try:
            async with asyncio.timeout(self._timeout if is_stream else None):
                return await session.request(
                    call.method,
                    yarl.URL(base + call.target, encoded=True),
                    data=call.body,
                    headers=headers,
                    timeout=limit,
                    allow_redirects=False,
                )
        except aiohttp.ClientConnectorCertificateError as error:
            raise Lost(
                no_connection(self.endpoint, error.certificate_error), is_sent=False
            ) from None
        except aiohttp.ClientConnectorError as error:
            raise Lost(no_connection(self.endpoint, error.os_error), is_sent=False) from None
        except (OSError, aiohttp.ClientError) as error:
            raise Lost(broken_off(self.endpoint, error), is_sent=True) from None

    def _connected(self, *, keeps: bool) -> aiohttp.ClientSession:
        """A session, which can only be made where an event loop runs. A kept connection may turn out to
        be closed, when it is too late to know what was received; so what must not be repeated gets one
        of its own."""
        session = self._sessions.get(keeps)
        if session is None:
            connector: aiohttp.BaseConnector
            if self.endpoint.socket:
                path = self._opened.enter_context(short_path(self.endpoint.socket))
                connector = aiohttp.UnixConnector(path, force_close=not keeps)
            else:
                # That of aiohttp was made when it was imported, whatever the environment says now.
                tls = (
                    (self._tls or ssl.create_default_context()) if self.endpoint.is_secure else True
                )
                connector = aiohttp.TCPConnector(ssl=tls, force_close=not keeps)
            session = self._sessions[keeps] = aiohttp.ClientSession(connector=connector)
            # After a disconnect, aiohttp itself sends some methods again, which not every call allows.
            session._retry_connection = keeps
        return session

    async def _begun(self, stream: aiohttp.ClientResponse) -> ServerReply:
        """The head of a stream; that of an error comes with its body."""
        try:
            async with asyncio.timeout(self._timeout):
                body = await stream.read() if stream.status >= 400 else b""
        except (OSError, aiohttp.ClientError) as error:
            raise Lost(broken_off(self.endpoint, error), is_sent=True) from None
        return ServerReply(stream.status, _lowered(stream), body)

    async def _read(self, stream: aiohttp.ClientResponse, seconds: float | None) -> bytes | None:
        try:
            async with asyncio.timeout(seconds):
                return await stream.content.readany()
        except TimeoutError:
            return None
        except (OSError, aiohttp.ClientError) as error:
            raise Lost(broken_off(self.endpoint, error), is_sent=True) from None


def _lowered(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}
