"""What holds where nothing is said: the defaults of effects, events and scenarios."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from argosy.model import scenario as scenarios
from argosy.model.answers import WhyAnswer
from argosy.model.effects import (
    AnswerProbe,
    AskQueues,
    Commit,
    CommitPipeline,
    Deliberate,
    EarlierTime,
    Enqueue,
    Pace,
    Probe,
    Question,
    Sample,
    SamplingPipeline,
    Think,
)
from argosy.model.errors import ScenarioError
from argosy.model.events import Committed, SampleReturned, Started
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import Execution, Job, TaskGroup, is_name
from argosy.model.machine_model import MachineModel, Steal
from argosy.model.machines import Machine
from argosy.model.prices import Price
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, Transaction
from argosy.model.truth import (
    SimulatedJob,
    group_with_truth,
    plain_job_maker,
    simulated_job,
    untimed,
)
from argosy.model.wire import to_plain
from argosy.testing.builders import job
from argosy.workloads.tables import Converter, Misfit

PLACES = np.array([3], np.int32)
TASKS = np.array([4], np.int64)
ROOM = Resources(1, 2)


@pytest.mark.parametrize(
    ("value", "usual"),
    [
        (EarlierTime(5), {"on_job": 0}),
        (Think(5, 6), {"job": -1, "lane": "", "earlier": None}),
        (
            Commit(5, Transaction("s")),
            {"explanation": None, "cluster": "", "pipeline": None},
        ),
        (
            Transaction("s"),
            {
                "claims": None,
                "releases": None,
                "machines": [],
                "atomic": False,
                "coarse": False,
                "preempt": False,
                "move": False,
                "wants": None,
                "assume": False,
                "by_claims": False,
                "confirms": None,
                "forgets": None,
            },
        ),
        (
            CommitPipeline(),
            {"checks": ["ResourcesFit"], "commit": "Bind", "reservations": "earlier"},
        ),
        (Pace(), {"first": 0, "every": 0}),
        (Enqueue(TASKS, PLACES), {"explanation": None, "pace": None, "estimate": None}),
        (
            Probe(1, PLACES, ROOM),
            {"estimate": 0, "tasks": None, "sticky": False, "cancel": False},
        ),
        (AnswerProbe(1), {"task": None}),
        (AskQueues(1), {"latest": False, "which": "all", "until_room": None}),
        (
            SamplingPipeline(),
            {
                "strategy": "Random",
                "filters": ["ResourcesFit"],
                "scores": ["ResourcesFit"],
                "share": 0.0,
                "rounds": 0,
                "limit": 0,
                "free": False,
                "overshoot": "keep",
                "repeats": "drop",
            },
        ),
        (
            Sample(ROOM, 2, 3),
            {"requires": {}, "cluster": "", "demands": {}, "pipeline": None},
        ),
        (Deliberate(1, Question()), {"job": -1, "lane": "", "duration": 0, "limit": 0}),
        (Started(), {"again": False}),
        (
            SampleReturned(1, PLACES, np.zeros((1, 2), np.int64), np.zeros(1, np.uint32)),
            {
                "cluster": "",
                "scores": {"shape": [0, 0], "values": []},
                "drawn": 0,
                "ruled_out": {},
                "reached": True,
            },
        ),
        (
            MachineModel(),
            {
                "queue": "fcfs",
                "slack": 0,
                "limit": 0,
                "start_delay": 0,
                "long_above": 0,
                "heartbeat": 8_000_000,
                "heartbeat_counts_sent": False,
                "steal": None,
            },
        ),
        (Steal(), {"attempts": 10, "most": 1, "after": 0.0}),
        (
            scenarios.FleetEntry(name="a", engine="omega"),
            {
                "settings": {},
                "replicas": 1,
                "takes": {"kinds": []},
                "split": "hash",
                "limits": {"resources": None, "jobs": None, "precedence": None},
                "decision_time": {"model": "as-told"},
            },
        ),
        (scenarios.ConstantLatency(), {"delay": 500}),
        (scenarios.PairLatency(default=7), {"delays": {}}),
        (
            scenarios.Network(),
            {
                "latency": {"model": "constant", "delay": 500},
                "loss": 0.0,
                "duplication": 0.0,
                "reordering": 0.0,
                "extra_delay": 0,
            },
        ),
        (scenarios.Places(default=7), {"within": 500, "delays": {}}),
        (scenarios.Federation(clusters=()), {"places": None, "schedulers": {}}),
        (
            scenarios.AgentModel(),
            {
                "samplers": 0,
                "committers": 0,
                "t_sample": 0,
                "t_machine": 0,
                "t_fetch": 0,
                "t_bind": 0,
                "refresh": 0,
                "shards": 1,
            },
        ),
        (scenarios.AgentDown(at=1), {"kind": "agent-down", "cluster": "", "lasts": None}),
        (scenarios.AgentSlow(at=1, extra=2), {"cluster": "", "lasts": None}),
        (scenarios.AgentStale(at=1), {"cluster": "", "lasts": None}),
        (scenarios.MachineCrash(at=1, machine="m"), {"down": None}),
        (scenarios.MachineDrain(at=1, machine="m"), {"lasts": None}),
        (scenarios.MachineRelabel(at=1, machine="m"), {"attributes": {}, "joins": {}}),
        (scenarios.SchedulerCrash(at=1, scheduler="s"), {"down": None}),
        (
            scenarios.RandomCrashes(what="machines", every=1, down=2),
            {"start": 0, "end": None},
        ),
        (scenarios.Output(), {"log": "replayable", "tasks": True}),
        (
            scenarios.Scenario(
                name="x",
                seed=1,
                cell=scenarios.CellSpec(machines=()),
                jobs=(),
                fleet=(),
            ),
            {
                "faults": [],
                "horizon": None,
                "failover": 1_000_000,
                "audit": False,
                "as_published": False,
                "left_out": [],
                "federation": None,
                "agents": None,
            },
        ),
        (scenarios.Measured(), {"model": "measured", "factor": 1.0}),
        (
            WhyAnswer(task="a/0", state="pending", sentence="so"),
            {
                "details": [],
                "looked_at": 0,
                "feasible": 0,
                "ruled_out": {},
                "nearest_miss": "",
                "remedy": "",
                "violated": [],
                "placed_on": "",
                "rule": "",
                "score": None,
                "second": "",
                "second_score": None,
                "measure": "",
                "price": None,
            },
        ),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_is_left_out_has_its_usual_value(value: Any, usual: dict[str, Any]) -> None:
    plain = msgspec.json.decode(msgspec.json.encode(to_plain(value)))
    assert {name: plain[name] for name in usual} == usual


def test_values_that_leave_out_their_defaults_have_these() -> None:
    assert Refusal(Why.STALE) == Refusal(Why.STALE, -1, -1, "", 0)
    assert Price(1, 2, 3) == Price(1, 2, 3, -1, -1, 0, None)
    assert Explanation() == Explanation(
        looked_at=0, feasible=0, ruled_out={}, nearest_miss=None, refused=None, rule="", score=None,
        second=None, second_score=None, violated=(), remedy="", price=None, measure="", points={},
        second_points={}, gang_room=None, forbidden=(),
    )  # fmt: skip
    assert TaskGroup(1, ROOM) == TaskGroup(
        count=1, request=ROOM, estimate=None, tags=(), requires={}, prefers={}, wishes={},
        demands={}, activities=(), endless=False, retries=0, backoff=0, execution=None,
    )  # fmt: skip
    group = TaskGroup(1, ROOM)
    assert Job("a", (group,)) == Job(
        id="a", groups=(group,), kind="batch", precedence=0, gang=False, owner="", constraints=(),
        program="", name="", preempts=True,
    )  # fmt: skip
    assert Execution(("a",)) == Execution(
        command=("a",), environment={}, working_directory="", image="", stdin="", timeout=0,
        grace=10_000_000, output_limit=67_108_864,
    )  # fmt: skip
    assert Machine("m", ROOM) == Machine("m", ROOM, attributes={}, joins={})
    assert Committed(1, None).reached  # type: ignore[arg-type]
    assert OPERATOR == "operator"


def test_constants_cannot_be_written_to() -> None:
    returned = SampleReturned(1, PLACES, np.zeros((1, 2), np.int64), np.zeros(1, np.uint32))
    assert (returned.scores.shape, returned.scores.flags.writeable) == ((0, 0), False)


@pytest.mark.parametrize(
    ("kind", "fits", "beyond", "expected"),
    [
        (scenarios.Positive, (1, 2**40), (0, -1), "a whole number of 1 or more"),
        (scenarios.Factor, (1e-9, 1000), (0, 1000.5), "a number above 0, at most 1000"),
        (
            scenarios.Precedence,
            (-32_768, 32_767),
            (-32_769, 32_768),
            "a whole number from -32768 to 32767",
        ),
        (scenarios.Weight, (1e-9, 1e9), (0, 1e-10, 2e9), "a number from 1e-9 to 1e9"),
        (
            scenarios.Replicas,
            (1, 10_000),
            (0, 10_001),
            "a whole number, 1 or more, at most 10,000",
        ),
        (scenarios.Probability, (0, 0.5, 1), (-0.1, 1.1), "a probability from 0 to 1"),
    ],
)
def test_a_number_of_a_scenario_has_bounds(
    kind: Any, fits: tuple[float, ...], beyond: tuple[float, ...], expected: str
) -> None:
    read = Converter(ScenarioError).convert
    assert [read(value, kind) for value in fits] == list(fits)
    for value in beyond:
        with pytest.raises(Misfit) as caught:
            read(value, kind)
        assert caught.value.error.expected == expected


class TestScenarios:
    def test_schedulers_are_numbered_if_there_are_several(self) -> None:
        entry = scenarios.FleetEntry(name="a", engine="omega")
        assert entry.scheduler_names() == ("a",)
        three = scenarios.FleetEntry(name="a", engine="omega", replicas=3)
        assert three.scheduler_names() == ("a-0", "a-1", "a-2")

    def test_engines_are_named_once_in_their_order(self) -> None:
        fleet = tuple(
            scenarios.FleetEntry(name=f"s{at}", engine=engine)
            for at, engine in enumerate(("sparrow", "omega", "sparrow"))
        )
        made = job("a")
        jobs: Any = [made]
        told = scenarios.Scenario(
            name="x", seed=1, cell=scenarios.CellSpec(machines=()), jobs=jobs, fleet=fleet
        )
        assert told.engine_names() == ["sparrow", "omega"]
        assert told.jobs == (made,)

    def test_a_cell_may_say_that_nothing_consists_of_devices(self) -> None:
        assert scenarios.CellSpec(machines=()).device_resource is None
        assert scenarios.CellSpec(machines=(), devices="gpu").device_resource == "gpu"
        # The empty text is a word of its own.
        assert scenarios.CellSpec(machines=(), devices="").device_resource == ""


class TestJobs:
    def test_a_name_can_be_typed(self) -> None:
        for text in ("a", "ä/b", "7"):
            assert is_name(text)
        for text in ("", " ", "a b", "a\n", "a\u00a0b", "\u200b"):
            assert not is_name(text)

    @pytest.mark.parametrize(("kind", "precedence"), [("batch", 0), ("query", -7)])
    def test_plain_jobs_are_made_like_any_other(self, kind: str, precedence: int) -> None:
        make = plain_job_maker(kind, precedence)
        for name, submit, count, duration in (("a", 0, 1, 5), ("b", 9, 7, 0)):
            made = make(name, submit, count, ROOM, duration)
            assert made == simulated_job(
                name,
                group_with_truth(count, ROOM, (duration,)),
                submit=submit,
                kind=kind,
                precedence=precedence,
            )
            assert made.groups[0].request is ROOM

    def test_nothing_is_known_of_the_times_of_an_untimed_job(self) -> None:
        two = Job("a", (TaskGroup(2, ROOM), TaskGroup(1, ROOM)))
        made = untimed(two)
        assert isinstance(made, SimulatedJob)
        assert (made.job, made.submit, made.is_endless) == (two, 0, True)
        assert [truth.durations for truth in made.truth] == [(), ()]

    @pytest.mark.parametrize(
        ("fields", "is_choice"),
        [
            ({"rule": "best fit", "score": 0}, True),
            ({"rule": "best fit"}, False),
            ({"score": 3}, False),
            ({"rule": "best fit", "score": 3, "remedy": "more room"}, False),
        ],
    )
    def test_an_explanation_is_of_a_choice_or_of_none(
        self, fields: dict[str, Any], is_choice: bool
    ) -> None:
        assert Explanation(**fields).is_choice == is_choice
