"""How long a task waited before it started, and for what."""

from __future__ import annotations

from typing import Final

from argosy.host.records import (
    AttemptRecord,
    EnqueuedRecord,
    ExplainedRecord,
    LostRecord,
    PlacedRecord,
    ProbedRecord,
    RefusedRecord,
    ReleasedRecord,
    ResubmittedRecord,
    StartedRecord,
    SubmittedRecord,
)
from argosy.model.explanations import Explanation
from argosy.model.units import format_duration
from argosy.model.wording import listed
from argosy.records.reasons import past_reason
from argosy.records.task_history import TaskHistory

#: Parts below this share of the wait are not told.
_SMALL: Final = 0.02
#: Nor waits below this, in microseconds.
_SHORTEST: Final = 1_000
_DECIDING: Final = "while its job was decided on"


def wait_text(history: TaskHistory) -> str:
    """A sentence about the wait before the last start; empty if there was none worth telling."""
    started = history.last_start(-1)
    if started < 0:
        return ""
    parts = _parts(history, started)
    total = sum(parts.values())
    if total < _SHORTEST:
        return ""
    told = [
        f"{format_duration(length)} {why}"
        for why, length in sorted(parts.items(), key=lambda part: -part[1])
        if length >= _SMALL * total
    ]
    if len(told) == 1:
        return f"It waited {told[0]}."
    return f"It waited {format_duration(total)}: {'; '.join(told)}."


def loss_text(history: TaskHistory) -> str:
    """A sentence about machines that the task lost; empty if it lost none."""
    lost = [
        f"{history.machine(fact.indices, fact.machines)} ({fact.why.replace('_', ' ')}) "
        f"at {format_duration(fact.at)}"
        for fact in history.facts
        if isinstance(fact, LostRecord)
    ]
    return f"It lost {listed(lost)}, and started anew." if lost else ""


def _parts(history: TaskHistory, until: int) -> dict[str, int]:
    """Time by reason, from submission, or from the last loss of a machine, to the start."""
    parts: dict[str, int] = {}
    at, why = history.submitted, "for its turn"
    for fact in history.facts:
        now, now_why = fact.at, ""
        if now > until:
            continue
        match fact:
            case SubmittedRecord():
                now_why = "for its turn"
            case LostRecord() | ReleasedRecord() | ResubmittedRecord():
                parts.clear()
                at, now_why = fact.at, "for its turn"
            case AttemptRecord(takes=takes) if takes and now >= at:
                # It goes on waiting for the same reason once the decision is over.
                parts[why] = parts.get(why, 0) + now - at
                ends = min(now + takes, until)
                parts[_DECIDING] = parts.get(_DECIDING, 0) + ends - now
                at = ends
                continue
            case ExplainedRecord(explanation=explanation) if not explanation.is_choice:
                now_why = f"because {past_reason(explanation, history)}"
            case RefusedRecord():
                refusal = history.refusal(fact)
                now_why = f"because {past_reason(Explanation(refused=refusal), history)}"
            case EnqueuedRecord(_, _, indices, machines, first=first, every=every):
                name = history.machine(indices, machines)
                now += first + indices.index(history.index) * every
                now_why = f"in the queue of {name}"
            case ProbedRecord():
                now_why = "until a machine with a probe of its job was ready"
            case PlacedRecord() | StartedRecord():
                now_why = why
        if not now_why or now > until:
            continue
        parts[why] = parts.get(why, 0) + max(0, now - at)
        at, why = max(at, now), now_why
    parts[why] = parts.get(why, 0) + max(0, until - at)
    return parts
