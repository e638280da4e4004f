"""How each kind of point is run, and what is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from argosy.model.scenario import AgentDown, AgentModel, Fault, FleetEntry, SchedulerCrash
from argosy.papers.experiment import ExperimentPoint, PointResult
from argosy.papers.vela.live import run_live
from argosy.papers.vela.points import (
    BASELINE,
    ENDS_AFTER,
    INSTANCES,
    JOBS,
    LIVE,
    LOSSES,
    MACHINES,
    SAMPLING,
)
from argosy.papers.vela.world import (
    AGENTS,
    CORES,
    MINUTES,
    SECOND,
    T_COMMIT,
    T_DECISION,
    T_READ,
    capacity,
    container,
    mixed,
    scheduler_settings,
    share_of_paper,
    simulate,
    table_ii,
    vela,
)
from argosy.worlds.sim import SimulatedWorld

#: Jobs a second where the paper does not say.
FILLING_RATE: Final = 100
#: In figures 5 to 8, jobs come "in very quick succession".
BURST_RATE: Final = 1_000
#: Machines in each sample when it is a number: as many as 4 % of 1,000 machines in a cluster.
FIXED_SAMPLE: Final = 40
#: When the agent or the instance is lost, and for how long, in seconds.
LOST_AT: Final = 60
LOST_FOR: Final = 60
LOST_CLUSTER: Final = "cloud-finland"


def run_point(point: ExperimentPoint) -> PointResult:
    return PointResult(_RUN[point.figure](point))


def _tuning(point: ExperimentPoint) -> dict[str, float]:
    settings = {
        "clusters": int(point.parameters["clusters"]) / 100,
        "machines": int(point.parameters["machines"]) / 100,
    }
    return _filled(point, settings)


def _filled(point: ExperimentPoint, settings: dict[str, Any]) -> dict[str, float]:
    """Jobs that exactly fill the clusters. Agents take no time: the question is what is found."""
    per_cluster = MACHINES[point.scale]
    count = capacity(table_ii(per_cluster), 4)
    rate = FILLING_RATE * share_of_paper(per_cluster)
    jobs = [container(number, 4, number / rate) for number in range(count)]
    until = count / rate + 600
    world = simulate(per_cluster, point.seed, jobs, vela(settings), until=until, agents=None)
    found = world.host.schedulers[0].figures()
    return {**found, "jobs": count, "failed": found["abandoned"] / count}


def _infrastructure(point: ExperimentPoint) -> dict[str, float]:
    machines = int(point.parameters["machines"])
    settings = _paper_scheduler()
    if point.parameters["sample"] == "number":
        settings["machine_count"] = FIXED_SAMPLE
    return _burst(point, machines, settings, AGENTS)


def _paper_scheduler() -> dict[str, Any]:
    """That of the paper, whatever the size of clusters."""
    return {"cores": CORES, "t_read": T_READ, "t_commit": T_COMMIT, "t_decision": T_DECISION}


def _burst(
    point: ExperimentPoint, machines: int, settings: dict[str, Any], agents: AgentModel
) -> dict[str, float]:
    count = JOBS[point.scale]
    jobs = [container(number, 1, number / BURST_RATE) for number in range(count)]
    world = simulate(machines // 10, point.seed, jobs, vela(settings), until=600, agents=agents)
    return world.host.schedulers[0].figures()


def _workload(point: ExperimentPoint) -> dict[str, float]:
    per_cluster = MACHINES[point.scale]
    scale = share_of_paper(per_cluster)
    told = point.parameters
    jobs = mixed(int(told["rate"]) * scale, float(told["ends"]))
    settings = {
        **scheduler_settings(per_cluster),
        "candidates": int(told["candidates"]),
        "prefer": str(told["prefer"]),
    }
    until = 60 * MINUTES + 900
    world = simulate(per_cluster, point.seed, jobs, vela(settings), until=until)
    found = world.host.schedulers[0].figures()
    count, attempts = len(jobs), found["attempts"]
    seconds = max(found["attempting s"], 1.0)
    return {
        **found,
        "jobs": count,
        "conflicting": found["conflicts"] / count,
        "retried": found["placed by a later candidate"] / count,
        "throughput": _throughput(world) / scale,
        "decisions per second": attempts / seconds / scale,
        "rescheduled share": found["no machine found"] / attempts,
        "rescheduled per job": found["no machine found"] / count,
        "unplaced": found["abandoned"] / count,
        "busy": found["computing s"] / seconds / settings["cores"],
    }


def _throughput(world: SimulatedWorld) -> float:
    """Jobs placed per second, between the first and the last that was."""
    _, _, placed, _ = world.host.board.job_columns()
    times = placed[placed >= 0]
    span = int(times.max() - times.min()) if len(times) else 0
    return (len(times) - 1) * SECOND / span if span else 0.0


def _instances(point: ExperimentPoint) -> dict[str, float]:
    """With jobs that end, so that nothing but the schedulers limits the throughput."""
    per_cluster = MACHINES[point.scale]
    scale = share_of_paper(per_cluster)
    count, part = int(point.parameters["instances"]), float(point.parameters["share"])
    jobs = mixed(int(point.parameters["rate"]) * scale, ENDS_AFTER)
    entry = vela(scheduler_settings(per_cluster, part), count)
    until = 60 * MINUTES + 900
    world = simulate(per_cluster, point.seed, jobs, entry, until=until)
    found = [scheduler.figures() for scheduler in world.host.schedulers]
    later = sum(each["placed by a later candidate"] for each in found)
    return {
        "throughput": _throughput(world) / scale,
        "conflicting": sum(each["conflicts"] for each in found) / len(jobs),
        "retried": later / len(jobs),
        "placed": sum(each["placed"] for each in found) / len(jobs),
    }


def _losses(point: ExperimentPoint) -> dict[str, float]:
    """Two instances, and from the 60th to the 120th second one agent or one instance less."""
    per_cluster = MACHINES[point.scale]
    scale = share_of_paper(per_cluster)
    jobs = mixed(72 * scale, ENDS_AFTER)
    at, lasts = LOST_AT * SECOND, LOST_FOR * SECOND
    lost = str(point.parameters["lost"])
    faults: tuple[Fault, ...] = ()
    if lost == "agent":
        faults = (AgentDown(at=at, cluster=LOST_CLUSTER, lasts=lasts),)
    elif lost == "instance":
        faults = (SchedulerCrash(at=at, scheduler="vela-0", down=lasts),)
    entry = vela(scheduler_settings(per_cluster), 2)
    world = simulate(per_cluster, point.seed, jobs, entry, until=60 * MINUTES + 600, faults=faults)
    submit, _, placed, _ = world.host.board.job_columns()
    # Round-robin: odd jobs are the second instance's.
    others = np.arange(len(submit)) % 2 == 1
    during = (submit >= at) & (submit < at + lasts)
    took = (placed - submit) / 1_000

    def mean_of(chosen: Any) -> float:
        chosen = chosen & (placed >= 0)
        return float(took[chosen].mean()) if chosen.any() else 0.0

    return {
        "placed": float((placed >= 0).mean()),
        "placed of others": float((placed[others] >= 0).mean()),
        "ms during": mean_of(during),
        "ms during of others": mean_of(during & others),
        "ms of others": mean_of(others),
    }


def _sampling(point: ExperimentPoint) -> dict[str, float]:
    asks = str(point.parameters["asks"])
    filling: dict[str, dict[str, Any]] = {
        "informed": {},
        "uninformed": {"filters": [], "rounds": 1, "decision_filters": ["ResourcesFit"]},
        "learned": {"strategy": "Learned"},
    }
    if asks in filling:
        return _filled(point, filling[asks])
    burst: dict[str, dict[str, Any]] = {
        "agents": {},
        "in turn": {"asks": "in-turn"},
        "machines": {"asks": "machines"},
        "machines, 20 at once": {"asks": "machines", "probes": 20},
    }
    # A machine that is asked itself has no cache to search: its answer takes no time.
    agents = AgentModel(t_fetch=AGENTS.t_fetch) if asks.startswith("machines") else AGENTS
    machines = 20_000 if point.scale != "smoke" else 2_000
    found = _burst(point, machines, {**_paper_scheduler(), **burst[asks]}, agents)
    return {**found, "jobs": JOBS[point.scale]}


def _baseline(point: ExperimentPoint) -> dict[str, float]:
    """The same jobs under Vela, and under schedulers that each read the whole state. They compute as
    much per job as Vela does."""
    per_cluster = MACHINES[point.scale]
    scale = share_of_paper(per_cluster)
    count = int(point.parameters["instances"])
    jobs = mixed(int(point.parameters["rate"]) * scale)
    settings = scheduler_settings(per_cluster)
    if point.parameters["engine"] == "vela":
        entry = vela(settings)
    else:
        size = T_DECISION + T_COMMIT + 400 * T_READ
        # So many instances keep as many jobs in hand as they have processors between them.
        think = round(size * count / CORES / scale)
        entry = FleetEntry(
            name="omega",
            engine="omega",
            settings={"t_job": think, "t_task": 0, "placement": point.parameters["placement"]},
            replicas=count,
            split="round-robin",
        )
    world = simulate(per_cluster, point.seed, jobs, entry, until=60 * MINUTES + 900)
    submit, _, placed, _ = world.host.board.job_columns()
    is_placed = placed >= 0
    took = (placed - submit)[is_placed] / 1_000
    schedulers = world.host.schedulers
    if point.parameters["engine"] == "vela":
        conflicts = sum(scheduler.figures()["conflicts"] for scheduler in schedulers)
    else:
        conflicts = sum(scheduler.conflicts for scheduler in schedulers)
    return {
        "throughput": _throughput(world) / scale,
        "conflicting": conflicts / len(jobs),
        "placed": float(is_placed.mean()),
        "ms": float(took.mean()) if len(took) else 0.0,
    }


_RUN: Final[dict[str, Callable[[ExperimentPoint], dict[str, float]]]] = {
    "4": _tuning,
    "5": _infrastructure,
    "9": _workload,
    INSTANCES: _instances,
    LOSSES: _losses,
    SAMPLING: _sampling,
    BASELINE: _baseline,
    LIVE: run_live,
}
