"""Routes about jobs and tasks."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Annotated, Final, Literal
from urllib.parse import quote

import msgspec
from aiohttp import web

from argosy.api.values import (
    LARGEST_PAGE,
    PAGE,
    CancelRequest,
    CancelResult,
    JobDetails,
    JobPage,
    JobStateName,
    PlanRequest,
    PlanResult,
    ScaleRequest,
    StoryDocument,
    TaskDetails,
    TaskPage,
    TaskStateName,
    WhyDocument,
)
from argosy.model.errors import ModelError, excerpt
from argosy.report.answers import sentences
from argosy.service.backend import Backend, check_version, etag, index_in, is_seen
from argosy.service.planning import MOST_PLANNED, copy_cluster, plan
from argosy.service.problems import Conflict
from argosy.service.routes import (
    PLACED,
    VERSIONED,
    Reply,
    Route,
    TableSchema,
    UnfitDocument,
    check_key,
    read_body,
    read_document,
    read_query,
)
from argosy.service.submissions import digest_of, scaled
from argosy.workloads.live_jobs import LiveJobTable

#: Characters of a text that jobs are looked for by.
LONGEST_MATCH: Final = 200
Limit = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_PAGE, description="How many at most.")]


class JobQuery(msgspec.Struct, frozen=True, kw_only=True):
    state: JobStateName | None = None
    kind: str | None = None
    owner: str | None = None
    #: Only jobs whose id or name has this in it.
    match: Annotated[str, msgspec.Meta(max_length=LONGEST_MATCH)] | None = None
    #: Only jobs that are not over, or only those that are.
    open: bool | None = None
    limit: Limit = PAGE
    #: What `next` of the page before said.
    after: str | None = None


class TaskQuery(msgspec.Struct, frozen=True, kw_only=True):
    state: TaskStateName | None = None
    limit: Limit = PAGE
    after: str | None = None


class OpenTaskQuery(msgspec.Struct, frozen=True, kw_only=True):
    state: Literal["running", "queued", "pending"] | None = None
    #: Only tasks that run or are queued on this machine.
    machine: str | None = None
    limit: Limit = PAGE
    after: str | None = None


class JobRoutes:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._isolation = backend.runner.limits()
        #: One plan at a time, whether or not somebody still waits for it.
        self._planning = asyncio.Semaphore(1)
        self._planner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="planning")

    def routes(self) -> list[Route]:
        task = "/v1/jobs/{job}/tasks/{index}"
        document = TableSchema("JobDocument", LiveJobTable)
        changes = {"If-Match": "The version that the change is meant for."}
        return [
            Route("GET", "/v1/jobs", self.list, "Jobs, newest first.", JobQuery, result=JobPage),
            Route(
                "POST",
                "/v1/jobs",
                self.submit,
                "Submit a job. It is on the disk when the answer comes.",
                body=document,
                result=JobDetails,
                status=HTTPStatus.CREATED,
                answers_with=PLACED,
                headers={
                    "Idempotency-Key": "A name for this submission: repeated, it does nothing."
                },
                problems=(409, 422),
            ),
            Route(
                "GET",
                "/v1/jobs/{job}",
                self.show,
                "A job.",
                result=JobDetails,
                answers_with=VERSIONED,
                headers={"If-None-Match": "The version that the client has."},
                problems=(404,),
            ),
            Route(
                "PATCH",
                "/v1/jobs/{job}",
                self.scale,
                "Change how many tasks a job has.",
                body=ScaleRequest,
                result=JobDetails,
                answers_with=VERSIONED,
                headers=changes,
                problems=(404, 409, 412, 422),
            ),
            Route(
                "POST",
                "/v1/jobs/{job}/cancel",
                self.cancel,
                "Cancel a job, or some of its tasks.",
                body=CancelRequest,
                body_is_optional=True,
                result=CancelResult,
                headers=changes,
                problems=(404, 409, 412, 422),
            ),
            Route(
                "GET",
                "/v1/jobs/{job}/tasks",
                self.tasks,
                "The tasks of a job, by index.",
                TaskQuery,
                result=TaskPage,
                problems=(404,),
            ),
            Route(
                "GET",
                "/v1/tasks",
                self.open_tasks,
                "The tasks of all jobs that run or wait; those of the newest jobs first.",
                OpenTaskQuery,
                result=TaskPage,
            ),
            Route("GET", task, self.task, "A task.", result=TaskDetails, problems=(404,)),
            Route(
                "GET",
                f"{task}/why",
                self.why,
                "Why the task is where it is, or has no machine.",
                result=WhyDocument,
                problems=(404,),
            ),
            Route(
                "GET",
                f"{task}/story",
                self.story,
                "What happened to the task.",
                result=StoryDocument,
                problems=(404,),
            ),
            Route(
                "POST",
                "/v1/plan",
                self.plan,
                "What would happen if jobs were submitted now. Changes nothing.",
                body=PlanRequest,
                result=PlanResult,
                problems=(422,),
            ),
        ]

    async def list(self, request: web.Request) -> Reply:
        query = read_query(request, JobQuery)
        page = self._backend.reading.jobs(
            state=query.state,
            kind=query.kind,
            owner=query.owner,
            match=query.match,
            is_open=query.open,
            limit=query.limit,
            after=query.after,
        )
        return Reply(page)

    async def submit(self, request: web.Request) -> Reply:
        table = await read_body(request)
        key = request.headers.get("Idempotency-Key")
        if key is not None:
            check_key(key)
        backend = self._backend
        digest = b"" if key is None else digest_of(table)
        if key is not None and (known := backend.world.job_of_key(key)) is not None:
            if known[0] != digest:
                raise Conflict(
                    f"the key {excerpt(key)} was used for another document",
                    field="Idempotency-Key",
                    expected="a new key for a new job",
                )
            # It may be part of a turn that is not on the disk yet.
            await backend.cluster.do(lambda world: None)
            return self._details(known[1], HTTPStatus.OK)
        has_id = isinstance(table, dict) and table.get("id") is not None
        default_id = "" if has_id else backend.world.new_id()
        job = backend.submissions.read(backend.world, table, default_id)
        if has_id and backend.world.job_seq(job.id) is not None:
            raise Conflict(f"there is a job {job.id} already", field="id", expected="a new id")
        await backend.cluster.do(
            lambda world: world.submit(job, None if key is None else (key, digest))
        )
        return self._details(job.id, HTTPStatus.CREATED)

    def _details(self, name: str, status: int = HTTPStatus.OK) -> Reply:
        backend = self._backend
        details = backend.reading.details(
            name,
            self._isolation,
            lambda job: backend.submissions.notes(backend.world, job),
            backend.world.projection.saved_row(name),
        )
        headers = {"ETag": etag(details.version)}
        if status == HTTPStatus.CREATED:
            headers["Location"] = f"/v1/jobs/{quote(name, safe='')}"
        return Reply(details, status, headers)

    async def show(self, request: web.Request) -> Reply:
        reply = self._details(request.match_info["job"])
        if is_seen(request.headers.get("If-None-Match"), reply.headers["ETag"]):
            return Reply(None, HTTPStatus.NOT_MODIFIED, reply.headers)
        return reply

    async def scale(self, request: web.Request) -> Reply:
        wanted = await read_document(request, ScaleRequest)
        name = self._open_job(request)
        job = scaled(self._backend.world.projection.by_id[name].job, wanted.tasks)
        await self._backend.cluster.do(lambda world: world.scale(name, job))
        return self._details(name)

    async def cancel(self, request: web.Request) -> Reply:
        wanted = await read_document(request, CancelRequest, is_optional=True)
        name = self._open_job(request)
        tasks = self._backend.world.projection.by_id[name].job.tasks
        for index in wanted.tasks or ():
            if index >= tasks:
                raise ModelError(
                    f"job {name} has no task {index}",
                    field="tasks",
                    expected=f"0 to {tasks - 1}",
                )
        count = await self._backend.cluster.do(lambda world: world.cancel(name, wanted.tasks))
        return Reply(CancelResult(cancelled=count, job=self._backend.reading.job(name).summary))

    def _open_job(self, request: web.Request) -> str:
        """The job to be changed, which must not be over, nor have changed meanwhile."""
        name = request.match_info["job"]
        world = self._backend.world
        stored = self._backend.reading.job(name).summary.version
        check_version(
            request.headers.get("If-Match"), world.coming_version(name) or stored, f"job {name}"
        )
        if name not in world.projection.by_id:
            raise Conflict(f"job {name} is over", expected="a job that is not over")
        return name

    async def tasks(self, request: web.Request) -> Reply:
        query = read_query(request, TaskQuery)
        name = request.match_info["job"]
        page = self._backend.reading.tasks(
            name, state=query.state, limit=query.limit, after=query.after
        )
        return Reply(page)

    async def open_tasks(self, request: web.Request) -> Reply:
        query = read_query(request, OpenTaskQuery)
        page = self._backend.reading.open_tasks(
            state=query.state, machine=query.machine, limit=query.limit, after=query.after
        )
        return Reply(page)

    async def task(self, request: web.Request) -> Reply:
        return Reply(self._backend.reading.task(*self._task_in(request)))

    def _task_in(self, request: web.Request) -> tuple[str, int]:
        name = request.match_info["job"]
        return name, index_in(request.match_info["index"], name)

    async def why(self, request: web.Request) -> Reply:
        name, index = self._task_in(request)
        self._backend.reading.task(name, index)
        stored = self._backend.reading.job(name)
        answer = self._backend.journals.why(stored.seq, name, index)
        return Reply(WhyDocument(text=tuple(sentences(answer)), answer=answer))

    async def story(self, request: web.Request) -> Reply:
        name, index = self._task_in(request)
        task = self._backend.reading.task(name, index)
        stored = self._backend.reading.job(name)
        return Reply(
            StoryDocument(
                task=f"{name}/{task.index}",
                origin=self._backend.calendar.date(0),
                lines=tuple(self._backend.journals.story(stored.seq, name, index)),
            )
        )

    async def plan(self, request: web.Request) -> Reply:
        wanted = await read_document(request, PlanRequest)
        backend = self._backend
        jobs, seen = [], set[str]()
        for number, table in enumerate(wanted.jobs):
            job = backend.submissions.read(
                backend.world, table, f"planned-{number}", ("jobs", number)
            )
            if job.id in seen or backend.world.job_seq(job.id) is not None:
                raise UnfitDocument(
                    f"job {job.id} again", field=f"jobs[{number}].id", expected="a new id"
                )
            seen.add(job.id)
            jobs.append(job)
        tasks = sum(job.tasks for job in jobs)
        if tasks > MOST_PLANNED:
            raise UnfitDocument(
                f"{tasks:,} tasks", field="jobs", expected=f"at most {MOST_PLANNED:,} in one plan"
            )
        async with self._planning:
            copied = copy_cluster(backend.world)
            result = await asyncio.get_running_loop().run_in_executor(
                self._planner, plan, copied, backend.engines, jobs
            )
        notes = [note for job in jobs for note in backend.submissions.notes(backend.world, job)]
        return Reply(msgspec.structs.replace(result, notes=tuple(dict.fromkeys(notes))))
