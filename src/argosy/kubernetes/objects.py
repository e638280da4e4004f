"""Kubernetes objects: the typed subset that a scheduler reads and writes.

Fields that are not listed are ignored when read, so an object that was read must not be written back
whole (`replace`) unless all of it is listed here, as it is for `Lease`; change others by patches.

Quantities are strings as served; `quantities` makes integers of them. Times of whole seconds are
`datetime`; a `MicroTime` is a string (`meta.micro_time`), because the server wants exactly six decimals.

The structs are not tracked by the garbage collector: objects are trees, so none is ever part of a cycle,
and 50,000 pods would make each of its full collections take seconds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from argosy.kubernetes.meta import (
    KubernetesObject,
    MicroTime,
    ObjectCondition,
    ObjectReference,
    Served,
)

#: Names of resources to quantities, such as `{"cpu": "500m"}`.
ResourceQuantities: TypeAlias = dict[str, str]
IntOrPercentage: TypeAlias = int | str


# Selectors


class SelectorRequirement(Served, frozen=True):
    """`operator` is In, NotIn, Exists or DoesNotExist, for nodes also Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Served, frozen=True):
    """Selects everything if empty; where a selector is None, the field's own rule applies."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[SelectorRequirement, ...] = ()


class NodeSelectorTerm(Served, frozen=True):
    """All its requirements must hold. A term without any matches no node."""

    match_expressions: tuple[SelectorRequirement, ...] = ()
    match_fields: tuple[SelectorRequirement, ...] = ()


class NodeSelector(Served, frozen=True):
    """At least one of its terms must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredNodeTerm(Served, frozen=True):
    weight: int
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Served, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredNodeTerm, ...] = ()


class PodAffinityTerm(Served, frozen=True):
    """Without namespaces and namespace selector it means the pod's own namespace; an empty namespace
    selector means all of them."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Served, frozen=True):
    weight: int
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Served, frozen=True):
    """Of affinity and of anti-affinity alike."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Served, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Served, frozen=True):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


# Nodes


class Taint(Served, frozen=True):
    key: str
    effect: str
    value: str = ""
    time_added: datetime | None = None


class Toleration(Served, frozen=True):
    """An empty key with operator Exists tolerates every taint; an empty effect every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSpec(Served, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeStatus(Served, frozen=True):
    allocatable: ResourceQuantities = msgspec.field(default_factory=dict)
    capacity: ResourceQuantities = msgspec.field(default_factory=dict)
    conditions: tuple[ObjectCondition, ...] = ()


class Node(KubernetesObject, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(KubernetesObject, frozen=True):
    """Its labels matter: namespace selectors of affinity terms select by them."""


# Pods


class ContainerClaim(Served, frozen=True):
    """The use of one of the pod's resource claims by a container."""

    name: str
    request: str = ""


class ResourceRequirements(Served, frozen=True):
    requests: ResourceQuantities = msgspec.field(default_factory=dict)
    limits: ResourceQuantities = msgspec.field(default_factory=dict)
    claims: tuple[ContainerClaim, ...] = ()


class ContainerPort(Served, frozen=True):
    container_port: int
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"
    name: str = ""


class PodContainer(Served, frozen=True):
    """An init container whose `restart_policy` is Always is a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None


class ClaimVolume(Served, frozen=True):
    claim_name: str
    read_only: bool = False


class AnyVolume(Served, frozen=True):
    """A source of a volume of which only the kind is known."""


class PodVolume(Served, frozen=True):
    """Exactly one of the sources is set."""

    name: str
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: AnyVolume | None = None
    csi: AnyVolume | None = None
    host_path: AnyVolume | None = None
    empty_dir: AnyVolume | None = None
    config_map: AnyVolume | None = None
    secret: AnyVolume | None = None
    projected: AnyVolume | None = None
    downward_api: AnyVolume | None = msgspec.field(default=None, name="downwardAPI")
    image: AnyVolume | None = None
    nfs: AnyVolume | None = None
    iscsi: AnyVolume | None = None
    fc: AnyVolume | None = None
    rbd: AnyVolume | None = None
    cephfs: AnyVolume | None = None
    cinder: AnyVolume | None = None
    git_repo: AnyVolume | None = None
    glusterfs: AnyVolume | None = None
    flex_volume: AnyVolume | None = None
    gce_persistent_disk: AnyVolume | None = None
    aws_elastic_block_store: AnyVolume | None = None
    azure_file: AnyVolume | None = None
    azure_disk: AnyVolume | None = None
    vsphere_volume: AnyVolume | None = None
    portworx_volume: AnyVolume | None = None

    @property
    def source(self) -> str:
        """The source's kind as the API spells it, such as `emptyDir`; empty for one that is unknown."""
        for attribute, encoded in _VOLUME_SOURCES:
            if getattr(self, attribute) is not None:
                return encoded
        return ""


_VOLUME_SOURCES = tuple(
    (field.name, field.encode_name)
    for field in msgspec.structs.fields(PodVolume)
    if field.name != "name"
)


class PodResourceClaim(Served, frozen=True):
    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(Served, frozen=True):
    name: str


class PodSchedulingGroup(Served, frozen=True):
    """The pod group to which a pod belongs (1.36)."""

    pod_group_name: str | None = None


class WorkloadReference(Served, frozen=True):
    """The pod group to which a pod belongs, as 1.35 served it."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class PodSpec(Served, frozen=True):
    scheduler_name: str = "default-scheduler"
    node_name: str = ""
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    containers: tuple[PodContainer, ...] = ()
    init_containers: tuple[PodContainer, ...] = ()
    overhead: ResourceQuantities = msgspec.field(default_factory=dict)
    resources: ResourceRequirements | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None
    volumes: tuple[PodVolume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    restart_policy: str = "Always"
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    runtime_class_name: str | None = None
    service_account_name: str = ""


class ContainerRunning(Served, frozen=True):
    started_at: datetime | None = None


class ContainerTerminated(Served, frozen=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(Served, frozen=True):
    """Waiting if neither is set."""

    running: ContainerRunning | None = None
    terminated: ContainerTerminated | None = None


class ContainerStatus(Served, frozen=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    #: What the kubelet has given to the container; differs from its requests while it is resized.
    allocated_resources: ResourceQuantities = msgspec.field(default_factory=dict)
    resources: ResourceRequirements | None = None


class PodStatus(Served, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[ObjectCondition, ...] = ()
    nominated_node_name: str = ""
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(KubernetesObject, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# Scheduling and disruption


class PriorityClass(KubernetesObject, frozen=True):
    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"
    description: str = ""


class PodDisruptionBudgetSpec(Served, frozen=True):
    """Without a selector it covers no pod, with an empty one all of its namespace."""

    selector: LabelSelector | None = None
    min_available: IntOrPercentage | None = None
    max_unavailable: IntOrPercentage | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Served, frozen=True):
    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    #: Pods whose eviction was granted and has not been seen yet, with its time.
    disrupted_pods: dict[str, datetime] = msgspec.field(default_factory=dict)
    conditions: tuple[ObjectCondition, ...] = ()


class PodDisruptionBudget(KubernetesObject, frozen=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class GangPolicy(Served, frozen=True):
    min_count: int


class PodGroupPolicy(Served, frozen=True):
    """Exactly one is set; `basic` means pods that are scheduled one by one."""

    basic: dict[str, Any] | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(Served, frozen=True):
    """All pods of the group go to nodes with the same value of this label."""

    key: str


class PodGroupConstraints(Served, frozen=True):
    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupTemplate(Served, frozen=True):
    name: str
    scheduling_policy: PodGroupPolicy = PodGroupPolicy()
    scheduling_constraints: PodGroupConstraints | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: int | None = None


class WorkloadTemplateReference(Served, frozen=True):
    workload_name: str
    pod_group_template_name: str


class PodGroupTemplateReference(Served, frozen=True):
    workload: WorkloadTemplateReference | None = None


class PodGroupSpec(Served, frozen=True):
    pod_group_template_ref: PodGroupTemplateReference | None = None
    scheduling_policy: PodGroupPolicy = PodGroupPolicy()
    scheduling_constraints: PodGroupConstraints | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: int | None = None


class PodGroupStatus(Served, frozen=True):
    conditions: tuple[ObjectCondition, ...] = ()


class PodGroup(KubernetesObject, frozen=True):
    """A gang as scheduling.k8s.io/v1alpha2 serves it where the GenericWorkload gate is on."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class CoschedulingGroupSpec(Served, frozen=True):
    min_member: int = 1


class CoschedulingGroup(KubernetesObject, frozen=True):
    """A gang as the coscheduling plug-in of kube-scheduler defines it: `PodGroup` of
    scheduling.x-k8s.io, a custom resource."""

    spec: CoschedulingGroupSpec = CoschedulingGroupSpec()


class WorkloadController(Served, frozen=True):
    kind: str
    name: str
    api_group: str = ""


class WorkloadSpec(Served, frozen=True):
    controller_ref: WorkloadController | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class Workload(KubernetesObject, frozen=True):
    """Templates of pod groups, from which controllers make `PodGroup`s."""

    spec: WorkloadSpec = WorkloadSpec()


# Storage


class VolumeNodeAffinity(Served, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Served, frozen=True):
    capacity: ResourceQuantities = msgspec.field(default_factory=dict)
    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    access_modes: tuple[str, ...] = ()


class VolumePhase(Served, frozen=True):
    """The status of a volume or of a claim."""

    phase: str = ""


class PersistentVolume(KubernetesObject, frozen=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: VolumePhase = VolumePhase()


class PersistentVolumeClaimSpec(Served, frozen=True):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()


class PersistentVolumeClaim(KubernetesObject, frozen=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: VolumePhase = VolumePhase()


class StorageClass(KubernetesObject, frozen=True):
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"


# Coordination and events


class LeaseSpec(Served, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(KubernetesObject, frozen=True):
    spec: LeaseSpec = LeaseSpec()


class KubernetesEventSeries(Served, frozen=True):
    count: int
    last_observed_time: MicroTime


class KubernetesEvent(KubernetesObject, frozen=True):
    """An event of events.k8s.io/v1, as `kubectl describe` shows it."""

    event_time: MicroTime | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    type: str = ""
    note: str = ""
    regarding: ObjectReference | None = None
    related: ObjectReference | None = None
    series: KubernetesEventSeries | None = None
