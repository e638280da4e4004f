"""Why a placed task is where it is, in the terms of the engine that placed it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from argosy.model.explanations import (
    FEWEST_VICTIMS,
    SAME_JOB,
    SHORTEST_WAIT,
    WHOLE_SHARE,
    Explanation,
)
from argosy.model.units import format_count, format_duration
from argosy.model.wording import listed

_RULES: Final = {
    "first fit": "it was the first machine with room, counted from a random one",
    "queue with room": "it waited until a queue had room, and that was the first",
    "random machine": "no machine reserved for such tasks could take it, so it was drawn at random",
    "cheapest flow": "the cheapest assignment of all tasks puts it there",
    "relaxed after a conflict": "its first choice was taken meanwhile, and this is nearby",
}
#: For rules that compare machines: what wins.
_BEST: Final = {
    "best fit": "keeps least free",
    "most-allocated": "keeps least free",
    "worst fit": "keeps most free",
    "least-allocated": "keeps most free",
    SHORTEST_WAIT: "has the shortest expected wait",
    "fewest tasks": "runs the fewest tasks of its job, then the fewest in all",
    "highest score": "has the highest score",
    "lowest score": "has the lowest score",
    FEWEST_VICTIMS: "needs the fewest tasks to make way",
}


def decision_text(
    explanation: Explanation,
    dimensions: tuple[str, ...],
    by: str,
    machine: str,
    second: str,
    first_task: str = "",
) -> str:
    """What decided for `machine`, and by how much; no full stop. `second` is the runner-up's name."""
    if second == machine and not first_task:
        return "its first choice was taken meanwhile, and this was the second"
    rule = choice_text(explanation, dimensions, by)
    compared = comparison_text(explanation, "" if second == machine else second, first_task)
    return f"{rule}: {compared}" if compared else rule


def probes_text(scheduler: str, probed: Collection[str], machine: str) -> str:
    """How probes sent to machines brought a task to one of them; no full stop."""
    if machine in probed:
        ready = "and the one there was ready first"
    else:
        ready = f"and {machine} took one from another machine's queue"
    return f"{scheduler} sent {format_count(len(probed), 'probe')} for tasks of its job, {ready}"


def taken_text(sent_to: str, machine: str) -> str:
    """To follow the machine's name: whether it took the task from another machine's queue."""
    return "" if sent_to == machine else f", which took it from the queue of {sent_to}"


def choice_text(explanation: Explanation, dimensions: tuple[str, ...], by: str) -> str:
    """The rule, with how many machines it chose from; no full stop. `by` names the scheduler."""
    rule = explanation.rule
    if not rule:
        return f"{by} placed it there"
    if rule in _RULES:
        return _RULES[rule]
    machines = format_count(explanation.feasible, "machine")
    of = f"of {machines} with room, it"
    if explanation.measure in ("wait", "points", "victims"):
        of = f"of {machines} that could take it, it"
    measure = explanation.measure
    if explanation.feasible == 1:
        if measure == "points":
            return "it was the only machine in the sample that could take it"
        only = f"it was the only one of {format_count(explanation.looked_at, 'machine')}"
        return f"{only} " + ("with room if tasks make way" if measure == "victims" else "with room")
    if rule in _BEST:
        shares = f" ({listed(list(dimensions), 8)})" if explanation.measure == "room" else ""
        return f"{of} {_BEST[rule]}{shares}"
    if explanation.feasible:
        checked = format_count(explanation.looked_at, "machine")
        return f"{rule}, {explanation.feasible:,} of {checked} could take it"
    return f"decided by {rule}"


def comparison_text(explanation: Explanation, second: str, first_task: str = "") -> str:
    """By how much it beat the second; empty if nothing is known of that. `first_task` is the task that
    the numbers are of, if it is another one of the same decision."""
    score = explanation.score
    is_tie = score == explanation.second_score
    is_only = explanation.feasible == 1 and explanation.measure != "cost"
    if score is None or is_only or (first_task and is_tie):
        return ""
    own = _amount(score, explanation, explanation.points)
    whose = f"for {first_task}, decided with it, {own}" if first_task else own
    if explanation.second_score is None:
        return whose
    other = _amount(explanation.second_score, explanation, explanation.second_points)
    if not second:
        if explanation.measure == "cost":
            return f"{whose}; waiting would have been {other}"
        return whose
    if is_tie:
        return f"{whose}; {second} was as good"
    if explanation.measure == "wait":
        return f"{whose}, against {other} on {second}"
    if explanation.measure == "room":
        return f"{whose}, against {explanation.second_score / WHOLE_SHARE:.2f} on {second}"
    return f"{whose}; {second} came second with {other}"


def _amount(score: int, explanation: Explanation, points: Mapping[str, int]) -> str:
    match explanation.measure:
        case "wait":
            return format_duration(score) if score else "none at all"
        case "room":
            return f"the free shares add up to {score / WHOLE_SHARE:.2f}"
        case "tasks":
            same, others = divmod(score, SAME_JOB)
            return f"{format_count(same, 'task')} of its job and {others:,} in all"
        case "victims":
            return format_count(score, "task")
        case "cost":
            return f"a cost of {score:,}"
        case "points":
            parts = listed([f"{name} {value:,}" for name, value in points.items()], 8)
            return f"{score:,} points" + (f" ({parts})" if parts else "")
    return f"a score of {score:,}"
