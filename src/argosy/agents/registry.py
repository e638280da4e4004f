"""All plug-ins of pipelines, and lookup by name.

Built-in ones come first; then those that installed packages declare as entry points of the group
``argosy.agent_plugins``. The name of an entry point is the name of its class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from argosy.agents.api import Binding, ClaimCheck, Filter, Score, Sorting, Strategy
from argosy.agents.builtin import (
    ArrivalSort,
    BatteryLevel,
    Bind,
    GeoLocation,
    PrioritySort,
    RandomStrategy,
    ResourcesFit,
    RoundRobinStrategy,
)
from argosy.agents.learned import LearnedStrategy, NetworkLatency
from argosy.agents.objectives import BatchShare, BatchSort, ServiceLevel, Volume
from argosy.model.entry_points import installed
from argosy.model.errors import ArgosyError, SettingError, did_you_mean

ENTRY_POINTS: Final = "argosy.agent_plugins"

PLUGINS: Final[Mapping[str, type[Any]]] = {
    plugin.name: plugin
    for plugin in (
        PrioritySort,
        ArrivalSort,
        RandomStrategy,
        RoundRobinStrategy,
        LearnedStrategy,
        ResourcesFit,
        GeoLocation,
        BatteryLevel,
        NetworkLatency,
        ServiceLevel,
        Volume,
        BatchSort,
        BatchShare,
        Bind,
    )
}
#: What each interface is called in messages.
ROLES: Final[Mapping[type[Any], str]] = {
    Sorting: "sort",
    Strategy: "strategy",
    Filter: "filter",
    Score: "score",
    ClaimCheck: "check",
    Binding: "commit",
}


def make_sorting(name: str) -> Sorting:
    return cast(Sorting, make(name, Sorting))


def make_strategy(name: str) -> Strategy:
    return cast(Strategy, make(name, Strategy))


def make_filters(wanted: Iterable[str]) -> list[Filter]:
    return [cast(Filter, make(name, Filter)) for name in wanted]


def make_scores(wanted: Iterable[str]) -> list[Score]:
    return [cast(Score, make(name, Score)) for name in wanted]


def make_checks(wanted: Iterable[str]) -> list[ClaimCheck]:
    return [cast(ClaimCheck, make(name, ClaimCheck)) for name in wanted]


def make_binding(name: str) -> Binding:
    return cast(Binding, make(name, Binding))


def make(name: str, role: type[Any]) -> object:
    """A new plug-in of this name; an error says what is wrong with it."""
    kind = _find(name, role)
    try:
        plugin: object = kind()
    except Exception as error:
        raise SettingError(f"plug-in {name!r} cannot be made: {error}") from error
    if not isinstance(plugin, role):
        raise SettingError(
            f"plug-in {name!r} is no {ROLES[role]}", expected="one of " + ", ".join(names(role))
        )
    return plugin


def check(wanted: Iterable[str], role: type[Any]) -> ArgosyError | None:
    """What is wrong with the first plug-in that cannot be used; None if all can."""
    for name in wanted:
        try:
            make(name, role)
        except ArgosyError as error:
            return error
    return None


def names(role: type[Any]) -> list[str]:
    """Built-in plug-ins with this role."""
    return [name for name, kind in PLUGINS.items() if isinstance(kind(), role)]


def _find(name: str, role: type[Any]) -> type[Any]:
    if name in PLUGINS:
        return PLUGINS[name]
    return _installed(name) or _unknown(name, role)


def _installed(name: str) -> type[Any] | None:
    offered = installed(ENTRY_POINTS, name, "plug-in")
    if offered is None:
        return None
    kind, value = offered
    if not isinstance(kind, type) or getattr(kind, "name", None) != name:
        raise SettingError(
            f"plug-in {name!r}: {value} is no plug-in of that name",
            expected="a class whose `name` is that of its entry point",
        )
    return kind


def _unknown(name: str, role: type[Any]) -> type[Any]:
    known = names(role)
    raise SettingError(
        f"there is no {ROLES[role]} {name!r}",
        expected="one of " + ", ".join(known) + ", or an installed plug-in",
        hint=did_you_mean(name, known),
    )
