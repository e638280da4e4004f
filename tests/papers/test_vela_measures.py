"""What is measured at points of the Vela paper, from worlds and agents that are given."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from argosy.model.errors import CommandError
from argosy.model.scenario import AgentDown, SchedulerCrash
from argosy.papers.experiment import ExperimentPoint, Parameter
from argosy.papers.vela import live, processes, trials, world
from argosy.papers.vela.processes import AgentPlan, LiveProcess

SECOND = 1_000_000
NAMES = (
    *("placed", "conflicts", "attempts", "abandoned", "agents not reached", "placing s"),
    *("mean queueing ms", "mean sampling ms", "mean commit ms", "attempting s", "computing s"),
    *("mean end to end without queue ms", "placed by a later candidate", "no machine found"),
)


def point(figure: str, scale: str = "smoke", **parameters: Parameter) -> ExperimentPoint:
    return ExperimentPoint(paper="vela", figure=figure, parameters=parameters, seed=1, scale=scale)


def figures(**told: float) -> dict[str, float]:
    known = dict.fromkeys(NAMES, 0.0)
    return known | {name.replace("_", " "): value for name, value in told.items()}


class Simulated:
    """Stands for the simulation: remembers what was asked for."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *found: dict[str, float],
        submit: tuple[float, ...] = (0.0,),
        placed: tuple[float, ...] = (0.0,),
        conflicts: int = 0,
    ) -> None:
        self.asked: dict[str, Any] = {}
        submits, places = (
            np.array([round(at * SECOND) for at in times], np.int64) for times in (submit, placed)
        )
        places[np.array(placed) < 0] = -1
        columns = (submits, submits, places, places)
        schedulers = [
            SimpleNamespace(figures=lambda each=each: dict(each), conflicts=conflicts)
            for each in found
        ]
        board = SimpleNamespace(job_columns=lambda: columns)
        self.world = SimpleNamespace(host=SimpleNamespace(schedulers=schedulers, board=board))
        for where in (trials, live):
            monkeypatch.setattr(where, "simulate", self)

    def __call__(self, machines: int, seed: int, jobs: Any, entry: Any, **more: Any) -> Any:
        self.asked = {"machines": machines, "jobs": list(jobs), "entry": entry, **more}
        return self.world


def test_the_throughput_is_between_the_first_and_the_last_placement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for placed, expected in (
        ((2.0, 4.0, -1.0, 3.0, 6.0), 3 / 4),
        ((2.0, -1.0), 0.0),
        ((-1.0,), 0.0),
        ((2.0, 2.0), 0.0),
    ):
        made = Simulated(monkeypatch, placed=placed, submit=(0.0,) * len(placed))
        assert trials._throughput(made.world) == expected  # type: ignore[arg-type]


def test_a_point_of_figure_4_fails_for_jobs_that_were_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Simulated(monkeypatch, figures(abandoned=56.0, placed=504.0))
    values = trials.run_point(point("4", clusters=70, machines=8)).values
    assert (values["jobs"], values["failed"], values["placed"]) == (560, 0.1, 504)
    assert made.asked["entry"].settings == {"backoff": 0, "clusters": 0.7, "machines": 0.08}
    assert made.asked["agents"] is None
    # A twentieth of 100 a second.
    assert [job.submit for job in made.asked["jobs"][:3]] == [0, 200_000, 400_000]
    assert made.asked["until"] == 560 / 5 + 600


def test_a_point_of_figure_9_counts_per_job_per_attempt_and_per_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = figures(
        attempts=2_000.0, conflicts=54.0, placed_by_a_later_candidate=27.0, abandoned=5.4,
        attempting_s=100.0, computing_s=50.0, no_machine_found=108.0,
    )  # fmt: skip
    made = Simulated(monkeypatch, told, submit=(0.0, 0.0, 0.0), placed=(1.0, 5.0, 3.0))
    values = trials.run_point(point("9", rate=60, candidates=2, prefer="lowest", ends=0)).values
    assert {name: values[name] for name in values if name not in NAMES} == {
        "jobs": 540,
        "conflicting": 0.1,
        "retried": 0.05,
        # A twentieth of the paper's size.
        "throughput": pytest.approx(2 / 4 * 20),
        "decisions per second": pytest.approx(2_000 / 100 * 20),
        "rescheduled share": pytest.approx(108 / 2_000),
        "rescheduled per job": 0.2,
        "unplaced": 0.01,
        "busy": pytest.approx(50 / 100 / made.asked["entry"].settings["cores"]),
    }
    settings = made.asked["entry"].settings
    assert (settings["candidates"], settings["prefer"]) == (2, "lowest")
    assert made.asked["until"] == 180 + 900
    assert made.asked["jobs"][0].truth[0].durations == ()
    short = figures(attempts=4.0, attempting_s=0.5)
    Simulated(monkeypatch, short)
    values = trials.run_point(point("9", rate=60, candidates=2, prefer="lowest", ends=60)).values
    assert values["decisions per second"] == pytest.approx(4 * 20)


def test_several_instances_are_measured_together(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Simulated(
        monkeypatch,
        figures(conflicts=20.0, placed=400.0, placed_by_a_later_candidate=9.0),
        figures(conflicts=34.0, placed=140.0, placed_by_a_later_candidate=18.0),
        submit=(0.0, 0.0),
        placed=(0.0, 2.0),
    )
    values = trials.run_point(point("instances", instances=2, share=0.5, rate=60)).values
    assert values == {
        "throughput": pytest.approx(10.0),
        "conflicting": pytest.approx(0.1),
        "retried": pytest.approx(0.05),
        "placed": pytest.approx(1.0),
    }
    entry = made.asked["entry"]
    assert entry.replicas == 2
    # Half of a twentieth of 80.
    assert entry.settings["samplers"] == entry.settings["committers"] == 2
    assert made.asked["jobs"][0].truth[0].durations == (60 * SECOND,)


@pytest.mark.parametrize(
    ("lost", "faults"),
    [
        ("nothing", ()),
        (
            "agent",
            (AgentDown(at=60 * SECOND, cluster="cloud-finland", lasts=60 * SECOND),),
        ),
        ("instance", (SchedulerCrash(at=60 * SECOND, scheduler="vela-0", down=60 * SECOND),)),
    ],
)
def test_a_loss_is_measured_while_it_lasts(
    lost: str, faults: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Odd jobs are the other instance's. They take 1, 2 and so on milliseconds."""
    submit = (0.0, 59.999, 60.0, 61.0, 119.0, 119.999, 120.0, 121.0)
    took = [1, 2, 3, 4, 5, 6, 7, -1]
    placed = tuple(
        at + each / 1_000 if each > 0 else -1.0 for at, each in zip(submit, took, strict=True)
    )
    made = Simulated(monkeypatch, figures(), figures(), submit=submit, placed=placed)
    assert trials.run_point(point("losses", lost=lost)).values == {
        "placed": 7 / 8,
        "placed of others": 3 / 4,
        "ms during": pytest.approx((3 + 4 + 5 + 6) / 4),
        "ms during of others": pytest.approx((4 + 6) / 2),
        "ms of others": pytest.approx((2 + 4 + 6) / 3),
    }
    assert made.asked["faults"] == faults
    assert made.asked["entry"].replicas == 2
    assert made.asked["until"] == 180 + 600
    Simulated(monkeypatch, figures(), submit=(0.0, 70.0), placed=(1.0, -1.0))
    assert trials.run_point(point("losses", lost=lost)).values["ms during of others"] == 0.0


@pytest.mark.parametrize(
    ("asks", "settings"),
    [
        ("informed", {}),
        (
            "uninformed",
            {"filters": [], "rounds": 1, "decision_filters": ["ResourcesFit"]},
        ),
        ("learned", {"strategy": "Learned"}),
    ],
)
def test_ways_to_sample_while_clusters_fill_up(
    asks: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Simulated(monkeypatch, figures(abandoned=28.0))
    values = trials.run_point(point("sampling", asks=asks)).values
    assert made.asked["entry"].settings == {"backoff": 0, **settings}
    assert (values["jobs"], values["failed"]) == (560, 0.05)


@pytest.mark.parametrize(
    ("asks", "settings", "t_sample"),
    [
        ("agents", {}, 70_000),
        ("in turn", {"asks": "in-turn"}, 70_000),
        ("machines", {"asks": "machines"}, 0),
        ("machines, 20 at once", {"asks": "machines", "probes": 20}, 0),
    ],
)
def test_ways_to_sample_in_a_burst(
    asks: str, settings: dict[str, Any], t_sample: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Simulated(monkeypatch, figures())
    for scale, machines, jobs in (("smoke", 200, 200), ("quick", 2_000, 1_000)):
        values = trials.run_point(point("sampling", scale, asks=asks)).values
        assert values["jobs"] == jobs == len(made.asked["jobs"])
        assert made.asked["machines"] == machines
        assert made.asked["entry"].settings == {
            "backoff": 0, "cores": 8, "t_read": 159, "t_commit": 4_000, "t_decision": 2_000,
            **settings,
        }  # fmt: skip
        assert (made.asked["agents"].t_sample, made.asked["agents"].t_fetch) == (t_sample, 5_000)
        assert made.asked["until"] == 600
        assert made.asked["jobs"][5].submit == 5_000


@pytest.mark.parametrize(("instances", "think"), [(1, 174_000), (8, 1_392_000)])
def test_schedulers_of_the_whole_state_think_as_long_as_vela_computes(
    instances: int, think: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """69.6 ms on one of 8 processors, and in a cluster of a twentieth 20 times as long."""
    made = Simulated(
        monkeypatch,
        *[figures(conflicts=9.0)] * instances,
        submit=(0.0, 1.0, 2.0, 3.0),
        placed=(1.0, 4.0, -1.0, 5.0),
        conflicts=27,
    )
    told: dict[str, Parameter] = {"placement": "worst-fit", "instances": instances, "rate": 60}
    values = trials.run_point(point("baseline", engine="omega", **told)).values
    entry = made.asked["entry"]
    assert entry.settings == {"t_job": think, "t_task": 0, "placement": "worst-fit"}
    assert (entry.engine, entry.replicas, entry.split) == ("omega", instances, "round-robin")
    assert values == {
        "throughput": pytest.approx(2 / 4 * 20),
        "conflicting": pytest.approx(27 * instances / 540),
        "placed": 3 / 4,
        "ms": pytest.approx((1_000 + 3_000 + 2_000) / 3),
    }


def test_vela_s_conflicts_are_those_that_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Simulated(monkeypatch, figures(conflicts=54.0), placed=(-1.0,), conflicts=9)
    told: dict[str, Parameter] = {"placement": "highest", "instances": 1, "rate": 60}
    values = trials.run_point(point("baseline", engine="vela", **told)).values
    assert values == {"throughput": 0.0, "conflicting": 0.1, "placed": 0.0, "ms": 0.0}
    assert made.asked["entry"].engine == "vela"


@pytest.mark.parametrize("how", ["distances", "test bed"])
def test_live_points_are_also_simulated(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = figures(placed=41.0, conflicts=5.0, placing_s=8.0, mean_sampling_ms=7.0)
    made = Simulated(monkeypatch, told)
    values = live.run_live(point("live", how=how, rate=10))
    computing = (
        {"t_decision": 0}
        if how == "distances"
        else {"cores": 8, "t_read": 159, "t_commit": 4_000, "t_decision": 2_000}
    )
    assert made.asked["entry"].settings == {
        "backoff": 0, "clusters": 0.5, "machines": 0.04, "candidates": 3, **computing,
    }  # fmt: skip
    assert (made.asked["agents"] is None) is (how == "distances")
    assert (made.asked["machines"], made.asked["until"]) == (100, 5 + 600)
    jobs = made.asked["jobs"]
    assert [job.submit for job in jobs[:3]] == [0, 100_000, 200_000]
    assert [job.groups[0].request.cpu for job in jobs[:5]] == [1_000, 2_000, 2_000, 4_000, 1_000]
    mean, deviation = live.farthest(live.paper_agents(100))
    assert values == {
        **{name: told[name] for name in NAMES[:5]},
        **{name: told[name] for name in NAMES if name.startswith("mean")},
        "jobs": 50,
        "conflicting": 0.1,
        "throughput": 5.0,
        "farthest ms": mean,
        "farthest error ms": deviation / 50**0.5,
    }
    assert live._measures(figures(placed=3.0), live.paper_agents(9), 4)["throughput"] == 0.0


def test_the_farthest_of_half_of_the_clusters_rounded_up() -> None:
    plans = [
        AgentPlan(name=str(delay), mix="edge", machines=1, delay=delay) for delay in (10, 20, 60)
    ]
    # Of two of three: 20, 60 and 60.
    mean, deviation = live.farthest(plans)
    assert mean == pytest.approx(140 / 3)
    assert deviation == pytest.approx(
        (2 * (140 / 3 - 60) ** 2 / 3 + (140 / 3 - 20) ** 2 / 3) ** 0.5
    )


class Agent:
    def __init__(self, reservations: float, machines: list[dict[str, Any]]) -> None:
        self._reservations, self._machines = reservations, machines

    def metrics(self) -> dict[str, float]:
        return {"argosy_agent_reservations": self._reservations}

    def listed(self, path: str) -> list[dict[str, Any]]:
        assert path == "/v1/machines"
        return self._machines


def machine(name: str, running: int, cores: int, gib: int, **used: int) -> dict[str, Any]:
    capacity = {"cpu": cores, "memory": gib * 2**30}
    return {"name": name, "running": running, "capacity": capacity, "used": used}


def test_machines_are_too_full_by_what_they_hold_or_by_what_the_scheduler_put_there() -> None:
    """Jobs 0 to 3 have 1, 2, 2 and 4 cores."""
    tasks = [
        {"state": state, "machine": where, "job": f"j{number}"}
        for number, (state, where) in enumerate(
            (
                ("running", "a/m0"),
                ("running", "a/m0"),
                ("running", "b/m0"),
                ("running", "b/m1"),
                ("pending", "b/m0"),
                ("running", "c/m0"),
            )
        )
    ]
    agents = (
        Agent(1.0, [machine("m0", 2, 3_000, 3), machine("m1", 0, 1_000, 1)]),
        Agent(
            2.0,
            [
                machine("m0", 1, 2_000, 1, cpu=2_000),
                machine("m1", 1, 3_999, 9),
                machine("m2", 0, 1_000, 9, cpu=1_001),
                machine("m3", 0, 1_000, 1, memory=2**30 + 1),
                machine("m4", 0, 1_000, 1, memory=2**30, cpu=1_000),
            ],
        ),
    )
    scheduler = SimpleNamespace(listed=lambda path: tasks)
    plans = [AgentPlan(name=name, mix="edge", machines=1) for name in "ab"]
    federation: Any = SimpleNamespace(agents=agents, scheduler=scheduler)
    # Those of b but the last, and one that nobody has.
    assert live._left(federation, plans) == {
        "reservations left": 3.0,
        "running at agents": 4,
        "machines too full": 5.0,
    }


def answering(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]) -> tuple[LiveProcess, Any]:
    """A process that was never started, and the requests that it is sent."""
    asked: list[tuple[Any, ...]] = []

    class Connection:
        def __init__(self, where: str, timeout: float) -> None:
            asked.append((where, timeout))

        def request(self, method: str, path: str, body: Any, headers: Any) -> None:
            asked.append((method, path, body, headers))
            self.answer = answers[path]
            if isinstance(self.answer, Exception):
                raise self.answer

        def getresponse(self) -> Any:
            status, text = self.answer
            return SimpleNamespace(status=status, read=text.encode)

        def close(self) -> None:
            asked.append(("close",))

    monkeypatch.setattr(processes, "HTTPConnection", Connection)
    process = LiveProcess.__new__(LiveProcess)
    process.url, process._what = "http://127.0.0.1:99", "argosy agent"
    return process, asked


def test_a_list_is_read_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {
        "/v1/jobs": (200, json.dumps({"items": [{"n": 1}, {"n": 2}], "next": "a/b 2"})),
        "/v1/jobs?after=a%2Fb%202": (200, json.dumps({"items": [], "next": "3"})),
        "/v1/jobs?after=3": (200, json.dumps({"items": [{"n": 3}], "next": None})),
    }
    process, asked = answering(monkeypatch, pages)
    assert [item["n"] for item in process.listed("/v1/jobs")] == [1, 2, 3]
    assert asked[:3] == [
        ("127.0.0.1:99", 60.0),
        ("GET", "/v1/jobs", None, {}),
        ("close",),
    ]


def test_metrics_are_known_by_name_and_an_engine_s_by_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (
        "# HELP argosy_jobs Jobs.\n"
        "# TYPE argosy_jobs gauge\n"
        'argosy_jobs{state="queued"} 3\n'
        "argosy_agent_reservations 0\n"
        'argosy_scheduler_figure{scheduler="vela",figure="mean sampling ms"} 12.5\n'
    )
    process, _ = answering(monkeypatch, {"/metrics": (200, text)})
    assert process.metrics() == {
        'argosy_jobs{state="queued"}': 3.0,
        "argosy_agent_reservations": 0.0,
        "mean sampling ms": 12.5,
    }


def test_a_document_is_posted_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    process, asked = answering(monkeypatch, {"/v1/jobs": (201, "made")})
    assert process.post("/v1/jobs", {"id": "a"}) == b"made"
    assert asked[1] == ("POST", "/v1/jobs", '{"id": "a"}', {"Content-Type": "application/json"})


@pytest.mark.parametrize(
    ("said", "words"), [("first\n\nlast one \n", "last one"), (" \n", "it said nothing")]
)
def test_a_process_that_does_not_answer_has_last_words(
    said: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    process, asked = answering(monkeypatch, {"/x": TimeoutError("late")})
    process._log = tmp_path / "log"
    process._log.write_text(said)
    with pytest.raises(CommandError) as caught:
        process.get("/x")
    assert caught.value.problem == (
        f"argosy agent does not answer (TimeoutError: late); its last words: {words}"
    )
    assert asked[-1] == ("close",)


def test_distances_are_half_of_the_round_trips() -> None:
    made = world.federation(["vela-0", "vela-1"])
    assert made.schedulers == {"vela-0": "zurich", "vela-1": "zurich"}
    assert made.places.delays["zurich<>oregon"] == 73_000
    assert made.places.default == 50_000
    assert len(made.clusters) == 10


def test_three_minutes_of_the_mix_of_jobs() -> None:
    jobs = world.mixed(2.5, 7)
    assert len(jobs) == 450
    assert [job.groups[0].request.memory // 2**30 for job in jobs[:5]] == [1, 2, 2, 4, 1]
    assert [job.submit for job in jobs[:3]] == [0, 400_000, 800_000]
    assert jobs[0].truth[0].durations == (7 * SECOND,)
    assert world.mixed(1)[0].truth[0].durations == ()
    assert jobs[1].id == "j1"
