"""Makes a scenario that fails smaller, as long as it fails in the same way.

Greedy: parts are left out, halves first; then keys; then values are made plain. Any plain data that
might be a scenario is tried; whoever runs it says whether it is one, and whether it still fails.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from argosy.campaign.fleets import scheduler_names

Place: TypeAlias = tuple[str | int, ...]
_TIME: Final = re.compile(r"\d+(\.\d+)?(us|ms|s|min|h|d)")
#: The plainest first.
_PLAIN_TIMES: Final = ("0s", "1s", "10s", "1min")
_PLAIN_AMOUNTS: Final = (1, 1000, "1GiB")
#: Numbers up to this are also tried one less.
_FEW: Final = 10
#: What a scenario cannot be without, or what is no smaller when it is gone.
_KEPT: Final = frozenset({"name", "horizon", "audit", "engine", "id", "kind", "model", "budget"})


class Shrinker:
    """`fails` says whether a document still fails in the same way; it is asked at most `most` times, and
    no more once `is_over`."""

    def __init__(
        self,
        document: Mapping[str, Any],
        fails: Callable[[dict[str, Any]], bool],
        *,
        most: int = 400,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.document = copy.deepcopy(dict(document))
        self.tries = 0
        self._fails = fails
        self._most = most
        self._is_over = is_over
        #: What was tried in vain: many a step leads to the same document.
        self._seen: set[str] = set()

    def run(self) -> dict[str, Any]:
        """The smallest that was found."""
        while True:
            before = copy.deepcopy(self.document)
            for section in ("faults", "network", "machines", "cell.groups", "cell.constraints"):
                self._try(_without(self.document, tuple(section.split("."))))
            for name in ("workload.jobs", "faults", "fleet", "clusters", "cell.machines"):
                self._thin_out(tuple(name.split(".")))
            self._try(_one_cell(self.document))
            for at in range(len(self.document.get("clusters", ()))):
                self._thin_out(("clusters", at, "machines"))
            for at in range(len(_at(self.document, ("workload", "jobs")) or ())):
                self._thin_out(("workload", "jobs", at, "groups"))
                self._try(_one_group(self.document, at))
            self._drop_keys()
            self._simplify_values()
            if self.document == before or self._is_exhausted:
                return self.document

    @property
    def _is_exhausted(self) -> bool:
        return self.tries >= self._most or self._is_over()

    def _try(self, candidate: dict[str, Any] | None) -> bool:
        if candidate is None or self._is_exhausted:
            return False
        candidate = mended(candidate)
        key = repr(candidate)
        if candidate == self.document or key in self._seen:
            return False
        self._seen.add(key)
        self.tries += 1
        if not self._fails(candidate):
            return False
        self.document = candidate
        return True

    def _thin_out(self, place: Place) -> None:
        """Leaves out items of a list: halves, quarters, and so on to single ones."""
        size = max(1, len(_at(self.document, place) or ()) // 2)
        while True:
            at = 0
            while (items := _at(self.document, place)) and at < len(items):
                rest = items[:at] + items[at + size :]
                if not rest or not self._try(_with(self.document, place, rest)):
                    at += size
            if size == 1:
                return
            size //= 2

    def _drop_keys(self) -> None:
        for place in reversed(list(_places(self.document))):
            is_key = isinstance(place[-1], str) and place[-1] not in _KEPT
            if is_key or (len(place) > 2 and isinstance(place[-1], int)):
                self._try(_without(self.document, place))

    def _simplify_values(self) -> None:
        for place in list(_places(self.document)):
            for value in _simpler(_at(self.document, place), place):
                if self._try(_with(self.document, place, value)):
                    break


def mended(document: dict[str, Any]) -> dict[str, Any]:
    """The document without what refers to machines and schedulers that it has no more; where a name has
    changed with a count, the new one is used."""
    document = copy.deepcopy(document)
    schedulers, machines = scheduler_names(document.get("fleet", ())), set(_machines(document))
    faults = []
    for fault in document.get("faults", ()):
        if "machine" in fault and fault["machine"] not in machines:
            fault["machine"] = fault["machine"].rpartition("-")[0]
        # Without a fleet it is no scenario, whatever the fault says.
        if schedulers and "scheduler" in fault and fault["scheduler"] not in schedulers:
            fault["scheduler"] = schedulers[0]
        if "isolated" in fault:
            fault["isolated"] = [n for n in fault["isolated"] if n in schedulers] or schedulers[:1]
        if fault.get("machine", "") in machines or "machine" not in fault:
            faults.append(fault)
    if "faults" in document:
        document["faults"] = faults
    latency = document.get("network", {}).get("latency", {})
    for pair in [pair for pair in latency.get("delays", ()) if not _is_known(pair, schedulers)]:
        del latency["delays"][pair]
    _mend_kinds(document)
    return {key: value for key, value in document.items() if value not in ({}, [])}


def _is_known(pair: str, schedulers: list[str]) -> bool:
    return all(end in (*schedulers, "cell", "machines") for end in pair.split(">"))


def _mend_kinds(document: dict[str, Any]) -> None:
    """Every kind of job has a taker."""
    fleet = document.get("fleet", [])
    jobs = document.get("workload", {}).get("jobs", ())
    kinds = {job.get("kind", "batch") for job in jobs}
    if fleet and all("takes" in entry for entry in fleet):
        taken = {kind for entry in fleet for kind in entry["takes"].get("kinds", ())}
        if not kinds <= taken:
            del fleet[0]["takes"]


def _machines(document: Mapping[str, Any]) -> Iterator[str]:
    cells = [("", document.get("cell", {}))]
    cells += [(f"{cluster['name']}/", cluster) for cluster in document.get("clusters", ())]
    for prefix, cell in cells:
        for table in cell.get("machines", ()):
            count, name = table.get("count", 1), prefix + table["name"]
            yield from [name] if count == 1 else (f"{name}-{index}" for index in range(count))


def _one_cell(document: dict[str, Any]) -> dict[str, Any] | None:
    """The machines of all clusters, under the same names, in one cell."""
    if "clusters" not in document:
        return None
    machines = [
        {key: value for key, value in table.items() if key != "joins"}
        | {"name": f"{cluster['name']}/{table['name']}"}
        for cluster in document["clusters"]
        for table in cluster["machines"]
    ]
    changed = {key: value for key, value in document.items() if key != "clusters"}
    changed["fleet"] = [
        {key: value for key, value in entry.items() if key != "place"} for entry in changed["fleet"]
    ]
    network = {k: v for k, v in changed.get("network", {}).items() if k != "places"}
    return changed | {"cell": {"machines": machines}, "network": network}


def _one_group(document: dict[str, Any], at: int) -> dict[str, Any] | None:
    """A job of one group, without a table for that."""
    job = _at(document, ("workload", "jobs", at)) or {}
    if len(job.get("groups", ())) != 1:
        return None
    rest = {key: value for key, value in job.items() if key != "groups"}
    return _with(document, ("workload", "jobs", at), rest | job["groups"][0])


def _places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Of everything inside, the outer before the inner."""
    if place:
        yield place
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*place, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _places(inner, (*place, at))


def _at(document: Any, place: Place) -> Any:
    """What is there; none if nothing is."""
    for key in place:
        try:
            document = document[key]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def _with(document: dict[str, Any], place: Place, value: Any) -> dict[str, Any] | None:
    changed = copy.deepcopy(document)
    around = _at(changed, place[:-1])
    if around is None or _at(changed, place) is None:
        return None
    around[place[-1]] = value
    return changed


def _without(document: dict[str, Any], place: Place) -> dict[str, Any] | None:
    changed = copy.deepcopy(document)
    around = _at(changed, place[:-1])
    if around is None or _at(changed, place) is None:
        return None
    del around[place[-1]]
    if isinstance(around, dict) and not around and len(place) > 1:
        # An empty table says nothing.
        del _at(changed, place[:-2])[place[-2]]
    return changed


def _simpler(value: Any, place: Place) -> list[Any]:
    """Plainer values to try, the plainest first."""
    if isinstance(value, bool) or place[-1] in _KEPT:
        return []
    is_amount = len(place) > 1 and place[-2] in ("capacity", "request", "resources")
    if is_amount:
        options = [each for each in _PLAIN_AMOUNTS if place[-1] == "memory" or each != "1GiB"]
        return options[: options.index(value)] if value in options else options
    if isinstance(value, int):
        smaller = (0, 1, value // 2, *((value - 1,) if value <= _FEW else ()))
        return [each for each in dict.fromkeys(smaller) if abs(each) < abs(value)]
    if isinstance(value, str) and _TIME.fullmatch(value):
        known = _PLAIN_TIMES.index(value) if value in _PLAIN_TIMES else len(_PLAIN_TIMES)
        return list(_PLAIN_TIMES[:known])
    if isinstance(value, list) and place[-1] == "durations":
        return [value[:1] * len(value)] if len(set(value)) > 1 else []
    return []
