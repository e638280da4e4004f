"""A control plane from its start to its end."""

from __future__ import annotations

import base64
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import msgspec

from argosy.kubernetes.control_plane import programs
from argosy.kubernetes.control_plane.admin import AdminApi, HealthProbe
from argosy.kubernetes.control_plane.failures import ControlPlaneError
from argosy.kubernetes.control_plane.nodes import ZONE, is_ready, node_document
from argosy.kubernetes.control_plane.ports import HeldPorts
from argosy.kubernetes.control_plane.processes import KeptProcess, ProcessKeeper
from argosy.kubernetes.control_plane.programs import (
    ControlPlaneFiles,
    ControlPlanePorts,
    KubeProgram,
)
from argosy.kubernetes.control_plane.tools import KubeTools

#: Seconds between two questions whether a program is ready: the first, and the longest.
_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.1
#: How much of a log an error shows.
_TAIL_LINES: Final = 12
_TAIL_BYTES: Final = 1 << 14
#: What an elliptic curve key of P-256 is wrapped in; the public half is left out, which readers reckon.
_KEY_HEAD: Final = bytes.fromhex("30310201010420")
_KEY_TAIL: Final = bytes.fromhex("a00a06082a8648ce3d030107")

_Item = TypeVar("_Item")


class ControlPlane:
    """etcd and kube-apiserver on 127.0.0.1, and others where wanted.

    Made by `start`; used as a context manager. Nothing of it outlives it: neither process nor file,
    whether it is closed or its process is killed.
    """

    def __init__(
        self,
        directory: Path,
        tools: KubeTools,
        *,
        controllers: Sequence[str],
        apiserver_flags: Sequence[str],
        timeout: float,
    ) -> None:
        self.files = ControlPlaneFiles(directory)
        self.tools = tools
        #: What a client needs, beside `authority`; `kubeconfig` has all three.
        self.token = secrets.token_hex(16)
        self._controllers = controllers
        self._apiserver_flags = apiserver_flags
        self._timeout = timeout
        self._held = HeldPorts(len(msgspec.structs.fields(ControlPlanePorts)))
        self._ports = ControlPlanePorts(*self._held.numbers)
        self._admin = AdminApi(self._ports.api_server, self.token, self.authority, timeout)
        self._health = {
            program: HealthProbe(url, self.token if program is KubeProgram.API_SERVER else None)
            for program, url in programs.health_addresses(self._ports).items()
        }
        self._write_files()
        self._keeper = ProcessKeeper(directory, self.files.logs / "keeper.log")
        #: Those that were started and not killed by `kill`; they may have ended by themselves.
        self._processes: dict[KubeProgram, KeptProcess] = {}
        #: Nodes made so far, by the beginning of their names.
        self._nodes: dict[str, int] = {}
        self._is_closed = False

    @classmethod
    def start(
        cls,
        directory: Path | None = None,
        *,
        tools: KubeTools,
        scheduler: bool = False,
        controller_manager: bool = False,
        kwok: bool = True,
        controllers: Sequence[str] = ("*",),
        apiserver_flags: Sequence[str] = (),
        timeout: float = 60.0,
    ) -> Self:
        """Returns when all are ready, or raises `ControlPlaneError` with the end of the log of the one
        that is not.

        `directory` must be new or empty, and is removed at the end; without one, it is a temporary
        directory. `controllers` are those of kube-controller-manager, for example `disruption`, which
        PodDisruptionBudgets need. `apiserver_flags` come after the usual ones.
        """
        if sys.platform != "linux":
            raise ControlPlaneError(f"no control plane on {sys.platform}", expected="Linux")
        others = {
            KubeProgram.CONTROLLER_MANAGER: controller_manager,
            KubeProgram.SCHEDULER: scheduler,
            KubeProgram.KWOK: kwok,
        }
        wanted = [program for program, is_wanted in others.items() if is_wanted]
        tools.require([KubeProgram.ETCD, KubeProgram.API_SERVER, *wanted])
        plane = cls(
            _empty_directory(directory),
            tools,
            controllers=controllers,
            apiserver_flags=apiserver_flags,
            timeout=timeout,
        )
        try:
            plane._start(wanted)
        except BaseException:
            plane._close(keep=plane.files.logs)
            raise
        return plane

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kills everything and removes the directory."""
        self._close(keep=None)

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return f"https://{programs.HOST}:{self._ports.api_server}"

    @property
    def kubeconfig(self) -> Path:
        return self.files.kubeconfig

    @property
    def authority(self) -> Path:
        """The certificate that the API server's is checked with."""
        return self.files.authority

    @property
    def running(self) -> Mapping[KubeProgram, int]:
        """The pids of the programs that run."""
        return {
            program: process.pid
            for program, process in self._processes.items()
            if not process.has_ended()
        }

    def log(self, program: KubeProgram | str) -> str:
        """What a program has written so far, over all its lives."""
        return self.files.log(KubeProgram(program)).read_text("utf-8", "replace")

    def run(self, *wanted: KubeProgram | str) -> None:
        """Starts programs that do not run, and waits until they are ready. Data and ports are those of
        their earlier lives."""
        missing = [KubeProgram(each) for each in wanted if KubeProgram(each) not in self.running]
        self.tools.require(missing)
        for program in missing:
            self._launch(program)
        self._wait_for(missing)

    def kill(self, program: KubeProgram | str) -> None:
        """`kill -9`, if it runs; returns when it is gone."""
        process = self._processes.pop(KubeProgram(program), None)
        if process is not None:
            process.kill()
            process.close()
        if program == KubeProgram.API_SERVER:
            self._admin.forget_connections()

    def restart(self, program: KubeProgram | str) -> None:
        """Kills it, if it runs, and starts it again. After etcd's restart, the API server is ready too,
        if it runs."""
        self.kill(program)
        self.run(program)
        if program == KubeProgram.ETCD and KubeProgram.API_SERVER in self.running:
            self._wait_for([KubeProgram.API_SERVER])

    def request(
        self,
        method: str,
        path: str,
        document: object = None,
        *,
        content_type: str = "application/json",
    ) -> Any:
        """A request to the API server by its administrator; the decoded answer."""
        return self._admin.request(method, path, document, content_type=content_type)

    def for_each(self, action: Callable[[_Item], object], items: Sequence[_Item]) -> None:
        """Several requests at once; the first error is raised when all have been tried."""
        self._admin.for_each(action, items)

    def watch(self, path: str, query: str = "") -> Iterator[dict[str, Any]]:
        """What is there as events, then changes as they happen."""
        return self._admin.watch(path, query)

    def create_nodes(
        self,
        count: int,
        *,
        name: str = "node",
        cpu: str = "32",
        memory: str = "256Gi",
        pods: int = 110,
        resources: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[str] = (),
        zones: Sequence[str] = (),
        wait: bool = True,
    ) -> list[str]:
        """Nodes called NAME-00000 and so on; numbers go on where an earlier call stopped. Returns their
        names when they are ready, unless `wait` is false.

        `resources` are extended ones, such as {"nvidia.com/gpu": "4"}; `taints` are written as for
        kubectl; nodes take turns at `zones`. Without kwok, nodes are ready from the start and stay so.
        """
        first = self._nodes.get(name, 0)
        names = [f"{name}-{number:05}" for number in range(first, first + count)]
        offered = {"cpu": cpu, "memory": memory, "pods": str(pods), **(resources or {})}
        has_kwok = KubeProgram.KWOK in self._processes
        documents = [
            node_document(
                each,
                offered,
                {**({ZONE: zones[at % len(zones)]} if zones else {}), **(labels or {})},
                taints,
                is_ready=not has_kwok,
            )
            for at, each in enumerate(names, first)
        ]
        self._nodes[name] = first + count
        self._admin.for_each(
            lambda document: self.request("POST", "/api/v1/nodes", document), documents
        )
        if wait and has_kwok:
            self._wait_for_nodes(names)
        return names

    def delete_nodes(self, names: Iterable[str]) -> None:
        """Pods on them stay, unless a controller manager collects them."""
        self._admin.for_each(
            lambda name: self.request("DELETE", f"/api/v1/nodes/{name}"), list(names)
        )

    def _wait_for_nodes(self, names: Sequence[str]) -> None:
        missing = set(names)
        for event in self.watch("/api/v1/nodes"):
            if is_ready(event["object"]):
                missing.discard(event["object"]["metadata"]["name"])
            if not missing:
                return
        raise self._failure(
            KubeProgram.KWOK,
            f"{len(missing)} of {len(names)} nodes are not ready, as {min(missing)}",
        )

    def _start(self, wanted: Sequence[KubeProgram]) -> None:
        for program in (KubeProgram.ETCD, KubeProgram.API_SERVER):
            self._launch(program)
        # The others need the certificate that the API server makes, and retry slowly if it does not
        # answer; but they need not wait until it is ready.
        self._wait_for([KubeProgram.API_SERVER], until_ready=False)
        for program in wanted:
            self._launch(program)
        self._wait_for([KubeProgram.API_SERVER, *wanted])

    def _launch(self, program: KubeProgram) -> None:
        ended = self._processes.pop(program, None)
        if ended is not None:
            ended.close()
        arguments = [str(self.tools.path(program)), *self._flags(program)]
        self._processes[program] = self._keeper.start(arguments, self.files.log(program))

    def _flags(self, program: KubeProgram) -> list[str]:
        files, ports = self.files, self._ports
        match program:
            case KubeProgram.ETCD:
                return programs.etcd_flags(files, ports)
            case KubeProgram.API_SERVER:
                return programs.api_server_flags(files, ports, self._apiserver_flags)
            case KubeProgram.CONTROLLER_MANAGER:
                return programs.controller_manager_flags(files, ports, self._controllers)
            case KubeProgram.SCHEDULER:
                return programs.scheduler_flags(files, ports)
            case KubeProgram.KWOK:
                return programs.kwok_flags(files, self.tools.stages)

    def _wait_for(self, wanted: Sequence[KubeProgram], *, until_ready: bool = True) -> None:
        """Until each answers that it is ready, or answers at all."""
        deadline = time.monotonic() + self._timeout
        for program in wanted:
            if program not in self._health:
                continue
            pause = _FIRST_PAUSE
            while True:
                status = self._health[program].status()
                if status == 200 or (status and not until_ready):
                    break
                if self._processes[program].has_ended(pause):
                    raise self._failure(program, f"{program} ended before it was ready")
                if time.monotonic() > deadline:
                    raise self._failure(
                        program, f"{program} is not ready after {self._timeout:g} s"
                    )
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _failure(self, program: KubeProgram, problem: str) -> ControlPlaneError:
        path = self.files.log(program)
        try:
            data = path.read_bytes()[-_TAIL_BYTES:]
        except OSError:
            data = b""
        lines = data.decode("utf-8", "replace").splitlines()[-_TAIL_LINES:] or ["(nothing)"]
        return ControlPlaneError(
            problem, hint=f"its log, {path}, ends with:\n  " + "\n  ".join(lines)
        )

    def _write_files(self) -> None:
        files = self.files
        files.logs.mkdir()
        files.tokens.write_text(f"{self.token},admin,admin,system:masters\n")
        files.account_key.write_text(_account_key())
        kubeconfig = programs.kubeconfig(files, self.server, self.token)
        files.kubeconfig.write_bytes(msgspec.json.encode(kubeconfig))
        configuration = programs.scheduler_configuration(files)
        files.scheduler_configuration.write_bytes(msgspec.json.encode(configuration))

    def _close(self, keep: Path | None) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._admin.forget_connections()
        self._keeper.close(keep)
        for process in self._processes.values():
            process.close()
        self._processes.clear()
        self._held.close()
        if keep is None:
            # The keeper has done it, unless somebody killed it.
            shutil.rmtree(self.files.directory, ignore_errors=True)


def _empty_directory(given: Path | None) -> Path:
    """Absolute, and private: it has the administrator's token."""
    if given is None:
        return Path(tempfile.mkdtemp(prefix="argosy-kubernetes-"))
    directory = given.absolute()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise ControlPlaneError(
            "the directory of a control plane is not empty",
            file=str(directory),
            expected="a directory that may be removed at the end",
        )
    directory.chmod(0o700)
    return directory


def _account_key() -> str:
    """A private key that signs the tokens of service accounts."""
    secret = (1 + secrets.randbelow((1 << 255) - 1)).to_bytes(32, "big")
    text = base64.b64encode(_KEY_HEAD + secret + _KEY_TAIL).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join(["-----BEGIN EC PRIVATE KEY-----", *lines, "-----END EC PRIVATE KEY-----", ""])
