"""The scenario loader: what a file means."""

import pytest
from small_scenario import SMALL, line

from argosy.model.errors import ModelError, ScenarioError, TraceError, UnknownName
from argosy.model.machine_model import MachineModel, Steal
from argosy.model.resources import Resources
from argosy.model.scenario import (
    AgentDown,
    AgentModel,
    ConstantLatency,
    FleetEntry,
    GroupSpec,
    MachineDrain,
    Network,
    Output,
    PairLatency,
    Partition,
    Scaled,
    SchedulerLimits,
    Takes,
    UniformLatency,
)
from argosy.scenarios.loader import load


def test_machines_are_numbered_and_dealt_out_to_groups_in_order(read):
    cell = read(SMALL).cell
    assert [machine.name for machine in cell.machines] == ["m-0", "m-1", "m-2", "m-3"]
    assert [machine.joins["rack"] for machine in cell.machines] == [
        ("rack-0",),
        ("rack-0",),
        ("rack-1",),
        ("rack-1",),
    ]
    assert cell.groups == (
        GroupSpec(name="rack", sets=("rack-0", "rack-1")),
        GroupSpec(name="domain", sets=("u1", "u2")),
    )


def test_a_single_machine_has_the_plain_name_and_joins_by_name(read):
    text = SMALL.replace("count = 4", 'joins = { domain = ["u2"] }')
    (machine,) = read(text).cell.machines
    assert machine.name == "m"
    assert machine.joins == {"domain": ("u2",), "rack": ("rack-0",)}


def test_a_scenario_has_defaults_for_all_it_does_not_say(read):
    scenario = read(SMALL)
    assert scenario.seed == 1
    assert scenario.failover == 1_000_000
    assert scenario.network.latency == ConstantLatency()
    assert scenario.faults == ()


def test_a_scheduler_that_takes_all_kinds_may_stand_beside_one_that_does_not(read):
    picky = '[[fleet]]\nname = "picky"\nengine = "patient"\ntakes = { kinds = ["service"] }\n'
    fleet = read(SMALL + picky).fleet
    assert [entry.takes.kinds for entry in fleet] == [(), ("service",)]


def test_a_seed_given_to_load_wins(read):
    assert read("seed = 5\n" + SMALL).seed == 5
    assert read("seed = 5\n" + SMALL, seed=9).seed == 9


def test_jobs_spelled_out_are_sorted_by_submission(read):
    text = SMALL.replace('id = "a"', 'id = "late"\nsubmit = "3s"')
    text += '[[workload.jobs]]\nid = "early"\nsubmit = "1s"\n'
    text += 'groups = [{ request = { cpu = 1 }, count = 2, durations = ["1s", "2s"] }]\n'
    jobs = read(text).jobs
    assert [job.id for job in jobs] == ["early", "late"]
    assert jobs[0].truth[0].durations == (1_000_000, 2_000_000)


def test_settings_keep_what_was_given_with_durations_in_microseconds(read):
    scenario = read(SMALL + 'settings = { patience = "2ms", tries = 4 }\n')
    assert scenario.fleet[0].settings == {"patience": 2000, "tries": 4}


def test_limits_network_and_faults_are_read(read):
    scenario = read(
        SMALL
        + """
replicas = 2
limits = { resources = { cpu = "4" }, jobs = 3, precedence = -2 }
decision_time = { model = "scaled", factor = 2 }
[network]
latency.model = "per-pair"
latency.default = "1ms"
latency.delays = { "s-0>s-1" = "5ms", "s-1>cell" = "2ms" }
[[faults]]
kind = "partition"
at = "1s"
lasts = "2s"
isolated = ["s-1"]
"""
    )
    limits = scenario.fleet[0].limits
    assert limits == SchedulerLimits(resources=Resources(cpu=4000), jobs=3, precedence=-2)
    assert scenario.network.latency == PairLatency(
        default=1000, delays={"s-0>s-1": 5000, "s-1>cell": 2000}
    )
    assert scenario.faults == (Partition(at=1_000_000, lasts=2_000_000, isolated=("s-1",)),)


@pytest.mark.parametrize(
    ("cluster", "says"),
    [
        ('cluster = "north"\n', r"faults\[0\]\.cluster: cluster 'north'; expected no cluster"),
        ("", None),
    ],
)
def test_the_agent_of_a_plain_cell_has_no_name(read, cluster, says):
    text = f'{SMALL}\n[[faults]]\nkind = "agent-down"\nat = "1s"\n{cluster}'
    if says is None:
        assert read(text).faults == (AgentDown(at=1_000_000),)
        return
    with pytest.raises(ScenarioError, match=says):
        read(text)


def test_a_scenario_that_says_everything_keeps_everything(read):
    text = (
        'failover = "7s"\nseed = 3\naudit = true\n'
        + SMALL
        + """
replicas = 2
takes = { kinds = ["batch"] }
decision_time = { model = "scaled", factor = 2 }
limits = { jobs = 3 }
settings = { tries = 4 }
[network]
loss = 0.1
duplication = 0.2
reordering = 0.3
extra_delay = "4ms"
latency = { model = "uniform", low = "1ms", high = "1ms" }
[machines]
queue = "shortest-first"
slack = 2
limit = 9
start_delay = "1ms"
long_above = "5s"
heartbeat = "2s"
heartbeat_counts_sent = true
steal = { attempts = 3, most = 2, after = 0.5 }
[agents]
samplers = 2
committers = 3
t_sample = "1ms"
t_machine = "2us"
t_fetch = "3ms"
t_bind = "4ms"
refresh = "5s"
[output]
log = "decisions"
tasks = false
[[faults]]
kind = "machine-drain"
at = "1s"
machine = "m-1"
lasts = "2s"
"""
    )
    scenario = read(text, published=True)
    says = {"cell", "jobs", "fleet", "left_out", "federation"}
    told = {
        name: getattr(scenario, name) for name in scenario.__struct_fields__ if name not in says
    }
    assert told == {
        "name": "small",
        "seed": 3,
        "network": Network(
            loss=0.1,
            duplication=0.2,
            reordering=0.3,
            extra_delay=4_000,
            latency=UniformLatency(low=1_000, high=1_000),
        ),
        "agents": AgentModel(
            samplers=2,
            committers=3,
            t_sample=1_000,
            t_machine=2,
            t_fetch=3_000,
            t_bind=4_000,
            refresh=5_000_000,
        ),
        "machines": MachineModel(
            queue="shortest-first",
            slack=2,
            limit=9,
            start_delay=1_000,
            long_above=5_000_000,
            heartbeat=2_000_000,
            heartbeat_counts_sent=True,
            steal=Steal(attempts=3, most=2, after=0.5),
        ),
        "faults": (MachineDrain(at=1_000_000, machine="m-1", lasts=2_000_000),),
        "horizon": 3_600_000_000,
        "failover": 7_000_000,
        "audit": True,
        "output": Output(log="decisions", tasks=False),
        "as_published": True,
    }
    assert scenario.fleet == (
        FleetEntry(
            name="s",
            engine="patient",
            settings={"tries": 4},
            replicas=2,
            takes=Takes(kinds=("batch",)),
            decision_time=Scaled(factor=2),
            limits=SchedulerLimits(jobs=3),
        ),
    )


def test_a_utilisation_is_of_all_that_the_machines_have(read):
    head, tail = SMALL.split("[[workload.jobs]]")
    drawn = """\
[workload.synthetic]
span = "1h"
utilisation = 0.5
[workload.synthetic.kinds.batch]
tasks = { shape = "constant", value = 1 }
duration = { shape = "constant", value = "1min" }
requests = [{ request = { cpu = 4000 } }]
"""
    jobs = read(head + drawn + tail[tail.index("[[fleet]]") :]).jobs
    # Half of 32 cores for an hour is 960 core-minutes, at 4 a job.
    assert len(jobs) == pytest.approx(240, rel=0.2)


def test_a_trace_is_found_beside_the_scenario(read, tmp_path):
    (tmp_path / "jobs.jsonl").write_text(
        '{"id": "x", "submit": 4000000, "duration": "1s", "request": {"cpu": 1}}\n'
    )
    head, tail = SMALL.split("[[workload.jobs]]")
    fleet = tail[tail.index("[[fleet]]") :]
    trace = '[workload.trace]\npath = "jobs.jsonl"\nspeedup = 2\n'
    (job,) = read(head + trace + fleet).jobs
    assert (job.id, job.submit) == ("x", 2_000_000)


def test_an_error_in_a_trace_is_in_the_trace(read, tmp_path):
    (tmp_path / "jobs.jsonl").write_text('{"id": "x"}\n')
    head, tail = SMALL.split("[[workload.jobs]]")
    trace = '[workload.trace]\npath = "jobs.jsonl"\n'
    with pytest.raises(TraceError) as caught:
        read(head + trace + tail[tail.index("[[fleet]]") :])
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "jobs.jsonl"), 1)


def with_trace(more=""):
    head, tail = SMALL.split("[[workload.jobs]]")
    trace = f'[workload.trace]\npath = "jobs.jsonl"\n{more}'
    return head + trace + tail[tail.index("[[fleet]]") :]


def test_a_missing_trace_is_a_mistake_of_the_scenario(refused):
    error = refused(with_trace())
    assert (error.line, error.field) == (line(with_trace(), "jobs.jsonl"), "workload.trace.path")
    assert "No such file" in str(error)


@pytest.mark.parametrize("speedup", ["1e-300", "0", "inf", "nan", "1e7"])
def test_a_speedup_out_of_bounds_is_refused(refused, speedup):
    error = refused(with_trace(f"speedup = {speedup}\n"))
    assert error.field == "workload.trace.speedup"
    assert "from 1e-6 to 1e6" in str(error)


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ('"request": {}, "requires": {"arhc": "x86"}', "requires.arhc"),
        ('"groups": [{"request": {}, "requires": {"arch": "x68"}}]', "groups[0].requires.arch"),
        ('"request": {"gpu": 1}', "request.gpu"),
        ('"request": {}, "constraints": ["a -> {a, 0, 0} in rock"]', "constraints[0]"),
    ],
)
def test_what_a_trace_names_must_be_in_the_cell(read, tmp_path, keys, field):
    (tmp_path / "jobs.jsonl").write_text(f'{{"id": "x", {keys}}}\n')
    with pytest.raises(TraceError) as caught:
        read(with_trace())
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "jobs.jsonl"), 1)
    assert caught.value.field == field


def test_what_a_kind_requires_must_be_in_the_cell(refused):
    head, tail = SMALL.split("[[workload.jobs]]")
    kind = """\
[workload.synthetic]
span = "1h"
utilisation = 0.5
[workload.synthetic.kinds.batch]
tasks = { shape = "constant", value = 1 }
duration = { shape = "constant", value = "1s" }
requests = [{ request = { cpu = 1000 } }]
requires = { arhc = "x86" }
"""
    text = head + kind + tail[tail.index("[[fleet]]") :]
    error = refused(text, UnknownName)
    assert error.line == line(text, "arhc")
    assert error.field == "workload.synthetic.kinds.batch.requires.arhc"
    text = text.replace('requires = { arhc = "x86" }\n', "").replace("value = 1 ", "value = 0 ")
    error = refused(text, ModelError)
    assert error.field == "workload.synthetic.kinds.batch.tasks"
    text = text.replace("value = 0 ", "value = 20000000 ")
    error = refused(text, ModelError)
    assert (error.line, error.field) == (
        line(text, "value = 20000000"),
        "workload.synthetic.kinds.batch.tasks",
    )


def test_more_tasks_than_a_run_could_hold_are_refused(refused):
    text = SMALL.replace('id = "a"', 'id = "a"\ncount = 16777216')
    for name in "bcd":
        text += f'[[workload.jobs]]\nid = "{name}"\nrequest = {{}}\ncount = 16777216\n'
    error = refused(text)
    assert (error.field, error.line) == ("workload.jobs[2].count", len(text.splitlines()) - 4)
    assert "more than 50,000,000 tasks in total" in str(error)


def test_an_attribute_where_there_are_none_is_refused(refused):
    text = SMALL.replace('attributes = { arch = "x86" }\n', "")
    text = text.replace('id = "a"', 'id = "a"\nrequires = { arch = "x86" }')
    assert (
        "no machine has attribute 'arch', nor any other; "
        "expected attributes of some [[cell.machines]]"
    ) in str(refused(text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ScenarioError, match="No such file") as caught:
        load(tmp_path / "none.toml")
    assert caught.value.file == str(tmp_path / "none.toml")


def test_a_file_of_bytes_is_refused(tmp_path):
    (tmp_path / "x.toml").write_bytes(b"seed = 1\nname = '\xff'")
    with pytest.raises(ScenarioError, match="not UTF-8 at byte 9 of the line") as caught:
        load(tmp_path / "x.toml")
    assert caught.value.line == 2


def test_a_toml_syntax_error_has_its_line(refused):
    assert refused(SMALL.replace("count = 4", "count = = 4")).line == line(SMALL, "count = 4")
    assert refused('name = "a"\nlist = [\n').line == 2


#: What to change in the small scenario, the error's class, the part of the changed line, its field,
#: and part of what the error says.
