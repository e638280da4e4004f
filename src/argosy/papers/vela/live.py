"""Ten agents in processes of their own, as far away as the paper's, and a scheduler over them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from statistics import fmean, pstdev
from typing import Any, Final

from argosy.papers.charts import Axis, Chart, Figure, Line, Mark
from argosy.papers.claims import Claim
from argosy.papers.experiment import ExperimentPoint, Findings
from argosy.papers.vela.points import LIVE, LIVE_MACHINES, LIVE_SECONDS
from argosy.papers.vela.processes import AgentPlan, LiveFederation, started
from argosy.papers.vela.world import (
    AGENTS,
    CORES,
    GIB,
    MIX,
    PAPER_MACHINES,
    ROUND_TRIPS,
    T_COMMIT,
    T_DECISION,
    T_READ,
    clusters,
    container,
    simulate,
    vela,
)

#: C_p, N_p and m.
SETTINGS: Final[dict[str, Any]] = {"clusters": 0.5, "machines": 0.04, "candidates": 3}
#: How long to wait for jobs after the last was submitted, in seconds.
_PATIENCE: Final = 90.0
_POLL_SECONDS: Final = 0.25
_SUBMITTERS: Final = 16
#: What the scheduler may add to the distance of the farthest cluster, on average.
COMPUTING_MS: Final = 25.0
#: How a point is run.
_HOW: Final = {
    "processes": "agents in processes",
    "distances": "simulated, distances alone",
    "test bed": "simulated, with the paper's computing times",
}


def paper_agents(machines: int) -> list[AgentPlan]:
    """Those of Table II, each as far away as its region is from Zurich."""
    return [
        AgentPlan(
            name=cluster.name,
            mix=cluster.name.partition("-")[0],
            machines=machines,
            delay=ROUND_TRIPS[cluster.place],
        )
        for cluster in clusters()
    ]


def farthest(plans: Sequence[AgentPlan]) -> tuple[float, float]:
    """Mean and deviation of the longest round trip to the clusters that a task samples, in
    milliseconds."""
    asked = -(-len(plans) // 2)
    trips = [max(plan.delay for plan in some) for some in combinations(plans, asked)]
    return fmean(trips), pstdev(trips)


def run_live(point: ExperimentPoint) -> dict[str, float]:
    how, rate = str(point.parameters["how"]), float(point.parameters["rate"])
    machines = LIVE_MACHINES[point.scale]
    count = round(rate * LIVE_SECONDS[point.scale])
    plans = paper_agents(machines)
    if how == "processes":
        return measure(plans, count, rate)
    jobs = [container(number, MIX[number % len(MIX)], number / rate) for number in range(count)]
    computing = {"cores": CORES, "t_read": T_READ, "t_commit": T_COMMIT, "t_decision": T_DECISION}
    if how == "distances":
        computing = {"t_decision": 0}
    world = simulate(
        machines,
        point.seed,
        jobs,
        vela({**SETTINGS, **computing}),
        until=count / rate + 600,
        agents=None if how == "distances" else AGENTS,
    )
    return _measures(world.host.schedulers[0].figures(), plans, count)


def measure(plans: Sequence[AgentPlan], count: int, rate: float) -> dict[str, float]:
    """Starts the processes, submits `count` jobs, `rate` of them a second, and waits for them."""
    told = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    told += ["--set", "backoff=0s", "--engine", "vela", "--timeout", "60"]
    with started(plans, *told) as live:
        _submit(live, count, rate)
        deadline = time.monotonic() + _PATIENCE
        while True:
            found = live.scheduler.metrics()
            is_done = found["placed"] + found["abandoned"] >= count
            if is_done or time.monotonic() > deadline:
                break
            time.sleep(_POLL_SECONDS)
        return {**_measures(found, plans, count), **_left(live, plans)}


def _submit(live: LiveFederation, count: int, rate: float) -> None:
    """Several at once: each is answered only when it is on the disk."""

    def submit(number: int) -> None:
        cores = MIX[number % len(MIX)]
        request = {"cpu": str(cores), "memory": f"{cores}GiB"}
        job = {"id": f"j{number}", "command": "true", "request": request}
        live.scheduler.post("/v1/jobs", job)

    pool = ThreadPoolExecutor(_SUBMITTERS)
    try:
        began = time.monotonic()
        submitted = []
        for number in range(count):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            submitted.append(pool.submit(submit, number))
        for each in submitted:
            each.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _measures(found: dict[str, float], plans: Sequence[AgentPlan], count: int) -> dict[str, float]:
    names = (
        *("placed", "conflicts", "attempts", "abandoned", "agents not reached"),
        *("mean queueing ms", "mean sampling ms", "mean commit ms"),
        "mean end to end without queue ms",
    )
    mean, deviation = farthest(plans)
    return {
        **{name: found[name] for name in names},
        "jobs": count,
        "conflicting": found["conflicts"] / count,
        "throughput": (found["placed"] - 1) / found["placing s"] if found["placing s"] else 0.0,
        "farthest ms": mean,
        "farthest error ms": deviation / count**0.5,
    }


def _left(live: LiveFederation, plans: Sequence[AgentPlan]) -> dict[str, float]:
    """What is left in the end: as agents see it, and counted anew from where the scheduler has put
    jobs."""
    cores: Counter[str] = Counter()
    for task in live.scheduler.listed("/v1/tasks"):
        if task["state"] == "running":
            cores[task["machine"]] += MIX[int(task["job"].removeprefix("j")) % len(MIX)]
    reservations = running = too_full = 0.0
    for plan, agent in zip(plans, live.agents, strict=True):
        reservations += agent.metrics()["argosy_agent_reservations"]
        for machine in agent.listed("/v1/machines"):
            running += machine["running"]
            has, used = machine["capacity"], machine["used"]
            wanted = cores.pop(f"{plan.name}/{machine['name']}", 0)
            too_full += (
                max(1_000 * wanted, used.get("cpu", 0)) > has["cpu"]
                or max(GIB * wanted, used.get("memory", 0)) > has["memory"]
            )
    # Jobs on machines that no agent has would be as wrong.
    too_full += len(cores)
    return {
        "reservations left": reservations,
        "running at agents": running,
        "machines too full": too_full,
    }


def draw_live(found: Findings) -> Figure:
    panels = []
    for name, title in (
        ("mean sampling ms", "mean sampling time [ms]"),
        ("mean commit ms", "mean commit time [ms]"),
        ("mean end to end without queue ms", "mean end to end without queue [ms]"),
        ("throughput", "jobs placed per second"),
    ):
        lines = tuple(
            Line(
                label=label,
                marks=tuple(
                    Mark(float(point.parameters["rate"]), result[name])
                    for point, result in found.select(LIVE, how=how)
                ),
                colour=colour,
                dashed=colour > 0,
            )
            for colour, (how, label) in enumerate(_HOW.items())
        )
        panels.append(
            Chart(
                title=title,
                x=Axis(label="requests per second", low=0),
                y=Axis(label=title, low=0),
                lines=lines,
            )
        )
    return Figure(
        number=LIVE,
        title="Agents in processes of their own",
        caption="Ten agents on the loopback address, which answer as late as the distance from Zurich"
        " to their region demands.",
        panels=tuple(panels),
    )


def claims_live(found: Findings) -> Iterator[Claim]:
    rows = {
        int(point.parameters["rate"]): (result, point)
        for point, result in found.select(LIVE, how="processes")
    }
    for rate, (live, point) in rows.items():
        beside = [
            f"{label}: {other[0][1]['mean sampling ms']:.0f}, {other[0][1]['mean commit ms']:.0f} and"
            f" {other[0][1]['mean end to end without queue ms']:.0f} ms"
            for how, label in _HOW.items()
            if how != "processes" and (other := found.select(LIVE, how=how, rate=rate))
        ]
        if LIVE_MACHINES[point.scale] == PAPER_MACHINES:
            beside.append("the paper, 1,000 jobs at once: 902, 183 and 1,087 ms")
        setup = f"{rate} requests/s"
        jobs, sampling = live["jobs"], live["mean sampling ms"]
        yield Claim(
            id=f"vela-live-placed-{rate}",
            figure=LIVE,
            paper="all jobs are placed",
            here=f"{live['placed']:.0f} of {jobs:.0f}; {live['running at agents']:.0f} run at agents",
            tolerance="every job, and each runs at one agent",
            holds=live["placed"] == live["running at agents"] == jobs,
            setup=setup,
        )
        yield Claim(
            id=f"vela-live-conflicts-{rate}",
            figure=LIVE,
            paper="under 1 % of jobs conflict up to 94 jobs/s",
            here=f"{100 * live['conflicting']:.2f} %",
            tolerance="under 1 %",
            holds=live["conflicting"] < 0.01,
            setup=setup,
        )
        low, high = (
            live["farthest ms"] - 3 * live["farthest error ms"],
            live["farthest ms"] + COMPUTING_MS,
        )
        yield Claim(
            id=f"vela-live-sampling-{rate}",
            figure=LIVE,
            paper="sampling takes as long as the farthest agent (implied)",
            here=f"{sampling:.0f} ms on average; commit {live['mean commit ms']:.0f}, end to end"
            f" without queue {live['mean end to end without queue ms']:.0f} ms",
            tolerance=f"{low:.0f} to {high:.0f} ms: the farthest of the clusters asked is"
            f" {live['farthest ms']:.0f} ms away on average (within 3 standard errors), and"
            f" {COMPUTING_MS:.0f} ms for computing",
            holds=low <= sampling <= high,
            setup=setup,
            note="; ".join(beside),
        )
        yield Claim(
            id=f"vela-live-throughput-{rate}",
            figure=LIVE,
            paper="one instance keeps up with about 100 requests/s",
            here=f"{live['throughput']:.1f} jobs/s",
            tolerance="2 % less than what comes in at most",
            holds=live["throughput"] >= 0.98 * rate,
            setup=f"{setup} for {LIVE_SECONDS[point.scale]} s",
        )
        yield Claim(
            id=f"vela-live-sound-{rate}",
            figure=LIVE,
            paper="reservations are released, and no machine is overcommitted",
            here=f"{live['reservations left']:.0f} reservations left,"
            f" {live['machines too full']:.0f} machines too full",
            tolerance="none",
            holds=live["reservations left"] == live["machines too full"] == 0,
            setup=setup,
        )
