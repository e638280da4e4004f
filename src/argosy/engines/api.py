"""The contract of every engine.

    effects = engine.handle(event, view, now)

An engine reads the cluster through `view`, which is valid only until `handle` returns. It never reads a
clock, draws entropy, opens a socket, starts a thread or logs: time comes as `now`, randomness as the
`Context`'s stream, and the limit of a decision as a budget. Expected refusals are values; an exception
from `handle` is a bug in the engine.

A long decision need not block other events: `handle` asks for it with the effect `Deliberate`, and the
world answers with `Deliberated`. See `Deliberates` and `DeliberatesInPlace`.

An engine must place, enqueue, abandon (with a reason) or explain every task it was given, and return the
same effects for the same events. `argosy.testing.conformance` checks this for every registered engine.
The world releases an engine's claims when tasks end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Protocol, runtime_checkable

import msgspec

from argosy.cell.view import Snapshot, View
from argosy.cell.waits import WaitRules, WaitView, new_wait_view
from argosy.model.budgets import UNTIMED, Budget, Budgets
from argosy.model.constraints import Constraint
from argosy.model.effects import Effect, Question
from argosy.model.events import Decision, Event
from argosy.model.machine_model import MachineModel
from argosy.model.machines import Cluster
from argosy.model.random import Random


class Finishes(Enum):
    """Which `TaskFinished` events a scheduler is woken for; each kind costs more than the one before."""

    NONE = "none"
    #: Every task that this scheduler placed, at the instant it ends.
    OWN = "own"
    #: Every task in the cell, over the network: late, lost or twice like any message.
    ALL = "all"
    #: As `ALL`, but the engine is not called: the host creates a wait view, passes it as
    #: `Context.waits`, and feeds it with the ends of tasks and the `WaitUpdate` messages of peers.
    #: Ends of the scheduler's own tasks are never lost.
    WAITS = "waits"


class Capabilities(msgspec.Struct, frozen=True):
    """What an engine can do and needs, for worlds and for people who choose one."""

    #: Claims through `Commit`; otherwise tasks go to machine-side queues by `Enqueue`.
    transactions: bool = False
    queues: bool = False
    #: Sends messages to its peers.
    gossip: bool = False
    gang: bool = False
    preemption: bool = False
    #: Follows the placement constraints of jobs.
    constraints: bool = False
    finishes: Finishes = Finishes.NONE
    #: Adds extra workers to jobs with phases, and releases them again; gets `PhaseFinished`.
    malleable: bool = False
    #: Must be the only scheduler of its jobs: several replicas would be another architecture.
    alone: bool = False
    #: Also gets `MachineJoined`, `MachineLost` and `MachineChanged`.
    machine_events: bool = False


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every engine's settings: typed values with defaults and a docstring per class."""

    #: Settings that this engine no longer has, each with its replacement.
    moved: ClassVar[Mapping[str, str]] = {}


class PaperPreset(msgspec.Struct, frozen=True):
    """One form of a system as its paper's own simulation has it: what the engine is told, how machines
    queue, and how many schedulers there are, each job going to one of them at random."""

    settings: dict[str, Any]
    machines: MachineModel
    schedulers: int = 1


class Context(msgspec.Struct, frozen=True):
    """Who the scheduler is: its name, the names of its peers (replicas), and its random stream; and
    what is in its world: constraints, and who starts budgets."""

    name: str
    peers: tuple[str, ...]
    random: Random
    #: The operator's placement constraints on the cell.
    constraints: tuple[Constraint, ...] = ()
    #: The expected waits at machines, for an engine with `Finishes.WAITS`: the host feeds it.
    waits: WaitView | None = None
    #: Budgets for decisions that could take long. A world's use its clock; those of tests never end.
    budgets: Budgets = UNTIMED
    #: In a federation: its clusters, whose machines are the sets of the node group ``cluster``, and the
    #: place where the scheduler is (empty: nowhere in particular).
    clusters: tuple[Cluster, ...] = ()
    place: str = ""


@runtime_checkable
class Deliberates(Protocol):
    """What an engine has besides whose decisions may run beside its loop.

    `deliberate` may run in another thread or process while `handle` goes on, several times at once. So
    it reads nothing but its arguments and what the engine never changes (settings, name). What it keeps
    to save the next one work changes no answer, and `handle` does not touch it. Shapes and tags that
    are new to the cell are numbered in `handle`, not on a snapshot.
    """

    #: The plain values that `Deliberate` and `Deliberated` carry.
    question_type: ClassVar[type[Question]]
    decision_type: ClassVar[type[Decision]]

    def deliberate(self, question: Question, snapshot: Snapshot, budget: Budget) -> Decision: ...


@runtime_checkable
class DeliberatesInPlace(Protocol):
    """What an engine has instead of `Deliberates` whose decisions need, and change, state that is too
    large to copy.

    From `Deliberate` until `Deliberated`, this state is lent to `deliberate_in_place`, which may run in
    another thread. Meanwhile `handle` neither reads nor writes it, and asks no other question. There is
    no snapshot: whatever of the cell matters is put into the state before. There is no budget: the same
    state and question always give the same decision and leave the same state, because a replay decides
    again. After a crash, the state belongs to a deliberation that nobody waits for.
    """

    question_type: ClassVar[type[Question]]
    decision_type: ClassVar[type[Decision]]

    def deliberate_in_place(self, question: Question) -> Decision: ...


@runtime_checkable
class HasWaitRules(Protocol):
    """What an engine with `Finishes.WAITS` may have besides: how its wait view reckons."""

    @classmethod
    def wait_rules(cls, settings: Settings) -> WaitRules: ...


def wait_view_for(engine: type[Engine], settings: Settings) -> WaitView | None:
    """What a host puts into the context of a scheduler that begins; none, if the engine wants none."""
    if engine.capabilities.finishes is not Finishes.WAITS:
        return None
    known: object = engine
    rules = known.wait_rules(settings) if isinstance(known, HasWaitRules) else WaitRules()
    return new_wait_view(rules)


@runtime_checkable
class HasPaperPresets(Protocol):
    """What an engine may have besides: the forms in which it has been published, by name. The first is
    also known by the engine's own."""

    published: ClassVar[Mapping[str, PaperPreset]]


@runtime_checkable
class ReportsMetrics(Protocol):
    """What an engine may have besides: numbers about itself, for the summary of a run."""

    def figures(self) -> dict[str, float]: ...


class NeededExtra(msgspec.Struct, frozen=True):
    """An optional part of the installation that is not there."""

    #: The extra of the package that installs it.
    extra: str
    #: What to do instead, as the end of a sentence.
    otherwise: str = ""


@runtime_checkable
class NeedsExtra(Protocol):
    """What an engine may have besides: what of the installation it lacks to work with some settings."""

    @classmethod
    def lack(cls, settings: Settings) -> NeededExtra | None: ...


@runtime_checkable
class Engine(Protocol):
    """One scheduler: an instance of an engine with its settings and state."""

    name: ClassVar[str]
    #: One sentence for `argosy engines`.
    summary: ClassVar[str]
    settings_type: ClassVar[type[Settings]]
    capabilities: ClassVar[Capabilities]

    def __init__(self, settings: Settings, context: Context) -> None: ...

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]: ...
