"""Conditions of the trace of 2011 on machines."""

import pytest
from test_google import (
    SUBMIT,
    constraint,
    simple_jobs,
    simple_tasks,
    task_event,
    trace_2011,
    write,
)

from argosy.engines.api import supports_constraint
from argosy.engines.registry import ENGINES
from argosy.workloads import google2011


@pytest.mark.parametrize(
    ("attributes", "satisfied"),
    [
        ({"rack": "r1", "clock": "2"}, {"disk=", "clock<3", "clock>1"}),
        ({"disk": "ssd", "clock": "3"}, {"rack!=r1", "clock>1"}),
        # What a machine does not have is the empty text, and zero.
        ({}, {"disk=", "rack!=r1", "clock<3"}),
    ],
)
def test_machines_of_2011_have_an_attribute_for_each_condition_they_satisfy(
    tmp_path, attributes, satisfied
):
    constraints = [
        constraint(700, 1, 0, 0, "arch", "x"),
        constraint(700, 1, 0, 0, "disk", ""),
        constraint(700, 1, 0, 1, "rack", "r1"),
        constraint(700, 1, 0, 2, "clock", "3"),
        constraint(700, 1, 0, 3, "clock", "1"),
    ]
    trace_2011(tmp_path, simple_jobs(1), simple_tasks(1), constraints)
    write(tmp_path / "machine_events" / "part-00000-of-00001.csv", ["0,5,0,,0.5,0.25"])
    lines = [f"0,5,{name},{value},0" for name, value in attributes.items()]
    if lines:
        write(tmp_path / "machine_attributes" / "part-00000-of-00001.csv", lines)
    (machine,) = google2011.machines(tmp_path)
    assert {name for name, value in machine.attributes.items() if value == "yes"} == satisfied
    assert set(attributes) <= set(machine.attributes)


@pytest.mark.parametrize("engine", ["omega", "medea", "kube"])
def test_engines_follow_the_restriction_to_different_machines(tmp_path, engine):
    tasks = simple_tasks(1)
    tasks[0] = task_event(700, 1, 0, SUBMIT, apart="1")
    trace_2011(tmp_path, simple_jobs(1), tasks)
    [read] = google2011.jobs(tmp_path)
    [apart] = read.job.constraints
    # A node group that every cell has.
    assert apart.rule.group == "machine"
    assert supports_constraint(ENGINES[engine], apart) == (engine != "kube")
