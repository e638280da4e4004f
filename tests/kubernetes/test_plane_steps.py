"""A control plane from its start to its end, with programs that only remember how they are called."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from argosy.kubernetes.control_plane import (
    ControlPlane,
    ControlPlaneError,
    KubeProgram,
    KubeTools,
    KubeToolsMissing,
    plane,
    programs,
)

SERVERS = ["etcd", "kube-apiserver"]


class Computer:
    """What the programs do, and a clock that goes on while somebody waits for them."""

    def __init__(self) -> None:
        self.now = 100.0
        self.notes: list[str] = []
        #: What a program answers from now on, one status after the other; 200 after the last.
        self.answers: dict[str, list[int]] = {}
        #: Programs that end as soon as they are waited for.
        self.ends: set[str] = set()
        self.pauses: list[float] = []
        self.processes: list[Process] = []
        self.requests: list[tuple[str, str, Any]] = []
        self.events: list[dict[str, Any]] = []

    def take_notes(self) -> list[str]:
        notes, self.notes = self.notes, []
        return notes


class Process:
    def __init__(self, computer: Computer, program: str) -> None:
        computer.processes.append(self)
        self.computer, self.program, self.pid = computer, program, len(computer.processes)
        self.is_over = self.is_closed = False

    def has_ended(self, within: float = 0.0) -> bool:
        if within:
            self.computer.pauses.append(round(within, 6))
            self.computer.now += within
        return self.is_over or self.program in self.computer.ends

    def kill(self) -> None:
        assert not self.is_closed
        self.is_over = True
        self.computer.notes.append(f"kill {self.program}")

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True


@pytest.fixture
def computer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Computer]:
    made = Computer()

    class Keeper:
        def __init__(self, directory: Path, log: Path) -> None:
            assert log == directory / "logs" / "keeper.log"

        def start(self, arguments: Sequence[str], log: Path) -> Process:
            program = Path(arguments[0]).name
            assert log.name == f"{program}.log"
            log.write_text(f"{program} begins\n")
            made.notes.append(f"start {program}")
            return Process(made, program)

        def close(self, keep: Path | None) -> None:
            made.notes.append(f"close, keep {keep.name if keep else 'nothing'}")

    class Probe:
        def __init__(self, url: str, token: str | None) -> None:
            self.url, self.token = url, token

        def status(self) -> int:
            [program] = [
                name
                for name, url in programs.health_addresses(made_plane()._ports).items()
                if url == self.url
            ]
            assert bool(self.token) == (program == "kube-apiserver")
            left = made.answers.get(program, [])
            made.notes.append(f"ask {program}")
            return left.pop(0) if left else 200

    class Admin:
        def __init__(self, port: int, token: str, authority: Path, timeout: float) -> None:
            self.told = port, token, authority, timeout

        def request(
            self, method: str, path: str, document: Any = None, *, content_type: str
        ) -> Any:
            made.requests.append((method, path, document))
            return {"content_type": content_type}

        def watch(self, path: str, query: str = "") -> Iterator[dict[str, Any]]:
            made.notes.append(f"watch {path}?{query}")
            yield from made.events

        def for_each(self, action: Callable[[Any], object], items: Sequence[Any]) -> None:
            for item in items:
                action(item)

        def forget_connections(self) -> None:
            made.notes.append("forget connections")

    planes: list[ControlPlane] = []
    before = ControlPlane._write_files

    def made_plane() -> ControlPlane:
        return planes[-1]

    def noted(self: ControlPlane) -> None:
        planes.append(self)
        before(self)

    monkeypatch.setattr(ControlPlane, "_write_files", noted)
    monkeypatch.setattr(plane, "ProcessKeeper", Keeper)
    monkeypatch.setattr(plane, "HealthProbe", Probe)
    monkeypatch.setattr(plane, "AdminApi", Admin)
    monkeypatch.setattr(plane.time, "monotonic", lambda: made.now)
    yield made
    for each in planes:
        each.close()


@pytest.fixture
def tools(tmp_path: Path) -> KubeTools:
    folder = tmp_path / "tools"
    folder.mkdir()
    for program in KubeProgram:
        (folder / program).touch(0o755)
    (folder / "kwok-stages.yaml").touch()
    return KubeTools(folder)


@pytest.fixture
def start(computer: Computer, tools: KubeTools, tmp_path: Path) -> Callable[..., ControlPlane]:
    return lambda **options: ControlPlane.start(tmp_path / "plane", tools=tools, **options)


def test_others_start_when_the_api_server_answers_and_all_are_waited_for(
    start: Callable[..., ControlPlane], computer: Computer
) -> None:
    computer.answers = {"kube-apiserver": [0, 500, 500, 200], "kube-scheduler": [0, 404]}
    start(scheduler=True, controller_manager=True)
    assert computer.notes == [
        "start etcd",
        "start kube-apiserver",
        "ask kube-apiserver",
        "ask kube-apiserver",
        "start kube-controller-manager",
        "start kube-scheduler",
        "start kwok",
        "ask kube-apiserver",
        "ask kube-apiserver",
        "ask kube-controller-manager",
        "ask kube-scheduler",
        "ask kube-scheduler",
        "ask kube-scheduler",
    ]
    assert computer.pauses == [0.02, 0.02, 0.02, 0.04]


def test_only_what_is_wanted_starts(start: Callable[..., ControlPlane]) -> None:
    with start(kwok=False) as made:
        assert list(made.running) == SERVERS
        assert made.running == {"etcd": 1, "kube-apiserver": 2}


def test_kwok_is_wanted_unless_somebody_says_otherwise(start: Callable[..., ControlPlane]) -> None:
    assert list(start().running) == [*SERVERS, "kwok"]


def test_a_program_that_is_not_ready_in_time_is_named_with_the_end_of_its_log(
    start: Callable[..., ControlPlane], computer: Computer, tmp_path: Path
) -> None:
    computer.answers = {"kube-apiserver": [0] * 9}
    with pytest.raises(ControlPlaneError) as caught:
        start(timeout=0.3)
    log = tmp_path / "plane" / "logs" / "kube-apiserver.log"
    assert str(caught.value) == (
        f"kube-apiserver is not ready after 0.3 s; its log, {log}, ends with:\n"
        "  kube-apiserver begins"
    )
    assert computer.pauses == [0.02, 0.04, 0.08, 0.1, 0.1]
    assert computer.notes[-2:] == ["forget connections", "close, keep logs"]
    assert all(each.is_closed for each in computer.processes)
    assert log.exists(), "the keeper removes the rest"


def test_a_program_that_ends_is_not_waited_for(
    start: Callable[..., ControlPlane], computer: Computer
) -> None:
    computer.answers, computer.ends = {"kube-apiserver": [0]}, {"kube-apiserver"}
    with pytest.raises(ControlPlaneError, match=r"^kube-apiserver ended before it was ready; its"):
        start()
    assert computer.pauses == [0.02]


def test_an_error_shows_twelve_lines_of_the_log(
    start: Callable[..., ControlPlane], computer: Computer
) -> None:
    made = start()
    path = made.files.log(KubeProgram.ETCD)
    path.write_text("\n".join(f"line {n}" for n in range(20)))
    hint = str(made._failure(KubeProgram.ETCD, "broken").hint)
    lines = [f"  line {n}" for n in range(8, 20)]
    assert hint == "\n".join([f"its log, {path}, ends with:", *lines])
    path.write_text("x" * 20_000)
    assert str(made._failure(KubeProgram.ETCD, "broken").hint).count("x") == 1 << 14
    path.write_text("")
    assert str(made._failure(KubeProgram.ETCD, "broken").hint).endswith("\n  (nothing)")
    path.unlink()
    assert str(made._failure(KubeProgram.ETCD, "broken").hint).endswith("\n  (nothing)")


def test_what_a_program_has_written_is_its_log(start: Callable[..., ControlPlane]) -> None:
    made = start()
    assert made.log("etcd") == "etcd begins\n"
    assert made.log(KubeProgram.KWOK) == "kwok begins\n"
    with pytest.raises(ValueError, match="kubelet"):
        made.log("kubelet")


def test_a_program_is_killed_once_and_may_run_again(
    start: Callable[..., ControlPlane], computer: Computer
) -> None:
    made = start()
    computer.take_notes()
    made.kill("kwok")
    made.kill(KubeProgram.KWOK)
    assert computer.take_notes() == ["kill kwok"]
    assert list(made.running) == SERVERS
    made.run("etcd", "kwok")
    assert computer.take_notes() == ["start kwok"]
    made.kill("kube-apiserver")
    assert computer.take_notes() == ["kill kube-apiserver", "forget connections"]
    made.run(KubeProgram.API_SERVER)
    assert computer.take_notes() == ["start kube-apiserver", "ask kube-apiserver"]
    assert set(made.running) == {*SERVERS, "kwok"}


def test_a_program_that_has_ended_by_itself_does_not_run(
    start: Callable[..., ControlPlane], computer: Computer
) -> None:
    made = start()
    before = computer.processes[0]
    before.is_over = True
    assert list(made.running) == ["kube-apiserver", "kwok"]
    made.run("etcd")
    assert before.is_closed
    assert made.running["etcd"] == 4


def test_after_etcd_the_api_server_is_ready_again_if_it_runs(
    start: Callable[..., ControlPlane], computer: Computer
) -> None:
    made = start()
    computer.take_notes()
    made.restart("etcd")
    expected = ["kill etcd", "start etcd", "ask etcd", "ask kube-apiserver"]
    assert computer.take_notes() == expected
    made.restart(KubeProgram.API_SERVER)
    expected = ["kill kube-apiserver", "forget connections", "start kube-apiserver"]
    assert computer.take_notes() == [*expected, "ask kube-apiserver"]
    made.kill("kube-apiserver")
    computer.take_notes()
    made.restart("etcd")
    assert computer.take_notes() == ["kill etcd", "start etcd", "ask etcd"]


def test_what_the_tools_lack_is_said_before_anything_starts(
    start: Callable[..., ControlPlane], computer: Computer, tools: KubeTools, tmp_path: Path
) -> None:
    tools.path(KubeProgram.SCHEDULER).unlink()
    with pytest.raises(KubeToolsMissing, match=r"^no kube-scheduler in "):
        start(scheduler=True)
    assert not (tmp_path / "plane").exists()
    etcd = tools.path(KubeProgram.ETCD)
    etcd.rename(etcd.with_suffix(".away"))
    with pytest.raises(KubeToolsMissing, match=r"^no etcd in "):
        start()
    etcd.with_suffix(".away").rename(etcd)
    made = start()
    computer.take_notes()
    with pytest.raises(KubeToolsMissing, match=r"^no kube-scheduler in "):
        made.run("kube-scheduler")
    assert computer.take_notes() == []


def test_there_are_control_planes_on_linux_only(
    start: Callable[..., ControlPlane], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plane.sys, "platform", "darwin")
    with pytest.raises(ControlPlaneError) as caught:
        start()
    assert str(caught.value) == "no control plane on darwin; expected Linux"


def test_a_directory_is_private_and_empty_at_first(
    start: Callable[..., ControlPlane], tmp_path: Path
) -> None:
    directory = tmp_path / "plane"
    directory.mkdir(mode=0o755)
    start()
    assert directory.stat().st_mode & 0o777 == 0o700
    with pytest.raises(ControlPlaneError) as caught:
        start()
    assert str(caught.value) == (
        f"{directory}: the directory of a control plane is not empty; expected a directory that may"
        " be removed at the end"
    )


def test_without_a_directory_there_is_a_temporary_one(
    computer: Computer, tools: KubeTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plane.tempfile, "tempdir", str(tmp_path))
    made = ControlPlane.start(tools=tools)
    directory = made.files.directory
    assert (directory.parent, directory.name[:18]) == (tmp_path, "argosy-kubernetes-")
    made.close()
    assert not directory.exists()


def test_a_closed_control_plane_leaves_nothing(
    start: Callable[..., ControlPlane], computer: Computer, tmp_path: Path
) -> None:
    made = start()
    computer.take_notes()
    made.close()
    made.close()
    assert computer.take_notes() == ["forget connections", "close, keep nothing"]
    assert all(each.is_closed for each in computer.processes)
    assert not (tmp_path / "plane").exists()
    assert made.running == {}
    assert all(each.fileno() == -1 for each in made._held._sockets)


def test_its_files_are_there_before_its_programs(start: Callable[..., ControlPlane]) -> None:
    made = start(apiserver_flags=["--v=9"], controllers=["disruption"])
    files, port = made.files, made._ports.api_server
    assert made.server == f"https://127.0.0.1:{port}"
    assert (made.kubeconfig, made.authority) == (files.kubeconfig, files.authority)
    assert len(made.token) == 32
    assert files.tokens.read_text() == f"{made.token},admin,admin,system:masters\n"
    written = json.loads(files.kubeconfig.read_text())
    assert written == programs.kubeconfig(files, made.server, made.token)
    configuration = json.loads(files.scheduler_configuration.read_text())
    assert configuration == programs.scheduler_configuration(files)
    assert made._admin.told == (port, made.token, files.authority, 60.0)  # type: ignore[attr-defined]
    ports = made._ports
    assert len({ports.etcd, ports.etcd_peers, port, ports.controller_manager, ports.scheduler}) == 5
    assert made._flags(KubeProgram.ETCD) == programs.etcd_flags(files, ports)
    assert made._flags(KubeProgram.API_SERVER)[-1] == "--v=9"
    assert "--controllers=disruption" in made._flags(KubeProgram.CONTROLLER_MANAGER)
    assert made._flags(KubeProgram.SCHEDULER) == programs.scheduler_flags(files, ports)
    assert made._flags(KubeProgram.KWOK) == programs.kwok_flags(files, made.tools.stages)


def test_tokens_of_accounts_are_signed_with_a_key_of_the_curve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SEC 1, C.4: version 1, 32 octets of the secret, and prime256v1 as the curve."""
    bounds: list[int] = []
    monkeypatch.setattr(plane.secrets, "randbelow", lambda bound: bounds.append(bound) or 0)
    head, *lines, tail, end = plane._account_key().split("\n")
    assert (head, tail, end) == (
        "-----BEGIN EC PRIVATE KEY-----",
        "-----END EC PRIVATE KEY-----",
        "",
    )
    assert [len(line) for line in lines] == [64, 4]
    curve = bytes([0x06, 0x08]) + bytes.fromhex("2a8648ce3d030107")
    key = bytes([0x02, 1, 1, 0x04, 32]) + (1).to_bytes(32, "big") + b"\xa0\x0a" + curve
    assert base64.b64decode("".join(lines)) == bytes([0x30, len(key)]) + key
    # Below the order of the curve, which is little less than 2 to the 256.
    assert bounds == [(1 << 255) - 1]


def test_requests_are_passed_on(start: Callable[..., ControlPlane], computer: Computer) -> None:
    made = start()
    answer = made.request("PATCH", "/x", {"a": 1}, content_type="application/merge-patch+json")
    assert answer == {"content_type": "application/merge-patch+json"}
    assert made.request("GET", "/y") == {"content_type": "application/json"}
    assert computer.requests == [("PATCH", "/x", {"a": 1}), ("GET", "/y", None)]
    computer.take_notes()
    assert list(made.watch("/z", "a=b")) == []
    assert computer.take_notes() == ["watch /z?a=b"]
    done: list[int] = []
    made.for_each(done.append, [3, 1, 2])
    assert done == [3, 1, 2]
    made.delete_nodes(name for name in ("n1", "n2"))
    assert [each[:2] for each in computer.requests[2:]] == [
        ("DELETE", "/api/v1/nodes/n1"),
        ("DELETE", "/api/v1/nodes/n2"),
    ]


def test_nodes_are_numbered_on_by_the_beginning_of_their_names(
    start: Callable[..., ControlPlane], computer: Computer
) -> None:
    made = start(kwok=False)
    zones = ["east", "west", "north"]
    assert made.create_nodes(2, zones=zones) == ["node-00000", "node-00001"]
    assert made.create_nodes(1, name="gpu", resources={"nvidia.com/gpu": "4"}) == ["gpu-00000"]
    assert made.create_nodes(0) == []
    labels = {"disk": "ssd"}
    further = made.create_nodes(
        2, zones=zones, labels=labels, taints=["a:NoSchedule"], cpu="8", memory="1Gi", pods=5
    )
    assert further == ["node-00002", "node-00003"]
    assert {each[:2] for each in computer.requests} == {("POST", "/api/v1/nodes")}
    nodes = [each[2] for each in computer.requests]
    names = ["node-00000", "node-00001", "gpu-00000", "node-00002", "node-00003"]
    assert [each["metadata"]["name"] for each in nodes] == names
    found = [each["metadata"]["labels"].get("topology.kubernetes.io/zone") for each in nodes]
    assert found == ["east", "west", None, "north", "east"]
    usual = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    assert nodes[0]["status"]["allocatable"] == usual
    assert nodes[2]["status"]["allocatable"] == {**usual, "nvidia.com/gpu": "4"}
    assert nodes[3]["status"]["allocatable"] == {"cpu": "8", "memory": "1Gi", "pods": "5"}
    assert [each["metadata"]["labels"].get("disk") for each in nodes] == [None] * 3 + ["ssd"] * 2
    assert nodes[3]["spec"]["taints"] == [{"key": "a", "value": "", "effect": "NoSchedule"}]
    assert all("conditions" in each["status"] for each in nodes), "born ready"


def event(name: str, ready: str = "True") -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return {"type": "ADDED", "object": {"metadata": {"name": name}, "status": status}}


def test_nodes_are_waited_for_until_kwok_has_made_them_ready(
    start: Callable[..., ControlPlane], computer: Computer
) -> None:
    made = start()
    computer.take_notes()
    computer.events = [
        event("node-00001", "False"), event("other"), event("node-00001"), event("node-00001"),
        event("node-00000"),
    ]  # fmt: skip
    assert made.create_nodes(2) == ["node-00000", "node-00001"]
    assert computer.take_notes() == ["watch /api/v1/nodes?"]
    assert "conditions" not in computer.requests[0][2]["status"]
    assert made.create_nodes(2, wait=False) == ["node-00002", "node-00003"]
    assert computer.take_notes() == []
    computer.events = [event("node-00005")]
    with pytest.raises(ControlPlaneError) as caught:
        made.create_nodes(3)
    assert str(caught.value).startswith("2 of 3 nodes are not ready, as node-00004; its log, ")
    assert "kwok begins" in str(caught.value)
