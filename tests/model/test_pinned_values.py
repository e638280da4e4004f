"""Amounts and their notations, resources, jobs and running times, explanations and their sentences, what
can never be met, random numbers, and everything that is written on wires."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pytest
from drawn_clusters import dice_of, draw_cell, draw_job
from pinned_digests import require_digests
from told_values import outcome, told

from argosy._core import Random, exact_exp, exact_log, philox_block
from argosy.campaign.dice import Dice
from argosy.model import effects, events, messages, units, wire, wording
from argosy.model.constraints import Constraint
from argosy.model.constraints.text import parse_constraint
from argosy.model.devices import MachineDevices, empty_slots, not_devices, place_of
from argosy.model.errors import did_you_mean, excerpt
from argosy.model.explanations import Refusal, Why
from argosy.model.feasibility import Feasibility
from argosy.model.job_census import JobCensus
from argosy.model.jobs import Execution, Job, TaskGroup, index_of, job_of, task_name
from argosy.model.packed_jobs import census_of, packed
from argosy.model.resources import Resources, dimensions_of
from argosy.model.truth import (
    GroupTruth,
    SimulatedJob,
    check_phase,
    group_with_truth,
    plain_job_maker,
    running_time,
    simulated_job,
    told_by_default,
    untimed,
    workers_with_truth,
)

PINNED: Final = Path(__file__).parent / "pinned"
NUMBERS: Final = (
    "0", "1", "5", "999", "1000", "1024", "0.5", "1.25", "0.0005", "-1", "-0.5", "9007199254740992",
    "9007199254740993", "99999999999999999999", "1e3", "", "x", "1 2", " 3 ", "+4", "1.", ".5", "007",
)  # fmt: skip
UNITS: Final = (
    "", "us", "ms", "s", "min", "h", "d", "m", "S", "sec", "hours", "µs", "B", "KB", "MB", "GB", "TB",
    "KiB", "MiB", "GiB", "TiB", "Gi", "gb", "G", "k", "cores", "core", "millicores", "%",
)  # fmt: skip
OTHERS: Final = (
    None,
    True,
    0,
    1,
    -1,
    5,
    1.5,
    2.0,
    float("nan"),
    1e30,
    2**53,
    2**53 + 1,
    [],
    {},
    b"1s",
)


def test_notations_of_amounts_are_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {}
    for parse in (units.parse_duration, units.parse_cpu, units.parse_bytes, units.parse_count):
        for unit in UNITS:
            texts = [f"{number}{space}{unit}" for number in NUMBERS for space in ("", " ")]
            outcomes[f"{parse.__name__} {unit}"] = "\n".join(outcome(parse, t) for t in texts)
        outcomes[parse.__name__] = "\n".join(outcome(parse, other) for other in OTHERS)
    amounts = [0, 1, 9, 10, 99, 100, 999, 1_000, 1_001, 1_500, 59_999, 60_000, 10**6, 1_234_567]
    amounts += [59_999_999, 60 * 10**6, 3_599 * 10**6, 3_600 * 10**6, 86_400 * 10**6, 10**13]
    amounts += [2**k + d for k in (10, 20, 30, 40, 50) for d in (-1, 0, 1)]
    both = [*amounts, *(-amount for amount in amounts), *(amount / 7 for amount in amounts)]
    outcomes["durations"] = "\n".join(outcome(units.format_duration, each) for each in both)
    outcomes["bytes"] = "\n".join(outcome(units.format_bytes, each) for each in both)
    for dimension in ("cpu", "memory", "gpu", "bandwidth"):
        lines = [outcome(units.format_amount, dimension, each) for each in amounts]
        outcomes[dimension] = "\n".join(lines)
    nouns = [outcome(units.format_count, n, noun) for n in amounts for noun in ("task", "machine")]
    outcomes["counts"] = "\n".join(nouns)
    outcomes["shown"] = told([units.shown(each) for each in (*OTHERS, "text" * 40, "a\nb")])
    require_digests(PINNED / "amounts.txt", outcomes, request.config)


def test_resources_and_words_are_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {}
    dimensions = (("cpu", "memory"), ("cpu", "memory", "gpu"), ("gpu", "cpu"), ("memory",), ())
    vectors: list[Resources] = []
    for number in range(60):
        dice = dice_of("resources", number)
        table: dict[str, Any] = {}
        for name in dice.some_of(("cpu", "memory", "gpu", "bandwidth", "cpus", "mem"), 0):
            table[name] = dice.one_of((0, 1, "2", "4GiB", "500m", -1, 1.5, None, "x", 2**60, True))
        lines = [outcome(Resources.parse, table)]
        amounts = {name: dice.one_of((0, 1, 300, -1, 2**53, 2**54)) for name in table}
        lines.append(outcome(Resources.of, amounts))
        made = Resources.of({name: abs(amount) % 2**50 for name, amount in amounts.items()})
        vectors.append(made)
        for each in dimensions:
            lines += [outcome(made.vector, each), outcome(made.within, each)]
        lines += [told(made.items()), wording.format_request(made)]
        lines.append(told(dimensions_of(vectors[-3:])))
        names = [f"{dice.one_of(('m', 'gpu-', ''))}{dice.among(0, 12)}" for _ in range(number % 9)]
        lines.append(wording.listed_names(sorted(names) if number % 2 else names))
        lines.append(wording.listed(names, number % 5 + 1))
        lines.append(wording.format_requires(dict.fromkeys(names, "x")))
        text = "".join(dice.one_of(("a", "é", "\n", "'", " ")) for _ in range(number * 4))
        lines += [excerpt(text), excerpt(text, number), told(did_you_mean(text[:4], ["aa", "ba"]))]
        lines += [told(did_you_mean(name, ["cpu", "memory", "gpu", "bandwidth"])) for name in table]
        resized = Resources.of({"gpu": number * 250})
        lines += [told(not_devices(resized, "gpu")), place_of(number * 100)]
        if number:
            lines.append(outcome(empty_slots, 4_000, number * 100))
        outcomes[f"{number}"] = "\n".join(lines)
    require_digests(PINNED / "resources.txt", outcomes, request.config)


def test_devices_of_a_machine_are_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {}
    for number in range(40):
        dice = dice_of("devices", number)
        devices = MachineDevices(1_000 * dice.among(0, 4))
        lines = []
        for step in range(14):
            if dice.chance(0.6):
                devices.hold(step, dice.one_of((0, 200, 500, 999, 1_000, 1_500, 3_000)))
            else:
                devices.release(dice.among(0, step))
            lines.append(told([devices.free, devices.usable()]))
            lines.append(told([devices.slots(amount) for amount in (300, 500, 1_000, 2_000)]))
        outcomes[f"{number}"] = "\n".join(lines)
    require_digests(PINNED / "devices.txt", outcomes, request.config)


def test_sentences_about_refusals_are_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {}
    for why in Why:
        lines = []
        for machine in (-1, 3):
            for dimension, lacking in (("cpu", 1), ("memory", 2**30), ("gpu", 2), ("", 0)):
                refusal = Refusal(why, 5, machine, dimension, lacking)
                lines += [refusal.sentence(), refusal.sentence("m9"), refusal.remedy()]
        outcomes[why.name] = "\n".join(lines)
    require_digests(PINNED / "sentences.txt", outcomes, request.config)


def test_demands_that_can_never_be_met_are_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {}
    every: list[SimulatedJob] = []
    for number in range(120):
        dice = dice_of("feasible", number)
        cell, _ = draw_cell(dice.part("cell"))
        groups = ["machine", *(group.name for group in cell.groups)]
        feasibility = Feasibility(cell.machines, cell.constraints, cell.device_resource)
        lines = []
        for at in range(5):
            job = draw_job(dice.part(f"job {at}"), f"j{at}", groups, cell)
            every.append(job)
            made = job.job
            if dice.chance(0.3):
                group = dice.one_of(groups)
                apart = parse_constraint(f"appID:self -> {{appID:self, 0, 0}} in {group} hard")
                made = msgspec.structs.replace(made, constraints=(apart,))
            found = feasibility.of(made)
            lines += [told(found), *map(str, found), told(feasibility.having({"arch": "x86"}))]
            lines += [told(feasibility.slots(group)) for group in made.groups]
            lines += [told([job.id, job.kind, job.tasks, job.is_endless]), told(made)]
            lines.append(told([made.tasks, made.activities, made.group_starts()]))
            tasks = np.arange(4, dtype=np.int64)
            lines.append(told([made.is_own(tasks), list(made.tasks_by_group(tasks))]))
            lines += [
                told([truth.mean(), truth.duration(0), told_by_default(group, truth)])
                for group, truth in zip(made.groups, job.truth, strict=True)
            ]
            lines.append(outcome(untimed, made))
        outcomes[f"{number}"] = "\n".join(lines)
    census = JobCensus(every)
    outcomes["census"] = told([census.counts, census.first_of_kind, census.first_endless])
    for most in (1, 100, 10**9):
        kept = packed(list(every), most)
        outcomes[f"packed {most}"] = told([type(kept).__name__, len(kept), list(kept)[::50]])
        outcomes[f"sliced {most}"] = told([kept[3], kept[-1], kept[2:9:3], census_of(kept).counts])
    require_digests(PINNED / "demands.txt", outcomes, request.config)


def test_what_jobs_may_not_be_is_pinned(request: pytest.FixtureRequest) -> None:
    one = Resources(1, 1)
    group, truth = group_with_truth(2, one, (5,))
    worker, work = workers_with_truth(2, one, (3, 4), (10, 20))
    calls: dict[str, tuple[Any, ...]] = {}
    for name in ("", "a b", "a/b", "a\n", "ok", "é", "a\u200b"):
        calls[f"id {name!r}"] = (Job, name, (group,))
        calls[f"owner {name!r}"] = (lambda n=name: Job("j", (group,), owner=n),)
        calls[f"kind {name!r}"] = (lambda n=name: Job("j", (group,), kind=n),)
        calls[f"program {name!r}"] = (lambda n=name: Job("j", (group,), program=n, name=n),)
    for value in (-40_000, -32_768, 32_767, 32_768):
        calls[f"precedence {value}"] = (lambda v=value: Job("j", (group,), precedence=v),)
    for value in (-1, 0, 1, 2**24, 2**24 + 1, 2**53, 2**53 + 1, 1_000_001):
        calls[f"count {value}"] = (TaskGroup, value, one)
        calls[f"estimate {value}"] = (TaskGroup, 1, one, value)
        calls[f"retries {value}"] = (lambda v=value: TaskGroup(1, one, retries=v),)
        calls[f"activities {value}"] = (lambda v=value: TaskGroup(1, one, activities=(v,)),)
        calls[f"duration {value}"] = (GroupTruth, (value,))
        calls[f"submit {value}"] = (SimulatedJob, Job("j", (group,)), value, (truth,))
        calls[f"phase {value}"] = (check_phase, value, 2**53)
        calls[f"phase of {value}"] = (check_phase, 3, value)
        limit = (lambda v=value: Execution(("x",), output_limit=v),)
        calls[f"output {value}"] = limit
    calls |= {
        "no groups": (Job, "j", ()),
        "two of workers": (Job, "j", (worker, group)),
        "endless with estimate": (lambda: TaskGroup(1, one, 5, endless=True),),
        "endless with work": (lambda: TaskGroup(1, one, activities=(1,), endless=True),),
        "both truths": (GroupTruth, (1,), (1,)),
        "no truth": (SimulatedJob, Job("j", (group,)), 0, ()),
        "wrong count": (SimulatedJob, Job("j", (group,)), 0, (GroupTruth((1, 2, 3)),)),
        "endless truth": (
            SimulatedJob, Job("j", (TaskGroup(1, one, endless=True),)), 0, (GroupTruth((1,)),)
        ),
        "phases": (SimulatedJob, Job("j", (worker,)), 0, (GroupTruth((), (1,)),)),
        "workers": (simulated_job, "j", (worker, work)),
        "nothing": (simulated_job, "j"),
        "maker": (plain_job_maker("batch", 3), "p", 5, 2, one, 9),
        "run": (Execution,),
        "nameless": (Execution, ("",)),
        "image": (lambda: Execution(image="x", environment={"A=": "1"}),),
        "variable": (lambda: Execution(("x",), {"": "1"}),),
        "null": (lambda: Execution(("x",), {"A": "\0"}),),
        "null command": (Execution, ("x\0",)),
        "null directory": (lambda: Execution(("x",), working_directory="\0"),),
    }  # fmt: skip
    outcomes = {name: outcome(call, *args) for name, (call, *args) in calls.items()}
    times = [
        running_time(counts, durations, workers)
        for workers in (1, 2, 3, 7)
        for counts, durations in (((1,), (0,)), ((5, 2), (3, 7)), ((9, 9, 1), (2, 1, 2**52)))
    ]
    outcomes["times"] = told(times)
    outcomes["tasks"] = told(
        [(job_of(t), index_of(t), task_name("j", index_of(t))) for t in (0, 2**32 + 7)]
    )
    require_digests(PINNED / "jobs.txt", outcomes, request.config)


def test_random_numbers_are_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {}
    for seed in (0, 1, 2**40, 2**63 - 1):
        random = Random(seed)
        lines = []
        for name in ("", "a", "a b"):
            child = random.child(name)
            lines.append(told([child.bits(), child.uniform(), child.exponential(), child.normal()]))
            lines.append(told([child.below(n) for n in (1, 2, 3, 10, 2**31, 2**40, 2**62)]))
            lines.append(told([child.integers(7, 5), child.integers(0, 5), child.exponentials(5)]))
            lines.append(told([child.bounded_pareto(1.0, 100.0, a) for a in (0.5, 1.0, 2.5)]))
            lines.append(told([child.normal() for _ in range(5)]))
        outcomes[f"{seed}"] = "\n".join(lines)
        outcomes[f"block {seed}"] = told([philox_block(c, seed) for c in (0, 1, 2**63)])
    points = [0.0, 1e-9, 0.1, 0.5, 1.0, 2.0, 10.0, 700.0, -1.0, -700.0]
    outcomes["exp"] = told([exact_exp(x).hex() for x in points])
    outcomes["log"] = told([exact_log(x).hex() for x in points if x > 0])
    for n in (0, -1):
        outcomes[f"below {n}"] = outcome(Random(1).below, n)
    require_digests(PINNED / "random.txt", outcomes, request.config)


def drawn_value(kind: Any, dice: Dice, depth: int = 0) -> Any:
    """Any value of an annotated type of what is sent."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is np.ndarray:
        element = np.dtype(get_args(arguments[1])[0])
        count = dice.one_of((0, 1, 3))
        values = [dice.among(0, 1 if element.kind == "b" else 100) for _ in range(count)]
        return np.array(values, element)
    if origin in (Union, types.UnionType):
        options = [each for each in arguments if depth < 3 or each is type(None)]
        return drawn_value(dice.one_of(options or arguments), dice, depth + 1)
    if origin is Literal:
        return dice.one_of(arguments)
    if origin is tuple:
        if arguments and arguments[-1] is not Ellipsis:
            return tuple(drawn_value(each, dice, depth + 1) for each in arguments)
        return tuple(drawn_value(arguments[0], dice, depth + 1) for _ in range(dice.among(0, 2)))
    if origin is dict:
        return {
            f"k{n}": drawn_value(arguments[1], dice, depth + 1) for n in range(dice.among(0, 2))
        }
    if origin is not None and arguments:
        return drawn_value(arguments[0], dice, depth)
    if kind is Constraint:
        return parse_constraint("web -> {db, 0, 1} in rack")
    if kind is Job or kind is TaskGroup:
        group = TaskGroup(dice.among(1, 3), Resources(dice.among(0, 9), 1), tags=("a",))
        return group if kind is TaskGroup else Job(f"j{dice.among(0, 9)}", (group,))
    if kind is Resources:
        return Resources(dice.among(0, 9), dice.among(0, 9), {"gpu": 1} if dice.chance(0.5) else {})
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind)
        return kind(**{n: drawn_value(hints[n], dice, depth + 1) for n in kind.__struct_fields__})
    if kind is Why or (isinstance(kind, type) and issubclass(kind, Why)):
        return dice.one_of(list(Why))
    plain = {int: dice.among(-1, 2**40), float: dice.among(0, 9) / 4, bool: dice.chance(0.5)}
    return plain.get(kind, None if kind in (type(None), Any) else dice.one_of(("", "é", "web")))


def told_wire(value: Any, decode: Any) -> str:
    lines = [told(value), told(wire.to_plain(value))]
    again = wire.from_plain(wire.to_plain(value), type(value))
    lines.append(told([wire.same(again, value), wire.same(value, None)]))
    for form in ("json", "msgpack"):
        data = wire.encode(value, form)
        found = decode(data, form)
        lines.append(told([data, wire.same(found, value), found]))
        wrong = (data[:-1], b"", b"{}", data.replace(b'"', b"'"))
        lines += [outcome(decode, each, form).partition(" expected")[0] for each in wrong]
    return "\n".join(lines)


@pytest.mark.parametrize("name", ["events", "effects", "messages"])
def test_what_is_sent_is_pinned(name: str, request: pytest.FixtureRequest) -> None:
    module, union, decode = {
        "events": (events, events.Event, wire.decode_event),
        "effects": (effects, effects.Effect, wire.decode_effect),
        "messages": (messages, messages.WaitReport, wire.decode_wait_report),
    }[name]
    del module
    outcomes = {}
    for kind in get_args(union):
        for number in range(6):
            dice = dice_of("wire", kind.__name__, number)
            found = outcome(lambda k=kind, d=dice: told_wire(drawn_value(k, d), decode))
            outcomes[f"{kind.__name__} {number}"] = found
    require_digests(PINNED / f"sent_{name}.txt", outcomes, request.config)
