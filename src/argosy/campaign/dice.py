"""Random choices of a campaign, from one stream per part of a scenario.

A feature that is left out is drawn all the same and then not used, so that the rest of the scenario
stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from argosy.model.random import Random

T = TypeVar("T")

#: What a drawn scenario may contain, and what each means, for people who leave some out.
FEATURES: Final = {
    "clusters": "several clusters, at places with distances",
    "groups": "node groups besides single machines",
    "attributes": "machines with attributes, and tasks that require or prefer some",
    "extras": "resources besides cpu and memory",
    "zero-capacities": "machines without any of a resource",
    "zero-requests": "tasks that ask for nothing",
    "oversized": "tasks that are larger than any machine",
    "several-groups": "jobs whose tasks differ",
    "gangs": "jobs whose tasks are placed together or not at all",
    "constraints": "placement constraints of jobs and of the operator",
    "precedence": "jobs of different precedence",
    "phases": "jobs whose tasks share work",
    "endless": "tasks that run until stopped",
    "zero-durations": "tasks that end at once",
    "estimates": "wrong estimates of running times",
    "mixed": "fleets of several engines",
    "replicas": "several schedulers of one engine",
    "limits": "limits of schedulers",
    "settings": "settings of engines other than their defaults",
    "decision-times": "slower, faster and uneven decisions",
    "crashes": "machines that crash",
    "drains": "machines that are drained",
    "resizes": "machines whose capacity changes",
    "scheduler-crashes": "schedulers that crash",
    "partitions": "schedulers that are cut off",
    "agent-faults": "agents of clusters that are down, slow or stale",
    "latency": "delays that vary",
    "message-faults": "messages that are lost, doubled or late",
    "queue-orders": "machine queues other than first come, first served",
    "queue-limits": "machine queues that can be full",
    "stealing": "idle machines that steal queued tasks",
    "start-delays": "queued tasks that start late",
    "heartbeats": "reports of machines at other intervals",
}

_UNITS: Final = (("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000))


class Dice:
    """`without` are names of `FEATURES`."""

    def __init__(self, random: Random, without: frozenset[str] = frozenset()) -> None:
        self._random = random
        self.without = without

    def part(self, name: str) -> Dice:
        """A stream of its own, which no other part disturbs."""
        return Dice(self._random.child(name), self.without)

    def has(self, feature: str, chance: float) -> bool:
        """Whether this scenario, job or machine has the feature."""
        assert feature in FEATURES, feature
        return self.chance(chance) and feature not in self.without

    def chance(self, probability: float) -> bool:
        return self._random.uniform() < probability

    def share(self) -> float:
        """From 0 to 1, in hundredths, which are easy to read and to write."""
        return self._random.below(101) / 100

    def among(self, low: int, high: int) -> int:
        """Both included."""
        return low + self._random.below(high - low + 1)

    def one_of(self, options: Sequence[T]) -> T:
        return options[self._random.below(len(options))]

    def some_of(self, options: Sequence[T], least: int = 1) -> list[T]:
        """At least so many, in their order."""
        chosen = [option for option in options if self.chance(0.5)]
        return chosen if len(chosen) >= least else list(options)[: max(least, 1)]

    def time(self, *options: int) -> str:
        """One of some microseconds, as scenarios write them."""
        return time_text(self.one_of(options))


def time_text(micros: int) -> str:
    if not micros:
        return "0s"
    for unit, size in _UNITS:
        if micros % size == 0:
            return f"{micros // size}{unit}"
    return f"{micros}us"


def without_nothing(table: dict[str, Any]) -> dict[str, Any]:
    """The table without keys whose value is none."""
    return {key: value for key, value in table.items() if value is not None}
