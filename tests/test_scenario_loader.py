"""The scenario loader: what a file means, and where exactly it is wrong."""

import re
import tomllib
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.engines.api import Capabilities
from argosy.model.errors import (
    ArgosyError,
    ConstraintSyntaxError,
    ModelError,
    ScenarioError,
    SettingError,
    TraceError,
    UnitError,
    UnknownEngine,
    UnknownName,
)
from argosy.model.resources import Resources
from argosy.model.scenario import (
    ConstantLatency,
    FleetEntry,
    GroupSpec,
    PairLatency,
    Partition,
    Scenario,
    SchedulerCrash,
)
from argosy.model.units import Micros
from argosy.runs.loader import load, scenario_digest, with_engine
from argosy.runs.toml_places import find_places, line_of

SCENARIOS = Path(__file__).parent.parent / "scenarios"


class PatientSettings(msgspec.Struct, frozen=True, kw_only=True):
    patience: Micros = Micros(5)
    pause: Annotated[Micros, msgspec.Meta(ge=1000, le=60_000_000)] = Micros(1000)
    tries: Annotated[int, msgspec.Meta(ge=1, le=9)] = 3
    order: Literal["first", "last"] = "first"


class Patient:
    """An engine for its settings alone."""

    name: ClassVar[str] = "patient"
    settings_type = PatientSettings
    capabilities = Capabilities()


ALSO = {"patient": Patient}

SMALL = """\
name = "small"
horizon = "1h"

[[cell.machines]]
name = "m"
count = 4
capacity = { cpu = 8000, memory = "32GiB" }
attributes = { arch = "x86" }

[cell.groups]
rack = { size = 2 }
domain = { sets = ["u1", "u2"] }

[[workload.jobs]]
id = "a"
request = { cpu = 500 }
duration = "10s"

[[fleet]]
name = "s"
engine = "patient"
"""


@pytest.fixture
def read(tmp_path):
    def read_text(text, **options):
        path = tmp_path / "scenario.toml"
        path.write_text(text)
        return load(path, also=ALSO, **options)

    return read_text


@pytest.fixture
def refused(read, tmp_path):
    """The error of a text, having checked that it names the file."""

    def refuse(text, kind=ScenarioError):
        with pytest.raises(kind) as caught:
            read(text)
        assert isinstance(caught.value, ArgosyError)
        assert caught.value.file == str(tmp_path / "scenario.toml")
        return caught.value

    return refuse


def line(text, part):
    """The number of the first line of `text` that has `part`."""
    return next(n for n, content in enumerate(text.splitlines(), 1) if part in content)


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


def test_a_seed_given_to_load_wins(read):
    assert read("seed = 5\n" + SMALL).seed == 5
    assert read("seed = 5\n" + SMALL, seed=9).seed == 9


def test_jobs_spelled_out_are_sorted_by_submission(read):
    text = SMALL.replace('id = "a"', 'id = "late"\nsubmit = "3s"')
    text += '[[workload.jobs]]\nid = "early"\nsubmit = "1s"\n'
    text += 'groups = [{ request = { cpu = 1 }, count = 2, durations = ["1s", "2s"] }]\n'
    jobs = read(text).jobs
    assert [job.id for job in jobs] == ["early", "late"]
    assert jobs[0].groups[0].durations == (1_000_000, 2_000_000)


def test_settings_keep_what_was_given_with_durations_in_microseconds(read):
    scenario = read(SMALL + 'settings = { patience = "2ms", tries = 4 }\n')
    assert scenario.fleet[0].settings == {"patience": 2000, "tries": 4}


def test_limits_network_and_faults_are_read(read):
    scenario = read(
        SMALL
        + """
replicas = 2
limits = { resources = { cpu = "4" }, jobs = 3 }
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
    assert scenario.fleet[0].limits.resources == Resources(cpu=4000)
    assert scenario.network.latency == PairLatency(
        default=1000, delays={"s-0>s-1": 5000, "s-1>cell": 2000}
    )
    assert scenario.faults == (Partition(at=1_000_000, lasts=2_000_000, isolated=("s-1",)),)


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
    assert "more than 50,000,000 tasks in all" in str(error)


def test_an_attribute_where_there_are_none_is_refused(refused):
    text = SMALL.replace('attributes = { arch = "x86" }\n', "")
    text = text.replace('id = "a"', 'id = "a"\nrequires = { arch = "x86" }')
    assert "no machine has attribute 'arch', nor any other" in str(refused(text))


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
MISTAKES = {
    "an unknown key": (
        ("count = 4", "cuont = 4"),
        ScenarioError,
        "cuont",
        "cell.machines[0].cuont",
        "did you mean 'count'?",
    ),
    "an unknown key at the top": (
        ("horizon", "horizont"),
        ScenarioError,
        "horizont",
        "horizont",
        "did you mean 'horizon'?",
    ),
    "an unknown key of a group": (
        ("size = 2", "siz = 2"),
        ScenarioError,
        "siz",
        "cell.groups.rack.siz",
        "did you mean 'size'?",
    ),
    "a wrong type": (
        ("count = 4", 'count = "4"'),
        ScenarioError,
        "count",
        "cell.machines[0].count",
        "expected a whole number",
    ),
    "a missing key": (
        ('name = "m"\n', ""),
        ScenarioError,
        "[[cell.machines]]",
        "cell.machines[0]",
        "missing key 'name'",
    ),
    "a negative amount": (
        ("cpu = 8000", "cpu = -8000"),
        UnitError,
        "-8000",
        "cell.machines[0].capacity.cpu",
        "negative",
    ),
    "a fractional amount": (
        ("cpu = 8000", "cpu = 0.5"),
        UnitError,
        "0.5",
        "cell.machines[0].capacity.cpu",
        "fractional",
    ),
    "a duration without a unit": (
        ('duration = "10s"', "duration = 10"),
        UnitError,
        "duration = 10",
        "workload.jobs[0].duration",
        "has no unit",
    ),
    "a horizon without a unit": (
        ('horizon = "1h"', 'horizon = "1"'),
        UnitError,
        "horizon",
        "horizon",
        "such as",
    ),
    "an unknown group": (
        ("count = 4", 'joins = { domian = ["u1"] }'),
        UnknownName,
        "joins",
        "cell.machines[0].joins.domian",
        "did you mean 'domain'?",
    ),
    "an unknown set": (
        ("count = 4", 'joins = { domain = ["u3"] }'),
        UnknownName,
        "joins",
        "cell.machines[0].joins.domain[0]",
        "one of u1, u2",
    ),
    "a join of a group that is dealt out": (
        ("count = 4", 'joins = { rack = ["rack-0"] }'),
        ScenarioError,
        "joins",
        "cell.machines[0].joins.rack",
        "deals its machines out",
    ),
    "a group with size and sets": (
        ("size = 2", 'size = 2, sets = ["x"]'),
        ScenarioError,
        "rack =",
        "cell.groups.rack",
        "both size and sets",
    ),
    "a group with neither": (
        ("{ size = 2 }", "{}"),
        ScenarioError,
        "rack =",
        "cell.groups.rack",
        "neither size nor sets",
    ),
    "the group of machines": (
        ("rack =", "machine ="),
        ScenarioError,
        "machine =",
        "cell.groups.machine",
        "exists already",
    ),
    "a set twice": (
        ('"u1", "u2"', '"u1", "u1"'),
        ScenarioError,
        "u1",
        "cell.groups.domain.sets[1]",
        "again",
    ),
    "a constraint that does not parse": (
        (
            'id = "a"',
            'id = "a"\nconstraints = [\n  "a -> {a, 0, 0} in rack",\n  "b -> {b} in rack",\n]',
        ),
        ConstraintSyntaxError,
        "{b}",
        "workload.jobs[0].constraints[1]",
        "at column 8",
    ),
    "a constraint on an unknown group": (
        ('id = "a"', 'id = "a"\nconstraints = ["a -> {a, 0, 0} in rock"]'),
        UnknownName,
        "rock",
        "workload.jobs[0].constraints[0]",
        "did you mean 'rack'?",
    ),
    "a constraint on an unknown group among others": (
        (
            'id = "a"',
            'id = "a"\nconstraints = [\n  "a -> {a, 0, 0} in rack",\n  "b -> {b, 0, 0} in rock",\n]',
        ),
        UnknownName,
        "rock",
        "workload.jobs[0].constraints[1]",
        "did you mean 'rack'?",
    ),
    "an attribute no machine has": (
        ('id = "a"', 'id = "a"\nrequires = { arhc = "x86" }'),
        UnknownName,
        "arhc",
        "workload.jobs[0].requires.arhc",
        "did you mean 'arch'?",
    ),
    "an attribute that nobody has so": (
        ('id = "a"', 'id = "a"\nrequires = { arch = "x68" }'),
        UnknownName,
        "x68",
        "workload.jobs[0].requires.arch",
        "did you mean 'x86'?",
    ),
    "a bad job id": (
        ('id = "a"', 'id = "a b"'),
        ModelError,
        "a b",
        "workload.jobs[0].id",
        "spaces",
    ),
    "a precedence out of range": (
        ('id = "a"', 'id = "a"\nprecedence = 40000'),
        ModelError,
        "precedence",
        "workload.jobs[0].precedence",
        "-32768 to 32767",
    ),
    "a count of nothing": (
        ('id = "a"', 'id = "a"\ncount = 0'),
        ModelError,
        "count = 0",
        "workload.jobs[0].count",
        "1 to 16,777,216",
    ),
    "a tag that constraints cannot name": (
        ('id = "a"', 'id = "a"\ntags = ["a tag"]'),
        ModelError,
        "a tag",
        "workload.jobs[0].tags",
        "cannot be named by a constraint",
    ),
    "a group that constraints cannot name": (
        ("rack =", '"the rack" ='),
        ScenarioError,
        "the rack",
        "cell.groups.the rack",
        "cannot be named by a constraint",
    ),
    "an empty name": (('name = "small"', 'name = ""'), ScenarioError, "name", "name", "1 to 100"),
    "a name that is a path": (
        ('name = "small"', 'name = "../small"'),
        ScenarioError,
        "small",
        "name",
        "letters, digits",
    ),
    "a name too long": (
        ('name = "small"', f'name = "{"x" * 101}"'),
        ScenarioError,
        "xxx",
        "name",
        "1 to 100",
    ),
    "control characters in a machine's name": (
        ('name = "m"', 'name = "m\\u0007"'),
        ScenarioError,
        "u0007",
        "cell.machines[0].name",
        "printable",
    ),
    "machines without number": (
        ("count = 4", "count = 1000000000000"),
        ScenarioError,
        "count",
        "cell.machines[0].count",
        "at most 1,000,000",
    ),
    "schedulers without number": (
        ('"patient"', '"patient"\nreplicas = 10001'),
        ScenarioError,
        "replicas",
        "fleet[0].replicas",
        "at most 10,000",
    ),
    "an infinite jitter": (
        ('"patient"', '"patient"\ndecision_time = { model = "jittered", low = 1, high = inf }'),
        ScenarioError,
        "jittered",
        "fleet[0].decision_time.high",
        "at most 1000",
    ),
    "a vast jitter": (
        ('"patient"', '"patient"\ndecision_time = { model = "jittered", low = 1, high = 1e300 }'),
        ScenarioError,
        "jittered",
        "fleet[0].decision_time.high",
        "at most 1000",
    ),
    "a factor that is no number": (
        ('"patient"', '"patient"\ndecision_time = { model = "scaled", factor = nan }'),
        ScenarioError,
        "scaled",
        "fleet[0].decision_time.factor",
        "at most 1000",
    ),
    "a jitter that is upside down": (
        ('"patient"', '"patient"\ndecision_time = { model = "jittered", low = 2, high = 1 }'),
        ScenarioError,
        "jittered",
        "fleet[0].decision_time",
        "from 2 to 1",
    ),
    "an entry that takes no kinds": (
        ('"patient"', '"patient"\ntakes = { kinds = [] }'),
        ScenarioError,
        "kinds",
        "fleet[0].takes.kinds",
        "no takes for all",
    ),
    "a boolean for a number": (
        ("count = 4", "count = true"),
        ScenarioError,
        "count",
        "cell.machines[0].count",
        "true does not fit",
    ),
    "a date for a time": (
        ('duration = "10s"', "duration = 1979-05-27"),
        UnitError,
        "1979",
        "workload.jobs[0].duration",
        "1979-05-27 is not a duration",
    ),
    "a number too long for Python": (
        ("count = 4", f"count = 1{'0' * 5000}"),
        ScenarioError,
        None,
        None,
        "not TOML",
    ),
    "a value nested too deeply": (
        ("count = 4", f"count = {'[' * 5000}{']' * 5000}"),
        ScenarioError,
        None,
        None,
        "nested too deeply",
    ),
    "a resource no machine has": (
        ("cpu = 500", "gpu = 1"),
        UnknownName,
        "gpu = 1",
        "workload.jobs[0].request.gpu",
        "'gpu'",
    ),
    "an unknown engine": (
        ('"patient"', '"patiens"'),
        UnknownEngine,
        "patiens",
        "fleet[0].engine",
        "did you mean 'patient'?",
    ),
    "an unknown setting": (
        ('"patient"', '"patient"\nsettings = { patienc = "1s" }'),
        SettingError,
        "settings",
        "fleet[0].settings.patienc",
        "did you mean 'patience'?",
    ),
    "a setting of the wrong type": (
        ('"patient"', '"patient"\nsettings.tries = "many"'),
        SettingError,
        "settings.tries",
        "fleet[0].settings.tries",
        "expected a whole number",
    ),
    "a setting below its bound": (
        ('"patient"', '"patient"\nsettings.tries = 0'),
        SettingError,
        "settings.tries",
        "fleet[0].settings.tries",
        "0 does not fit; expected a whole number of at least 1",
    ),
    "a setting above its bound": (
        ('"patient"', '"patient"\nsettings.tries = 10'),
        SettingError,
        "settings.tries",
        "fleet[0].settings.tries",
        "10 does not fit; expected a whole number of at most 9",
    ),
    "a time below its bound": (
        ('"patient"', '"patient"\nsettings.pause = "0s"'),
        SettingError,
        "settings.pause",
        "fleet[0].settings.pause",
        "'0s' is too short; expected at least 1 ms",
    ),
    "a time above its bound": (
        ('"patient"', '"patient"\nsettings.pause = "2min"'),
        SettingError,
        "settings.pause",
        "fleet[0].settings.pause",
        "'2min' is too long; expected at most 1 min",
    ),
    "a setting without a unit": (
        ('"patient"', '"patient"\nsettings.patience = 5'),
        UnitError,
        "settings.patience",
        "fleet[0].settings.patience",
        "has no unit",
    ),
    "a setting outside its choices": (
        ('"patient"', '"patient"\nsettings.order = "frist"'),
        SettingError,
        "frist",
        "fleet[0].settings.order",
        "did you mean 'first'?",
    ),
    "a limit on a resource no machine has": (
        ('"patient"', '"patient"\nlimits = { resources = { gpu = 1 } }'),
        UnknownName,
        "limits",
        "fleet[0].limits.resources.gpu",
        "unknown resource 'gpu'",
    ),
    "too many resources": (
        ("cpu = 8000", ", ".join(f"x{index} = 1" for index in range(7))),
        ModelError,
        "[[cell.machines]]",
        "cell.machines",
        "at most 8",
    ),
    "no replicas": (
        ('"patient"', '"patient"\nreplicas = 0'),
        ScenarioError,
        "replicas",
        "fleet[0].replicas",
        "1 or more",
    ),
    "a kind nobody takes": (
        ('"patient"', '"patient"\ntakes = { kinds = ["service"] }'),
        ScenarioError,
        "[[fleet]]",
        "fleet",
        "no scheduler takes jobs of kind 'batch', such as a",
    ),
    "a job without end or horizon": (
        ('duration = "10s"\n', ""),
        ScenarioError,
        None,
        None,
        "runs until stopped",
    ),
    "two ways to give jobs": (
        ("[[fleet]]", '[workload.trace]\npath = "x"\n[[fleet]]'),
        ScenarioError,
        "[[workload.jobs]]",
        "workload.jobs",
        "exactly one of",
    ),
    "a duration given twice": (
        ('duration = "10s"', 'duration = "10s"\ndurations = ["10s"]'),
        ArgosyError,
        "durations =",
        "workload.jobs[0].durations",
        "both duration and durations",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found_on_its_line(refused, mistake):
    change, kind, part, field, said = MISTAKES[mistake]
    base = SMALL.replace('horizon = "1h"\n', "") if "without end" in mistake else SMALL
    text = base.replace(*change)
    assert text != base
    error = refused(text, kind)
    assert error.line == (None if part is None else line(text, part))
    assert error.field == field
    assert said in str(error)


#: Text to add to the small scenario, whose last line holds the mistake.
ADDED = {
    "a machine twice": (
        '[[cell.machines]]\ncapacity = {}\nname = "m-2"',
        "cell.machines[1].name",
        "again",
    ),
    "a job twice": (
        '[[workload.jobs]]\nrequest = {}\nduration = "1s"\nid = "a"',
        "workload.jobs[1].id",
        "again",
    ),
    "a scheduler twice": ('[[fleet]]\nengine = "patient"\nname = "s"', "fleet[1].name", "again"),
    "a scheduler called like the cell": (
        '[[fleet]]\nengine = "patient"\nname = "cell"',
        "fleet[1].name",
        "taken",
    ),
    "a probability above one": ("[network]\nloss = 1.5", "network.loss", "from 0 to 1"),
    "a probability below zero": ("[network]\nloss = -0.1", "network.loss", "from 0 to 1"),
    "reordering by nothing": ("[network]\nreordering = 0.1", "network.reordering", "extra_delay"),
    "a latency that is upside down": (
        '[network]\nlatency = { model = "uniform", low = "2ms", high = "1ms" }',
        "network.latency",
        "from 2 ms to 1 ms; expected the smaller one first",
    ),
    "an unknown latency": (
        '[network]\nlatency = { model = "constnat" }',
        "network.latency.model",
        "did you mean 'constant'?",
    ),
    "a latency without a model": ("[network]\nlatency = {}", "network.latency", "model"),
    "a pair that is none": (
        '[network]\nlatency = { model = "per-pair", default = "1ms", delays = { s = "1ms" } }',
        "network.latency.delays.s",
        "is not a pair",
    ),
    "a pair of strangers": (
        '[network]\nlatency = { model = "per-pair", default = "1ms", delays = { "s>t" = "1ms" } }',
        "network.latency.delays.s>t",
        "unknown scheduler 't'",
    ),
    "a crash of an unknown machine": (
        '[[faults]]\nkind = "machine-crash"\nat = "1s"\nmachine = "m-4"',
        "faults[0].machine",
        "one of m-0",
    ),
    "a drain of an unknown machine": (
        '[[faults]]\nkind = "machine-drain"\nat = "1s"\nmachine = "m-4"',
        "faults[0].machine",
        "one of m-0",
    ),
    "a resize in a resource that nobody has": (
        '[[faults]]\nkind = "machine-resize"\nat = "1s"\nmachine = "m-0"\ncapacity = { gpus = 1 }',
        "faults[0].capacity.gpus",
        "unknown resource 'gpus'",
    ),
    "a misspelt amount": (
        '[[faults]]\nkind = "machine-resize"\nat = "1s"\nmachine = "m-0"\n'
        'capacity = { memroy = "1GiB" }',
        "faults[0].capacity.memroy",
        "did you mean 'memory'?",
    ),
    "a crowd of monoliths": (
        '[[fleet]]\nname = "t"\nengine = "monolithic"\nreplicas = 3',
        "fleet[1].replicas",
        "expected one",
    ),
    "a crash of an unknown scheduler": (
        '[[faults]]\nkind = "scheduler-crash"\nat = "1s"\nscheduler = "z"',
        "faults[0].scheduler",
        "one of s",
    ),
    "a partition of strangers": (
        '[[faults]]\nkind = "partition"\nat = "1s"\nlasts = "1s"\nisolated = ["s", "z"]',
        "faults[0].isolated[1]",
        "unknown scheduler 'z'",
    ),
    "a partition of nobody": (
        '[[faults]]\nkind = "partition"\nat = "1s"\nlasts = "1s"\nisolated = []',
        "faults[0].isolated",
        "nobody is isolated",
    ),
    "crashes without pause": (
        '[[faults]]\nkind = "random-crashes"\nwhat = "machines"\ndown = "1s"\nevery = "999us"',
        "faults[0].every",
        'at least "1ms"',
    ),
    "more schedulers in all than a fleet holds": (
        '[[fleet]]\nname = "t"\nengine = "patient"\nreplicas = 10000',
        "fleet[1].replicas",
        "10,001 schedulers in all",
    ),
    "an unknown fault": ('[[faults]]\nkind = "fire"', "faults[0].kind", "machine-crash"),
    "crashes all the time": (
        '[[faults]]\nkind = "random-crashes"\nwhat = "machines"\ndown = "1s"\nevery = "0s"',
        "faults[0].every",
        "a mean",
    ),
    "an unknown queue": ('[machines]\nqueue = "lifo"', "machines.queue", "fcfs"),
    "no table": ("[output]\nlog = {}", "output.log", "unknown value"),
}


@pytest.mark.parametrize("mistake", ADDED)
def test_a_mistake_added_at_the_end_is_found_there(refused, mistake):
    added, field, said = ADDED[mistake]
    text = f"{SMALL}\n{added}"
    error = refused(text, ArgosyError)
    assert error.line == len(text.splitlines())
    assert error.field == field
    assert said in str(error)


def test_a_crash_among_a_thousand_machines_does_not_list_them_all(refused):
    text = SMALL.replace("count = 4", "count = 1000")
    text += '[[faults]]\nkind = "machine-crash"\nat = "1s"\nmachine = "m-1000"\n'
    error = refused(text, UnknownName)
    assert len(str(error)) < 300
    assert error.hint.startswith("did you mean 'm-")


def fleet_of(*entries, **more):
    return Scenario(
        name="x",
        seed=1,
        cell=None,
        jobs=(),
        fleet=tuple(FleetEntry(name=n, engine=e, replicas=r) for n, e, r in entries),
        **more,
    )


def test_another_engine_takes_over_a_single_entry_in_place():
    entry = FleetEntry(name="s", engine="a", replicas=3, settings={"x": 1}, split="random")
    changed = with_engine(msgspec.structs.replace(fleet_of(("s", "a", 3)), fleet=(entry,)), "b")
    assert changed.fleet == (FleetEntry(name="s", engine="b", replicas=3, split="random"),)


def test_another_engine_gets_as_many_schedulers_as_there_were():
    scenario = fleet_of(
        ("one", "a", 1),
        ("two", "b", 2),
        faults=(
            SchedulerCrash(at=1, scheduler="two-0"),
            Partition(at=1, lasts=2, isolated=("one",)),
        ),
    )
    changed = with_engine(scenario, "c")
    assert changed.fleet == (FleetEntry(name="scheduler", engine="c", replicas=3),)
    assert changed.faults == (
        SchedulerCrash(at=1, scheduler="scheduler-1"),
        Partition(at=1, lasts=2, isolated=("scheduler-0",)),
    )


def test_the_same_engine_keeps_its_settings():
    entry = FleetEntry(name="s", engine="a", settings={"x": 1})
    scenario = msgspec.structs.replace(fleet_of(), fleet=(entry,))
    assert with_engine(scenario, "a") == scenario


def test_equal_scenarios_have_equal_digests_and_others_have_others(read):
    assert scenario_digest(read(SMALL)) == scenario_digest(read("# x\n" + SMALL))
    assert scenario_digest(read(SMALL)) != scenario_digest(read(SMALL, seed=2))


def test_a_scenario_survives_json(read):
    scenario = read(SMALL.replace('id = "a"', 'id = "a"\nconstraints = ["a -> {a, 0, 0} in rack"]'))
    assert msgspec.json.decode(msgspec.json.encode(scenario), type=Scenario) == scenario


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_scenario_that_comes_along_loads_under_every_engine(path):
    scenario = load(path)
    assert scenario.name == path.stem
    assert len(with_engine(scenario, "murmuration").fleet) == 1


def test_an_engine_that_means_to_be_alone_gets_one_scheduler():
    scenario = load(SCENARIOS / "faults.toml")
    alone = with_engine(scenario, "monolithic")
    assert alone.fleet[0].scheduler_names() == ("scheduler",)
    crashed = [fault.scheduler for fault in alone.faults if isinstance(fault, SchedulerCrash)]
    assert crashed == ["scheduler"]


def test_the_demo_is_of_the_size_it_promises():
    scenario = load(SCENARIOS / "demo.toml")
    assert len(scenario.cell.machines) == 1000
    assert 10_000 <= len(scenario.jobs) <= 15_000
    assert 100_000 <= sum(job.tasks for job in scenario.jobs) <= 200_000


def test_the_scenario_of_the_documentation_loads(tmp_path):
    page = (SCENARIOS.parent / "docs" / "scenarios.md").read_text()
    blocks = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "tour.toml").write_text("\n".join(blocks))
    assert load(tmp_path / "tour.toml").fleet[0].settings["t_job"] == 100_000


@pytest.mark.parametrize("block", [0, 1])
def test_the_jobs_of_the_documentation_load(read, block):
    page = (SCENARIOS.parent / "docs" / "scenarios.md").read_text()
    blocks = re.findall(r"```text\n(\[\[workload.*?)```", page, re.DOTALL)
    assert len(read(SMALL + blocks[block]).jobs) == 2


PLACES = '''\
# [not.a.table]
a = 1 # b = 2
"quoted.key" = 'x'
[cell] # comment with "quote
x.y.z = """
[fake]
k = 1 \\""" still"""""
[[cell.m]]
name = "a#]\\""
cap = { cpu = 1, b.c = [1, { d = 2 }] }
[[cell.m]]
list = [
  "x", # , ]
  [1,
   2],
  { k = 1979-05-27T07:32:00Z },
]
[cell.m.sub]
v = true
[ q . 'r s' ]
w = \'\'\'
[[z]]
\'\'\'
t = 1.5e3
'''


def walk(value, path=()):
    if path:
        yield path
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from walk(inside, (*path, key))
    if isinstance(value, list):
        for index, inside in enumerate(value):
            yield from walk(inside, (*path, index))


def test_every_path_of_a_toml_file_has_its_line():
    places = find_places(PLACES)
    assert set(places) == set(walk(tomllib.loads(PLACES)))
    assert places["quoted.key",] == 3
    assert places["cell", "x", "y", "z"] == 5
    assert places["cell", "m", 0, "cap", "b", "c", 1, "d"] == 10
    assert places["cell", "m", 1] == 11
    assert places["cell", "m", 1, "list", 1, 1] == 15
    assert places["cell", "m", 1, "list", 2, "k"] == 16
    assert places["cell", "m", 1, "sub", "v"] == 19
    assert places["q", "r s", "t"] == 24


def test_what_is_missing_is_placed_at_the_table_around_it():
    places = find_places(PLACES)
    assert line_of(places, ("cell", "m", 1, "name")) == 11
    assert line_of(places, ("nowhere",)) is None


keys = st.sampled_from(["a", "b-c", '"d.e"', "'f g'", "1"])
scalars = st.sampled_from(["1", "true", '"x # ]"', "'}'", '"""\n"q" \\" \n"""', "1.5", "[]", "{}"])
values = st.recursive(
    scalars,
    lambda inside: st.lists(inside, max_size=3).map(
        lambda items: "[ # [\n" + ",\n".join(items) + "\n]"
    ),
    max_leaves=5,
)


@given(st.lists(st.tuples(keys, st.lists(st.tuples(keys, values), max_size=3)), max_size=5))
@settings(derandomize=True, deadline=None)
def test_a_key_is_found_on_the_line_that_begins_with_it(tables):
    lines = []
    for header, pairs in tables:
        lines.append(f"[[{header}]]")
        lines += [f"{key} = {value}" for key, value in dict(pairs).items()]
    text = "\n".join(lines)
    document = tomllib.loads(text)
    places = find_places(text)
    content = text.splitlines()
    for header, elements in document.items():
        for index, element in enumerate(elements):
            assert content[places[header, index] - 1].startswith("[[")
            for key in element:
                found = content[places[header, index, key] - 1]
                assert tomllib.loads(found.split(" = ")[0] + " = 1") == {key: 1}
