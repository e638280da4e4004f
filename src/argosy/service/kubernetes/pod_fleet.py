"""Which scheduler of the fleet takes which pod."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import fields, replace

from argosy.engines.registry import find_engine
from argosy.kubernetes.objects import Pod
from argosy.model.jobs import BATCH, SERVICE
from argosy.model.scenario import FleetEntry, Takes
from argosy.worlds.kubernetes.pod_jobs import kind_of

#: Settings of engines that move what runs, unless their entries say otherwise.
_DEFAULTS: Final = {"reschedule": False, "moves_per_minute": 10}


class PodFleet:
    """Pods name a scheduler of the fleet, or `name`: then their kind decides. Bound pods of kinds that
    only a `former` fleet took are left to the first scheduler."""

    def __init__(
        self, name: str, fleet: tuple[FleetEntry, ...], former: Iterable[str] = ()
    ) -> None:
        kinds = {BATCH, SERVICE, *(kind for entry in fleet for kind in entry.takes.kinds)}
        self.names = frozenset({name, *(entry.name for entry in fleet)})
        self._entries = {entry.name for entry in fleet}
        taken = [
            dict.fromkeys((entry.name, *(entry.takes.kinds or sorted(kinds)))) for entry in fleet
        ]
        self._taken = {kind for each in taken for kind in each}
        taken[0].update(dict.fromkeys(sorted({*former} - self._taken)))
        self.entries = tuple(
            replace(entry, takes=Takes(kinds=tuple(each)), settings=_settled(entry))
            for entry, each in zip(fleet, taken, strict=True)
        )
        #: All kinds that bound pods may have.
        self.kinds = frozenset(kind for each in taken for kind in each)
        self._default = fleet[0].name
        self.engines = {entry.name: entry.engine for entry in fleet}
        #: Kinds of pods of which all schedulers heed what pods would rather have.
        self._heeded = {
            kind
            for kind in self.kinds
            if all(
                find_engine(entry.engine).capabilities.wishes
                for entry in self.entries
                if kind in entry.takes.kinds
            )
        }

    def heeds_wishes(self, pod: Pod) -> bool:
        return self.kind_of(pod) in self._heeded

    def kind_of(self, pod: Pod) -> str:
        scheduler = pod.spec.scheduler_name
        if scheduler in self._entries:
            return scheduler
        kind = kind_of(pod)
        return kind if kind in self._taken else self._default

    def obstacle_to_groups(self, kind: str) -> str:
        """Why jobs of this kind cannot be placed all or none; empty if they can."""
        for entry in self.entries:
            engine = find_engine(entry.engine)
            if kind in entry.takes.kinds and not engine.capabilities.gang:
                return (
                    f"engine {entry.engine} of scheduler {entry.name} places pods one by one: "
                    "it cannot schedule groups"
                )
        return ""

    @property
    def acts_on_constraints(self) -> bool:
        """Whether some scheduler does."""
        return any(_acts_on_constraints(entry) for entry in self.entries)

    def ignoring_constraints(self, pod: Pod) -> str:
        """The first engine among those that may decide on the pod which ignores constraints; empty if
        there is none."""
        kind = self.kind_of(pod)
        takers = (entry for entry in self.entries if kind in entry.takes.kinds)
        return next((each.engine for each in takers if not _acts_on_constraints(each)), "")


def _acts_on_constraints(entry: FleetEntry) -> bool:
    return find_engine(entry.engine).capabilities.constraints


def _settled(entry: FleetEntry) -> dict[str, Any]:
    """The settings of an entry. Pods that run stay where they are unless it says otherwise: moving one
    means to evict it, and what a pod requires of its node is not required for it to stay."""
    names = {field.name for field in fields(find_engine(entry.engine).settings_type)}
    defaults = {name: value for name, value in _DEFAULTS.items() if name in names}
    return defaults | entry.settings
