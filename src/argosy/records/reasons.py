"""What a scheduler said about a task without a machine, in the words of the user's file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from argosy.cell.search import DOWN, FILTERED
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.prices import Price
from argosy.model.units import format_amount, format_count
from argosy.model.wording import format_request, format_requires, listed
from argosy.records.task_history import TaskHistory

_PAST: Final = {
    "has": "had",
    "have": "had",
    "does not": "did not",
    "do not": "did not",
    "is": "was",
    "are": "were",
    "cannot": "could not",
}
_PRESENT: Final = re.compile(
    r"\b(has|(?<!not )have|do(?:es)? not|is|are|cannot)\b(?=[^']*(?:'[^']*'[^']*)*$)"
)


def reason_of(explanation: Explanation, history: TaskHistory) -> str:
    """Why the task waits, as its scheduler saw it; no full stop."""
    return _reason(explanation, history)


def past_reason(explanation: Explanation, history: TaskHistory) -> str:
    """Why the task had to wait for a while; the same for all attempts that met the same."""
    if explanation.price is not None:
        return "every place cost more than waiting"
    told = _reason(explanation, history).partition("; ")[0]
    return _PRESENT.sub(lambda found: _PAST[found[0]], told)


def _reason(explanation: Explanation, history: TaskHistory) -> str:
    refused = explanation.refused
    if refused is not None and refused.why is not Why.TOGETHER:
        return refusal_text(refused, history)
    if explanation.gang_room is not None:
        return gang_text(explanation.gang_room, history)
    if explanation.price is not None:
        return price_text(explanation.price, history)
    if explanation.forbidden:
        allowed = f"{explanation.feasible:,} of {format_count(explanation.looked_at, 'machine')}"
        have = "has" if explanation.feasible == 1 else "have"
        return f"{allowed} {have} room, but {listed(explanation.forbidden)} cannot be kept"
    if refused is not None:
        return refusal_text(refused, history)
    return _room_text(explanation, history)


def refusal_text(refusal: Refusal, history: TaskHistory) -> str:
    if refusal.why is Why.BEHIND and refusal.task >= 0:
        return f"{history.task_name(refusal.task)} goes first, and has no machine yet"
    if refusal.why is Why.FILTERED:
        where = history.name(refusal.machine) if refusal.machine >= 0 else "a machine"
        return f"it would break a hard constraint on {where}"
    where = history.name(refusal.machine) if refusal.machine >= 0 else ""
    return refusal.sentence(where)


def gang_text(room: int, history: TaskHistory) -> str:
    """Of a gang that has not enough room at once."""
    tasks = format_count(history.spec.tasks, "task")
    return f"only {room:,} of the {tasks} of its gang had room at once"


def price_text(price: Price, history: TaskHistory) -> str:
    where = f", on {history.name(price.machine)}," if price.machine >= 0 else ""
    text = f"waiting costs it {price.waiting:,}, and the cheapest place{where} {price.place:,}"
    if price.holder >= 0:
        text += f": {history.task_name(price.holder)} holds it"
    if price.loser >= 0 and price.loser != price.holder:
        text += f", and {history.task_name(price.loser)} would end up without a machine"
    return text


def _room_text(explanation: Explanation, history: TaskHistory) -> str:
    miss, checked = explanation.nearest_miss, explanation.looked_at
    if not checked:
        told = explanation.ruled_out or miss
        room = "no machine can take it" if told else f"{_scheduler(history)} gave no reason"
    elif not explanation.feasible:
        asked = asked_text(history)
        room = f"none of {format_count(checked, 'machine')} has {asked} free"
        if checked == 1:
            room = f"the only machine does not have {asked} free"
        if explanation.ruled_out and set(explanation.ruled_out) <= {"queue full"}:
            room = f"the queues of all {format_count(checked, 'machine')} are full"
    else:
        fit = "has" if explanation.feasible == 1 else "have"
        room = f"{explanation.feasible:,} of {format_count(checked, 'machine')} {fit} room for it"
        room += ", and other tasks come first"
    if miss is None or miss.why is not Why.NO_ROOM or explanation.feasible:
        return room
    lacks = format_amount(miss.dimension, miss.lacking)
    return f"{room}; {history.name(miss.machine)} comes nearest and lacks {lacks}"


def asked_text(history: TaskHistory) -> str:
    """What a task of the group asks of a machine."""
    group = history.group
    return "room" if group is None else format_request(group.request) or "room"


def _scheduler(history: TaskHistory) -> str:
    return getattr(history.decisive, "scheduler", "") or "its scheduler"


def exclusions(ruled_out: Mapping[str, int], history: TaskHistory) -> dict[str, int]:
    """Why machines were excluded, in the words of the user's file, with how many."""
    group = history.group
    found: dict[str, int] = {}
    for reason, count in ruled_out.items():
        name = reason
        if reason == FILTERED and group is not None and group.requires:
            name = format_requires(group.requires)
        elif reason == FILTERED:
            name = "what it requires"
        elif reason == DOWN:
            name = "down"
        found[name] = found.get(name, 0) + count
    return found
