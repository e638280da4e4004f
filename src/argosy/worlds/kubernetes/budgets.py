"""Which pods PodDisruptionBudgets keep from being evicted, as far as is known here. The eviction API has
the last word."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from argosy.kubernetes.objects import Pod, PodDisruptionBudget
from argosy.worlds.kubernetes.selectors import selects

BudgetKey: TypeAlias = tuple[str, str]

_PENDING: Final = "Pending"
_READY: Final = "Ready"


class DisruptionBudgets:
    def __init__(self) -> None:
        self._budgets: dict[str, dict[str, PodDisruptionBudget]] = defaultdict(dict)
        #: How many evictions each allows, without those that were ordered since it was last seen.
        self._left: dict[BudgetKey, int] = {}

    def put(self, budget: PodDisruptionBudget) -> None:
        self._budgets[budget.namespace][budget.name] = budget
        self._left[budget.namespace, budget.name] = budget.status.disruptions_allowed

    def remove(self, namespace: str, name: str) -> None:
        self._budgets[namespace].pop(name, None)
        self._left.pop((namespace, name), None)

    def of(self, pod: Pod) -> Iterator[BudgetKey]:
        """The budgets that an eviction of the pod counts against. The API does not count evictions of
        pods that are pending, and whether it counts those of pods that are not ready depends."""
        if pod.status.phase == _PENDING or _is_unready(pod):
            return
        for name, budget in self._budgets.get(pod.namespace, {}).items():
            if selects(budget.spec.selector, pod.metadata.labels):
                yield pod.namespace, name

    def exhausted_by(self, pods: Iterable[Pod]) -> set[BudgetKey]:
        """Budgets that do not allow all of these pods to be evicted."""
        asked = Counter(key for pod in pods for key in self.of(pod))
        return {key for key, count in asked.items() if self._left[key] < count}

    def spend(self, pods: Iterable[Pod]) -> None:
        """These pods are told to leave."""
        for pod in pods:
            for key in self.of(pod):
                self._left[key] -= 1

    def is_exhausted(self, key: BudgetKey) -> bool:
        return self._left.get(key, 1) < 1


def _is_unready(pod: Pod) -> bool:
    return any(each.type == _READY and each.status != "True" for each in pod.status.conditions)
