"""The synchronous client, on the standard library alone."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar

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
from argosy.client.connections import BrokenResponse, HttpConnection, HttpResponse
from argosy.client.endpoints import Endpoint, find_endpoint, find_token
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

Yielded = TypeVar("Yielded")

#: Connections kept for later calls.
_MOST_IDLE: Final = 4


class Client:
    """Talks to the server of a live cluster.

    Without arguments, to the one of this user on this computer; see `docs/live.md` for the variables of
    the environment that say otherwise. Threads may share a client.

        with argosy.Client() as client:
            job = client.submit({"command": "sleep 5", "request": {"cpu": 1000}})
            print(client.wait(job.id).exit_code)
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
    ) -> None:
        """`server` is a URL (http, https or unix); `directory` is that of a cluster on this computer.
        `timeout` is for one response; `patience` for how long a server that starts again, or is paused,
        is asked again. Both are seconds."""
        self.endpoint = find_endpoint(server, directory)
        self._token = find_token(token, token_file)
        self._timeout = timeout
        self._patience = Patience(patience)
        self._idle: list[HttpConnection] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    # Jobs

    def submit(self, document: Mapping[str, Any], *, key: str | None = None) -> JobDetails:
        """Submits a job: `document` has the keys of a job file. A server accepts one job per `key`, so
        that a repeated submission has no effect; by default, each submission is a new job."""
        return self._one(calls.submit(document, key or calls.new_key()))

    def jobs(
        self,
        *,
        state: str | None = None,
        kind: str | None = None,
        owner: str | None = None,
        match: str | None = None,
        is_open: bool | None = None,
        limit: int | None = None,
    ) -> Iterator[JobSummary]:
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

    def job(self, job_id: str) -> JobDetails:
        return self._one(calls.job(job_id))

    def wait(self, job_id: str, *, timeout: float | None = None) -> JobDetails:
        """The job when it is over, or after `timeout` seconds as it is then."""
        *_, last = self.watch(job_id, timeout=timeout)
        return last

    def watch(self, job_id: str, *, timeout: float | None = None) -> Iterator[JobDetails]:
        """The job now, and again whenever it has changed, until it is over."""
        return self._drive(flows.watch(job_id, self._patience, timeout))

    def scale(self, job_id: str, tasks: int, *, version: int | None = None) -> JobDetails:
        """Gives the job's last group so many tasks; with `version`, only if the job still has it."""
        return self._one(calls.scale(job_id, tasks, version=version))

    def cancel(
        self, job_id: str, tasks: Sequence[int] | None = None, *, version: int | None = None
    ) -> CancelResult:
        """Cancels the job, or these of its tasks."""
        return self._one(calls.cancel(job_id, tasks, version=version))

    def plan(self, documents: Sequence[Mapping[str, Any]]) -> PlanResult:
        """What would happen if these jobs were submitted now; changes nothing."""
        return self._one(calls.plan(documents))

    # Tasks

    def tasks(
        self, job_id: str, *, state: str | None = None, limit: int | None = None
    ) -> Iterator[TaskSummary]:
        page = partial(calls.tasks, job_id, state=state, limit=flows.page_size(limit))
        return self._drive(flows.all_pages(page, limit, self._patience))

    def open_tasks(
        self, *, state: str | None = None, machine: str | None = None, limit: int | None = None
    ) -> Iterator[TaskSummary]:
        """The tasks of all jobs that run or wait; those of the newest jobs first. With a
        machine, only those that it runs or has in its queue."""
        page = partial(calls.open_tasks, state=state, machine=machine, limit=flows.page_size(limit))
        return self._drive(flows.all_pages(page, limit, self._patience))

    def task(self, job_id: str, index: int) -> TaskDetails:
        return self._one(calls.task(job_id, index))

    def why(self, job_id: str, index: int) -> WhyDocument:
        return self._one(calls.why(job_id, index))

    def story(self, job_id: str, index: int) -> StoryDocument:
        return self._one(calls.story(job_id, index))

    def logs(
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
        return self._one(
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
    ) -> Iterator[bytes]:
        """What the task writes, from its latest try on, until it is over."""
        return self._drive(flows.follow_task(job_id, index, stream, tail, self._patience))

    # The cluster

    def machines(self) -> Iterator[MachineInfo]:
        page = partial(calls.machines, limit=LARGEST_PAGE)
        return self._drive(flows.all_pages(page, None, self._patience))

    def machine(self, name: str) -> MachineInfo:
        return self._one(calls.machine(name))

    def add_machine(self, document: Mapping[str, Any]) -> MachineInfo:
        """`document` has the keys of `[[cell.machines]]` in a scenario."""
        return self._one(calls.add_machine(document))

    def change_machine(self, name: str, patch: MachinePatch) -> MachineInfo:
        return self._one(calls.change_machine(name, patch))

    def drain(self, name: str, *, undo: bool = False) -> MachineInfo:
        """A draining machine gets no new tasks; with `undo`, it gets some again."""
        return self.change_machine(name, MachinePatch(draining=not undo))

    def remove_machine(self, name: str) -> None:
        self._one(calls.remove_machine(name))

    def fleet(self) -> FleetInfo:
        return self._one(calls.fleet())

    def set_fleet(
        self, entries: Sequence[Mapping[str, Any]], *, version: int | None = None
    ) -> FleetInfo:
        """Replaces the fleet; `entries` have the keys of `[[fleet]]` in a scenario."""
        return self._one(calls.set_fleet(entries, version=version))

    def events(
        self, *, job_id: str | None = None, after: str | None = None
    ) -> Iterator[StreamedEvent]:
        """Everything that happens from now on, or after the event with this id ("0": from the
        beginning), without an end. If the connection breaks, it is made again, and nothing is missed."""
        return self._drive(flows.events(job_id, after, self._patience))

    def recording(self) -> Iterator[bytes]:
        """The cluster and all its jobs as a workload, in pieces of JSON lines."""
        return self._drive(flows.whole_stream(calls.recording(), self._patience))

    def journal(self, life: int | None = None) -> Iterator[bytes]:
        """The journal of one life of the server, by default the present one, in pieces."""
        return self._drive(flows.whole_stream(calls.journal(life), self._patience))

    def summary(self) -> ClusterSummary:
        """The cluster in numbers."""
        return self._one(calls.summary())

    def health(self) -> Health:
        return self._one(calls.health())

    def shutdown(self, *, stop_tasks: bool = False) -> None:
        """Stops the server. Its tasks go on, unless they are to stop as well."""
        self._one(calls.shutdown(stop_tasks=stop_tasks))

    # The cluster as an agent

    def place(self) -> ClusterPlace:
        """Where the cluster is."""
        return self._one(agent_calls.place())

    def sample(self, asked: SampleRequest) -> SampleResult:
        """Machines that can take a task, with scores; changes nothing."""
        return self._one(agent_calls.sample(asked))

    def commit(self, order: CommitOrder, *, key: str | None = None) -> CommitResult:
        """Commits a job of one task to the first of some machines that takes it; `CommitRefused` if none
        does. Repeated with the same `key`, it is made once; by default, each commit is a new one."""
        return self._one(agent_calls.commit(order, key or calls.new_key()))

    def commits(self) -> Iterator[CommitResult]:
        """This caller's committed jobs that are not over, by key. Their ends are among the `events`."""
        return self._drive(flows.all_pages(agent_calls.commits, None, self._patience))

    def commit_info(self, key: str) -> CommitInfo:
        """A commit, and what has become of its job."""
        return self._one(agent_calls.commit_info(key))

    def release(self, key: str) -> ReleaseResult:
        """Undoes a commit: its job is cancelled, or refused if the commit comes later."""
        return self._one(agent_calls.release(key))

    def reserve(self, asked: ReservationRequest) -> ReservationInfo:
        """Keeps room on a machine for a commit to come, until the lease is over."""
        return self._one(agent_calls.reserve(asked))

    def reservations(self) -> Sequence[ReservationInfo]:
        """This caller's reservations, oldest first."""
        return self._one(agent_calls.reservations()).items

    def unreserve(self, reservation: str) -> None:
        """Gives up a reservation."""
        self._one(agent_calls.unreserve(reservation))

    # Carrying flows out

    def _one(self, call: ApiCall[Yielded]) -> Yielded:
        (item,) = self._drive(flows.one(call, self._patience))
        return item

    def _drive(self, flow: Flow[Yielded]) -> Iterator[Yielded]:
        result: Any = None
        failure: Lost | None = None
        with contextlib.ExitStack() as opened:
            stream: _Stream | None = None
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
                            result = self._exchange(call)
                        case OpenStream(call=call):
                            opened.close()
                            stream = opened.enter_context(_Stream(self.endpoint, self._timeout))
                            result = stream.open(call, self._headers(call))
                        case ReadStream(seconds=seconds):
                            assert stream is not None
                            result = stream.read(seconds)
                        case CloseStream():
                            opened.close()
                        case Sleep(seconds=seconds):
                            time.sleep(seconds)
                except Lost as lost:
                    failure = lost

    def _headers(self, call: ApiCall[Any]) -> dict[str, str]:
        headers = {"Host": self.endpoint.authority, **call.headers}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def _exchange(self, call: ApiCall[Any]) -> ServerReply:
        # A kept connection may turn out to be closed, when it is too late to know what was received.
        kept = self._idle.pop() if self._idle and call.is_repeatable else None
        if kept is not None:
            try:
                return self._exchange_on(kept, call)
            except Lost:
                pass
        connection = HttpConnection(self.endpoint, self._timeout)
        _connect(connection, self.endpoint)
        return self._exchange_on(connection, call)

    def _exchange_on(self, connection: HttpConnection, call: ApiCall[Any]) -> ServerReply:
        try:
            response = connection.request(call.method, call.target, call.body, self._headers(call))
            reply = ServerReply(response.status, response.headers, response.read())
        except (OSError, BrokenResponse) as error:
            connection.close()
            raise Lost(broken_off(self.endpoint, error), is_sent=True) from None
        except BaseException:
            connection.close()
            raise
        if response.will_close or len(self._idle) >= _MOST_IDLE:
            connection.close()
        else:
            self._idle.append(connection)
        return reply


class _Stream:
    """A response that is read as it arrives, on a connection of its own."""

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        self._endpoint = endpoint
        self._connection = HttpConnection(endpoint, timeout)
        self._response: HttpResponse | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def open(self, call: ApiCall[Any], headers: dict[str, str]) -> ServerReply:
        _connect(self._connection, self._endpoint)
        try:
            response = self._connection.request(call.method, call.target, call.body, headers)
            body = response.read() if response.status >= 400 else b""
        except (OSError, BrokenResponse) as error:
            raise Lost(broken_off(self._endpoint, error), is_sent=True) from None
        self._response = response
        return ServerReply(response.status, response.headers, body)

    def read(self, seconds: float | None) -> bytes | None:
        assert self._response is not None
        try:
            self._connection.set_timeout(seconds)
            return self._response.read_some()
        except TimeoutError:
            return None
        except (OSError, BrokenResponse) as error:
            raise Lost(broken_off(self._endpoint, error), is_sent=True) from None


def _connect(connection: HttpConnection, endpoint: Endpoint) -> None:
    try:
        connection.connect()
    except OSError as error:
        connection.close()
        raise Lost(no_connection(endpoint, error), is_sent=False) from None
