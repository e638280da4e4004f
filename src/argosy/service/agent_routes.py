"""What a scheduler elsewhere may ask of this cluster: samples, commits and reservations."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final
from urllib.parse import quote

import msgspec
from aiohttp import web

from argosy.api.agent_values import (
    ClusterPlace,
    CommitInfo,
    CommitOrder,
    CommitPage,
    CommitResult,
    ReleaseResult,
    ReservationInfo,
    ReservationPage,
    ReservationRequest,
    SampleRequest,
    SampleResult,
)
from argosy.api.values import LARGEST_PAGE
from argosy.model.jobs import Job
from argosy.service.agent import LiveAgent
from argosy.service.backend import Backend
from argosy.service.event_log import EventLog
from argosy.service.guard import caller_of
from argosy.service.routes import (
    JSON,
    Reply,
    Route,
    UnfitDocument,
    check_key,
    read_body,
    read_document,
    read_query,
)
from argosy.service.submissions import digest_of

_ENCODE: Final = msgspec.json.Encoder().encode
_SAMPLE: Final = msgspec.json.Decoder(SampleRequest)


class CommitQuery(msgspec.Struct, frozen=True, kw_only=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_PAGE)] = LARGEST_PAGE
    #: The key of the last commit of the page before.
    after: str = ""


class AgentRoutes:
    def __init__(self, backend: Backend, agent: LiveAgent, events: EventLog) -> None:
        self._backend = backend
        self._events = events
        self._agent = agent

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/v1/place",
                self.place,
                "Where the cluster is. Schedulers measure their distance by it.",
                result=ClusterPlace,
                scope="sample",
            ),
            Route(
                "POST",
                "/v1/sample",
                self.sample,
                "Machines that can take a task, with scores. Changes nothing.",
                body=SampleRequest,
                result=SampleResult,
                problems=(422,),
                scope="sample",
            ),
            Route(
                "POST",
                "/v1/commits",
                self.commit,
                "Commit a job to the first of some machines that takes it.",
                body=CommitOrder,
                result=CommitResult,
                status=HTTPStatus.CREATED,
                headers={"Idempotency-Key": "Names the commit: needed, and once for each."},
                problems=(404, 409, 422),
                scope="commit",
            ),
            Route(
                "GET",
                "/v1/commits",
                self.commits,
                "The caller's committed jobs that are not over, by key.",
                CommitQuery,
                result=CommitPage,
                scope="commit",
            ),
            Route(
                "GET",
                "/v1/commits/{key}",
                self.commit_info,
                "A commit of the caller's, and what has become of its job.",
                result=CommitInfo,
                problems=(404,),
                scope="commit",
            ),
            Route(
                "DELETE",
                "/v1/commits/{key}",
                self.release,
                "Undo a commit: its job is cancelled, or refused if it comes later.",
                result=ReleaseResult,
                scope="commit",
            ),
            Route(
                "POST",
                "/v1/reservations",
                self.reserve,
                "Keep room on a machine for a commit to come, until the lease is over.",
                body=ReservationRequest,
                result=ReservationInfo,
                status=HTTPStatus.CREATED,
                problems=(404, 409, 422),
                scope="commit",
            ),
            Route(
                "GET",
                "/v1/reservations",
                self.reservations,
                "The caller's reservations, oldest first.",
                result=ReservationPage,
                scope="commit",
            ),
            Route(
                "DELETE",
                "/v1/reservations/{reservation}",
                self.unreserve,
                "Give up a reservation.",
                status=HTTPStatus.NO_CONTENT,
                problems=(404,),
                scope="commit",
            ),
        ]

    async def place(self, request: web.Request) -> Reply:
        await self._agent.answer_later()
        return Reply(self._agent.place)

    async def sample(self, request: web.Request) -> web.Response:
        asked = await _sample_request(request)
        drawn, names = self._agent.sample(asked)
        await self._agent.answer_later()
        result = SampleResult(
            machines=names,
            scores=drawn.scores.tolist(),
            free=drawn.free.tolist() if asked.free else [],
            resources=self._agent.resources if asked.free else (),
            drawn=drawn.drawn,
            ruled_out=drawn.ruled_out,
        )
        return web.Response(body=_ENCODE(result), content_type=JSON)

    async def commit(self, request: web.Request) -> Reply:
        order = await read_document(request, CommitOrder)
        key = request.headers.get("Idempotency-Key", "")
        check_key(key)
        digest = digest_of(await read_body(request))
        job = self._job(order)
        result, is_new = await self._agent.commit(caller_of(request), key, order, job, digest)
        await self._agent.answer_later()
        status = HTTPStatus.CREATED if is_new else HTTPStatus.OK
        return Reply(result, status, {"Location": f"/v1/jobs/{quote(result.job, safe='')}"})

    def _job(self, order: CommitOrder) -> Job:
        backend = self._backend
        if order.job.get("id") is None:
            raise UnfitDocument("missing key 'id'", field="job", expected="id: ...")
        job = backend.submissions.read(backend.world, order.job, "", ("job",))
        if job.tasks != 1:
            raise UnfitDocument(f"{job.tasks} tasks", field="job.count", expected="one")
        if job.constraints:
            raise UnfitDocument(
                "placement constraints",
                field="job.constraints",
                expected="none: whoever commits a job has decided where it runs",
            )
        return self._agent.terms.job(job)

    async def commits(self, request: web.Request) -> Reply:
        query = read_query(request, CommitQuery)
        position = str(self._events.now)
        found = self._agent.open_commits(caller_of(request), query.after, query.limit + 1)
        shown, has_more = found[: query.limit], len(found) > query.limit
        following = shown[-1].key if has_more else None
        return Reply(CommitPage(items=tuple(shown), next=following, position=position))

    async def commit_info(self, request: web.Request) -> Reply:
        key = request.match_info["key"]
        name = self._agent.job_of(caller_of(request), key)
        task = self._backend.reading.task(name, 0)
        info = CommitInfo(
            key=key,
            job=name,
            machine=task.machine,
            state=task.state,
            exit_status=task.exit_status,
            reason=task.reason,
        )
        return Reply(info)

    async def release(self, request: web.Request) -> Reply:
        key = request.match_info["key"]
        check_key(key)
        result = await self._agent.release(caller_of(request), key)
        await self._agent.answer_later()
        return Reply(result)

    async def reserve(self, request: web.Request) -> Reply:
        asked = await read_document(request, ReservationRequest)
        info = self._agent.reserve(caller_of(request), asked)
        return Reply(info, HTTPStatus.CREATED)

    async def reservations(self, request: web.Request) -> Reply:
        found = self._agent.reservations(caller_of(request))
        return Reply(ReservationPage(items=tuple(found)))

    async def unreserve(self, request: web.Request) -> Reply:
        self._agent.unreserve(caller_of(request), request.match_info["reservation"])
        return Reply(None, HTTPStatus.NO_CONTENT)


async def _sample_request(request: web.Request) -> SampleRequest:
    """Samples are asked for often: a document that is right is read in one step, and one that is not a
    second time, to say what is wrong."""
    if request.content_type == JSON:
        try:
            return _SAMPLE.decode(await request.read())
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
    return await read_document(request, SampleRequest)
