"""Random choices, and jobs as scenarios spell them out, with all keys that a job may have."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Document: TypeAlias = dict[str, Any]
Files: TypeAlias = dict[str, str | bytes]


class Stream:
    """Random choices that are the same with every version of Python."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)

    def below(self, count: int) -> int:
        return int(self._random.random() * count)

    def among(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def has(self, chance: float) -> bool:
        return self._random.random() < chance

    def some(self, options: Sequence[T]) -> list[T]:
        return [each for each in options if self.has(0.5)]

    def maybe(self, chance: float, **entries: Any) -> Document:
        return entries if self.has(chance) else {}


def request(stream: Stream) -> Document:
    return {
        "cpu": stream.pick((1, 250, 500, 1000, "1", "1500m", "0.5", 3000)),
        **stream.maybe(0.7, memory=stream.pick(("512MiB", "1GiB", "1.5GiB", "2GB", 10**9))),
    }


def time_of(stream: Stream) -> str:
    return stream.pick(("10s", "250ms", "1.5s", "2min", "35s", "700us", "0.02h", "3s", "90s"))


def group_keys(stream: Stream) -> Document:
    count = stream.pick((1, 2, 3, 5, 9))
    table: Document = {"count": count, "request": request(stream)}
    form = stream.below(8)
    if form == 0:
        table["phases"] = [
            {"activities": stream.among(1, 30), "duration": time_of(stream)}
            for _ in range(stream.among(1, 3))
        ]
    elif form == 1:
        table["durations"] = [time_of(stream) for _ in range(count)]
    elif form > 2:
        table["duration"] = time_of(stream)
    return {
        **table,
        **stream.maybe(0.3, estimate=time_of(stream)),
        **stream.maybe(0.4, tags=stream.some(("web", "db", "cache"))),
        **stream.maybe(0.2, requires={"arch": stream.pick(("x86", "x86", "arm"))}),
        **stream.maybe(0.2, prefers={"rack": "rack-0", "disk": "ssd"}),
        **stream.maybe(0.2, demands={"battery": "30"}),
        **stream.maybe(0.2, retries=stream.among(0, 3), backoff="1s"),
        **(execution(stream) if stream.has(0.3) else {}),
    }


def execution(stream: Stream) -> Document:
    return {
        "command": stream.pick(("serve --port 80", ["a b", "c"], "x 'y z' q")),
        **stream.maybe(0.5, environment={"LANG": "C"}, working_directory="/srv", stdin="in\n"),
        **stream.maybe(0.5, image="shop/web:3", timeout="1h", grace="3s", output_limit=1024),
    }


def job_table(stream: Stream, name: str) -> Document:
    table: Document = {
        "id": name,
        **stream.maybe(0.8, submit=stream.pick(("0s", "1s", "1s", "20s", "1.2min", "70ms"))),
        **stream.maybe(0.5, kind=stream.pick(("batch", "service", "query"))),
        **stream.maybe(0.3, name=f"shop {name}"),
        **stream.maybe(0.4, precedence=stream.among(-4, 9)),
        **stream.maybe(0.2, gang=stream.has(0.8)),
        **stream.maybe(0.3, owner=stream.pick(("ann", "bob", ""))),
        **stream.maybe(0.2, program=stream.pick(("words", "sort"))),
    }
    if stream.has(0.35):
        texts: tuple[str | Document, ...] = (
            "web -> {web, 0, 1} in machine",
            "web -> {db, 1, inf} in rack hard",
            "appID:self -> {appID:self, 0, 1} in machine hard",
            "cache -> {web, 0, 0} in zone weight 3",
            "web -> spread {1, 2} over rack",
            "cache -> spread {1, inf} over zone hard",
            "web & db -> {cache, 0, 0} in machine weight 2.5",
            "(web -> {db, 0, 0} in rack and db -> {cache, 1, inf} in machine)",
            {"subject": "web", "tags": "cache", "max": 0, "group": "rack", "weight": 2},
            {"subject": "db", "spread": {"min": 1, "max": 2}, "group": "rack", "hard": True},
            "db -> ({cache, 1, inf} and not {web, 1, inf}) in rack",
        )
        table["constraints"] = [stream.pick(texts) for _ in range(stream.among(1, 2))]
    if stream.has(0.25):
        groups = [group_keys(stream) for _ in range(stream.among(1, 3))]
        if len(groups) > 1:
            for group in groups:
                # Workers are a job's only group.
                group.pop("phases", None)
        return table | {"groups": groups}
    return table | group_keys(stream)
