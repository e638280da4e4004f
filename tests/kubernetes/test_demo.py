"""`argosy kubernetes demo`, as a person runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from browser import browser, skip_without_browser
from command_line import process

from argosy.kubernetes.control_plane import KubeTools

#: Seconds for a computer that is busy with other tests.
PATIENCE = 240.0


class ShownDemo:
    """A demonstration that is kept until `end`."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "argosy.cli", "kubernetes", "demo", "--keep", "-o", "json"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        lines = []
        for line in self._process.stdout:
            lines.append(line)
            if line == "}\n":
                break
        self.document: dict[str, Any] = json.loads("".join(lines))
        assert self._process.stderr is not None
        self.kubeconfig = Path()
        self.page = ""
        for line in self._process.stderr:
            if "the page is at " in line:
                self.page = line.strip().rpartition(" ")[2]
            if "export KUBECONFIG=" in line:
                self.kubeconfig = Path(line.strip().partition("=")[2])
                break

    def end(self) -> tuple[int, str]:
        self._process.send_signal(signal.SIGINT)
        _, errors = self._process.communicate(timeout=PATIENCE)
        return self._process.returncode, errors


@pytest.fixture(scope="module")
def demo(kube_tools: KubeTools) -> Any:
    shown = ShownDemo()
    yield shown
    if shown.kubeconfig.exists():
        shown.end()


def test_every_pod_that_fits_has_a_node(demo: ShownDemo) -> None:
    placed = Counter(pod["application"] for pod in demo.document["pods"] if pod["node"])
    assert placed == {"web": 12, "database": 6, "crunch": 20}
    assert demo.document["bound"] == 38
    assert demo.document["pods_per_second"] > 0


def test_databases_are_on_nodes_of_their_own(demo: ShownDemo) -> None:
    nodes = [p["node"] for p in demo.document["pods"] if p["application"] == "database"]
    assert len(set(nodes)) == 6


def test_web_servers_are_spread_over_zones(demo: ShownDemo) -> None:
    zones = Counter(p["zone"] for p in demo.document["pods"] if p["application"] == "web")
    assert set(zones.values()) == {4}


def test_the_pod_that_fits_nowhere_says_why(demo: ShownDemo) -> None:
    (waiting,) = [pod for pod in demo.document["pods"] if not pod["node"]]
    assert waiting["name"] == "too-large"
    assert waiting["waiting"].startswith("0/9 nodes are available: 9 Insufficient cpu")


def test_kubectl_sees_what_was_shown(demo: ShownDemo, kube_tools: KubeTools) -> None:
    seen = subprocess.run(
        [kube_tools.kubectl, "get", "pods", "-n", "demo", "-o", "json"],
        env={**os.environ, "KUBECONFIG": str(demo.kubeconfig)},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    nodes = {
        pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
        for pod in json.loads(seen.stdout)["items"]
    }
    assert nodes == {pod["name"]: pod["node"] for pod in demo.document["pods"]}


def test_the_page_is_on_it_and_shows_pods_by_their_names(demo: ShownDemo) -> None:
    assert demo.page.startswith("http://127.0.0.1:")
    with browser(skip_without_browser()) as started:
        tab = started.tab()
        tab.open(demo.page)
        tab.until_text("#machines-title", "Nodes")
        tab.evaluate("document.querySelector('#match').focus()")
        tab.type("too-large")
        tab.until("document.querySelectorAll('#jobs tbody tr').length === 1")
        tab.until_text("#jobs tbody", "demo/too-large")
        tab.until_text("[data-tile=waiting] .value", "1")
        tab.click("#jobs a[href='#/task/demo.too-large/0']")
        tab.until_text("#detail-title", "Pod demo/too-large")
        tab.until_text("#why", "16 cores")
        tab.evaluate("location.hash = '#/machine/node-00000'")
        tab.until_text("#detail-title", "Node node-00000")
        assert "demo/" in tab.text(".list-of-tasks")
        assert tab.errors == []


def test_ctrl_c_removes_everything(demo: ShownDemo) -> None:
    code, errors = demo.end()
    assert (code, "Traceback" in errors) == (0, False)
    assert not demo.kubeconfig.parent.exists()


def test_without_the_tools_it_says_how_to_get_them(tmp_path: Path) -> None:
    result = process("kubernetes", "demo", env={"KUBEBUILDER_ASSETS": str(tmp_path)})
    assert result.returncode == 2
    assert "make kube-tools" in result.stderr
    assert "Traceback" not in result.stderr
