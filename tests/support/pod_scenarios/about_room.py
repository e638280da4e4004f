"""Requests, host ports, who counts."""

from __future__ import annotations

from typing import Any

from pod_scenarios.table import Document, PodScenario, container, node, pod

#: Half of node a is taken, b is empty but small.
_NODES = {"a": node(cpu="4", memory="8Gi"), "b": node(cpu="1", memory="1Gi")}
_TAKEN = (pod("taken", on="a", requests={"cpu": "2", "memory": "4Gi"}),)


def _room(name: str, on: str, document: Document, **more: Any) -> PodScenario:
    settings: dict[str, Any] = {"nodes": _NODES, "existing": _TAKEN, **more}
    return PodScenario(topic="requests", name=name, pod=document, on=on, **settings)


def _init(*init: Document, main: Document) -> Document:
    return pod(initContainers=list(init), containers=[main])


def _sidecar(name: str, cpu: str) -> Document:
    return {**container(name, cpu=cpu), "restartPolicy": "Always"}


def _runtime(overhead: str) -> tuple[tuple[str, Document], ...]:
    return (
        (
            "/apis/node.k8s.io/v1/runtimeclasses",
            {
                "metadata": {"name": "$ns"},
                "handler": "heavy",
                "overhead": {"podFixed": {"cpu": overhead}},
            },
        ),
    )


REQUESTS = (
    _room("cpu fits exactly", "a", pod(requests={"cpu": "2"})),
    _room("a thousandth of a cpu too much", "", pod(requests={"cpu": "2001m"})),
    _room("memory", "a", pod(requests={"memory": "4Gi"})),
    _room("a byte too much", "", pod(requests={"memory": "4294967297"})),
    _room("cpu fits here, memory there", "", pod(requests={"cpu": "1500m", "memory": "5Gi"})),
    _room(
        "no requests on a full node",
        "a b",
        pod(),
        existing=(pod("taken", on="a", requests={"cpu": "4", "memory": "8Gi"}),),
    ),
    _room(
        "no requests, but no place for another pod",
        "b",
        pod(),
        nodes={"a": node(pods=1), "b": node(pods=1)},
        existing=(pod("taken", on="a"),),
    ),
    _room(
        "limits without requests",
        "a",
        pod(
            containers=[
                {"name": "main", "image": "none.invalid/x", "resources": {"limits": {"cpu": "2"}}}
            ]
        ),
    ),
    _room(
        "containers add up",
        "a",
        pod(containers=[container(cpu="1"), container("other", cpu="1")]),
    ),
    _room(
        "the largest init container counts",
        "",
        _init(container("one", cpu="2500m"), container("two", cpu="1"), main=container(cpu="1")),
    ),
    _room(
        "init containers do not add up",
        "a b",
        _init(container("one", cpu="1"), container("two", cpu="1"), main=container(cpu="1")),
    ),
    _room("a sidecar adds up", "", _init(_sidecar("proxy", "1100m"), main=container(cpu="1"))),
    _room(
        "a sidecar before an init container adds up with it",
        "",
        _init(_sidecar("proxy", "1"), container("one", cpu="1100m"), main=container(cpu="100m")),
    ),
    _room(
        "a sidecar after an init container does not",
        "a",
        _init(container("one", cpu="1100m"), _sidecar("proxy", "1"), main=container(cpu="100m")),
    ),
    _room(
        "overhead counts",
        "",
        pod(requests={"cpu": "1500m"}, runtimeClassName="$ns"),
        objects=_runtime("600m"),
    ),
    _room(
        "overhead that fits",
        "a",
        pod(requests={"cpu": "1500m"}, runtimeClassName="$ns"),
        objects=_runtime("500m"),
    ),
    _room(
        "requests of the pod as a whole",
        "",
        pod(resources={"requests": {"cpu": "2500m"}}, containers=[container(cpu="1")]),
    ),
    _room(
        "extended resources",
        "b",
        pod(requests={"example.com/gpu": "2"}),
        nodes={
            "a": node(resources={"example.com/gpu": "1"}),
            "b": node(resources={"example.com/gpu": "2"}),
            "c": node(),
        },
        existing=(),
    ),
    _room(
        "ephemeral storage",
        "b",
        pod(requests={"ephemeral-storage": "5Gi"}),
        nodes={
            "a": node(resources={"ephemeral-storage": "4Gi"}),
            "b": node(resources={"ephemeral-storage": "8Gi"}),
        },
        existing=(),
    ),
    _room(
        "huge pages",
        "b",
        pod(
            containers=[
                {
                    "name": "main",
                    "image": "none.invalid/x",
                    "resources": {
                        "requests": {"hugepages-2Mi": "4Mi", "cpu": "100m"},
                        "limits": {"hugepages-2Mi": "4Mi"},
                    },
                }
            ]
        ),
        nodes={
            "a": node(resources={"hugepages-2Mi": "2Mi"}),
            "b": node(resources={"hugepages-2Mi": "4Mi"}),
        },
        existing=(),
    ),
    _room(
        "pods that have ended take no room",
        "a",
        pod(requests={"cpu": "3"}),
        existing=(pod("taken", on="a", requests={"cpu": "2"}, phase="Succeeded"),),
    ),
    _room(
        "terminating pods take room",
        "",
        pod(requests={"cpu": "3"}),
        existing=(pod("taken", on="a", requests={"cpu": "2"}, is_terminating=True),),
    ),
    _room(
        "a node that its pods overcommit",
        "b",
        pod(requests={"cpu": "1"}),
        existing=(
            pod("one", on="a", requests={"cpu": "3"}),
            pod("two", on="a", requests={"cpu": "3"}),
        ),
    ),
)


def _port(number: int = 8080, *, ip: str = "", protocol: str = "TCP") -> Document:
    port: Document = {"containerPort": 80, "hostPort": number, "protocol": protocol}
    return {**port, "hostIP": ip} if ip else port


def _ports(name: str, on: str, taken: Document, wanted: Document, **more: Any) -> PodScenario:
    """Node a has a pod with a host port, b is empty."""
    return PodScenario(
        topic="host ports",
        name=name,
        nodes={"a": node(), "b": node()},
        existing=(pod("taken", on="a", containers=[container(ports=[taken])], **more),),
        pod=pod(containers=[container(ports=[wanted])]),
        on=on,
    )


PORTS = (
    _ports("the same port", "b", _port(), _port()),
    _ports("another port", "a b", _port(), _port(8081)),
    _ports("another protocol", "a b", _port(), _port(protocol="UDP")),
    _ports("one address, taken on all", "b", _port(), _port(ip="10.0.0.1")),
    _ports("all addresses, taken on one", "b", _port(ip="10.0.0.1"), _port()),
    _ports("another address", "a b", _port(ip="10.0.0.1"), _port(ip="10.0.0.2")),
    _ports("the same address", "b", _port(ip="10.0.0.1"), _port(ip="10.0.0.1")),
    _ports("0.0.0.0 means all addresses", "b", _port(ip="0.0.0.0"), _port(ip="10.0.0.1")),
    _ports(":: is an address like others", "a b", _port(ip="::"), _port(ip="10.0.0.1")),
    _ports("a terminating pod keeps its port", "b", _port(), _port(), is_terminating=True),
    PodScenario(
        topic="host ports",
        name="the host's network",
        nodes={"a": node(), "b": node()},
        existing=(
            pod(
                "taken",
                on="a",
                hostNetwork=True,
                containers=[container(ports=[{"containerPort": 8080}])],
            ),
        ),
        pod=pod(containers=[container(ports=[_port()])]),
        on="b",
    ),
    PodScenario(
        topic="host ports",
        name="a port of an init container does not count",
        nodes={"a": node(), "b": node()},
        existing=(pod("taken", on="a", initContainers=[container("init", ports=[_port()])]),),
        pod=pod(containers=[container(ports=[_port()])]),
        on="a b",
    ),
    PodScenario(
        topic="host ports",
        name="a port of a sidecar counts",
        nodes={"a": node(), "b": node()},
        existing=(
            pod(
                "taken",
                on="a",
                initContainers=[{**container("side", ports=[_port()]), "restartPolicy": "Always"}],
            ),
        ),
        pod=pod(containers=[container(ports=[_port()])]),
        on="b",
    ),
    PodScenario(
        topic="host ports",
        name="a node without the host name's label",
        nodes={"a": node(has_hostname=False), "b": node(has_hostname=False)},
        existing=(pod("taken", on="a", containers=[container(ports=[_port()])]),),
        pod=pod(containers=[container(ports=[_port()])]),
        on="b",
    ),
)
