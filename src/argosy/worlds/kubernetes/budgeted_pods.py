"""Pods that have to leave their nodes for others, and pods that disruption budgets keep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from argosy.kubernetes.objects import Pod, PodDisruptionBudget
from argosy.model.explanations import Why
from argosy.worlds.kubernetes.budgets import BudgetKey, DisruptionBudgets
from argosy.worlds.kubernetes.grouped_pods import GroupedPods
from argosy.worlds.kubernetes.pod_jobs import kind_of
from argosy.worlds.kubernetes.tracked import EvictOrder, PodState, PodWorld, TrackedPod


class BudgetedPods(GroupedPods):
    def __init__(
        self,
        world: Callable[[], PodWorld],
        is_ours: Callable[[Pod], bool],
        route: Callable[[Pod], str] = kind_of,
        obstacle_to_groups: Callable[[str], str] = lambda kind: "",
    ) -> None:
        super().__init__(world, is_ours, route, obstacle_to_groups)
        self._budgets = DisruptionBudgets()
        #: Pods that have lost their nodes by the last decisions, and why.
        self._leaving: list[tuple[TrackedPod, Why]] = []

    # What the API says.

    def set_budgets(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        """All budgets that there are."""
        self._budgets = DisruptionBudgets()
        for budget in budgets:
            self._budgets.put(budget)
        self.forget_budgets()

    def set_budget(self, budget: PodDisruptionBudget) -> None:
        self._budgets.put(budget)
        key = budget.namespace, budget.name
        if not self._budgets.is_exhausted(key):
            self._expose(
                each
                for each in self._kept()
                if key in self._budgets.of(each.pod) and not self._budgets.exhausted_by([each.pod])
            )

    def remove_budget(self, namespace: str, name: str) -> None:
        self._budgets.remove(namespace, name)
        self.forget_budgets()

    # What the world decides.

    def _order_evictions(self) -> None:
        """Pods that were preempted leave, unless budgets keep one of those that have to leave a node:
        then none of them does, and who was to take their place looks on."""
        leaving, self._leaving = self._leaving, []
        victims: dict[str, list[TrackedPod]] = defaultdict(list)
        for tracked, why in leaving:
            if tracked.state is not PodState.LEAVING:
                continue
            if why is Why.PREEMPTED:
                victims[tracked.node].append(tracked)
            else:
                self.orders.append(EvictOrder(tracked.pod, why))
        for pods in victims.values():
            exhausted = self._budgets.exhausted_by(each.pod for each in pods)
            if exhausted:
                self._keep(pods, self._protect_all(exhausted))
                continue
            self._budgets.spend(each.pod for each in pods)
            self.orders.extend(EvictOrder(each.pod, Why.PREEMPTED) for each in pods)

    # How orders went.

    def eviction_failed(self, uid: str) -> None:
        """A budget keeps a pod that was to leave: it counts again, nobody preempts it for now, and who
        was to take its place looks on."""
        tracked = self.pods.get(uid)
        if tracked is not None and tracked.state is PodState.LEAVING:
            self._protect(tracked)
            self._keep([tracked])

    def _keep(self, pods: Sequence[TrackedPod], others: Sequence[TrackedPod] = ()) -> None:
        """Pods that were to leave a node stay there, instead of those that were to come; `others` that
        are on their nodes need other jobs as well."""
        node, giving_way = pods[0].node, []
        for uid in self.rulebook.pods_on(node):
            other = self.pods[uid]
            if other.state in (PodState.CLAIMED, PodState.HELD) and not other.takes_room:
                other.state = PodState.CLAIMED
                self._held[node].pop(uid, None)
                giving_way.append((other.job, other.index))
        numbers = [self._index.take_try(each) for each in pods]
        self._adopt_anew([*pods, *others], giving_way)
        for each in pods:
            if not each.pod.spec.node_name:
                # Kubernetes has been asked to bind it, and nothing else is known yet.
                each.state = PodState.BINDING
        self._world().settle()
        for number in numbers:
            if number is not None:
                self._world().gone(number)

    def _protect(self, tracked: TrackedPod) -> None:
        tracked.is_protected = True
        self._protected[tracked.uid] = None

    def _protect_all(self, exhausted: set[BudgetKey]) -> list[TrackedPod]:
        """Nobody preempts what these budgets cover, until they allow it or a while has passed. Returns
        pods on their nodes for which that is new."""
        new = []
        for tracked in self.pods.values():
            is_there = tracked.state in (PodState.BOUND, PodState.LEAVING)
            if not is_there or tracked.is_protected:
                continue
            if not exhausted.isdisjoint(self._budgets.of(tracked.pod)):
                self._protect(tracked)
                if tracked.state is PodState.BOUND:
                    new.append(tracked)
        return new

    def forget_budgets(self) -> None:
        """To be called now and then: pods that budgets have kept may be told to leave again."""
        self._expose(self._kept())
        self._protected.clear()

    def _kept(self) -> list[TrackedPod]:
        found = (self.pods.get(uid) for uid in self._protected)
        return [tracked for tracked in found if tracked is not None]

    def _expose(self, pods: Iterable[TrackedPod]) -> None:
        exposed = list(pods)
        for tracked in exposed:
            self._protected.pop(tracked.uid, None)
            tracked.is_protected = False
        there = [each for each in exposed if each.state is PodState.BOUND]
        if there:
            self._adopt_anew(there)

    @property
    def has_protected(self) -> bool:
        return bool(self._protected)
