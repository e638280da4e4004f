"""Between the live world and a Kubernetes cluster: pods are the world's tries.

The world's starts and stops reach the cluster (`PodCluster`) twice: when they are decided, so that the
cluster can refuse them and mark what they change, and when the turn is written, so that Kubernetes is
asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy.kubernetes.objects import Pod
from argosy.model.explanations import Why
from argosy.model.jobs import Job, index_of, job_of
from argosy.model.machines import Machine
from argosy.model.scenario import FleetEntry
from argosy.service.kubernetes.placements import placement_annotations
from argosy.service.kubernetes.pod_fleet import PodFleet
from argosy.worlds.kubernetes.annotated_constraints import AnnotatedConstraints
from argosy.worlds.kubernetes.commits import AgentCluster
from argosy.worlds.kubernetes.tracked import PodState
from argosy.worlds.local.overruled import GONE, OverruledWorld
from argosy.worlds.local.processless import ProcesslessRunner
from argosy.worlds.local.turn import StartOrder, StopOrder, TryResult


class PodOverseer(ProcesslessRunner[None]):
    """Also runs the world's tries, as `ServedRunner`. `wake` is called when there are orders for
    Kubernetes. `name` is the scheduler of pods that any of the fleet may take. `annotates` is whether
    pods that get a node are told why."""

    def __init__(self, name: str, *, annotates: bool = True, serves_commits: bool = False) -> None:
        super().__init__()
        self._name = name
        self.annotates = annotates
        self._fleet: PodFleet | None = None
        self._ended: Callable[[int, TryResult | None], None] = lambda number, result: None
        self._soon: Callable[[Callable[[], None]], object] = lambda action: None
        self.wake: Callable[[], None] = lambda: None
        self._world: OverruledWorld | None = None
        #: Otherwise all pods are somebody else's.
        self.is_leading = True
        #: Whether schedulers elsewhere may commit jobs here.
        self.serves_commits = serves_commits
        self.pods = AgentCluster(
            self._current,
            self._is_ours,
            self._kind_of,
            self._obstacle_to_groups,
            name=name if serves_commits else "",
        )
        self.pods.heed_wishes(self._heeds_wishes)
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

    def _heeds_wishes(self, pod: Pod) -> bool:
        return self._fleet is not None and self._fleet.heeds_wishes(pod)

    def _kind_of(self, pod: Pod) -> str:
        assert self._fleet is not None
        return self._fleet.kind_of(pod)

    def _obstacle_to_groups(self, kind: str) -> str:
        assert self._fleet is not None
        return self._fleet.obstacle_to_groups(kind)

    # As the world's overseer.

    def fleet(self, entries: tuple[FleetEntry, ...]) -> tuple[FleetEntry, ...]:
        former = () if self._fleet is None else self._fleet.kinds
        self._fleet = PodFleet(self._name, entries, former)
        return self._fleet.entries

    def begin(self, world: OverruledWorld) -> None:
        self._world = world
        world.projection.keeps_choices = self.annotates
        known = {row.job.id: row.job.tasks for row in world.open_rows()}
        self.pods.recover(known, world.claimed_machines())

    def oversee(self, world: OverruledWorld, orders: Sequence[StartOrder | StopOrder]) -> None:
        for order in orders:
            job, index = world.host.jobs.job(job_of(order.task)).id, index_of(order.task)
            if isinstance(order, StopOrder):
                self.pods.pushed_off(job, order.why, index)
                continue
            node = world.host.view.machine_name(order.machine)
            if not self.pods.claimed(job, node, index):
                world.refuse(order.task, order.incarnation, Why.FILTERED)
        self.pods.follow_up()

    # As the runner of its tries.

    def launch(self, number: int, job: Job, index: int, machine: Machine) -> None:
        if self.annotates:
            self._annotate(job.id, index, machine.name)
        if self.pods.launch(number, job.id, index) or self.pods.commit(number, job, machine.name):
            self.wake()
        else:
            self._soon(lambda: self._ended(number, GONE))

    def _annotate(self, job: str, index: int, node: str) -> None:
        world, tracked = self._current(), self.pods.of_job(job, index)
        choice, told = world.projection.take_choice(job, index)
        if tracked is None or tracked.state is not PodState.CLAIMED or choice is None:
            return
        assert self._fleet is not None
        tracked.annotations = placement_annotations(
            world, self._fleet.engines, choice, told, index, node
        )

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
