"""How Kubernetes schedules, case by case: run against kube-scheduler and against Argosy."""

from pod_scenarios.about_nodes import NODE_AFFINITY, TAINTS
from pod_scenarios.about_pods import AFFINITY, ANTI_AFFINITY, SPREAD
from pod_scenarios.about_preferences import PREFERENCES
from pod_scenarios.about_room import PORTS, REQUESTS
from pod_scenarios.about_the_rest import GATES, PREEMPTION, VOLUMES

SCENARIOS = (
    *TAINTS,
    *NODE_AFFINITY,
    *REQUESTS,
    *PORTS,
    *AFFINITY,
    *ANTI_AFFINITY,
    *SPREAD,
    *PREFERENCES,
    *VOLUMES,
    *GATES,
    *PREEMPTION,
)
