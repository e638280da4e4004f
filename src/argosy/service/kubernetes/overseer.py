"""Between the live world and a Kubernetes cluster: pods are the world's tries.

The world's starts and stops reach the cluster (`PodCluster`) twice: when they are decided, so that the
cluster can refuse them and mark what they change, and when the turn is written, so that Kubernetes is
asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy.kubernetes.objects import Pod
from argosy.model.explanations import Why
from argosy.model.jobs import Job, job_of
from argosy.model.machines import Machine
from argosy.model.scenario import FleetEntry
from argosy.service.kubernetes.pod_fleet import PodFleet
from argosy.worlds.kubernetes.annotated_constraints import AnnotatedConstraints
from argosy.worlds.kubernetes.cluster import PodCluster
from argosy.worlds.local.overruled import GONE, OverruledWorld
from argosy.worlds.local.processless import ProcesslessRunner
from argosy.worlds.local.turn import StartOrder, StopOrder, TryResult


class PodOverseer(ProcesslessRunner[None]):
    """Also runs the world's tries, as `ServedRunner`. `wake` is called when there are orders for
    Kubernetes. `name` is the scheduler of pods that any of the fleet may take."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._fleet: PodFleet | None = None
        self._ended: Callable[[int, TryResult | None], None] = lambda number, result: None
        self._soon: Callable[[Callable[[], None]], object] = lambda action: None
        self.wake: Callable[[], None] = lambda: None
        self._world: OverruledWorld | None = None
        #: Otherwise all pods are somebody else's.
        self.is_leading = True
        self.pods = PodCluster(self._current, self._is_ours, self._kind_of)
        self.pods.annotated = AnnotatedConstraints(
            lambda pod: "" if self._fleet is None else self._fleet.ignoring_constraints(pod),
            lambda: self._fleet is not None and self._fleet.acts_on_constraints,
        )

    def connect(
        self,
        ended: Callable[[int, TryResult | None], None],
        soon: Callable[[Callable[[], None]], object],
    ) -> None:
        """`ended` hears of ends, `soon` calls something when there is nothing else to do."""
        self._ended, self._soon = ended, soon

    def _current(self) -> OverruledWorld:
        assert self._world is not None
        return self._world

    def _is_ours(self, pod: Pod) -> bool:
        if self._fleet is None or not self.is_leading:
            return False
        return pod.spec.scheduler_name in self._fleet.names

    def _kind_of(self, pod: Pod) -> str:
        assert self._fleet is not None
        return self._fleet.kind_of(pod)

    # As the world's overseer.

    def fleet(self, entries: tuple[FleetEntry, ...]) -> tuple[FleetEntry, ...]:
        former = () if self._fleet is None else self._fleet.kinds
        self._fleet = PodFleet(self._name, entries, former)
        return self._fleet.entries

    def begin(self, world: OverruledWorld) -> None:
        self._world = world
        self.pods.recover([row.job.id for row in world.open_rows()], world.claimed_machines())

    def oversee(self, world: OverruledWorld, orders: Sequence[StartOrder | StopOrder]) -> None:
        for order in orders:
            job = world.host.jobs.job(job_of(order.task)).id
            if isinstance(order, StopOrder):
                self.pods.pushed_off(job, order.why)
            elif not self.pods.claimed(job, world.host.view.machine_name(order.machine)):
                world.refuse(order.task, order.incarnation, Why.FILTERED)
        self.pods.follow_up()

    # As the runner of its tries.

    def launch(self, number: int, job: Job, index: int, machine: Machine) -> None:
        if self.pods.launch(number, job.id):
            self.wake()
        else:
            self._soon(lambda: self._ended(number, GONE))

    def stop(self, number: int) -> None:
        """A pod that is on its node ends when it has left; for others there is nothing to stop."""
        if self.pods.is_leaving(number):
            self.wake()
        else:
            self._soon(lambda: self._ended(number, GONE))

    def adopt(self, number: int) -> TryResult | bool:
        return self.pods.has_try(number)

    def is_running(self, number: int) -> bool:
        return self.pods.has_try(number)

    def limits(self) -> str:
        return "it is a pod: its containers have the limits of their specifications"

    def close(self) -> None:
        """Pods go on."""
