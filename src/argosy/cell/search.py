"""Fit search: its rules, and explanations of its results."""

from __future__ import annotations

from typing import Final

import msgspec

from argosy._core import Rule as Rule
from argosy.model.explanations import FEWEST_VICTIMS, Explanation, Measure, Refusal, Why
from argosy.model.transactions import MachineArray, VersionArray
from argosy.model.units import format_amount

#: Keys of `Found.ruled_out` other than dimensions.
FILTERED: Final = "filtered"
DOWN: Final = "down"


def title_of(rule: Rule) -> str:
    return _TITLES[rule]


_TITLES: Final = {
    Rule.FIRST: "first fit",
    Rule.BEST: "best fit",
    Rule.WORST: "worst fit",
    Rule.SMALLEST_KEY: "smallest key",
    Rule.SAMPLE: "sample",
}
_RANK_BY_ROOM: Final = (Rule.BEST, Rule.WORST)


class Found(msgspec.Struct, frozen=True, gc=False):
    """Machines for identical tasks, at most as many as asked for, and what was seen in the search."""

    machines: MachineArray
    #: The machines' versions during the search, for `Claims.versions`.
    versions: VersionArray
    asked: int
    rule: Rule
    #: Machines examined, and those with room. Only first fit, if it finds all, counts a machine twice.
    looked_at: int
    feasible: int
    #: Reasons why machines have no room, and how many there are for each: see `ruled_out`.
    reasons: tuple[str, ...]
    counts: list[int]
    #: Only if fewer machines were found than asked for.
    nearest_miss: Refusal | None = None
    #: For the first placement, under a rule that ranks: its leftover or key, and the runner-up's.
    score: int | None = None
    second: int | None = None
    second_score: int | None = None
    #: If fewer were found: whether some machine would be large enough if it were empty.
    could_fit: bool = False
    #: Required attributes, for the explanation.
    requires: dict[str, str] = {}
    #: Whether the keys are how many claims have to make way.
    preempts: bool = False

    def __len__(self) -> int:
        return len(self.machines)

    @property
    def is_complete(self) -> bool:
        return len(self.machines) == self.asked

    @property
    def ruled_out(self) -> dict[str, int]:
        """Machines without room: by the first dimension lacking, ``filtered`` or ``down``. No zeros."""
        return {why: n for why, n in zip(self.reasons, self.counts, strict=True) if n}

    def explanation(self, rule: str = "", measure: Measure = "") -> Explanation:
        """`rule` is the engine's own name for how it chose, and `measure` what its keys count."""
        if self.preempts:
            rule, measure = FEWEST_VICTIMS, "victims"
        elif not measure and self.rule in _RANK_BY_ROOM:
            measure = "room"
        return Explanation(
            looked_at=self.looked_at,
            feasible=self.feasible,
            ruled_out=self.ruled_out,
            nearest_miss=self.nearest_miss,
            rule=rule or title_of(self.rule),
            measure=measure if self.score is not None else "",
            score=self.score,
            second=self.second,
            second_score=self.second_score,
            remedy="" if self.is_complete else self._remedy(),
        )

    def _remedy(self) -> str:
        if (miss := self.nearest_miss) is not None:
            amount = format_amount(miss.dimension, miss.lacking)
            if not self.could_fit:
                return (
                    f"no machine is large enough, even if empty: ask for {amount} less, "
                    "or add a larger one"
                )
            return f"free {amount} on the nearest machine, or ask for {amount} less"
        ruled_out = self.ruled_out
        if ruled_out.get(FILTERED):
            wanted = ", ".join(f"{key}={value}" for key, value in self.requires.items())
            named = f" ({wanted})" if wanted else ""
            return f"relax the task's machine requirements{named}, or add a machine that meets them"
        if ruled_out.get(DOWN):
            return "bring back a machine that is gone or draining"
        return "add a machine"


def miss(machine: int, dimension: str, lacking: int) -> Refusal:
    return Refusal(Why.NO_ROOM, machine=machine, dimension=dimension, lacking=lacking)
