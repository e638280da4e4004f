"""`argosy kubernetes` in a process of its own, which tests kill; load for it; and an independent witness
of what became of every pod."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from argosy.kubernetes.control_plane import ControlPlane
from argosy.kubernetes.control_plane.admin import RequestRefused
from argosy.kubernetes.control_plane.failures import ControlPlaneError

ARGOSY = str(Path(sys.executable).with_name("argosy"))
#: Seconds. Far more than anything here takes; reached only if something is broken.
PATIENCE = 120.0
#: Seconds between two attempts while the API server is away.
GLANCE = 0.02
FENCING = "argosy.dev/fencing"


class SchedulerProcess:
    """Starts at once; `wait_until_up` returns when it says that it is."""

    def __init__(self, kubeconfig: Path, *options: str, path: str = "") -> None:
        self.messages = tempfile.NamedTemporaryFile("w+b", prefix="argosy-messages-")  # noqa: SIM115
        command = [ARGOSY, "kubernetes", "--kubeconfig", str(kubeconfig), "-o", "json", *options]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.messages,
            env={**os.environ, **({"PYTHONPATH": path} if path else {})},
        )
        self.url = ""

    def wait_until_up(self) -> Self:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the scheduler ended: {self.said}"
        self.url = json.loads(line)["url"]
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        self.messages.close()

    @property
    def said(self) -> str:
        return Path(self.messages.name).read_text("utf-8", "replace")

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """As `kill -9` does."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def terminate(self) -> int:
        """Properly; returns the exit code."""
        self._process.terminate()
        return self._process.wait(PATIENCE)

    def wait(self) -> int:
        return self._process.wait(PATIENCE)

    def get(self, path: str) -> tuple[int, str]:
        return self.ask("GET", path)

    def ask(self, method: str, path: str, document: object = None) -> tuple[int, str]:
        place = urlsplit(self.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE)
        try:
            body = None if document is None else json.dumps(document)
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


def pod_document(
    name: str, scheduler: str = "argosy", cpu: str = "1", memory: str = "1Gi", **spec: Any
) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory}
    container = {"name": "main", "image": "none.invalid/x", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"schedulerName": scheduler, "containers": [container], **spec},
    }


def create_pod(plane: ControlPlane, namespace: str, document: Mapping[str, Any]) -> None:
    """Until it is there, whatever happens to the API server meanwhile."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", document)
            return
        except RequestRefused as refused:
            if refused.reason == "AlreadyExists":
                return
            # Where service accounts or quotas have yet to be read, pods are refused.
            if refused.status not in (403, 429, 500, 503):
                raise
        except ControlPlaneError:
            pass
        assert time.monotonic() < deadline, "the API server does not come back"
        time.sleep(GLANCE)


class PodLoad(threading.Thread):
    """Creates pods, one after the other, until `finish`."""

    def __init__(
        self,
        plane: ControlPlane,
        namespace: str,
        documents: Iterator[Mapping[str, Any]],
        rate: float = 50.0,
    ) -> None:
        super().__init__(name="load", daemon=True)
        self._plane, self._namespace, self._documents = plane, namespace, documents
        self._pause = 1 / rate
        self._ending = threading.Event()
        self.made = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            for document in self._documents:
                create_pod(self._plane, self._namespace, document)
                self.made += 1
                if self._ending.wait(self._pause):
                    return
        except BaseException as error:
            self.error = error

    def finish(self) -> None:
        self._ending.set()
        self.join(PATIENCE)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error


class PodWitness(threading.Thread):
    """Watches all pods of a namespace over a connection of its own, and keeps what it has seen."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        super().__init__(name="witness", daemon=True)
        self._plane, self._namespace = plane, namespace
        self._changed = threading.Condition()
        self._is_closed = False
        #: Every node that a pod was ever seen on, by uid.
        self.nodes: defaultdict[str, set[str]] = defaultdict(set)
        #: Pods as they were last seen, by uid; those that are gone are not among them.
        self.pods: dict[str, dict[str, Any]] = {}
        #: When a pod was first seen, and first seen with a node.
        self.seen_at: dict[str, float] = {}
        self.bound_at: dict[str, float] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_closed = True

    def run(self) -> None:
        while not self._is_closed:
            met: set[str] | None = set()
            try:
                for event in self._plane.watch(f"/api/v1/namespaces/{self._namespace}/pods"):
                    with self._changed:
                        met = self._take(event, met)
                        self._changed.notify_all()
            except (ControlPlaneError, OSError, http.client.HTTPException, ValueError):
                time.sleep(GLANCE)

    def _take(self, event: dict[str, Any], met: set[str] | None) -> set[str] | None:
        pod = event["object"]
        uid = pod["metadata"].get("uid", "")
        match event["type"]:
            case "BOOKMARK":
                if met is not None and pod["metadata"].get("annotations"):
                    for gone in set(self.pods) - met:
                        del self.pods[gone]
                    return None
            case "DELETED":
                self.pods.pop(uid, None)
            case "ADDED" | "MODIFIED":
                if met is not None:
                    met.add(uid)
                self.pods[uid] = pod
                self.seen_at.setdefault(uid, time.monotonic())
                node = pod["spec"].get("nodeName")
                if node:
                    self.nodes[uid].add(node)
                    self.bound_at.setdefault(uid, time.monotonic())
        return met

    def until(self, condition: Callable[[PodWitness], object], what: str) -> None:
        """Returns when the condition holds; it is looked at with every change."""
        with self._changed:
            held = self._changed.wait_for(lambda: condition(self), PATIENCE)
        assert held, f"waited {PATIENCE:.0f} s in vain: {what}; {self.summary()}"

    @property
    def bound(self) -> list[dict[str, Any]]:
        return [pod for pod in list(self.pods.values()) if pod["spec"].get("nodeName")]

    @property
    def waiting(self) -> list[dict[str, Any]]:
        return [pod for pod in list(self.pods.values()) if not pod["spec"].get("nodeName")]

    def summary(self) -> str:
        return f"{len(self.bound)} bound, {len(self.waiting)} waiting"


def bound_twice(witness: PodWitness) -> list[str]:
    """Pods that were seen on more than one node."""
    return [f"{uid}: {nodes}" for uid, nodes in witness.nodes.items() if len(nodes) > 1]


def overcommitted(plane: ControlPlane) -> list[str]:
    """Nodes whose pods ask for more than there is, as the API tells it now."""
    have = {
        node["metadata"]["name"]: {
            name: amount(text) for name, text in node["status"]["allocatable"].items()
        }
        for node in plane.request("GET", "/api/v1/nodes")["items"]
    }
    used: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in plane.request("GET", "/api/v1/pods")["items"]:
        node = pod["spec"].get("nodeName")
        if not node or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            continue
        used[node]["pods"] += 1000
        for container in pod["spec"]["containers"]:
            for name, text in container.get("resources", {}).get("requests", {}).items():
                used[node][name] += amount(text)
    return [
        f"{node}: {name} {asked} of {have.get(node, {}).get(name, 0)}"
        for node, amounts in used.items()
        for name, asked in amounts.items()
        if asked > have.get(node, {}).get(name, 0)
    ]


_UNITS = {"m": 1, "Ki": 1000 << 10, "Mi": 1000 << 20, "Gi": 1000 << 30, "k": 10**6}


def amount(text: str) -> int:
    """A quantity in thousandths."""
    for unit, factor in _UNITS.items():
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    return int(text) * 1000


def metric_value(text: str, name: str, labels: str = "") -> float:
    """The sum of a metric's lines whose labels contain `labels`."""
    lines = [line for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if labels in line)
