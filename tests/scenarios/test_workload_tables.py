"""Workload tables pass on everything that they say to generators and readers, and refuse the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from argosy.model.errors import ModelError, ScenarioError, UnknownName
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec
from argosy.scenarios import fanout_tables, known_workloads
from argosy.scenarios.fanout_tables import EagleTable, FanoutTable, eagle_jobs, fanout_jobs
from argosy.scenarios.job_checks import JobChecks
from argosy.scenarios.known_workloads import (
    AlibabaTable,
    ClusterTable,
    GoogleTable,
    bring_jobs,
    bring_machines,
    brought_devices,
    require_devices,
    without_machines,
)
from argosy.scenarios.kubernetes_tables import written_out
from argosy.workloads import alibaba2023, clusters, eagle, fanout, google2011, google2019, mapreduce
from argosy.workloads.google_jobs import Notes
from argosy.workloads.synthetic import Estimates
from argosy.workloads.tables import Misfit

ESTIMATES = Estimates(low=0.5, high=2.0)
SLOT = Resources(cpu=250, memory=7)
CELL = CellSpec(machines=(Machine("m", Resources(cpu=8000, memory=2**30)),))
SCENARIO = Path("where/scenario.toml")


def made(name: str, tasks: int = 1, submit: int = 0) -> Any:
    return SimpleNamespace(id=name, tasks=tasks, submit=submit)


class Calls:
    """Notes how it was called, and gives what it was made with."""

    def __init__(self, *gives: Any) -> None:
        self.gives = gives
        self.args: tuple[Any, ...] = ()
        self.told: dict[str, Any] = {}

    def __call__(self, *args: Any, **told: Any) -> Iterator[Any]:
        self.args, self.told = args, told
        return iter(self.gives)


def refused(call: Callable[[], Any]) -> tuple[str, str | None, tuple[Any, ...]]:
    with pytest.raises(Misfit) as caught:
        list(call() or ())
    return caught.value.error.problem, caught.value.error.expected, caught.value.path


class TestFanout:
    @pytest.fixture
    def read(self, monkeypatch: pytest.MonkeyPatch) -> Calls:
        calls = Calls(made("a"))
        monkeypatch.setattr(eagle, "read", calls)
        return calls

    @pytest.fixture
    def generate(self, monkeypatch: pytest.MonkeyPatch) -> Calls:
        calls = Calls(made("a"))
        monkeypatch.setattr(fanout, "generate", calls)
        return calls

    def test_a_trace_is_read_as_its_table_says(self, read: Calls, tmp_path: Path) -> None:
        (tmp_path / "jobs.tr").write_text("")
        table = EagleTable(
            path="jobs.tr", speedup=2.5, jobs=7, request=SLOT, estimates=ESTIMATES, kind="short"
        )
        jobs = list(eagle_jobs(tmp_path / "s.toml", table, JobChecks(CELL), 5))
        assert [each.id for each in jobs] == ["a"]
        source, random = read.args
        assert source == tmp_path / "jobs.tr"
        assert random.uniform() == fanout_tables.Random(5).child("workload").uniform()
        assert read.told == {
            "speedup": 2.5, "most": 7, "request": SLOT, "estimates": ESTIMATES, "kind": "short"
        }  # fmt: skip

    def test_a_trace_has_defaults(self, read: Calls, tmp_path: Path) -> None:
        (tmp_path / "t").write_text("")
        list(eagle_jobs(tmp_path / "s.toml", EagleTable(path="t"), JobChecks(CELL), 1))
        assert read.told == {
            "speedup": 1.0, "most": None, "request": eagle.SLOT, "estimates": None, "kind": "batch"
        }  # fmt: skip

    def test_a_trace_that_is_not_there_is_a_mistake_of_the_scenario(self, tmp_path: Path) -> None:
        table = EagleTable(path="none.tr")
        problem, expected, path = refused(
            lambda: eagle_jobs(tmp_path / "s.toml", table, JobChecks(CELL), 1)
        )
        assert problem.startswith("trace ")
        assert problem.endswith(" cannot be read: No such file or directory")
        assert expected == "the path of a job trace, relative to the scenario"
        assert path == ("workload", "eagle", "path")

    def test_jobs_are_drawn_as_their_table_says(self, generate: Calls) -> None:
        table = FanoutTable(
            name="yahoo", jobs=9, speedup=3.0, pattern="C", scale=0.5, request=SLOT,
            estimates=ESTIMATES, kind="short",
        )  # fmt: skip
        list(fanout_jobs(table, JobChecks(CELL), 5))
        spec, count, random = generate.args
        assert (spec, count) == (fanout.shape("yahoo"), 9)
        assert random.uniform() == fanout_tables.Random(5).child("workload").uniform()
        assert generate.told == {
            "speedup": 3.0, "pattern": "C", "request": SLOT, "estimates": ESTIMATES,
            "scale": 0.5, "kind": "short",
        }  # fmt: skip

    def test_drawn_jobs_have_defaults(self, generate: Calls) -> None:
        list(fanout_jobs(FanoutTable(name="yahoo", jobs=1), JobChecks(CELL), 1))
        assert generate.told == {
            "speedup": 1.0, "pattern": None, "request": eagle.SLOT, "estimates": None,
            "scale": 1.0, "kind": "batch",
        }  # fmt: skip

    def test_a_million_jobs_are_drawn_at_most(self, generate: Calls) -> None:
        def drawn(jobs: int) -> Any:
            return fanout_jobs(FanoutTable(name="yahoo", jobs=jobs), JobChecks(CELL), 1)

        assert len(list(drawn(1_000_000))) == 1
        assert refused(lambda: drawn(1_000_001)) == (
            "1,000,001 jobs",
            "at most 1,000,000",
            ("workload", "fanout", "jobs"),
        )

    def test_an_unknown_name_is_refused_at_its_place(self) -> None:
        table = FanoutTable(name="gogle", jobs=1)
        _, _, path = refused(lambda: fanout_jobs(table, JobChecks(CELL), 1))
        assert path == ("workload", "fanout", "name")

    @pytest.mark.parametrize("field", ["scale", None])
    def test_what_the_generator_refuses_is_at_the_field_that_it_names(
        self, field: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(*args: Any, **told: Any) -> Iterator[Any]:
            yield made("a")
            raise ModelError("too many", field=field)

        monkeypatch.setattr(fanout, "generate", fails)
        table = FanoutTable(name="yahoo", jobs=1)
        with pytest.raises(Misfit) as caught:
            list(fanout_jobs(table, JobChecks(CELL), 1))
        assert caught.value.path == ("workload", "fanout", *([field] if field else []))
        assert caught.value.error.field is None

    @pytest.mark.parametrize("kind", ["eagle", "fanout"])
    def test_requests_name_resources_of_the_cell(
        self, kind: str, read: Calls, generate: Calls, tmp_path: Path
    ) -> None:
        request = Resources(cpu=1, extras={"gpu": 1})
        (tmp_path / "t").write_text("")

        def jobs() -> Any:
            if kind == "eagle":
                table = EagleTable(path="t", request=request)
                return eagle_jobs(tmp_path / "s.toml", table, JobChecks(CELL), 1)
            return fanout_jobs(
                FanoutTable(name="yahoo", jobs=1, request=request), JobChecks(CELL), 1
            )

        problem, _, path = refused(jobs)
        assert problem == "unknown resource 'gpu'"
        assert path == ("workload", kind, "request", "gpu")

    def test_tasks_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fanout_tables, "MOST_TASKS_IN_ALL", 5)
        place = ("workload", "fanout")
        jobs = [made("a", 3), made("b", 2)]
        assert list(fanout_tables._counted(jobs, place)) == jobs
        assert refused(lambda: fanout_tables._counted([*jobs, made("c", 1)], place)) == (
            "more than 5 tasks in total",
            "fewer jobs",
            (*place, "jobs"),
        )
        assert refused(lambda: fanout_tables._counted([], place)) == (
            "no jobs",
            "a trace with jobs",
            place,
        )


class TestCluster:
    TABLE = ClusterTable(
        name="B", span=60, rate={"batch": 2}, scale=0.25, turnover=9, varied=True, burstiness=3.0
    )

    @pytest.fixture
    def calls(self, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
        found = SimpleNamespace(
            jobs=Calls(made("late", submit=2)),
            reduced=Calls(made("reduced", submit=3)),
            fill=Calls(made("filled", submit=0), made("later", submit=5)),
            machines=Calls("m"),
        )
        monkeypatch.setattr(clusters, "jobs", found.jobs)
        monkeypatch.setattr(mapreduce, "jobs", found.reduced)
        monkeypatch.setattr(clusters, "fill", found.fill)
        monkeypatch.setattr(clusters, "machines", found.machines)
        monkeypatch.setattr(clusters, "mix_of", lambda spec: ())
        return found

    def test_everything_is_passed_on(self, calls: SimpleNamespace) -> None:
        jobs = bring_jobs(SCENARIO, "cluster", self.TABLE, 5, Notes())
        assert [each.id for each in jobs] == ["filled", "late", "later"]
        spec, span, random = calls.jobs.args
        assert (spec, span) == (clusters.cluster("B"), 60)
        assert calls.jobs.told == {
            "rate": {"batch": 2.0}, "scale": 0.25, "varied": True, "burstiness": 3.0
        }  # fmt: skip
        filled, same = calls.fill.args
        assert filled == spec
        assert same is random
        assert calls.fill.told == {"scale": 0.25, "turnover": 9, "span": 60, "varied": True}
        assert random.uniform() == known_workloads.Random(5).child("workload").uniform()

    def test_defaults(self, calls: SimpleNamespace) -> None:
        jobs = bring_jobs(SCENARIO, "cluster", ClusterTable(name="B", span=60), 5, Notes())
        assert [each.id for each in jobs] == ["filled", "late", "later"]
        assert calls.jobs.told == {"rate": 1.0, "scale": 1.0, "varied": False, "burstiness": 1.0}
        assert calls.fill.told == {"scale": 1.0, "turnover": None, "span": 60, "varied": False}

    def test_without_fill_only_arriving_jobs_come(self, calls: SimpleNamespace) -> None:
        table = ClusterTable(name="B", span=60, fill=False, turnover=0)
        jobs = bring_jobs(SCENARIO, "cluster", table, 5, Notes())
        assert [each.id for each in jobs] == ["late"]

    def test_some_jobs_are_of_mapreduce(self, calls: SimpleNamespace) -> None:
        table = ClusterTable(name="B", span=60, fill=False, mapreduce=True)
        jobs = bring_jobs(SCENARIO, "cluster", table, 5, Notes())
        assert [each.id for each in jobs] == ["reduced"]

    def test_machines_are_those_of_the_cluster(self, calls: SimpleNamespace) -> None:
        bring_machines(SCENARIO, "cluster", self.TABLE, Notes())
        assert calls.machines.args == (clusters.cluster("B"), 0.25)
        assert calls.machines.told == {"varied": True}

    def test_a_turnover_has_a_length(self, calls: SimpleNamespace) -> None:
        table = ClusterTable(name="B", span=60, turnover=0)
        assert refused(lambda: bring_jobs(SCENARIO, "cluster", table, 5, Notes())) == (
            "a turnover of no length",
            'a mean such as "1h"',
            ("workload", "cluster", "turnover"),
        )

    @pytest.mark.parametrize(
        ("rate", "path"), [(1000.5, ()), ({"batch": -1}, ("batch",)), ("fast", ())]
    )
    def test_a_rate_is_up_to_a_thousand(self, rate: Any, path: tuple[str, ...]) -> None:
        table = ClusterTable(name="B", span=60, rate=rate)
        _, expected, at = refused(lambda: bring_jobs(SCENARIO, "cluster", table, 5, Notes()))
        assert expected == "a number from 0 to 1000"
        assert at == ("workload", "cluster", "rate", *path)

    def test_a_rate_of_an_unknown_kind_is_refused(self) -> None:
        table = ClusterTable(name="B", span=60, rate={"bach": 1.0})
        with pytest.raises(Misfit) as caught:
            list(bring_jobs(SCENARIO, "cluster", table, 5, Notes()))
        assert caught.value.path == ("workload", "cluster", "rate")
        assert "bach" in caught.value.error.problem

    def test_an_unknown_cluster_is_refused_at_its_name(self) -> None:
        table = ClusterTable(name="Z", span=60)
        with pytest.raises(Misfit) as caught:
            bring_machines(SCENARIO, "cluster", table, Notes())
        assert caught.value.path == ("workload", "cluster", "name")
        assert isinstance(caught.value.error, UnknownName)

    def test_a_cluster_without_kinds_of_machines_cannot_vary(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def none(spec: Any) -> None:
            raise ScenarioError("no mix")

        monkeypatch.setattr(clusters, "mix_of", none)
        table = ClusterTable(name="B", span=60, varied=True)
        assert refused(lambda: bring_machines(SCENARIO, "cluster", table, Notes())) == (
            "no mix",
            None,
            ("workload", "cluster", "varied"),
        )
        assert bring_machines(SCENARIO, "cluster", ClusterTable(name="B", span=60), Notes())

    def test_tasks_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(known_workloads, "MOST_TASKS_IN_ALL", 5)
        place = ("workload", "cluster")
        jobs = [made("a", 3), made("b", 2)]
        assert list(known_workloads._counted(jobs, place)) == jobs
        assert refused(lambda: known_workloads._counted([*jobs, made("c", 1)], place)) == (
            "more than 5 tasks in total",
            "a shorter span, or a smaller rate or scale",
            place,
        )
        assert refused(lambda: known_workloads._counted([], place)) == (
            "no jobs",
            "a longer span",
            place,
        )


class TestTraces:
    @pytest.mark.parametrize(
        ("name", "module"), [("google2011", google2011), ("google2019", google2019)]
    )
    def test_a_google_trace_is_read_as_its_table_says(
        self, name: str, module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "trace").mkdir()
        machines, jobs, notes = Calls("m"), Calls(made("a")), Notes()
        monkeypatch.setattr(module, "machines", machines)
        monkeypatch.setattr(module, "jobs", jobs)
        table = GoogleTable(path="trace", start=3, span=4, machines=5)
        bring_machines(tmp_path / "s.toml", name, table, notes)
        assert machines.args == jobs.args or machines.args == (tmp_path / "trace",)
        assert machines.told == {"at": 3, "most": 5, "notes": notes}
        assert [each.id for each in bring_jobs(tmp_path / "s.toml", name, table, 1, notes)] == ["a"]
        assert jobs.args == (tmp_path / "trace",)
        assert jobs.told == {"start": 3, "span": 4, "in_order": False, "notes": notes}

    def test_a_google_trace_has_defaults(self) -> None:
        table = GoogleTable(path="trace")
        assert (table.start, table.span, table.machines) == (google2011.TRACE_START, None, None)

    def test_an_alibaba_trace_is_read_as_its_table_says(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "trace").mkdir()
        machines, jobs, notes = Calls("m"), Calls(made("a")), Notes()
        monkeypatch.setattr(alibaba2023, "machines", machines)
        monkeypatch.setattr(alibaba2023, "jobs", jobs)
        table = AlibabaTable(
            path="trace", nodes="gpu_node", pods="cpu250", start=3, span=4, machines=5,
            sharing="pooled",
        )  # fmt: skip
        bring_machines(tmp_path / "s.toml", "alibaba2023", table, notes)
        assert machines.args == (tmp_path / "trace",)
        assert machines.told == {"nodes": "gpu_node", "pods": "cpu250", "most": 5}
        found = bring_jobs(tmp_path / "s.toml", "alibaba2023", table, 1, notes)
        assert [each.id for each in found] == ["a"]
        assert jobs.args == (tmp_path / "trace",)
        assert jobs.told == {
            "pods": "cpu250", "start": 3, "span": 4, "sharing": "pooled", "notes": notes
        }  # fmt: skip

    @pytest.mark.parametrize("call", [bring_jobs, bring_machines])
    def test_a_directory_that_is_not_there_is_a_mistake_of_the_scenario(
        self, call: Any, tmp_path: Path
    ) -> None:
        (tmp_path / "file").write_text("")
        told = (1, Notes()) if call is bring_jobs else (Notes(),)
        table = GoogleTable(path="file")
        assert refused(lambda: call(tmp_path / "s.toml", "google2019", table, *told)) == (
            "no directory 'file'",
            "the directory of a trace, relative to the scenario",
            ("workload", "google2019", "path"),
        )

    def test_devices_are_those_of_a_trace_that_shares_by_device(self) -> None:
        devices = AlibabaTable(path="x")
        assert (devices.nodes, devices.pods, devices.start) == ("all_node", "default", 0)
        assert brought_devices(devices) == alibaba2023.GPU
        for other in (AlibabaTable(path="x", sharing="pooled"), GoogleTable(path="x")):
            assert brought_devices(other) is None
            require_devices(other, CELL)
        require_devices(devices, CellSpec(machines=(), devices=alibaba2023.GPU))
        for cell in (CELL, CellSpec(machines=(), devices="tpu")):
            assert refused(lambda cell=cell: require_devices(devices, cell)) == (
                f"the cell's {alibaba2023.GPU} does not consist of devices",
                f'devices = "{alibaba2023.GPU}" in [cell], or sharing = "pooled" or "none"',
                ("workload", "alibaba2023", "sharing"),
            )


NO_MACHINES: dict[str, Any] = {"machines": []}


@pytest.mark.parametrize(
    "name", ["cluster", "google2011", "google2019", "alibaba2023", "kubernetes"]
)
def test_a_workload_with_machines_needs_none_in_the_cell(name: str) -> None:
    workload = {"workload": {name: {}}}
    assert without_machines(workload) == {**workload, "cell": NO_MACHINES}
    grouped = {**workload, "cell": {"groups": {}}}
    assert without_machines(grouped) == {**workload, "cell": {**NO_MACHINES, "groups": {}}}
    given = {**workload, "cell": {"machines": [{}]}}
    assert without_machines(given) == given


@pytest.mark.parametrize(
    "document",
    [
        {"workload": {"jobs": []}},
        {"workload": "cluster"},
        {"workload": {"cluster": {}}, "cell": "none"},
        {"workload": {"cluster": {}}, "clusters": []},
        {},
    ],
)
def test_other_documents_stay_as_they_are(document: dict[str, Any]) -> None:
    assert without_machines(document) == document
    assert written_out(document) == document


def test_the_short_form_of_a_kubernetes_workload_is_written_out() -> None:
    short = {"name": "x", "workload": {"kubernetes": "c.json", "other": 1}}
    assert written_out(short) == {
        "name": "x",
        "workload": {"kubernetes": {"path": "c.json"}, "other": 1},
    }
    for other in ({"workload": "kubernetes"}, {"workload": {"kubernetes": {"path": "c"}}}):
        assert written_out(dict(other)) == other
