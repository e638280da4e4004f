"""Mistakes in what is added to a sound scenario, and what is no mistake yet."""

from pathlib import Path

import pytest
from golden_log import require_golden
from small_scenario import SMALL, in_full

from argosy.model.errors import ArgosyError, UnknownName

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
        "reserved",
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
    "the use of a resource that nobody has": (
        '[[faults]]\nkind = "machine-use"\nat = "1s"\nmachine = "m-0"\nused = { gpus = 1 }',
        "faults[0].used.gpus",
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
        "no scheduler is isolated",
    ),
    "crashes without pause": (
        '[[faults]]\nkind = "random-crashes"\nwhat = "machines"\ndown = "1s"\nevery = "999us"',
        "faults[0].every",
        'at least "1ms"',
    ),
    "more schedulers in all than a fleet holds": (
        '[[fleet]]\nname = "t"\nengine = "patient"\nreplicas = 10000',
        "fleet[1].replicas",
        "10,001 schedulers in total",
    ),
    "a range of crashes that ends before it starts": (
        '[[faults]]\nkind = "random-crashes"\nwhat = "machines"\ndown = "1s"\nevery = "1s"\n'
        'start = "3s"\nend = "2s"',
        "faults[0].end",
        "from 3 s to 2 s",
    ),
    "a scheduler's name with an arrow": (
        '[[fleet]]\nengine = "patient"\nname = "a>b"',
        "fleet[1].name",
        "without spaces, '>' and '/'",
    ),
    "a scheduler's name with a slash": (
        '[[fleet]]\nengine = "patient"\nname = "a/b"',
        "fleet[1].name",
        "without spaces, '>' and '/'",
    ),
    "a scheduler's name with a space": (
        '[[fleet]]\nengine = "patient"\nname = "a b"',
        "fleet[1].name",
        "without spaces, '>' and '/'",
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


def test_every_added_mistake_is_told_in_full(refused, request):
    texts = {mistake: f"{SMALL}\n{added}" for mistake, (added, _, _) in ADDED.items()}
    update = request.config.getoption("--update-golden")
    folder = Path(__file__).parent
    require_golden("added_mistakes", in_full(texts, refused), update=update, folder=folder)


def test_as_many_schedulers_as_a_fleet_may_hold_are_allowed(read):
    read(f'{SMALL}\n[[fleet]]\nname = "t"\nengine = "patient"\nreplicas = 9999\n')


def test_without_a_horizon_crashes_with_an_end_and_those_of_one_machine_are_allowed(read):
    faults = """
[[faults]]
kind = "random-crashes"
what = "machines"
down = "1s"
every = "1ms"
start = "2s"
end = "2s"
[[faults]]
kind = "machine-crash"
at = "1s"
machine = "m-0"
"""
    assert len(read(SMALL.replace('horizon = "1h"\n', "") + faults).faults) == 2
