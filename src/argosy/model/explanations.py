"""Refusals and explanations as data; sentences are made from them at the edge."""

from __future__ import annotations

from typing import Final

import msgspec

from argosy._core import Why as Why  # reason codes, numbered by the core
from argosy.model.prices import Measure as Measure
from argosy.model.prices import Price
from argosy.model.units import format_amount

#: Reasons that come from other changes to the cell; reasons that come from a scheduler's limits.
CONFLICTS: Final = (Why.NO_ROOM, Why.STALE, Why.MACHINE_GONE, Why.MACHINE_DRAINING)
#: Reasons of `Explanation.ruled_out` that name a plug-in begin with this.
EXCLUDED_BY: Final = "by "
#: The reason of machines whose cluster did not answer.
UNANSWERED: Final = "unanswered"
LIMITS: Final = (Why.RESOURCE_LIMIT, Why.JOB_LIMIT, Why.PRECEDENCE_LIMIT)
#: Reasons that lie with one machine: another may take the task.
OF_ONE_MACHINE: Final = (*CONFLICTS, Why.MACHINE_UNKNOWN, Why.FILTERED, Why.QUEUE_FULL)
#: The task has a machine already, or wants none any more: its scheduler hears of it separately.
SETTLED: Final = (Why.DUPLICATE, Why.NOT_YOURS, Why.CANCELLED, Why.ENDED, Why.MOVED)


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A refused claim or machine: which, why, and by how much."""

    why: Why
    task: int = -1
    machine: int = -1
    dimension: str = ""
    lacking: int = 0

    def sentence(self, machine_name: str = "") -> str:
        where = machine_name or (f"machine {self.machine}" if self.machine >= 0 else "the machine")
        match self.why:
            case Why.NO_ROOM:
                return f"{where} lacks {format_amount(self.dimension, self.lacking)}"
            case Why.STALE:
                often = "once" if self.lacking == 1 else f"{self.lacking} times"
                return f"{where} changed {often} since the decision began"
            case Why.MACHINE_UNKNOWN:
                return f"{where} does not exist"
            case Why.MACHINE_GONE:
                return f"{where} is gone"
            case Why.MACHINE_DRAINING:
                return f"{where} is draining"
            case Why.RESOURCE_LIMIT:
                return "the scheduler's limit would be exceeded by " + format_amount(
                    self.dimension, self.lacking
                )
            case Why.JOB_LIMIT:
                return "the scheduler already has as many jobs as it may admit"
            case Why.PRECEDENCE_LIMIT:
                return f"its precedence is {self.lacking} above the highest the scheduler may use"
            case Why.DUPLICATE:
                return "the task is already placed"
            case Why.TOGETHER:
                return "another task of the same all-or-nothing placement has no machine"
            case Why.NOT_CLAIMED:
                return "the task is not placed"
            case Why.NOT_YOURS:
                return "the task belongs to another scheduler"
            case Why.FILTERED:
                return f"{where} does not meet the task's requirements"
            case Why.PREEMPTED:
                return f"preempted on {where} by a task of higher precedence"
            case Why.ENDED:
                return "the task had ended when the move arrived"
            case Why.ATTEMPTS:
                tries = "1 attempt" if self.lacking == 1 else f"{self.lacking} attempts"
                return f"given up after {tries}"
            case Why.SCHEDULER_LOST:
                return "the scheduler that held it stopped"
            case Why.QUEUE_FULL:
                return f"{where} had a full queue"
            case Why.NOT_ASSUMED:
                return "the task's claim is already confirmed"
            case Why.MOVED:
                return "it runs on another machine now"
            case Why.RELEASED:
                return f"its scheduler took it off {where}"
            case Why.CANCELLED:
                return "a user cancelled it"
            case Why.FAILED:
                return f"it failed on {where}"
            case Why.NOT_OFFERED:
                return "its framework is offered nothing"
            case Why.BEHIND:
                return "another task goes first, and has no machine yet"
        return "no reason was recorded"

    def remedy(self) -> str:
        """What would have to change for this to be accepted."""
        match self.why:
            case Why.RESOURCE_LIMIT | Why.JOB_LIMIT:
                return "raise the scheduler's limit, or wait until some of its tasks end"
            case Why.PRECEDENCE_LIMIT:
                return "raise the scheduler's limit, or submit the job with lower precedence"
            case Why.NO_ROOM | Why.STALE | Why.TOGETHER:
                return "another attempt, on a fresh view of the cell"
            case Why.MACHINE_GONE | Why.MACHINE_DRAINING | Why.MACHINE_UNKNOWN:
                return "another machine"
            case Why.FILTERED:
                return "a machine that meets the task's requirements"
        return ""


SHORTEST_WAIT: Final = "shortest expected wait"
#: The rule by which a task that preempts others chooses.
FEWEST_VICTIMS: Final = "fewest victims"
WHOLE_SHARE: Final = 2**20
SAME_JOB: Final = 2**24


class Explanation(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a scheduler saw when it decided about a task, or about several identical ones."""

    #: Number of machines considered, and how many of them could take the task.
    looked_at: int = 0
    feasible: int = 0
    #: Number of machines excluded for each reason: ``{"cpu": 900, "filtered": 100}``.
    ruled_out: dict[str, int] = {}
    #: The machine that came closest, and what it lacked.
    nearest_miss: Refusal | None = None
    #: Why the cell refused the last attempt, if there was one.
    refused: Refusal | None = None
    #: For a placed task: the rule that chose, the winner's score, and the runner-up.
    rule: str = ""
    score: int | None = None
    second: int | None = None
    second_score: int | None = None
    #: For a placed task: constraints violated by what was placed with it, each with the containers
    #: affected and the extent.
    violated: tuple[str, ...] = ()
    #: What would have to change; a sentence without the machine's name.
    remedy: str = ""
    #: For a task without a machine, if its scheduler computes prices.
    price: Price | None = None
    #: What `score` and `second_score` count.
    measure: Measure = ""
    #: The points by plug-in, for the winner and the runner-up, if there are several plug-ins.
    points: dict[str, int] = {}
    second_points: dict[str, int] = {}
    #: For a task of a gang: how many of its tasks had room at once.
    gang_room: int | None = None
    #: For a task without a machine: the hard constraints that forbid every machine with room.
    forbidden: tuple[str, ...] = ()

    @property
    def is_choice(self) -> bool:
        """Whether it is about a machine that was chosen, not about why there is none."""
        return bool(self.rule) and self.score is not None and not self.remedy
