"""An audit of schedulers that share a cell: which used what, computed from a run's files.

The journal says who claimed what and when, and what was taken away, ended or refused. The audit uses
nothing else, so its counts can be compared with those of the world that wrote the journal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final

import msgspec

from argosy.host.records import AttemptRecord, LostRecord, PlacedRecord, RefusedRecord
from argosy.model.explanations import CONFLICTS, LIMITS, Why
from argosy.model.scenario import FleetEntry
from argosy.records.holdings import Holdings, vector
from argosy.records.journal_file import Fact
from argosy.records.record import RunRecord

#: A core in milli-cores, a GiB in bytes.
_UNITS: Final = {"cpu": 1_000, "memory": 2**30}
HOUR: Final = 3_600_000_000


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduler's use of one resource. Amounts as in the model: milli-cores, bytes, or a count."""

    #: Core-hours, GiB-hours or unit-hours over all claims, and as a share of what the cell's machines
    #: would provide if all were up all the time.
    hours: float
    share: float
    #: The peak, as an amount and as a share of the cell.
    peak: int
    peak_share: float
    #: The scheduler's limit, and its peak as a share of it; None: no limit.
    limit: int | None = None
    peak_of_limit: float | None = None


class SchedulerAudit(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    engine: str
    resources: dict[str, Held]
    #: Accepted claims, including tasks that started from machines' queues.
    claims: int
    #: Jobs with a claimed task, the most at one instant, and the limit on these.
    jobs_admitted: int
    peak_jobs: int
    job_limit: int | None
    #: Tasks that it preempted, of any scheduler; its own tasks that were preempted.
    preemptions_made: int
    preemptions_suffered: int
    #: Transactions in which a claim was refused because the cell had changed; the number of such
    #: claims.
    conflicts_lost: int
    claims_lost: int
    #: The same for other schedulers, if this one had claimed the machine since their decision started.
    conflicts_caused: int
    claims_caused: int
    #: Claims refused because of its own limits, by reason.
    limit_refusals: dict[str, int]


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    scenario: str
    seed: int
    #: Virtual time at the end, or reached so far by a run in progress, in microseconds.
    ended_at: int
    schedulers: list[SchedulerAudit]
    #: Refused claims that no other claim explains: machines that were lost or drained, tasks that ended
    #: (coarse detection).
    claims_lost_to_nobody: int


def audit(run: RunRecord) -> Audit:
    """Reads the run's journal twice, for holdings and for conflicts; memory grows with the number of
    claims."""
    setup, ended_at = run.journal.header().setup, run.reached
    holdings, quarrels = Holdings.of_state(run.state), _Quarrels()
    for fact in run.journal.facts():
        quarrels.read(fact)
    dimensions = run.state.steps.dimensions
    vectors = (vector(machine.capacity, dimensions) for machine in setup.cell.machines)
    capacity = [sum(amounts) for amounts in zip(*vectors, strict=True)]
    return Audit(
        scenario=setup.name,
        seed=setup.seed,
        ended_at=ended_at,
        schedulers=[
            _scheduler(name, entry, dimensions, capacity, ended_at, holdings, quarrels)
            for entry in setup.fleet
            for name in entry.scheduler_names()
        ],
        claims_lost_to_nobody=quarrels.lost_to_nobody,
    )


def _scheduler(
    name: str,
    entry: FleetEntry,
    dimensions: tuple[str, ...],
    capacity: list[int],
    ended_at: int,
    holdings: Holdings,
    quarrels: _Quarrels,
) -> SchedulerAudit:
    mine = holdings.of(name)
    limits = entry.limits.resources
    limit_of = dict.fromkeys(dimensions, 0) if limits is None else dict(limits.items())
    resources = {}
    for d, dimension in enumerate(dimensions):
        peak, limit = mine.peak[d], limit_of.get(dimension, 0) or None
        resources[dimension] = Held(
            hours=mine.time[d] / _UNITS.get(dimension, 1) / HOUR,
            share=mine.time[d] / (capacity[d] * ended_at) if capacity[d] and ended_at else 0.0,
            peak=peak,
            peak_share=peak / capacity[d] if capacity[d] else 0.0,
            limit=limit,
            peak_of_limit=None if limit is None else peak / limit,
        )
    refused = quarrels.limit_refusals[name]
    return SchedulerAudit(
        name=name,
        engine=entry.engine,
        resources=resources,
        claims=mine.claims,
        jobs_admitted=mine.jobs,
        peak_jobs=mine.peak_jobs,
        job_limit=entry.limits.jobs,
        preemptions_made=quarrels.preempted_by[name],
        preemptions_suffered=mine.preempted,
        conflicts_lost=quarrels.conflicts_lost[name],
        claims_lost=quarrels.claims_lost[name],
        conflicts_caused=quarrels.conflicts_caused[name],
        claims_caused=quarrels.claims_caused[name],
        limit_refusals={why.name.lower(): refused[why] for why in LIMITS if refused[why]},
    )


class _Quarrels:
    """Conflicts and preemptions between schedulers, from the facts of the journal in order."""

    def __init__(self) -> None:
        #: Per machine, the line and scheduler of the last claim.
        self._claimed: dict[int, tuple[int, str]] = {}
        #: The line at which a scheduler started to decide on a job.
        self._began: dict[tuple[str, str], int] = {}
        self._line = 0
        #: Tasks preempted at this instant by a claim whose line follows, by machine.
        self._pushed_out: Counter[int] = Counter()
        self._at = -1
        #: For the current transaction: who lost, and who is known to have caused it.
        self._loser = ("", -1)
        self._causers: set[str] = set()
        self.preempted_by: Counter[str] = Counter()
        self.conflicts_lost: Counter[str] = Counter()
        self.claims_lost: Counter[str] = Counter()
        self.conflicts_caused: Counter[str] = Counter()
        self.claims_caused: Counter[str] = Counter()
        self.limit_refusals: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self.lost_to_nobody = 0

    def read(self, fact: Fact) -> None:
        self._line += 1
        if fact.at != self._at:
            self._at = fact.at
            self._pushed_out.clear()
        match fact:
            case AttemptRecord(job=job, scheduler=scheduler):
                self._began[scheduler, job] = self._line
            case PlacedRecord():
                self._place(fact)
            case RefusedRecord():
                self._refuse(fact)
            case LostRecord(machines=machines, why=why) if why == Why.PREEMPTED.name.lower():
                self._pushed_out.update(machines)

    def _place(self, record: PlacedRecord) -> None:
        name = record.scheduler
        self._claimed.update(dict.fromkeys(record.machines, (self._line, name)))
        if self._pushed_out:
            for machine in record.machines:
                self.preempted_by[name] += self._pushed_out.pop(machine, 0)

    def _refuse(self, record: RefusedRecord) -> None:
        """A transaction may have several lines, one per job, all at the same instant."""
        name, began = record.scheduler, self._began.get((record.scheduler, record.job), 0)
        for machine, why in zip(record.machines, record.whys, strict=True):
            if why in LIMITS:
                self.limit_refusals[name][why] += 1
            if why not in CONFLICTS:
                continue
            if self._loser != (name, self._at):
                self._loser, self._causers = (name, self._at), set()
                self.conflicts_lost[name] += 1
            self.claims_lost[name] += 1
            line, causer = self._claimed.get(machine, (-1, ""))
            if line <= began:
                self.lost_to_nobody += 1
                continue
            self.claims_caused[causer] += 1
            if causer not in self._causers:
                self._causers.add(causer)
                self.conflicts_caused[causer] += 1
