"""Why a pod has no node, in the words that `kubectl describe` shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from argosy.kubernetes.quantities import quantity
from argosy.model.explanations import LIMITS, Explanation
from argosy.worlds.kubernetes.tracked import PodGang

#: The API truncates longer ones; annotations share 256 KiB.
LONGEST = 1_000
FILTERED = "filtered"
_RULED_OUT = {
    FILTERED: "node(s) did not match the pod's rules",
    "down": "node(s) were gone or draining",
    "pods": "Too many pods",
}


def waiting_message(
    explanation: Explanation,
    nodes: int,
    name_of: Callable[[int], str],
    wishes: Sequence[str] = (),
    excluded: Mapping[str, int] | None = None,
    gang: PodGang | None = None,
) -> str:
    """`name_of` gives the name of a machine, and `wishes` are fields of the pod that are ignored.
    `excluded` says how many nodes the pod's rules exclude, and why. `gang` is the group with which the
    pod is placed."""
    parts = [f"0/{nodes} nodes are available"]
    reasons = [
        f"{count} {_RULED_OUT.get(reason, f'Insufficient {reason}')}"
        for reason, count in explanation.ruled_out.items()
        if count and not (excluded and reason == FILTERED)
    ]
    reasons += [f"{count} {reason}" for reason, count in (excluded or {}).items()]
    if reasons:
        parts[0] += ": " + ", ".join(reasons)
    is_alone = gang is None or len(gang.together) < 2
    if not is_alone and gang is not None:
        parts = [_together(gang, explanation.gang_room), *(parts if reasons else ())]
    refused, miss = explanation.refused, explanation.nearest_miss
    is_limited = refused is not None and refused.why in LIMITS
    if miss is not None and not miss.dimension:
        miss = None
    if is_limited and is_alone and not reasons and miss is None:
        # Whether a node is available does not matter.
        parts = []
    if miss is not None:
        where = name_of(miss.machine) if miss.machine >= 0 else "the nearest node"
        parts.append(
            f"{where} came closest and lacks {quantity(miss.dimension, miss.lacking)} {miss.dimension}"
        )
    elif refused is not None and (is_alone or is_limited):
        parts.append(refused.sentence(name_of(refused.machine) if refused.machine >= 0 else ""))
    if explanation.remedy and not excluded and (is_alone or is_limited):
        parts.append(explanation.remedy)
    if wishes:
        parts.append("ignored: " + ", ".join(wishes))
    return ". ".join(parts)[:LONGEST] + "."


def _together(gang: PodGang, room: int | None) -> str:
    had = "" if room is None else f", and {room} had room"
    return f"{len(gang.together)} pods of group {gang.name.name} have to be placed together{had}"
