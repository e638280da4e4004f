"""What a Vela scheduler counts, for the summary of a run."""

from __future__ import annotations


class VelaFigures:
    """Times are in microseconds; those of phases are of all attempts, those from end to end of tasks
    that were placed."""

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
        self.queueing = 0
        self.sampling = 0
        self.samplings = 0
        self.committing = 0
        self.commits = 0
        #: When the first and the last task was placed, as the scheduler heard.
        self.first = self.last = -1
        self.end_to_end = 0
        self.without_queue = 0

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
            "placing s": (self.last - self.first) / 1_000_000,
            "mean queueing ms": _mean(self.queueing, self.samplings),
            "mean sampling ms": _mean(self.sampling, self.samplings),
            "mean commit ms": _mean(self.committing, self.commits),
            "mean end to end ms": _mean(self.end_to_end, self.placed),
            "mean end to end without queue ms": _mean(self.without_queue, self.placed),
        }


def _mean(total: int, count: int) -> float:
    return total / count / 1_000 if count else 0.0
