"""Counts of what goes on between Argosy and Kubernetes. What kube-scheduler or client-go count too has
their names, with a prefix."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from argosy.model.explanations import Why
from argosy.service.kubernetes.driver import ClusterWatches
from argosy.service.kubernetes.writer import KubernetesWriter
from argosy.service.metrics import Histogram, head, label, metric
from argosy.worlds.kubernetes.moves import RelocatingCluster
from argosy.worlds.kubernetes.tracked import PodState, TrackedPod

#: Pods that wait, by where they are: kube-scheduler's names of queues, and two of our own.
_QUEUES: Final = ("active", "backoff", "unschedulable", "gated", "held", "binding")


class KubernetesMetrics:
    """Observes the client (`RequestObserver`) and the writer (`WriterObserver`)."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._request_times: defaultdict[str, Histogram] = defaultdict(Histogram)
        self._repeats: Counter[tuple[str, str]] = Counter()
        self._restarts: Counter[tuple[str, str]] = Counter()
        self._bind_times = Histogram()
        self._refusals = 0
        self._evictions: Counter[str] = Counter()
        self._parts: tuple[RelocatingCluster, KubernetesWriter, ClusterWatches] | None = None

    def attach(
        self, pods: RelocatingCluster, writer: KubernetesWriter, watches: ClusterWatches
    ) -> None:
        """What is looked at when somebody asks."""
        self._parts = (pods, writer, watches)

    # As the observer of requests.

    def answered(self, verb: str, resource: str, code: int, seconds: float) -> None:
        self._requests[verb, resource, code] += 1
        self._request_times[verb].add(seconds)

    def repeated(self, verb: str, resource: str, delay: float) -> None:
        self._repeats[verb, resource] += 1

    def watch_restarted(self, resource: str, cause: str) -> None:
        self._restarts[resource, cause] += 1

    # As the observer of what is written.

    def bound(self, seconds: float) -> None:
        self._bind_times.add(seconds)

    def refused(self) -> None:
        self._refusals += 1

    def evicted(self, why: Why) -> None:
        self._evictions[why.name.lower()] += 1

    def lines(self) -> Iterator[str]:
        if self._parts is None:
            return
        pods, writer, watches = self._parts
        waiting = Counter(filter(None, map(_queue_of, pods.pods.values())))
        yield from metric(
            "scheduler_pending_pods",
            "gauge",
            "Pods without a node: to be decided on, resting after refusals, impossible to place, gated, "
            "waiting for others to leave, and being bound.",
            {label("queue", queue): waiting[queue] for queue in _QUEUES},
        )
        yield from metric(
            "scheduler_bound_pods",
            "gauge",
            "Pods that take up room on nodes, whoever has bound them.",
            {"": sum(each.state is PodState.BOUND for each in pods.pods.values())},
        )
        yield from head(
            "scheduler_binding_duration_seconds",
            "histogram",
            "From the decision on a pod until Kubernetes has bound it.",
        )
        yield from self._bind_times.lines("argosy_scheduler_binding_duration_seconds")
        yield from metric(
            "scheduler_bindings_refused_total",
            "counter",
            "Bindings that Kubernetes did not accept.",
            {"": self._refusals},
        )
        yield from metric(
            "scheduler_preemption_victims_total",
            "counter",
            "Pods that were evicted, by the reason.",
            {
                label("reason", reason): self._evictions[reason]
                for reason in sorted({"preempted", *self._evictions})
            },
        )
        yield from metric(
            "scheduler_pods_moved_total",
            "counter",
            "Pods that were bound where room was kept for them, in the place of pods that were moved.",
            {"": pods.moved},
        )
        yield from metric(
            "leader_election_master_status",
            "gauge",
            "1 if this replica may write to Kubernetes.",
            {"": int(writer.right.is_held)},
        )
        if writer.right.fencing is not None:
            yield from metric(
                "leader_election_fencing_number",
                "gauge",
                "Greater than that of every leader before.",
                {"": writer.right.fencing},
            )
        yield from self._request_lines(watches)

    def _request_lines(self, watches: ClusterWatches) -> Iterator[str]:
        yield from metric(
            "rest_client_requests_total",
            "counter",
            "Requests to Kubernetes by verb, resource and status; code 0 if there was no answer.",
            {
                f"{label('verb', verb)},{label('resource', resource)},{label('code', code)}": count
                for (verb, resource, code), count in sorted(self._requests.items())
            },
        )
        yield from metric(
            "rest_client_request_retries_total",
            "counter",
            "Requests that were repeated, because there was no connection or the server throttled.",
            {
                f"{label('verb', verb)},{label('resource', resource)}": count
                for (verb, resource), count in sorted(self._repeats.items())
            },
        )
        yield from head(
            "rest_client_request_duration_seconds", "histogram", "Time until Kubernetes answers."
        )
        for verb, times in sorted(self._request_times.items()):
            yield from times.lines(
                "argosy_rest_client_request_duration_seconds", label("verb", verb)
            )
        yield from metric(
            "kubernetes_watch_restarts_total",
            "counter",
            "Watches that ended and were begun again, by resource and cause.",
            {
                f"{label('resource', resource)},{label('cause', cause)}": count
                for (resource, cause), count in sorted(self._restarts.items())
            },
        )
        # Two kinds of pod groups have one name.
        relists: Counter[str] = Counter()
        lags: dict[str, float] = {}
        for each in watches.all:
            resource = label("resource", each.kind.plural)
            relists[resource] += each.relists
            lags[resource] = max(each.lag, lags.get(resource, 0.0))
        yield from metric(
            "kubernetes_watch_relists_total",
            "counter",
            "How often all objects were read again.",
            relists,
        )
        yield from metric(
            "kubernetes_watch_lag_seconds",
            "gauge",
            "For how long changes may have been missed; 0 while a watch is connected.",
            lags,
        )


def _queue_of(tracked: TrackedPod) -> str:
    """Empty for a pod that has its node."""
    match tracked.state:
        case PodState.WAITING | PodState.CLAIMED:
            return "active"
        case PodState.HELD:
            return "held"
        case PodState.BINDING:
            return "binding"
        case PodState.OUTSIDE if not tracked.pod.spec.node_name:
            if tracked.pod.spec.scheduling_gates:
                return "gated"
            return "unschedulable" if tracked.obstacle else "backoff"
    return ""
