"""Mistakes in a scenario: each is one error with its file, line, field and remedy."""

from pathlib import Path

import pytest
from golden_log import require_golden
from small_scenario import SMALL, in_full, line

from argosy.model.errors import (
    ArgosyError,
    ConstraintSyntaxError,
    ModelError,
    ScenarioError,
    SettingError,
    UnitError,
    UnknownEngine,
    UnknownName,
)

MISTAKES = {
    "two sorts of jobs": (
        ("[[workload.jobs]]", '[workload.trace]\npath = "x"\n[[workload.jobs]]'),
        ScenarioError,
        "[[workload.jobs]]",
        "workload.jobs",
        "both trace and jobs",
    ),
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
        "assigns machines by size",
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
        "already exists",
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
        "is not valid in constraints",
    ),
    "a group that constraints cannot name": (
        ("rack =", '"the rack" ='),
        ScenarioError,
        "the rack",
        "cell.groups.the rack",
        "is not valid in constraints",
    ),
    "a tag that is a keyword of constraints": (
        ('id = "a"', 'id = "a"\ntags = ["spread"]'),
        ModelError,
        "spread",
        "workload.jobs[0].tags",
        "is not valid in constraints",
    ),
    "a group that is a keyword of constraints": (
        ("rack =", "hard ="),
        ScenarioError,
        "hard",
        "cell.groups.hard",
        "is not valid in constraints",
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
    "a factor that is not a number": (
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
    "a number too long to be read": (
        ("count = 4", f"count = 1{'0' * 5000}"),
        ScenarioError,
        None,
        None,
        "a number has too many digits",
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
    "a setting that names no node group of the cell": (
        ('engine = "patient"', 'engine = "omega"\nsettings = { spread = "racks" }'),
        UnknownName,
        "settings",
        "fleet[0].settings.spread",
        "did you mean 'rack'?",
    ),
    "a limit of precedence beyond what there is": (
        ('"patient"', '"patient"\nlimits = { precedence = 40000 }'),
        ScenarioError,
        "limits",
        "fleet[0].limits.precedence",
        "expected a whole number from -32768 to 32767",
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


def changed(mistake):
    change, *_ = MISTAKES[mistake]
    base = SMALL.replace('horizon = "1h"\n', "") if "without end" in mistake else SMALL
    text = base.replace(*change)
    assert text != base
    return text


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found_on_its_line(refused, mistake):
    _, kind, part, field, said = MISTAKES[mistake]
    text = changed(mistake)
    error = refused(text, kind)
    assert error.line == (None if part is None else line(text, part))
    assert error.field == field
    assert said in str(error)


def test_every_mistake_is_told_in_full(refused, request):
    texts = {mistake: changed(mistake) for mistake in MISTAKES}
    update = request.config.getoption("--update-golden")
    require_golden("mistakes", in_full(texts, refused), update=update, folder=Path(__file__).parent)
