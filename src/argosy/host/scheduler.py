"""The schedulers of a fleet, and which of them gets which job."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from argosy.cell.waits import WaitView
from argosy.engines.api import (
    Context,
    DeliberatesInPlace,
    Engine,
    Finishes,
    ReportsMetrics,
    Settings,
    wait_view_for,
)
from argosy.host.busy_time import BusyTime
from argosy.model.budgets import UNTIMED, Budgets
from argosy.model.constraints import Constraint
from argosy.model.errors import SettingError
from argosy.model.jobs import Job
from argosy.model.machines import Cluster
from argosy.model.random import Random
from argosy.model.scenario import AsTold, FleetEntry, Measured


class Scheduler:
    """One scheduler: its engine, while it is alive, and its counters.

    `epoch` grows with every crash; what was sent to an earlier epoch is dropped on arrival.
    """

    #: After so many events the host looks for progress for the first time.
    first_look: ClassVar[int] = 10_000

    def __init__(
        self,
        *,
        index: int,
        name: str,
        entry: FleetEntry,
        engine_type: type[Engine],
        settings: Settings,
        peers: tuple[str, ...],
        number: int,
        random: Random,
        constraints: tuple[Constraint, ...] = (),
        budgets: Budgets = UNTIMED,
        clusters: tuple[Cluster, ...] = (),
        place: str = "",
        keeps_explanations: bool = True,
    ) -> None:
        self.index = index
        self.name = name
        self.entry = entry
        self.engine_type = engine_type
        self.settings = settings
        self.peers = peers
        #: The cell's number for this scheduler.
        self.number = number
        self.capabilities = engine_type.capabilities
        self.follows_constraints = self.capabilities.constraints
        self.engine: Engine | None = None
        #: The engine again, if its long decisions are made in place.
        self.in_place: DeliberatesInPlace | None = None
        #: What its engine, while it is alive, knows of expected waits; none, if it wants no such view.
        self.waits: WaitView | None = None
        #: Dead for longer than the fail-over time: its jobs are up for takeover.
        self.is_given_up = False
        self.epoch = 0
        #: Events that its engine has handled, and at how many the host looks for progress next.
        self.handled = 0
        self.next_look = self.first_look
        self.jobs = 0
        #: Decision time by lane; most engines have a single, unnamed lane.
        self.lanes: defaultdict[str, BusyTime] = defaultdict(BusyTime)
        #: Successful and conflicting transactions, by day of the virtual clock.
        self.success_days: Counter[int] = Counter()
        self.conflict_days: Counter[int] = Counter()
        self.transactions = 0
        #: Transactions with no refusals; transactions with a conflict.
        self.successes = 0
        self.conflicts = 0
        self.refused: Counter[int] = Counter()
        self.messages_sent = 0
        #: Entries of the messages in which it told its peers of placements, once for each peer.
        self.placements_told = 0
        self.crashes = 0
        #: Whether decision time is measured; computing time since the last decision, in nanoseconds.
        self.is_measured = isinstance(entry.decision_time, Measured)
        #: Whether decisions take as long as the engine says.
        self.is_as_told = isinstance(entry.decision_time, AsTold)
        self.computed = 0
        #: Set by the operator.
        self._constraints = constraints
        self._random = random
        self.budgets = budgets
        self._clusters = clusters
        self._place = place
        self._keeps_explanations = keeps_explanations
        self.decision_random = random.child(f"decisions of {name}")

    @property
    def label(self) -> str:
        """The scheduler's and the engine's name, for messages."""
        return f"{self.name} ({self.entry.engine})"

    @property
    def is_alive(self) -> bool:
        return self.engine is not None

    @property
    def hears_all(self) -> bool:
        return self.capabilities.finishes is Finishes.ALL

    def take_computed(self) -> int:
        """Microseconds of computing since the last call."""
        spent, self.computed = self.computed // 1_000, self.computed % 1_000
        return spent

    def figures(self) -> dict[str, float]:
        """The engine's own metrics, if it reports any."""
        engine: object = self.engine
        return engine.figures() if isinstance(engine, ReportsMetrics) else {}

    def busy_time(self, now: int) -> int:
        """Time spent deciding until now, over all lanes."""
        return sum(lane.total(now) for lane in self.lanes.values())

    def busy_by_day(self, now: int) -> list[float]:
        lanes = [lane.by_day(now) for lane in self.lanes.values()] or [BusyTime().by_day(now)]
        return [sum(day) for day in zip(*lanes, strict=True)]

    def start(self) -> None:
        """Starts a fresh engine, with no memory and with the random stream of this epoch."""
        self.is_given_up = False
        random = self._random.child(f"{self.name}, epoch {self.epoch}")
        self.waits = wait_view_for(self.engine_type, self.settings)
        context = Context(
            self.name,
            self.peers,
            random,
            self._constraints,
            self.waits,
            self.budgets,
            self._clusters,
            self._place,
            self._keeps_explanations,
            self.is_measured,
        )
        engine = self.engine_type(self.settings, context)
        # Whether it is one takes longer to find out than a short decision.
        self.engine, self.in_place = engine, _in_place(engine)

    def crash(self, now: int) -> None:
        for lane in self.lanes.values():
            lane.stop(now)
        self.engine = self.in_place = self.waits = None
        self.epoch += 1
        self.crashes += 1


def _in_place(engine: object) -> DeliberatesInPlace | None:
    return engine if isinstance(engine, DeliberatesInPlace) else None


def make_settings(engine: type[Engine], raw: Mapping[str, object]) -> Settings:
    """The engine's typed settings; an error names the setting."""
    try:
        return msgspec.convert(dict(raw), type=engine.settings_type)
    except msgspec.ValidationError as error:
        raise SettingError(f"settings of {engine.name}: {error}") from None


class Router:
    """Routes jobs: first by kind to fleet entries, then by `split` to one of the entry's schedulers."""

    def __init__(self, schedulers: Sequence[Scheduler], random: Random) -> None:
        self._schedulers = schedulers
        self._random = random
        self._turn: Counter[str] = Counter()
        self._takers: dict[str, list[Scheduler]] = {}
        #: By kinds of jobs met so far: their scheduler, if there is only one.
        self.only_takers: dict[str, Scheduler] = {}

    def takers(self, kind: str) -> list[Scheduler]:
        takers = self._takers.get(kind)
        if takers is None:
            takers = self._takers[kind] = [
                scheduler
                for scheduler in self._schedulers
                if not scheduler.entry.takes.kinds or kind in scheduler.entry.takes.kinds
            ]
        return takers

    def route(self, job: Job) -> Scheduler | None:
        """A live scheduler for the job if there is one, otherwise a dead one that may come back."""
        takers = self._takers.get(job.kind) or self.takers(job.kind)
        if len(takers) == 1:
            self.only_takers[job.kind] = takers[0]
            return takers[0]
        candidates = [scheduler for scheduler in takers if scheduler.is_alive] or takers
        if not candidates:
            return None
        match candidates[0].entry.split:
            case "hash":
                choice = zlib.crc32(job.id.encode()) % len(candidates)
            case "owner":
                choice = zlib.crc32(job.owner.encode()) % len(candidates)
            case "round-robin":
                choice = self._turn[job.kind] % len(candidates)
                self._turn[job.kind] += 1
            case "random":
                choice = self._random.below(len(candidates))
        return candidates[choice]
