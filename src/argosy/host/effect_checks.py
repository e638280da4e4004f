"""Checks of effects by value: ranges, and what only types would say otherwise.

Faults are raised here; that tasks, jobs and probes are the scheduler's own is checked where effects are
carried out. Each check costs a few comparisons, because all effects pass here.
"""

from __future__ import annotations

from typing import Any, Final, get_args

from argosy.engines.faults import shown
from argosy.host.scheduler import Scheduler
from argosy.model.effects import (
    AskQueues,
    Commit,
    EarlierTime,
    Effect,
    Enqueue,
    Pace,
    Probe,
    Sample,
    Send,
)
from argosy.model.errors import EngineFault
from argosy.model.messages import Message, Note

_MESSAGES: Final = frozenset(get_args(Message))
_PLAIN: Final = frozenset((str, int, float, bool, type(None)))
_QUEUES: Final = ("all", "long")
_NOT_NEGATIVE: Final = "zero or more"
_JSON: Final = "a JSON value"


def fault(scheduler: Scheduler, effect: Effect, problem: str, expected: str) -> EngineFault:
    return EngineFault(
        f"{scheduler.label} returned a malformed {type(effect).__name__}: {problem}",
        expected=expected,
    )


def require_not_negative(scheduler: Scheduler, effect: Effect, field: str, value: int) -> None:
    if value < 0:
        raise fault(scheduler, effect, f"{field} is {value}", _NOT_NEGATIVE)


def check_earlier(scheduler: Scheduler, effect: Effect, earlier: EarlierTime) -> None:
    require_not_negative(scheduler, effect, "earlier.total", earlier.total)
    require_not_negative(scheduler, effect, "earlier.on_job", earlier.on_job)


def check_enqueue(scheduler: Scheduler, effect: Enqueue, pace: Pace) -> None:
    if effect.estimate is not None:
        require_not_negative(scheduler, effect, "estimate", effect.estimate)
    if pace.first < 0 or pace.every < 0:
        require_not_negative(scheduler, effect, "pace.first", pace.first)
        require_not_negative(scheduler, effect, "pace.every", pace.every)


def check_probe(scheduler: Scheduler, effect: Probe) -> None:
    require_not_negative(scheduler, effect, "estimate", effect.estimate)


def check_sample(scheduler: Scheduler, effect: Sample) -> None:
    require_not_negative(scheduler, effect, "count", effect.count)
    if (pipeline := effect.pipeline) is None:
        return
    require_not_negative(scheduler, effect, "pipeline.rounds", pipeline.rounds)
    require_not_negative(scheduler, effect, "pipeline.limit", pipeline.limit)
    if not 0 <= pipeline.share <= 1:
        problem = f"pipeline.share is {pipeline.share}"
        raise fault(scheduler, effect, problem, "a share from 0 to 1")


def check_pipeline(scheduler: Scheduler, effect: Commit, *, has_agent: bool) -> None:
    if not has_agent:
        raise no_agent(scheduler, effect)
    claims, transaction = effect.transaction.claims, effect.transaction
    count = 0 if claims is None else len(claims)
    if count != 1 or transaction.releases is not None or transaction.move:
        problem = f"a pipeline for {count} claims" if count != 1 else "releases or moves"
        raise fault(scheduler, effect, problem, "a single claim, and nothing else")


def no_agent(scheduler: Scheduler, effect: Effect) -> EngineFault:
    return fault(scheduler, effect, "a pipeline without a cluster", "the name of a cluster")


def check_questions(scheduler: Scheduler, effect: AskQueues, machines: int) -> None:
    if effect.which not in _QUEUES:
        raise fault(scheduler, effect, f"which is {shown(effect.which)}", "'all' or 'long'")
    if effect.until_room is None:
        return
    unknown = effect.until_room[(effect.until_room < 0) | (effect.until_room >= machines)]
    if len(unknown):
        expected = f"one of the {machines} machines"
        raise fault(scheduler, effect, f"until_room names machine {unknown[0]}", expected)


def check_message(scheduler: Scheduler, effect: Send) -> None:
    payload = effect.payload
    if type(payload) not in _MESSAGES:
        problem = f"payload is an {type(payload).__name__}"
        raise fault(scheduler, effect, problem, "a message of argosy.engine")
    if type(payload) is Note and (problem := _not_json(payload.data)):
        raise fault(scheduler, effect, f"payload.data has {problem}", _JSON)


def _not_json(data: Any) -> str:
    """What in `data` could not be read back from JSON as it is; empty if there is nothing."""
    left = [data]
    while left:
        value = left.pop()
        if type(value) is list:
            left.extend(value)
        elif type(value) is dict:
            for key in value:
                if type(key) is not str:
                    return f"a key of type {type(key).__name__}"
            left.extend(value.values())
        elif type(value) not in _PLAIN:
            return f"an {type(value).__name__}"
    return ""
