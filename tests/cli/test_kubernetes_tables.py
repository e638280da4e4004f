"""What `argosy kubernetes` prints of plans, demonstrations and shadows, and what recordings become,
without an API server."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import Call

from argosy.cli import kubernetes_demo, record_kubernetes
from argosy.cli.kubernetes_demo import _show
from argosy.cli.kubernetes_shadow import show_report
from argosy.kubernetes import control_plane
from argosy.kubernetes.control_plane import KubeProgram
from argosy.model.errors import CommandError
from argosy.scenarios.loader import load
from argosy.service.kubernetes import demo, planning, recorder
from argosy.service.kubernetes.demo import DemoPod, DemoResult
from argosy.service.kubernetes.planning import PlannedPod, PodPlan
from argosy.service.kubernetes.shadow.session import ShadowReport, ShadowRow
from argosy.testing.builders import job, scenario
from argosy.workloads import pod_workloads

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts:
- {name: c, context: {cluster: k, user: u, namespace: shop}}
- {name: d, context: {cluster: k, user: u}}
clusters: [{name: k, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    return path


class TestPlans:
    PODS = (
        PlannedPod("shop", "Deployment/web", "web-0", "n0", ""),
        PlannedPod("shop", "Deployment/web", "web-1", "", "no room"),
        PlannedPod("other", "Pod/p", "p", "", "too large"),
    )

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
        made = SimpleNamespace(plan=PodPlan("kube", self.PODS, ("shop/db", "shop/x")), calls=[])

        async def plan_pods(connection: Any, entry: Any, documents: Any, space: str) -> PodPlan:
            made.calls.append((connection.server, entry, documents, space))
            plan: PodPlan = made.plan
            return plan

        monkeypatch.setattr(planning, "plan_pods", plan_pods)
        return made

    def test_documents_of_all_files_are_planned_in_their_order(
        self, argosy: Call, asked: SimpleNamespace, kubeconfig: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "a.yaml").write_text("a: 1\n---\nb: 2\n")
        (tmp_path / "c.json").write_text('{"c": 3}')
        base = ("kubernetes", "plan", "--kubeconfig", kubeconfig, "-f", "c.json", "-f", "a.yaml")
        argosy(*base)
        argosy(*base, "--context", "d", "--engine", "kube")
        argosy(*base, "-n", "mine")
        at, documents = "http://127.0.0.1:1", [{"c": 3}, {"a": 1}, {"b": 2}]
        omega = {"name": "omega", "engine": "omega"}
        assert asked.calls == [
            (at, omega, documents, "shop"),
            (at, {"name": "kube", "engine": "kube"}, documents, "default"),
            (at, omega, documents, "mine"),
        ]

    def test_pods_that_would_wait_or_give_way_are_told(
        self, argosy: Call, asked: SimpleNamespace, kubeconfig: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "a.yaml").write_text("a: 1\n")
        base = ("kubernetes", "plan", "--kubeconfig", kubeconfig, "-f", "a.yaml")
        told = argosy(*base)
        assert told.code == 1
        lines = [" ".join(line.split()) for line in told.out.splitlines() if line]
        assert lines == [
            "does not fit: 2 of 3 pods would wait",
            "namespace of pod node why",
            "shop Deployment/web web-0 n0",
            "shop Deployment/web web-1 no room",
            "other Pod/p p too large",
            "these pods would have to give way",
            "shop/db",
            "shop/x",
        ]
        document = json.loads(argosy(*base, "-o", "json").out)
        assert (document["engine"], document["fits"], len(document["pods"])) == ("kube", False, 3)
        assert argosy(*base, "-o", "csv").out.splitlines()[:2] == [
            "namespace,of,name,node,why",
            "shop,Deployment/web,web-0,n0,",
        ]
        asked.plan = PodPlan("kube", self.PODS[:1], ())
        told = argosy(*base)
        assert (told.code, told.out.splitlines()[0]) == (0, "fits")
        assert "give way" not in told.out

    def test_a_file_that_is_no_yaml_is_named(
        self, argosy: Call, asked: SimpleNamespace, kubeconfig: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "a.yaml").write_bytes(b"\xff")
        told = argosy("kubernetes", "plan", "--kubeconfig", kubeconfig, "-f", "a.yaml").complaint
        assert "a.yaml: cannot be read: 'utf-8' codec" in told
        assert told.endswith("; expected YAML")
        assert asked.calls == []


class TestDemonstrations:
    RESULT = DemoResult(
        "kube",
        3,
        (
            DemoPod("web", "w-0", "n1", "west", ""),
            DemoPod("web", "w-1", "n0", "east", ""),
            DemoPod("db", "d-0", "n1", "west", ""),
            DemoPod("big", "b-0", "", "", "no room"),
            DemoPod("web", "w-2", "", "", "no zone"),
        ),
        0.25,
    )

    def test_pods_are_counted_by_node_and_those_that_wait_are_told(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        _show("table", self.RESULT)
        lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line]
        assert lines == [
            "kube: 3 pods on 3 nodes in 0.2 s (12 pods/s)",
            "node zone db web",
            "n0 east 1",
            "n1 west 1 1",
            "b-0 waits",
            "no room",
            "w-2 waits",
            "no zone",
        ]
        _show("csv", self.RESULT)
        rows = capsys.readouterr().out.splitlines()
        assert rows[:2] == ["application,name,node,zone,waiting", "web,w-0,n1,west,"]
        assert rows[-1] == "web,w-2,,,no zone"

    @pytest.fixture
    def shown(self, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
        """Demonstrations that would have been given."""
        seen = SimpleNamespace(tools=[], made=[], opened=[], ends=True, removed=[])
        tools = SimpleNamespace(kubectl="/k/kubectl")

        def find_tools(programs: Any) -> Any:
            seen.tools.append(set(programs))
            return tools

        @contextmanager
        def start_plane(given: Any, tell: Any) -> Any:
            assert given is tools
            yield SimpleNamespace(kubeconfig="/k/config")
            seen.removed.append(True)

        class Demo:
            def __init__(
                self, plane: Any, engine: str, folder: Path, tell: Any, *, is_kept: bool
            ) -> None:
                assert folder.is_dir()
                seen.made.append((engine, is_kept))

            async def run(self, opens: Any, show: Any) -> bool:
                opens("http://h:1")
                show(TestDemonstrations.RESULT, "http://h:1")
                return bool(seen.ends)

        monkeypatch.setattr(control_plane, "find_tools", find_tools)
        monkeypatch.setattr(demo, "start_plane", start_plane)
        monkeypatch.setattr(demo, "Demo", Demo)
        monkeypatch.setattr(
            kubernetes_demo, "open_page", lambda url: seen.opened.append(("open", url))
        )
        monkeypatch.setattr(
            kubernetes_demo, "tell_page", lambda url: seen.opened.append(("tell", url))
        )
        return seen

    def test_everything_is_removed_at_the_end(self, argosy: Call, shown: SimpleNamespace) -> None:
        told = argosy("kubernetes", "demo", "--engine", "kube", "-o", "json")
        assert told.code == 0
        assert told.err == "argosy: starting a control plane\nargosy: removing everything\n"
        assert (shown.made, shown.opened) == ([("kube", False)], [("tell", "http://h:1")])
        assert shown.tools == [set(KubeProgram) - {KubeProgram.SCHEDULER}]
        assert json.loads(told.out)["pods_per_second"] == 12.0

    @pytest.mark.parametrize(("option", "way"), [("--keep", "tell"), ("--open", "open")])
    def test_what_is_kept_can_be_looked_at(
        self, argosy: Call, shown: SimpleNamespace, option: str, way: str
    ) -> None:
        told = argosy("kubernetes", "demo", option, "-o", "csv")
        assert (shown.made, shown.opened) == ([("omega", True)], [(way, "http://h:1")])
        assert told.err.splitlines() == [
            "argosy: starting a control plane",
            "argosy: everything stays until Ctrl-C:",
            "  export KUBECONFIG=/k/config",
            "  /k/kubectl get pods --namespace demo --output wide",
            "  argosy why demo.too-large --server http://h:1",
            "argosy: removing everything",
        ]

    def test_one_that_is_interrupted_has_removed_everything_too(
        self, argosy: Call, shown: SimpleNamespace
    ) -> None:
        shown.ends = False
        told = argosy("kubernetes", "demo")
        assert (told.code, told.err.splitlines()[-1]) == (130, "argosy: interrupted")
        assert shown.removed == [True]

    def test_a_mistake_in_the_engine_is_found_first(
        self, argosy: Call, shown: SimpleNamespace
    ) -> None:
        assert "did you mean 'kube'?" in argosy("kubernetes", "demo", "--engine", "kuba").complaint
        assert shown.tools == []


def test_a_shadow_s_rows_are_told_column_by_column(capsys: pytest.CaptureFixture[str]) -> None:
    row = ShadowRow(
        scheduler="omega", placed=11, waiting=1, unsupported=2, missed=3, wait_median=0.25,
        wait_90=1.5, wait_longest=90.0, cpu_used=0.5, memory_used=0.25, evictions=4,
        broken_rules=5, overcommitted_nodes=6, nodes_used=7, nodes_spare=8, same_node=0.75,
    )  # fmt: skip
    report = ShadowReport(seconds=0.0000015, nodes=1, pods=1, pods_before=1, schedulers=(row,))
    show_report(report, "csv")
    [told] = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert told == {
        "scheduler": "omega", "placed": "11", "waiting": "1", "unsupported": "2", "missed": "3",
        "wait_median": "250000", "wait_90": "1500000", "wait_longest": "90000000",
        "evictions": "4", "same_node": "0.75",
    }  # fmt: skip
    show_report(report, "table")
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "1 pod in 2 µs"
    assert [" ".join(line.split()) for line in out if line.startswith("scheduler")] == [
        "scheduler placed waiting not taken too late median wait 90 % longest evictions same node",
        "scheduler cpu memory broken rules overcommitted in use could be emptied",
    ]
    assert "1 node: requested on average, and at the end" in out


class TestRecordings:
    @pytest.fixture
    def seen(self, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
        """What a watch would have found."""
        found = SimpleNamespace(nodes=("n",), jobs=("j",), asked=[])

        async def record_cluster(connection: Any, stop: Any, ready: Any) -> Any:
            ready(SimpleNamespace(nodes=1, pods=1_200))
            if found.asked:
                stop.set()
            await stop.wait()
            return SimpleNamespace(nodes=found.nodes)

        def carry_over(recording: Any, *, pinned: bool) -> Any:
            found.asked.append(pinned)
            return SimpleNamespace(jobs=found.jobs)

        monkeypatch.setattr(recorder, "record_cluster", record_cluster)
        monkeypatch.setattr(pod_workloads, "carry_over", carry_over)
        return found

    def test_it_says_what_it_records_and_for_how_long(
        self, seen: SimpleNamespace, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        record_kubernetes.record_kubernetes(kubeconfig, None, "1ms", pinned=True)
        record_kubernetes.record_kubernetes(kubeconfig, "d", None, pinned=False)
        assert seen.asked == [True, False]
        what = "argosy: recording 1 node and 1,200 pods"
        assert capsys.readouterr().err.splitlines() == [
            f"{what} for 1ms, changing nothing",
            f"{what} until Ctrl-C, changing nothing",
        ]

    @pytest.mark.parametrize(
        ("lacks", "told"),
        [("nodes", "the cluster has no nodes"), ("jobs", "no pods that ran or waited")],
    )
    def test_a_cluster_without_nodes_or_pods_is_no_scenario(
        self, seen: SimpleNamespace, kubeconfig: Path, lacks: str, told: str
    ) -> None:
        setattr(seen, lacks, ())
        with pytest.raises(CommandError, match=f"^{told}; expected at least one$"):
            record_kubernetes.record_kubernetes(kubeconfig, None, "1ms", pinned=False)

    @pytest.mark.parametrize("is_endless", [True, False])
    def test_what_was_recorded_is_a_scenario(self, tmp_path: Path, is_endless: bool) -> None:
        made = scenario("omega", [job("a", 3), job("b", 1, seconds=None if is_endless else 5)])
        carried: Any = SimpleNamespace(
            jobs=made.jobs, machines=made.cell.machines, groups=made.cell.groups
        )
        record_kubernetes.write_cluster(tmp_path / "r", carried, "s.toml", "j.jsonl")
        document = tomllib.loads((tmp_path / "r" / "s.toml").read_text())
        assert (document["name"], document["workload"]) == (
            "recorded",
            {"trace": {"path": "j.jsonl"}},
        )
        read = load(tmp_path / "r" / "s.toml")
        assert [each.job.id for each in read.jobs] == ["a", "b"]
        assert [each.name for each in read.cell.machines] == [
            each.name for each in made.cell.machines
        ]
        assert [(each.name, each.engine) for each in read.fleet] == [("scheduler", "kube")]
        assert (read.horizon is not None) is is_endless
