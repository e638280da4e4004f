"""The reader of Alibaba's GPU trace of 2023, on small lists made here in the same format."""

from pathlib import Path

import pytest

from argosy.experiments.execute import execute_in_memory
from argosy.model.errors import ScenarioError, TraceError
from argosy.model.resources import Resources
from argosy.scenarios.loader import load
from argosy.workloads import alibaba2023
from argosy.workloads.google_jobs import Notes

SECOND = 1_000_000
MIB = 2**20
NODES = "sn,cpu_milli,memory_mib,gpu,model"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time"
)


def pod(name, times, *, gpus="1,1000", spec="", qos="LS"):
    created, scheduled, deleted = times
    return f"{name},4000,1024,{gpus},{spec},{qos},Running,{created},{deleted},{scheduled}"


def trace(directory: Path, *pods: str, nodes: tuple[str, ...] | None = None) -> Path:
    if nodes is None:
        nodes = ("plain,32000,65536,0,", "small,16000,32768,2,T4", "large,64000,131072,8,V100M32")
    directory.mkdir(exist_ok=True)
    write(directory / "openb_node_list_all_node.csv", NODES, *nodes)
    write(directory / "openb_pod_list_default.csv", PODS, *pods)
    return directory


def write(path: Path, *lines: str) -> None:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def only_job(directory: Path, **options):
    [job] = alibaba2023.jobs(directory, **options)
    return job


def test_nodes_are_machines_with_gpus_in_thousandths(tmp_path):
    plain, small, large = alibaba2023.machines(trace(tmp_path))
    assert plain.capacity == Resources(32_000, 65_536 * MIB)
    assert plain.attributes == {}
    assert small.capacity == Resources(16_000, 32_768 * MIB, {"gpu": 2000})
    assert small.attributes == {"gpu_model": "T4"}
    assert (large.name, large.capacity.extras) == ("large", {"gpu": 8000})


def test_only_the_first_nodes_are_machines_if_so_many_are_asked_for(tmp_path):
    found = alibaba2023.machines(trace(tmp_path), most=2)
    assert [machine.name for machine in found] == ["plain", "small"]


def test_a_pod_is_a_job_of_one_task(tmp_path):
    job = only_job(trace(tmp_path, pod("p", (5, 7, 17), gpus="2,1000")))
    assert (job.id, job.submit, job.tasks, job.kind) == ("p", 5 * SECOND, 1, "service")
    assert job.groups[0].request == Resources(4000, 1024 * MIB, {"gpu": 2000})
    assert job.truth[0].durations == (10 * SECOND,)


def test_best_effort_pods_are_batch(tmp_path):
    assert only_job(trace(tmp_path, pod("p", (5, 7, 17), qos="BE"))).kind == "batch"


def test_a_pod_without_gpus_asks_for_none(tmp_path):
    job = only_job(trace(tmp_path, pod("p", (0, 0, 1), gpus="0,0")))
    assert job.groups[0].request == Resources(4000, 1024 * MIB)


def test_pooled_shares_are_counted_as_not_expressible(tmp_path):
    notes = Notes()
    shared = trace(tmp_path, pod("p", (0, 0, 1), gpus="1,460"))
    job = only_job(shared, sharing="pooled", notes=notes)
    assert job.groups[0].request.extras == {"gpu": 460}
    assert notes.not_expressible == {"a share of a GPU is a share of one device": 1}


def test_a_share_of_a_device_is_asked_for_as_it_is(tmp_path):
    notes = Notes()
    job = only_job(trace(tmp_path, pod("p", (0, 0, 1), gpus="1,460")), notes=notes)
    assert job.groups[0].request.extras == {"gpu": 460}
    assert notes.not_expressible == {}


def test_without_sharing_a_share_takes_a_whole_gpu(tmp_path):
    notes = Notes()
    shared = trace(tmp_path, pod("p", (0, 0, 1), gpus="1,460"))
    job = only_job(shared, sharing="none", notes=notes)
    assert job.groups[0].request.extras == {"gpu": 1000}
    assert notes.not_expressible == {}


def test_one_allowed_model_is_required_of_the_machine(tmp_path):
    job = only_job(trace(tmp_path, pod("p", (0, 0, 1), spec="T4")))
    assert job.groups[0].requires == {"gpu_model": "T4"}


def test_machines_of_any_allowed_model_have_the_attribute_that_a_pod_requires(tmp_path):
    directory = trace(tmp_path, pod("p", (0, 0, 1), spec="V100M32|V100M16"))
    [(attribute, value)] = only_job(directory).groups[0].requires.items()
    having = [m.name for m in alibaba2023.machines(directory) if m.attributes.get(attribute)]
    assert (attribute, value) == ("gpu_model=V100M16|V100M32", "yes")
    assert having == ["large"]


def test_pods_that_never_ran_are_left_out_and_counted(tmp_path):
    notes = Notes()
    directory = trace(tmp_path, pod("p", (0, "", 5)), pod("q", (0, 1, 5)))
    assert only_job(directory, notes=notes).id == "q"
    assert (notes.never_ran, notes.jobs, notes.tasks) == (1, 1, 1)


def test_jobs_come_in_order_of_creation(tmp_path):
    directory = trace(tmp_path, pod("late", (9, 9, 10)), pod("early", (3, 3, 10)))
    assert [job.id for job in alibaba2023.jobs(directory)] == ["early", "late"]


def test_a_part_of_the_trace_begins_with_what_runs_then(tmp_path):
    directory = trace(
        tmp_path,
        pod("over", (0, 0, 50)),
        pod("running", (10, 20, 140)),
        pod("waiting", (90, 110, 130)),
        pod("new", (105, 106, 116)),
        pod("later", (120, 120, 130)),
    )
    found = alibaba2023.jobs(directory, start=100 * SECOND, span=20 * SECOND)
    assert [(job.id, job.submit, job.truth[0].durations[0] // SECOND) for job in found] == [
        ("running", 0, 40),
        ("waiting", 0, 20),
        ("new", 5 * SECOND, 10),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (pod("p", (0, 0, 1), gpus="2,500"), "gpu_milli: 500 of each of 2 GPUs; expected 1000"),
        (pod("p", (0, 0, 1), gpus="0,500"), "gpu_milli: 500 of 0 GPUs; expected both 0"),
        (pod("p", (0, 0, 1), gpus="1,1001"), "gpu_milli: 1001 is out of range; expected 0 to 1000"),
        (pod("p", (0, 0, 1), gpus="one,1000"), "num_gpu: 'one' is not a whole number"),
        (pod("p", (5, 5, 1)), "deletion_time: before the pod's creation"),
        (pod("p", (5, 4, 9)), "scheduled_time: not between the pod's creation and deletion"),
        (pod("", (0, 0, 1)), "name: is missing"),
        ("p,1000", "2 fields; expected 11"),
    ],
)
def test_a_mistake_in_a_pod_names_its_file_and_line(tmp_path, line, message):
    directory = trace(tmp_path, pod("fine", (0, 0, 1)), line)
    with pytest.raises(TraceError) as refused:
        list(alibaba2023.jobs(directory))
    assert "openb_pod_list_default.csv:3: " in str(refused.value)
    assert message in str(refused.value)


def test_a_node_listed_twice_is_refused(tmp_path):
    directory = trace(tmp_path, nodes=("n,1000,1024,0,", "n,1000,1024,0,"))
    with pytest.raises(TraceError, match=r"node_list_all_node\.csv:3: sn: n is listed twice"):
        alibaba2023.machines(directory)


def test_a_list_of_pods_without_times_is_refused_by_its_heading(tmp_path):
    directory = trace(tmp_path)
    write(directory / "openb_pod_list_short.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli")
    with pytest.raises(TraceError, match=r"list_short\.csv:1: no column creation_time"):
        list(alibaba2023.jobs(directory, pods="short"))


def test_an_unknown_list_names_those_there_are(tmp_path):
    with pytest.raises(TraceError, match=r"no file openb_pod_list_defualt\.csv.*did you mean"):
        list(alibaba2023.jobs(trace(tmp_path), pods="defualt"))


def test_an_empty_list_is_refused(tmp_path):
    directory = trace(tmp_path)
    (directory / "openb_pod_list_default.csv").write_text("")
    with pytest.raises(TraceError, match=r"openb_pod_list_default\.csv: is empty"):
        list(alibaba2023.jobs(directory))


def scenario(tmp_path: Path, sharing: str, *pods: str) -> Path:
    trace(tmp_path / "trace", *pods, nodes=("n,64000,131072,2,T4",))
    path = tmp_path / "scenario.toml"
    table = f'path = "trace"\nsharing = "{sharing}"'
    path.write_text(
        f'name = "gpus"\n[workload.alibaba2023]\n{table}\n[[fleet]]\nname = "s"\nengine = "omega"\n'
    )
    return path


@pytest.mark.parametrize(("sharing", "at_once"), [("pooled", 3), ("devices", 2), ("none", 2)])
def test_a_scenario_on_the_trace_runs(tmp_path, sharing, at_once):
    pods = [pod(f"p{i}", (0, 0, 100), gpus="1,600") for i in range(3)]
    loaded = load(scenario(tmp_path, sharing, *pods))
    started = execute_in_memory(loaded).kept_tasks()["started"]
    assert int((started < 100 * SECOND).sum()) == at_once


def test_a_scenario_notes_that_shares_are_pooled(tmp_path):
    loaded = load(scenario(tmp_path, "pooled", pod("p", (0, 0, 1), gpus="1,600")))
    assert any("a share of one device (1)" in note for note in loaded.left_out)
    assert loaded.cell.device_resource is None


def test_the_gpus_of_the_trace_are_devices(tmp_path):
    loaded = load(scenario(tmp_path, "devices", pod("p", (0, 0, 1), gpus="1,600")))
    assert loaded.cell.device_resource == "gpu"
    assert loaded.left_out == ()


def test_a_cell_of_its_own_has_to_say_that_its_gpus_are_devices(tmp_path):
    path = scenario(tmp_path, "devices", pod("p", (0, 0, 1), gpus="1,600"))
    own = '[[cell.machines]]\nname = "n"\ncapacity = { cpu = 8000, memory = "8GiB", gpu = 2000 }\n'
    path.write_text(path.read_text() + own)
    with pytest.raises(ScenarioError, match=r"alibaba2023\.sharing.*does not consist of devices"):
        load(path)
    path.write_text(path.read_text() + '[cell]\ndevices = "gpu"\n')
    assert load(path).cell.device_resource == "gpu"


def test_an_unknown_way_of_sharing_is_refused(tmp_path):
    with pytest.raises(ScenarioError, match=r"workload\.alibaba2023\.sharing"):
        load(scenario(tmp_path, "exact", pod("p", (0, 0, 1))))
