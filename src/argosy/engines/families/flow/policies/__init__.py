"""All policies, and lookup by name.

Built-in ones come first; then those that installed packages declare as entry points of the group
``argosy.flow_policies``. The name of an entry point is the `name` of its class.
"""

from __future__ import annotations

from importlib import metadata
from typing import Final

from argosy.engines.api import RunFacts, SettingMismatch
from argosy.engines.families.flow.cluster import MachineVertices
from argosy.engines.families.flow.policies.load_spreading import LoadSpreading
from argosy.engines.families.flow.policies.multi_dimensional import MultiDimensional
from argosy.engines.families.flow.policies.network_aware import NetworkAware
from argosy.engines.families.flow.policies.quincy import QuincyPolicy
from argosy.engines.families.flow.policy import Policy
from argosy.engines.families.flow.settings import FlowSettings
from argosy.model.entry_points import installed
from argosy.model.errors import SettingError, did_you_mean

ENTRY_POINTS: Final = "argosy.flow_policies"
POLICIES: Final[dict[str, type[Policy]]] = {
    LoadSpreading.name: LoadSpreading,
    QuincyPolicy.name: QuincyPolicy,
    NetworkAware.name: NetworkAware,
    MultiDimensional.name: MultiDimensional,
}


def find_policy(name: str) -> type[Policy]:
    """The policy of this name, built in or installed."""
    return POLICIES.get(name) or _installed(name)


def _installed(name: str) -> type[Policy]:
    offered = installed(ENTRY_POINTS, name, "policy")
    if offered is None:
        known = [*POLICIES, *(entry.name for entry in metadata.entry_points(group=ENTRY_POINTS))]
        raise SettingError(
            f"there is no policy {name!r}",
            expected="one of " + ", ".join(known),
            hint=did_you_mean(name, known),
        )
    found, value = offered
    is_policy = isinstance(found, type) and issubclass(found, Policy)
    if not is_policy or getattr(found, "name", None) != name:
        raise SettingError(
            f"policy {name!r}: {value} is no policy of that name",
            expected="a class derived from Policy whose `name` is that of its entry point",
        )
    policy: type[Policy] = found
    return policy


def policy_mismatch(settings: FlowSettings, facts: RunFacts) -> SettingMismatch | None:
    """What the policy needs and the run has not."""
    try:
        policy = find_policy(settings.policy)
    except SettingError as error:
        return SettingMismatch(("policy",), error.problem, expected=error.expected, hint=error.hint)
    return policy.mismatch(settings, facts)


def make_policy(
    settings: FlowSettings, cluster: MachineVertices, dimensions: tuple[str, ...]
) -> Policy:
    return find_policy(settings.policy)(settings, cluster, dimensions)
