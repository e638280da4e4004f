"""What a Vela scheduler counts, for the summary of a run."""

from __future__ import annotations

from math import sqrt


class PhaseTimes:
    """Count, mean and spread of times in microseconds."""

    __slots__ = ("_count", "_squares", "_total")

    def __init__(self) -> None:
        self._count = self._total = self._squares = 0

    def add(self, time: int) -> None:
        self._count += 1
        self._total += time
        self._squares += time * time

    @property
    def mean(self) -> float:
        """In milliseconds."""
        return self._total / self._count / 1_000 if self._count else 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation, in milliseconds."""
        if not self._count:
            return 0.0
        # In integers: the difference of two large sums must not lose its digits.
        spread = self._count * self._squares - self._total * self._total
        return sqrt(spread) / self._count / 1_000


class VelaFigures:
    """Times of phases are of all attempts; those from end to end are of tasks that were placed."""

    def __init__(self) -> None:
        #: Attempts, by how they ended.
        self.placed = 0
        self.conflicts = 0
        self.unplaced = 0
        #: Tasks that were placed on another machine than the first candidate.
        self.retried = 0
        #: Refused commits, agents not reached, and answers that came after the time-out.
        self.refused = 0
        self.unreached = 0
        self.overdue = 0
        self.rescheduled = 0
        self.abandoned = 0
        #: Machines that agents drew, and those among them that could take the task.
        self.requests = 0
        self.drawn = 0
        self.eligible = 0
        self.queueing = PhaseTimes()
        self.sampling = PhaseTimes()
        self.commit = PhaseTimes()
        #: When the first and the last task was placed, as the scheduler heard.
        self.first = self.last = -1
        #: When the first task was accepted, and when the last attempt ended.
        self.began = self.ended = -1
        self.end_to_end = PhaseTimes()
        self.without_queue = PhaseTimes()

    def as_dict(self) -> dict[str, float]:
        attempts = self.placed + self.conflicts + self.unplaced
        return {
            "attempts": attempts,
            "placed": self.placed,
            "conflicts": self.conflicts,
            "no machine found": self.unplaced,
            "placed by a later candidate": self.retried,
            "commits refused": self.refused,
            "agents not reached": self.unreached,
            "samples overdue": self.overdue,
            "rescheduled": self.rescheduled,
            "abandoned": self.abandoned,
            "machines drawn": self.drawn,
            "machines eligible": self.eligible,
            "samples asked": self.requests,
            "attempting s": (self.ended - self.began) / 1_000_000,
            "placing s": (self.last - self.first) / 1_000_000,
            "mean queueing ms": self.queueing.mean,
            "mean sampling ms": self.sampling.mean,
            "mean commit ms": self.commit.mean,
            "mean end to end ms": self.end_to_end.mean,
            "mean end to end without queue ms": self.without_queue.mean,
            "sampling deviation ms": self.sampling.deviation,
            "commit deviation ms": self.commit.deviation,
            "end to end without queue deviation ms": self.without_queue.deviation,
        }
