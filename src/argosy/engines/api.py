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
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import msgspec

from argosy.cell.view import Snapshot, View
from argosy.cell.waits import WaitRules, WaitView, new_wait_view
from argosy.model.budgets import UNTIMED, Budget, Budgets
from argosy.model.constraints import Constraint
from argosy.model.effects import Effect, Question
from argosy.model.events import Decision, Event
from argosy.model.jobs import Job
from argosy.model.machine_model import MachineModel
from argosy.model.machines import Cluster
from argosy.model.random import Random
from argosy.model.units import Micros


class Finishes(Enum):
    """Which `TaskFinished` events a scheduler receives, from cheapest to most expensive."""

    NONE = "none"
    #: Every task that this scheduler placed, at the instant it ends.
    OWN = "own"
    #: Every task in the cell, over the network: like any message, an event may come late, twice or
    #: never.
    ALL = "all"
    #: As `ALL`, but the engine is not called: the host creates a wait view, passes it as
    #: `Context.waits`, and feeds it with the ends of tasks and the `WaitUpdate` messages of peers.
    #: Ends of the scheduler's own tasks are never lost.
    WAITS = "waits"


class Capabilities(msgspec.Struct, frozen=True):
    """What an engine can do and needs, for worlds and for people who choose one."""

    #: Claims machines with `Commit`; otherwise puts tasks into machines' queues with `Enqueue`.
    transactions: bool = False
    queues: bool = False
    #: Sends messages to its peers.
    gossip: bool = False
    gang: bool = False
    preemption: bool = False
    #: Respects the placement constraints of jobs.
    constraints: bool = False
    #: Tries machines that tasks would rather run on first (`TaskGroup.wishes`).
    wishes: bool = False
    finishes: Finishes = Finishes.NONE
    #: Adds extra workers to jobs with phases, and releases them again; receives `PhaseFinished`.
    malleable: bool = False
    #: Must be the only scheduler of its jobs: several replicas would be a different architecture.
    alone: bool = False
    #: Also receives `MachineJoined`, `MachineLost` and `MachineChanged`.
    machine_events: bool = False
    #: Also receives `UsageObserved`.
    observations: bool = False


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every engine's settings: typed values with defaults and a docstring per class."""

    #: Settings that this engine no longer has, each with its replacement.
    moved: ClassVar[Mapping[str, str]] = {}


class PaperPreset(msgspec.Struct, frozen=True):
    """A published configuration, as in its paper or in the simulator of its authors: the engine's
    settings, how machines queue, and the number of schedulers."""

    settings: dict[str, Any]
    machines: MachineModel
    schedulers: int = 1
    #: How jobs are distributed among the schedulers.
    split: Literal["hash", "round-robin", "random", "owner"] = "random"
    #: How long a message takes.
    hop: Micros = Micros(500)
    #: Whether a comparison of all published configurations includes it.
    is_compared: bool = True


class Context(msgspec.Struct, frozen=True):
    """A scheduler's identity (name, peers, random stream) and surroundings (constraints, budgets,
    clusters)."""

    name: str
    peers: tuple[str, ...]
    random: Random
    #: The operator's placement constraints on the cell.
    constraints: tuple[Constraint, ...] = ()
    #: The expected waits at machines, kept up to date by the host; only with `Finishes.WAITS`.
    waits: WaitView | None = None
    #: Budgets for long decisions. Those of a world use its clock; those in tests never run out.
    budgets: Budgets = UNTIMED
    #: In a federation: its clusters, whose machines are the sets of the node group ``cluster``, and the
    #: scheduler's place (empty: none).
    clusters: tuple[Cluster, ...] = ()
    place: str = ""
    #: Whether explanations of placements (`Commit.explanation`, `Enqueue.explanation`) are kept. If not,
    #: an engine may leave them out; it still explains tasks that have no machine.
    keeps_explanations: bool = True
    #: Whether decisions take their real computing time, not what the engine says.
    is_measured: bool = False


@runtime_checkable
class Deliberates(Protocol):
    """Implemented by engines whose decisions may run in the background.

    `deliberate` may run in another thread or process while `handle` continues, and several calls may
    run at once. So it must read only its arguments and what the engine never changes (settings, name).
    It may cache work for later calls if that changes no answer and `handle` does not touch the cache.
    Shapes and tags that are new to the cell are numbered in `handle`, not on a snapshot.
    """

    #: Plain values carried by `Deliberate` and `Deliberated`.
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
class SupportsSomeConstraints(Protocol):
    """Optional: which constraints the engine follows. It ignores the others. Without
    `Capabilities.constraints`, it follows only those that are about one job."""

    @classmethod
    def supports(cls, constraint: Constraint) -> bool: ...


def supports_constraint(engine: type[Engine], constraint: Constraint) -> bool:
    """Whether the engine follows a constraint."""
    known: object = engine
    if isinstance(known, SupportsSomeConstraints):
        return known.supports(constraint)
    return engine.capabilities.constraints


def supports_some_constraints(engine: type[Engine]) -> bool:
    known: object = engine
    return engine.capabilities.constraints or isinstance(known, SupportsSomeConstraints)


@runtime_checkable
class HasWaitRules(Protocol):
    """Optional, with `Finishes.WAITS`: how the wait view computes expected waits."""

    @classmethod
    def wait_rules(cls, settings: Settings) -> WaitRules: ...


def wait_view_for(engine: type[Engine], settings: Settings) -> WaitView | None:
    """The wait view for a scheduler that starts; None if its engine does not use one."""
    if engine.capabilities.finishes is not Finishes.WAITS:
        return None
    known: object = engine
    rules = known.wait_rules(settings) if isinstance(known, HasWaitRules) else WaitRules()
    return new_wait_view(rules)


@runtime_checkable
class HasPaperPresets(Protocol):
    """Optional: the engine's published configurations by name. The engine's own name stands for the
    first."""

    published: ClassVar[Mapping[str, PaperPreset]]


@runtime_checkable
class ReportsMetrics(Protocol):
    """Optional: metrics about the scheduler, for the summary of a run and for `/metrics`. Asking for
    them changes nothing: a live cluster may be asked at any time, and its journal does not say when."""

    def figures(self) -> dict[str, float]: ...


class NeededExtra(msgspec.Struct, frozen=True):
    """An optional part of the installation that is missing."""

    #: The package's extra that installs it.
    extra: str
    #: The alternative, as the end of a sentence.
    otherwise: str = ""


@runtime_checkable
class NeedsExtra(Protocol):
    """Optional: which part of the installation is missing for the given settings."""

    @classmethod
    def lack(cls, settings: Settings) -> NeededExtra | None: ...


class RunFacts(msgspec.Struct, frozen=True):
    """What is known of a run before it begins."""

    #: Resources that some machine has.
    dimensions: tuple[str, ...]
    machines: int
    #: Per node group, how many sets it has.
    groups: dict[str, int]
    #: Groups in which some machine is in several sets.
    overlapping: frozenset[str]
    #: The operator's placement constraints on the cell.
    constraints: tuple[Constraint, ...]
    jobs: Sequence[Job]


class SettingMismatch(msgspec.Struct, frozen=True):
    """A setting that does not fit the run."""

    #: Where it is among the settings: a name, or a name and an index.
    place: tuple[str | int, ...]
    problem: str
    expected: str | None = None
    hint: str | None = None


@runtime_checkable
class ChecksSettings(Protocol):
    """What an engine may have besides: settings that make sense only for some cells and jobs. A mismatch
    is the user's mistake, and is reported before the run begins."""

    @classmethod
    def mismatch(cls, settings: Settings, facts: RunFacts) -> SettingMismatch | None: ...


@runtime_checkable
class Engine(Protocol):
    """One scheduler: an engine with settings and state."""

    name: ClassVar[str]
    #: One sentence for `argosy engines`.
    summary: ClassVar[str]
    settings_type: ClassVar[type[Settings]]
    capabilities: ClassVar[Capabilities]

    def __init__(self, settings: Settings, context: Context) -> None: ...

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]: ...
