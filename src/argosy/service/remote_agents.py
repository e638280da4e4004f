"""Carries samples and commits of a fleet to agents over HTTP, and their answers back to the world.

A commit has a key. If its answer does not come, it is sent again with the same key, so that it is
carried out once; if the agent stays away, the scheduler goes on to another candidate, and the agent is
told to undo the commit, as soon as it is back. What an agent runs for this fleet that nobody here knows
of, left by a crash, is undone as well. So a task never runs twice for good.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec
import numpy as np
from msgspec.structs import replace

from argosy.agents.builtin import LOCATION
from argosy.agents.learned import NEAR_JOB
from argosy.api.agent_values import (
    CommitInfo,
    CommitOrder,
    CommitPage,
    CommitResult,
    SampleRequest,
    SampleResult,
)
from argosy.api.values import MachinePage, ProblemDocument, TaskEvent
from argosy.client.agent_connection import AgentLink, AgentReply, AgentUnreached
from argosy.client.asynchronous import AsyncClient
from argosy.host.host import Host
from argosy.host.remote_desks import RemoteCommit, RemoteSample
from argosy.host.whereabouts import JobWhereabouts
from argosy.model.effects import Commit, Sample
from argosy.model.errors import ArgosyError
from argosy.model.explanations import OF_ONE_MACHINE, Refusal, Why
from argosy.model.jobs import Job, index_of, job_of
from argosy.model.machines import CLUSTER_GROUP, Machine
from argosy.model.resources import Resources
from argosy.service.live import LiveCluster
from argosy.service.measured_distances import MeasuredDistances
from argosy.service.remote_runner import RemotePlace, RemoteRunner
from argosy.workloads.live_jobs import live_job_table
from argosy.worlds.local.turn import TryResult
from argosy.worlds.local.world import LocalWorld

T = TypeVar("T")

#: How often a commit is sent before the agent is taken to be away.
COMMIT_ATTEMPTS: Final = 3
#: Seconds until an agent that is away is tried again: doubles each time.
FIRST_REST: Final = 0.2
LONGEST_REST: Final = 10.0
#: Seconds between two measurements of the distance to an agent.
MEASURED_EVERY: Final = 5.0
_SAMPLE: Final = msgspec.json.Decoder(SampleResult)
_COMMIT: Final = msgspec.json.Decoder(CommitResult)
_INFO: Final = msgspec.json.Decoder(CommitInfo)
_COMMITS: Final = msgspec.json.Decoder(CommitPage)
_MACHINES: Final = msgspec.json.Decoder(MachinePage)
_PROBLEM: Final = msgspec.json.Decoder(ProblemDocument)
_ENCODE: Final = msgspec.json.Encoder().encode
_REASONS: Final = {why.name.lower(): why for why in Why}
_UNREACHED: Final = RemoteSample(reached=False)
#: States of a task that has lost its place for another reason than its own end.
_TAKEN_AWAY: Final = ("cancelled", "abandoned")


def mirrored(cluster: str, machine: str) -> str:
    """What a cluster's machine is called here: names of different clusters may be the same."""
    return f"{cluster}/{machine}"


class FederatedAgents:
    """`name` begins the keys of all commits; `links` are by the names of clusters."""

    def __init__(
        self,
        name: str,
        links: Mapping[str, AgentLink],
        log: Callable[[str], None],
        distances: MeasuredDistances | None = None,
    ) -> None:
        self._name = name
        self._links = links
        self._log = log
        self.distances = distances or MeasuredDistances()
        #: Of the present host.
        self._whereabouts: tuple[Host, JobWhereabouts] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        #: Keys of commits that are asked for, or being undone.
        self._under_way: set[str] = set()
        #: Machines by cluster and name, for one state of one host.
        self._numbers: dict[str, dict[str, int]] = {}
        self._state: tuple[Host | None, int] = (None, -1)
        self._away: set[str] = set()
        self._complaint = ""
        self.runner: RemoteRunner
        self.cluster: LiveCluster

    def start(self) -> None:
        """Watches all agents, until `close`."""
        self._adopt()
        for name in self._links:
            self._spawn(self._follow(name))
            self._spawn(self._measure(name))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for link in self._links.values():
            link.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log(f"an internal error: {type(error).__name__}: {error}")

    def _tell(self, host: Host, action: Callable[[LocalWorld], T]) -> T | None:
        """Gives an input to the world, unless that has another host by now."""
        if self.cluster.world.host is not host:
            return None
        return self.cluster.tell(action)

    # Requests of the host.

    def sample(self, scheduler: str, effect: Sample) -> None:
        self._spawn(self._sample(scheduler, effect))

    def commit(self, scheduler: str, effect: Commit) -> None:
        self._spawn(self._commit(scheduler, effect))

    async def _sample(self, scheduler: str, effect: Sample) -> None:
        # Whoever calls is building the world, perhaps: it is there when this begins.
        host, cluster = self.cluster.world.host, effect.cluster
        answer = _UNREACHED
        try:
            reply = await self._links[cluster].ask("POST", "/v1/sample", self._question(effect))
            if reply.status == HTTPStatus.OK:
                answer = self._sample_answer(effect, _SAMPLE.decode(reply.body))
            else:
                self._complain(f"{cluster} refuses to sample: {_problem(reply).detail}")
        except (AgentUnreached, msgspec.MsgspecError) as error:
            self._note_away(cluster, error)
        self._tell(host, lambda world: world.host.sampled(scheduler, effect.token, answer))

    def _question(self, effect: Sample) -> bytes:
        """Plug-ins may want to know more of a task that has demands: what is near, and to what."""
        if not effect.demands:
            return _sample_request(effect)
        near = effect.demands.get(NEAR_JOB)
        return _sample_request(
            effect,
            self.distances.around(effect.cluster),
            {} if near is None else {near: self._places_of(near)},
        )

    def _places_of(self, job: str) -> tuple[str, ...]:
        host = self.cluster.world.host
        if self._whereabouts is None or self._whereabouts[0] is not host:
            self._whereabouts = host, JobWhereabouts(host)
        machines = self._whereabouts[1].machines_of(job)
        clusters = {host.view.machine_name(each).partition("/")[0] for each in machines}
        return tuple(sorted(map(self.distances.place_of, clusters)))

    async def _measure(self, cluster: str) -> None:
        """Takes the time of a round trip now and then: networks change."""
        while True:
            with contextlib.suppress(AgentUnreached):
                await self.distances.measure(cluster, self._links[cluster])
            await asyncio.sleep(MEASURED_EVERY)

    def _sample_answer(self, effect: Sample, found: SampleResult) -> RemoteSample:
        """What the agent says, in terms of the mirror. One that answers nonsense counts as away."""
        cluster, pipeline = effect.cluster, effect.pipeline
        assert pipeline is not None
        scores, free = found.scores, found.free
        rows = len(found.machines)
        if len(scores) != rows or len(free) not in (0, rows):
            raise AgentUnreached(f"a sample of {rows} machines with {len(scores)} rows of scores")
        if any(len(row) != len(pipeline.scores) for row in scores):
            raise AgentUnreached(f"scores that are not of {len(pipeline.scores)} plug-ins")
        if free:
            free = _columns(free, found.resources, self.cluster.world.host.view.dimensions)
        known = self._known(cluster)
        machines = [known.get(name, -1) for name in found.machines]
        if -1 in machines:
            # They have joined: next time, they are known.
            self._spawn(self._learn_machines(cluster))
            kept = [at for at, machine in enumerate(machines) if machine >= 0]
            machines, scores = [machines[at] for at in kept], [scores[at] for at in kept]
            free = [free[at] for at in kept] if free else free
        return RemoteSample(
            machines=machines,
            scores=scores,
            free=free,
            drawn=found.drawn,
            ruled_out=found.ruled_out,
        )

    def _known(self, cluster: str) -> dict[str, int]:
        world = self.cluster.world
        state = (world.host, world.projection.machine_version)
        if state != self._state:
            self._state = state
            self._numbers = {name: {} for name in self._links}
            for name, number in world.machine_numbers().items():
                where, _, machine = name.partition("/")
                self._numbers.setdefault(where, {})[machine] = number
        return self._numbers[cluster]

    async def _commit(self, scheduler: str, effect: Commit) -> None:
        world = self.cluster.world
        host, cluster = world.host, effect.cluster
        claims = effect.transaction.claims
        assert claims is not None
        task = int(claims.tasks[0])
        job, index = host.jobs.job(job_of(task)), index_of(task)
        key = f"{self._name}.{scheduler}.{world.life}.{effect.token}"
        self._under_way.add(key)
        where = RemotePlace(cluster, key)
        answer, is_sure = await self._ask_commit(where, effect, job, index, host)

        def commit(world: LocalWorld) -> bool:
            if answer.refusal is None:
                self.runner.place(job.id, index, where)
                world.note_key(f"placed/{key}", f"{index}/{cluster}".encode(), job.id)
            return world.host.committed(scheduler, effect.token, answer)

        runs = self._tell(host, commit)
        if runs or (is_sure and answer.refusal is not None):
            self._under_way.discard(key)
        else:
            # It may be committed, and nobody wants it.
            self.release(where)

    async def _ask_commit(
        self, where: RemotePlace, effect: Commit, job: Job, index: int, host: Host
    ) -> tuple[RemoteCommit, bool]:
        """The agent's answer, and whether it is one."""
        claims, pipeline = effect.transaction.claims, effect.pipeline
        assert claims is not None
        assert pipeline is not None
        numbers = [int(claims.machines[0])]
        if claims.alternatives is not None:
            numbers += [each for each in claims.alternatives[0].tolist() if each >= 0]
        names = [host.view.machine_name(each).partition("/")[2] for each in numbers]
        order = CommitOrder(
            job=live_job_table(_single(job, index, where.key)),
            machines=tuple(names),
            checks=pipeline.checks,
            commit=pipeline.commit,
            reservations=pipeline.reservations,
        )
        body, link = _ENCODE(order), self._links[where.cluster]
        gone = Refusal(Why.MACHINE_GONE, machine=numbers[0])
        for attempt in range(COMMIT_ATTEMPTS):
            try:
                reply = await link.ask("POST", "/v1/commits", body, key=where.key)
                if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    # What has become of it, not even the agent knows.
                    raise AgentUnreached(_problem(reply).detail)
                return self._commit_answer(
                    where.cluster, reply, dict(zip(names, numbers, strict=True))
                ), True
            except (AgentUnreached, msgspec.MsgspecError) as error:
                self._note_away(where.cluster, error)
                if attempt + 1 < COMMIT_ATTEMPTS:
                    await asyncio.sleep(FIRST_REST * attempt)
        return RemoteCommit(refusal=gone, reached=False), False

    def _commit_answer(
        self, cluster: str, reply: AgentReply, numbers: Mapping[str, int]
    ) -> RemoteCommit:
        first = next(iter(numbers.values()))
        if reply.status in (HTTPStatus.OK, HTTPStatus.CREATED):
            found = _COMMIT.decode(reply.body)
            return RemoteCommit(machine=numbers.get(found.machine, first))
        problem = _problem(reply)
        if reply.status == HTTPStatus.CONFLICT and problem.refused is not None:
            refused = problem.refused
            why = _REASONS.get(refused.why, Why.MACHINE_GONE)
            refusal = Refusal(
                # Whatever else the agent has against a machine, another one may do.
                why if why in OF_ONE_MACHINE else Why.MACHINE_GONE,
                machine=numbers.get(refused.machine, first),
                dimension=refused.resource,
                lacking=refused.lacking,
            )
            return RemoteCommit(refusal=refusal)
        self._complain(f"{cluster} refuses a commit: {problem.detail}")
        return RemoteCommit(refusal=Refusal(Why.MACHINE_GONE, machine=first), reached=False)

    # Undoing.

    def release_unwritten(self) -> None:
        """The world is built from what is on the disk: what was committed since is not known there."""
        for where in self.runner.take_unwritten():
            self.release(where)

    def release(self, where: RemotePlace) -> None:
        self._under_way.add(where.key)
        self._spawn(self._release(where))

    async def _release(self, where: RemotePlace) -> None:
        """Until the agent has heard."""
        rest = FIRST_REST
        while True:
            try:
                path = f"/v1/commits/{quote(where.key, safe='')}"
                reply = await self._links[where.cluster].ask("DELETE", path)
                if reply.status == HTTPStatus.OK:
                    self._under_way.discard(where.key)
                    return
                self._complain(f"{where.cluster} undoes nothing: {_problem(reply).detail}")
            except (AgentUnreached, msgspec.MsgspecError) as error:
                self._note_away(where.cluster, error)
            await asyncio.sleep(rest)
            rest = min(2 * rest, LONGEST_REST)

    def _complain(self, text: str) -> None:
        """Once, until something else is the matter."""
        if text != self._complaint:
            self._complaint = text
            self._log(text)

    def _note_away(self, cluster: str, error: Exception) -> None:
        if cluster not in self._away:
            self._away.add(cluster)
            self._log(f"{cluster} is away: {error}")

    # What agents tell by themselves.

    def _adopt(self) -> None:
        """Finds the commits of tries that an earlier server has left."""
        world = self.cluster.world
        rows = world.store.rows(
            "SELECT keys.key, keys.digest, keys.job FROM keys JOIN jobs ON jobs.id = keys.job "
            "WHERE keys.key > 'placed/' AND keys.key < 'placed0' AND jobs.ended IS NULL "
            "ORDER BY keys.at"
        )
        latest: dict[tuple[str, int], RemotePlace] = {}
        for key, digest, job in rows:
            index, _, cluster = bytes(digest).decode().partition("/")
            latest[job, int(index)] = RemotePlace(cluster, key.removeprefix("placed/"))
        for number, live in world.tries.items():
            task = world.host.jobs.name(job_of(live.task)), index_of(live.task)
            if task in latest and latest[task].cluster in self._links:
                self.runner.adopt_as(number, *task, latest[task])
            else:
                self._lose(number)

    async def _follow(self, cluster: str) -> None:
        """Hears of the ends of this fleet's tasks, as long as the server runs."""
        rest, link = FIRST_REST, self._links[cluster]
        while True:
            try:
                await self._learn_machines(cluster)
                position = await self._reconcile(cluster)
                self._away.discard(cluster)
                rest = FIRST_REST
                async with AsyncClient(
                    str(link.endpoint), token=link.token, patience=0, tls=link.tls
                ) as client:
                    async for streamed in client.events(after=position):
                        if isinstance(streamed.event, TaskEvent):
                            self._heard(streamed.event)
            except (ArgosyError, msgspec.MsgspecError) as error:
                self._note_away(cluster, error)
            await asyncio.sleep(rest)
            rest = min(2 * rest, LONGEST_REST)

    def _heard(self, event: TaskEvent) -> None:
        if event.job.startswith(f"{self._name}."):
            self._over(event.job, event.state, event.exit_status, event.reason)

    def _over(self, key: str, state: str, exit_status: int | None, reason: str) -> None:
        if state in _TAKEN_AWAY and (number := self.runner.number_of(key)) is not None:
            self._lose(number)
        elif state == "finished":
            self.runner.ended(key, TryResult(0))
        elif state == "failed":
            self.runner.ended(key, TryResult(exit_status or 1, reason))

    def _lose(self, number: int) -> None:
        """Somebody else has ended it: the fleet places the task anew."""
        live = self.cluster.world.tries.get(number)
        if live is not None:
            task = np.array([live.task], np.int64), np.array([live.incarnation], np.int64)
            self.cluster.tell(lambda world: world.host.forget(*task, Why.MACHINE_GONE))

    async def _reconcile(self, cluster: str) -> str:
        """Brings what the agent runs for this fleet in line with what is known here. Returns the event
        after which it may be otherwise again."""
        found: set[str] = set()
        after, position = f"{self._name}.", ""
        while True:
            path = f"/v1/commits?after={quote(after, safe='')}"
            page = _COMMITS.decode(_expect(await self._links[cluster].ask("GET", path)))
            position = position or page.position
            mine = [item.key for item in page.items if item.key.startswith(f"{self._name}.")]
            found.update(mine)
            if page.next is None or len(mine) < len(page.items):
                break
            after = page.next
        for key in sorted(found):
            if not self.runner.is_known(key) and key not in self._under_way:
                self._log(f"{cluster} runs {key}, which nobody here knows of")
                self.release(RemotePlace(cluster, key))
        for key in sorted(set(self.runner.keys_in(cluster)) - found):
            reply = await self._links[cluster].ask("GET", f"/v1/commits/{quote(key, safe='')}")
            if reply.status == HTTPStatus.NOT_FOUND:
                self._over(key, "cancelled", None, "")
            else:
                info = _INFO.decode(_expect(reply))
                self._over(key, info.state, info.exit_status, info.reason)
        return position

    async def _learn_machines(self, cluster: str) -> None:
        """Machines that have joined the cluster."""
        location = self.distances.location_of(cluster)
        for machine in await read_machines(self._links[cluster], cluster, location):
            name = machine.name.partition("/")[2]
            if name not in self._known(cluster):
                self.cluster.tell(lambda world, machine=machine: world.add_machine(machine))  # type: ignore[misc]


async def read_machines(link: AgentLink, cluster: str, location: str = "") -> list[Machine]:
    """A cluster's machines, as they are called here; those that state no location are at the
    cluster's."""
    known = {LOCATION: location} if location else {}
    found: list[Machine] = []
    after = ""
    while True:
        path = "/v1/machines" + (f"?after={quote(after, safe='')}" if after else "")
        page = _MACHINES.decode(_expect(await link.ask("GET", path)))
        for info in page.items:
            capacity = Resources.of(info.capacity)
            joins = {**info.joins, CLUSTER_GROUP: (cluster,)}
            name = mirrored(cluster, info.name)
            found.append(Machine(name, capacity, known | info.attributes, joins))
        if page.next is None:
            return found
        after = page.next


def _expect(reply: AgentReply) -> bytes:
    if reply.status != HTTPStatus.OK:
        raise AgentUnreached(_problem(reply).detail)
    return reply.body


def _problem(reply: AgentReply) -> ProblemDocument:
    try:
        return _PROBLEM.decode(reply.body)
    except msgspec.MsgspecError:
        text = f"status {reply.status}"
        return ProblemDocument(type="", title="", status=reply.status, detail=text)


def _sample_request(
    effect: Sample,
    distances: dict[str, int] | None = None,
    jobs: dict[str, tuple[str, ...]] | None = None,
) -> bytes:
    pipeline = effect.pipeline
    assert pipeline is not None
    return _ENCODE(
        SampleRequest(
            request={name: amount for name, amount in effect.request.items() if amount},
            requires=effect.requires,
            demands=effect.demands,
            share=pipeline.share,
            count=max(1, effect.count),
            strategy=pipeline.strategy,
            filters=pipeline.filters,
            scores=pipeline.scores,
            rounds=pipeline.rounds,
            limit=pipeline.limit,
            free=pipeline.free,
            overshoot=pipeline.overshoot,
            repeats=pipeline.repeats,
            distances=distances or {},
            jobs=jobs or {},
        )
    )


def _columns(
    rows: list[list[int]], resources: tuple[str, ...], dimensions: tuple[str, ...]
) -> list[list[int]]:
    """The amounts in the order of the mirror's dimensions; a resource that a cluster does not have is
    not free there."""
    if any(len(row) != len(resources) for row in rows):
        raise AgentUnreached(f"amounts that are not of {len(resources)} resources")
    places = [resources.index(name) if name in resources else -1 for name in dimensions]
    return [[row[at] if at >= 0 else 0 for at in places] for row in rows]


def _single(job: Job, index: int, key: str) -> Job:
    """One task as a job of its own. Failures are told here, and retried from here."""
    group = replace(job.group_at(index), count=1, retries=0, backoff=0)
    return replace(
        job, id=key, groups=(group,), gang=False, constraints=(), name=f"{job.id}/{index}"
    )
