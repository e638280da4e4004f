"""The agents of clusters in other processes: requests go out, and answers come back as inputs.

A world that speaks to agents over a network gives its host `RemoteAgents`. What they answer is recorded,
so that a replay needs no agent. The cell mirrors the clusters: it holds the claims that agents have
accepted for this fleet, as assumed ones, because the agents have the last word. They also know best what
is free: a claim that an agent has accepted never fails for lack of room here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import structs

from argosy.agents.committing import refused
from argosy.host import records
from argosy.host.protocols import RemoteAgents
from argosy.host.scheduler import Scheduler
from argosy.model.effects import Commit, Sample
from argosy.model.events import Committed, SampleReturned
from argosy.model.explanations import Refusal, Why
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, Outcome, ResizeMachine, Transaction

if TYPE_CHECKING:
    from argosy.host.effect_runner import EffectRunner
    from argosy.host.host import Host


class RemoteSample(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an agent has found: one row of scores, and of what is free if that was asked for, per
    machine."""

    machines: list[int] = []
    scores: list[list[int]] = []
    free: list[list[int]] = []
    drawn: int = 0
    ruled_out: dict[str, int] = {}
    #: False: it did not answer.
    reached: bool = True


class RemoteCommit(msgspec.Struct, frozen=True, omit_defaults=True):
    """The machine that has the task now, or why none has."""

    machine: int = -1
    refusal: Refusal | None = None
    #: False: the agent did not answer.
    reached: bool = True


class RemoteDesks:
    """All agents."""

    #: Agents keep count of the room that they reserve.
    reservations = 0

    def __init__(self, effects: EffectRunner, host: Host, agents: RemoteAgents) -> None:
        self._effects = effects
        self._host = host
        self._agents = agents
        self._clusters = {cluster.name for cluster in host.setup.clusters}
        #: By scheduler and token: open requests, with the scheduler's epoch.
        self._samples: dict[tuple[str, int], tuple[int, Sample]] = {}
        self._commits: dict[tuple[str, int], tuple[int, Commit]] = {}

    def __getitem__(self, cluster: str) -> RemoteDesks:
        return self

    def __contains__(self, cluster: str) -> bool:
        return cluster in self._clusters

    def sample(self, scheduler: Scheduler, effect: Sample, now: int) -> None:
        self._samples[scheduler.name, effect.token] = scheduler.epoch, effect
        self._agents.sample(scheduler.name, effect)

    def commit(self, scheduler: Scheduler, effect: Commit, now: int) -> None:
        self._commits[scheduler.name, effect.token] = scheduler.epoch, effect
        self._agents.commit(scheduler.name, effect)

    def sampled(self, scheduler: Scheduler, token: int, answer: RemoteSample) -> None:
        """An agent has answered, or will not."""
        epoch, effect = self._samples.pop((scheduler.name, token), (-1, None))
        if effect is None or epoch != scheduler.epoch:
            return
        now = self._host.runtime.now
        self._host.decisions.input(
            records.SampleAnswerRecord(now, scheduler.name, token, **structs.asdict(answer))
        )
        machines = np.array(answer.machines, np.int32)
        event = SampleReturned(
            token,
            machines,
            _table(answer.free, len(machines)),
            self._host.view.versions(machines),
            effect.cluster,
            _table(answer.scores, len(machines)),
            answer.drawn,
            answer.ruled_out,
            answer.reached,
        )
        self._host.post(now, scheduler, event)

    def committed(self, scheduler: Scheduler, token: int, answer: RemoteCommit) -> bool:
        """An agent has answered, or will not. Returns whether the task runs there: it may have been
        cancelled meanwhile."""
        epoch, effect = self._commits.pop((scheduler.name, token), (-1, None))
        if effect is None or epoch != scheduler.epoch:
            return False
        now = self._host.runtime.now
        self._host.decisions.input(
            records.CommitAnswerRecord(now, scheduler.name, token, **structs.asdict(answer))
        )
        transaction = _only(effect.transaction, answer.machine)
        if answer.refusal is None:
            outcome = self._accepted(scheduler, transaction)
        else:
            outcome = refused(answer.refusal, self._host.view.dimensions)
        self._effects.conclude(scheduler, effect, transaction, outcome, now)
        self._host.post(now, scheduler, Committed(token, outcome, answer.reached))
        return outcome.all_accepted

    def _accepted(self, scheduler: Scheduler, transaction: Transaction) -> Outcome:
        outcome = self._effects.judge(scheduler, transaction)
        if Why(int(outcome.whys[0])) is Why.NO_ROOM:
            # Something has ended there, or the machine has grown, that is not known here yet.
            self._widen(transaction)
            outcome = self._effects.judge(scheduler, transaction)
        return outcome

    def _widen(self, transaction: Transaction) -> None:
        claims, view = transaction.claims, self._host.view
        assert claims is not None
        request = np.array(view.shape_request(int(claims.shapes[0])), np.int64)
        used = (view.capacity(claims.machines) - view.free(claims.machines))[0]
        wanted = np.maximum(view.capacity(claims.machines)[0], used + request).tolist()
        capacity = Resources.of(dict(zip(view.dimensions, wanted, strict=True)))
        change = ResizeMachine(int(claims.machines[0]), capacity)
        self._host.cell.commit(Transaction(OPERATOR, machines=(change,)))


def _only(transaction: Transaction, machine: int) -> Transaction:
    """The claim of the machine that was chosen; of the first if none was."""
    claims = transaction.claims
    assert claims is not None
    machines = np.array([machine], np.int32) if machine >= 0 else claims.machines
    chosen = structs.replace(claims, machines=machines, alternatives=None)
    return structs.replace(transaction, claims=chosen, assume=True)


def _table(rows: list[list[int]], count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.array(rows, np.int64).reshape(count, -1) if rows else np.empty((count, 0), np.int64)
