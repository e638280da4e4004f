"""Demands, packages, aliases, volumes and tables of scenarios where it is a matter of one more or one
less."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from argosy.engines.api import Capabilities, NeededExtra, Settings
from argosy.model.constraints import Constraint
from argosy.model.constraints.text import format_constraint, parse_constraint
from argosy.model.errors import CommandError, JobError, ModelError, ScenarioError
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import (
    CellSpec,
    FleetEntry,
    GroupSpec,
    Jittered,
    MachineRelabel,
    MachineResize,
    NotModelled,
    Scaled,
    Scenario,
    SchedulerLimits,
    Takes,
)
from argosy.scenarios import missing_extras
from argosy.scenarios.constraint_files import lint_file
from argosy.scenarios.ignored_demands import ignored_demands
from argosy.scenarios.job_checks import JobChecks
from argosy.scenarios.job_files import parse_jobs, read_job_stream
from argosy.scenarios.kubernetes_files import read_cluster
from argosy.scenarios.scenario_tables import cluster_tables, fleet_table
from argosy.scenarios.unmeetable_demands import unmeetable_demands
from argosy.scenarios.yaml_files import parse_yaml
from argosy.testing.builders import GIB, job, scenario
from argosy.workloads.distributions import Constant
from argosy.workloads.pod_workloads import carry_over
from argosy.workloads.synthetic import JobKind, WeightedRequest
from argosy.workloads.tables import Misfit


class Both(Settings, frozen=True):
    preempt: bool = True
    reschedule: bool = True


class Fussy:
    """Follows constraints in racks, and nothing else that jobs ask for."""

    name = "fussy"
    settings_type = Both
    capabilities = Capabilities(transactions=False, gang=False, preemption=True, constraints=False)

    @staticmethod
    def supports(constraint: Constraint) -> bool:
        return constraint.rule.group == "rack"


IN_RACK, IN_MACHINE = (parse_constraint(f"a -> {{a, 0, 0}} in {at}") for at in ("rack", "machine"))


def told(spec: Scenario, *entries: FleetEntry) -> list[str]:
    known: Any = {"fussy": Fussy}
    return list(map(str, ignored_demands(msgspec.structs.replace(spec, fleet=entries), known)))


class TestIgnored:
    def test_everything_is_told_once_and_in_order_for_entries_that_are_alike(self) -> None:
        jobs = [
            job("a", 2, gang=True, constraints=(IN_RACK, IN_MACHINE)),
            job("b", constraints=(IN_RACK,), precedence=2),
            job("c", constraints=(IN_MACHINE,), precedence=1),
        ]
        limited = FleetEntry(
            name="s",
            engine="fussy",
            limits=SchedulerLimits(jobs=1),
            settings={"preempt": False},
        )
        twin = msgspec.structs.replace(limited, name="t")
        assert told(scenario("omega", jobs), limited, twin) == [
            "fussy ignores gangs; 1 job asks for one",
            "fussy ignores some placement constraints; 2 jobs have such",
            "fussy ignores the limits of s; it makes no transactions",
            "fussy ignores priorities; 2 jobs have a higher precedence than others",
            "fussy ignores the limits of t; it makes no transactions",
        ]

    @pytest.mark.parametrize(
        ("settings", "ignores"),
        [({}, False), ({"reschedule": False}, True), ({"preempt": False}, True)],
    )
    def test_either_setting_keeps_an_engine_from_preempting(
        self, settings: dict[str, Any], ignores: bool
    ) -> None:
        spec = scenario("omega", [job("a"), job("b", precedence=1)])
        assert bool(told(spec, FleetEntry(name="s", engine="fussy", settings=settings))) == ignores

    def test_constraints_of_which_none_is_followed_are_no_more_than_that(self) -> None:
        spec = scenario("omega", [job("a", constraints=(IN_MACHINE,)), job("b")])
        entry = FleetEntry(name="s", engine="fussy")
        assert told(spec, entry) == ["fussy ignores placement constraints; 1 job has some"]
        followed = scenario("omega", [job("a", constraints=(IN_RACK,))])
        assert told(followed, entry) == []


@pytest.mark.parametrize("otherwise", ["", "take another"])
def test_a_missing_package_is_told_with_the_way_around_it(otherwise: str) -> None:
    engine: Any = SimpleNamespace(
        settings_type=Settings, lack=lambda settings: NeededExtra("ilp", otherwise)
    )
    spec = scenario("omega", [])
    spec = msgspec.structs.replace(spec, fleet=(FleetEntry(name="s", engine="needy"),))
    error = missing_extras.missing(spec, {"needy": engine})
    around = ", or take another" if otherwise else ""
    assert str(error) == (
        f"needy needs the extra 'ilp', which is not installed; pip install 'argosy[ilp]'{around}"
    )


class TestUnmeetable:
    MACHINES = tuple(
        Machine(f"m{at}", Resources(4_000, 8 * GIB, {"gpu": 2_000})) for at in range(2)
    )

    def found(self, *jobs: Any, faults: tuple[Any, ...] = (), **cell: Any) -> list[tuple[str, str]]:
        spec = scenario("omega", list(jobs), faults=faults)
        spec = msgspec.structs.replace(spec, cell=CellSpec(machines=self.MACHINES, **cell))
        return [(each.job, each.code) for each in unmeetable_demands(spec)]

    def test_devices_count_one_by_one(self) -> None:
        shares = Resources(1, 1, {"gpu": 600})
        gang = job("g", 5, request=shares, gang=True)
        assert self.found(gang) == []
        assert self.found(gang, devices="gpu") == [("g", "gang")]

    def test_the_cell_s_constraints_count(self) -> None:
        apart = parse_constraint("w -> {w, 0, 0} in machine hard")
        three = job("s", 3, tags=("w",), kind="service")
        assert self.found(three) == []
        assert self.found(three, constraints=(apart,)) == [("s", "apart")]

    def test_what_a_machine_has_for_a_while_is_enough(self) -> None:
        large, larger = job("a", cpu=9_000, memory=0), job("b", cpu=9_001, memory=0)
        grows = MachineResize(at=1, machine="m1", capacity=Resources(9_000))
        assert self.found(large, larger) == [("a", "too-large"), ("b", "too-large")]
        assert self.found(large, larger, faults=(grows,)) == [("b", "too-large")]

    def test_what_a_machine_is_called_for_a_while_is_enough(self) -> None:
        marked = job("a", cpu=9_000, memory=0, requires={"x": "1"})
        other = job("b", cpu=9_000, memory=0, requires={"x": "2"})
        grows = MachineResize(at=1, machine="m1", capacity=Resources(9_000))
        told = MachineRelabel(at=2, machine="m1", attributes={"x": "1"})
        assert self.found(marked, faults=(told,)) == [("a", "too-large")]
        assert self.found(marked, other, faults=(grows, told)) == [("b", "no-machine")]
        assert self.found(marked, faults=(told, grows)) == []
        # It does not lose what it was called before, nor what it is called last.
        plain = MachineRelabel(at=3, machine="m1")
        assert self.found(marked, job("c", cpu=9_000, memory=0), faults=(told, grows, plain)) == []

    def test_node_sets_that_a_machine_joins_later_are_places(self) -> None:
        apart = parse_constraint("w -> {w, 0, 0} in rack hard")
        moved = [
            MachineRelabel(at=1, machine=f"m{at}", joins={"rack": (f"r{at}",)}) for at in range(2)
        ]
        how: dict[str, Any] = {
            "constraints": (apart,),
            "groups": (GroupSpec(name="rack", sets=("r0", "r1")),),
        }
        two = job("s", 2, tags=("w",), kind="service")
        assert self.found(two, faults=tuple(moved), **how) == []
        assert self.found(two, faults=tuple(moved[:1]), **how) == [("s", "apart")]


class TestYaml:
    def test_one_value_may_stand_in_several_places(self) -> None:
        text = "a: &x\n  k: [1]\nb: *x\nc: [*x,\n  *x]\n"
        documents, lines = parse_yaml(text, "f", ModelError, "")
        inside = {"k": [1]}
        assert documents == [{"a": inside, "b": inside, "c": [inside, inside]}]
        # Where it is named, and inside it where it is written.
        assert [lines[path] for path in ((0, "b"), (0, "b", "k"), (0, "c"), (0, "c", 1))] == [
            3, 2, 4, 1,
        ]  # fmt: skip

    def test_so_many_values_are_read_and_no_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("argosy.scenarios.yaml_files._MOST_VALUES", 4)
        assert parse_yaml("- 1\n- [2]\n", "f", ModelError, "")[0] == [[1, [2]]]
        for text in ("- 1\n- [2,\n 3]\n", "[1]\n---\n[2, 3]\n"):
            with pytest.raises(ModelError, match="too many values") as caught:
                parse_yaml(text, "f", ModelError, "")
            assert caught.value.line == 3


def test_pods_follow_the_volumes_that_their_claims_are_bound_to(tmp_path: Path) -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    items: list[dict[str, Any]] = [
        *(
            {
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "status": {"allocatable": {"cpu": "4", "pods": "9"}},
            }
            for name, labels in (("n0", {"disk": "ssd"}), ("n1", {}))
        ),
        {
            "kind": "PersistentVolume",
            "metadata": {"name": "v"},
            "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}},
        },
        *(
            {
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "c", "namespace": space},
                "spec": {"volumeName": volume},
            }
            for space, volume in (("one", "v"), ("two", "w"))
        ),
        *(
            {
                "kind": "Pod",
                "metadata": {"name": "p", "namespace": space},
                "spec": {
                    "containers": [{"name": "c"}],
                    "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}],
                },
            }
            for space in ("one", "two")
        ),
    ]
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"kind": "List", "items": items}))
    carried = carry_over(read_cluster(path))
    assert {each.id: each.groups[0].requires for each in carried.jobs} == {
        "one.p": {"admits/one.p": "true"},
        "two.p": {},
    }
    assert [each.attributes for each in carried.machines] == [
        {"disk": "ssd", "admits/one.p": "true"},
        {},
    ]


class TestTables:
    def test_an_entry_is_written_with_all_that_is_not_usual(self) -> None:
        full = FleetEntry(
            name="s",
            engine="omega",
            replicas=3,
            split="owner",
            takes=Takes(kinds=("a", "b")),
            limits=SchedulerLimits(resources=Resources(500, 0, {"gpu": 2}), precedence=-4),
            decision_time=Scaled(factor=2.5),
        )
        assert fleet_table(full) == {
            "name": "s",
            "engine": "omega",
            "replicas": 3,
            "split": "owner",
            "takes": {"kinds": ["a", "b"]},
            "limits": {"resources": {"cpu": 500, "gpu": 2}, "precedence": -4},
            "decision_time": {"model": "scaled", "factor": 2.5},
        }
        plain = {"name": "s", "engine": "omega"}
        for model, written in (
            (NotModelled(), {}),
            (Jittered(low=0.5, high=2.0), {"model": "jittered", "low": 0.5, "high": 2.0}),
        ):
            made = FleetEntry(name="s", engine="omega", decision_time=model)
            table = {**plain, "decision_time": written} if written else plain
            assert fleet_table(made) == table

    def test_a_cell_is_written_with_its_constraints_and_only_the_groups_there_are(self) -> None:
        machines = (
            Machine("a", Resources(1_000, GIB, {"gpu": 0}), {"disk": "ssd"}, {"rack": ("r1",)}),
            Machine("b", Resources(0, 5)),
        )
        fleet = (FleetEntry(name="s", engine="omega"),)
        cell = CellSpec(
            machines=(),
            groups=(GroupSpec(name="rack", sets=("r0",)),),
            constraints=(IN_RACK, parse_constraint("b -> {b, 0, 1} in rack weight 2")),
        )
        assert cluster_tables(cell, iter(machines), fleet) == {
            "cell": {
                "machines": [
                    {
                        "name": "a",
                        "capacity": {"cpu": 1_000, "memory": GIB},
                        "attributes": {"disk": "ssd"},
                        "joins": {"rack": ["r1"]},
                    },
                    {"name": "b", "capacity": {"memory": 5}},
                ],
                "groups": {"rack": {"sets": ["r0", "r1"]}},
                "constraints": ["a -> {a, 0, 0} in rack", "b -> {b, 0, 1} in rack weight 2"],
            },
            "fleet": [{"name": "s", "engine": "omega"}],
        }
        bare = cluster_tables(CellSpec(machines=()), machines[1:], fleet)
        assert bare["cell"] == {"machines": [{"name": "b", "capacity": {"memory": 5}}]}


def test_a_recording_without_a_name_for_its_node_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"kind": "Node", "metadata": {"name": ""}}))
    with pytest.raises(ScenarioError) as caught:
        read_cluster(path)
    assert caught.value.problem == "Node that cannot be read: no metadata.name"
    assert (caught.value.field, caught.value.file) == (None, str(path))


class TestLint:
    CELL = CellSpec(
        machines=(Machine("m", Resources(8_000, GIB), joins={"rack": ("r0",)}),),
        groups=(GroupSpec(name="rack", sets=("r0",)),),
    )

    def test_constraints_of_jobs_of_the_cell_and_of_every_scheduler_are_numbered(
        self, tmp_path: Path
    ) -> None:
        text = """\
name = "several"
horizon = "1h"
[[cell.machines]]
name = "m"
capacity = { cpu = 8000 }
[cell]
constraints = ["a -> {a, 0, 1} in machine", "a -> {a, 0, 2} in machine"]
[[workload.jobs]]
id = "one"
request = { cpu = 500 }
tags = ["a"]
constraints = ["a -> {a, 0, 3} in machine", "appID:self -> {a, 0, 4} in machine"]
[[fleet]]
name = "s"
engine = "medea"
settings = { operator = ["a -> {a, 0, 5} in machine"] }
[[fleet]]
name = "t"
engine = "medea"
[[fleet]]
name = "u"
engine = "medea"
settings = { operator = ["a -> {a, 0, 6} in machine", "a -> {a, 0, 7} in machine"] }
"""
        path = tmp_path / "several.toml"
        path.write_text(text)
        found = lint_file(path)
        told = [(each.place, format_constraint(each.constraint)) for each in found.constraints]
        assert told == [
            ("job one, constraint 1", "a -> {a, 0, 3} in machine"),
            ("job one, constraint 2", "appID:one -> {a, 0, 4} in machine"),
            ("cell, constraint 1", "a -> {a, 0, 1} in machine"),
            ("cell, constraint 2", "a -> {a, 0, 2} in machine"),
            ("fleet s, constraint 1", "a -> {a, 0, 5} in machine"),
            ("fleet u, constraint 1", "a -> {a, 0, 6} in machine"),
            ("fleet u, constraint 2", "a -> {a, 0, 7} in machine"),
        ]
        assert (found.mistakes, found.errors) == ((), 0)

    def test_a_list_in_yaml_needs_a_package(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def lacking(text: str) -> None:
            raise ImportError("yaml")

        monkeypatch.setattr(msgspec.yaml, "decode", lacking)
        path = tmp_path / "l.yml"
        path.write_text("- a")
        with pytest.raises(CommandError) as caught:
            lint_file(path)
        assert str(caught.value) == (
            f"{path}: YAML needs PyYAML; pip install 'argosy[yaml]', or use TOML"
        )


class TestJobFiles:
    @pytest.mark.parametrize(
        ("text", "form", "told"),
        [
            ("5", "yaml", "f:1: 5 is not a job; expected a table with its keys"),
            ("all jobs", "yaml", "f:1: 'all jobs' is not a job; expected a table with its keys"),
            ("jobs: 5", "yaml", "f:1: jobs: 5 is not a list; expected [[jobs]]"),
            ("jobs = 5", "toml", "f:1: jobs: 5 is not a list; expected [[jobs]]"),
            ("---\n---\n", "yaml", "f: no jobs; expected at least one"),
            ("[]\n", "yaml", "f: no jobs; expected at least one"),
        ],
    )
    def test_what_is_no_job_is_told_in_full(self, text: str, form: str, told: str) -> None:
        with pytest.raises(JobError) as caught:
            parse_jobs(text, "f", form)
        assert str(caught.value) == told

    @pytest.mark.parametrize(
        ("data", "told"),
        [
            (b"#\na \xff", "-:2: not UTF-8 at byte 3 of the line; expected "),
            (b"jobs = 5", "-:1: jobs: 5 is not a list; expected [[jobs]]"),
        ],
    )
    def test_what_came_from_standard_input_is_called_a_dash(self, data: bytes, told: str) -> None:
        with pytest.raises(JobError) as caught:
            read_job_stream(data, "toml")
        assert str(caught.value).startswith(told)


def test_kinds_of_drawn_jobs_name_what_is_in_the_cell() -> None:
    known = JobChecks(TestLint.CELL)
    fine = JobKind(
        requests=(WeightedRequest(request=Resources(1)),),
        tasks=Constant(1),
        constraints=(IN_RACK, IN_MACHINE),
    )
    known.kinds({"a": fine}, ("at",))
    gpu = WeightedRequest(request=Resources(1, 0, {"gpu": 1}))
    wrong: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
        ({"requests": (*fine.requests, gpu)}, ("requests", 1, "request", "gpu")),
        ({"requires": {"disk": "ssd"}}, ("requires", "disk")),
        (
            {"constraints": (IN_RACK, parse_constraint("a -> {a, 0, 0} in row"))},
            ("constraints", 1),
        ),
    ]
    for fields, path in wrong:
        kinds = {"a": fine, "b": msgspec.structs.replace(fine, **fields)}
        with pytest.raises(Misfit) as caught:
            known.kinds(kinds, ("at",))
        assert caught.value.path == ("at", "b", *path)
