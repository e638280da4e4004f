"""A live scheduler over ten agents of 2,000 machines each, JSON over HTTP on loopback. Run by hand:

python bench/vela_live.py [rate | latency | sample] [--agents N] [--machines N] [--jobs N] [--delay MS]

rate     as many jobs at once as the scheduler takes: jobs placed a second, conflicts, and the processor
         time of every process per job. Goal on two idle cores: 200 jobs/s, conflicts below 1 %.
latency  one job at a time: from submission to success, and without time in the queue. Goal: a median
         of 25 ms, plus the delay that agents are told to add.
sample   processor time of an agent per sample, for clusters and samples of several sizes. Goal: 1 ms at
         2,000 machines, growing no faster than the sample.

Jobs are those of the Vela paper: 1, 2, 2 and 4 cores with as many GiB, until stopped; clusters are those
of its Table II. Other load on the computer shows in the rates, but not in processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import aiohttp
import msgspec

from argosy.client.agent_connection import AgentLink
from argosy.client.endpoints import parse_endpoint
from argosy.papers.vela.processes import AgentPlan, LiveFederation, LiveProcess, started

MIX = (1, 2, 2, 4)
TICK = os.sysconf("SC_CLK_TCK")
PATIENCE = 180.0


def processor_time(process: LiveProcess) -> float:
    with open(f"/proc/{process.pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def federation(
    agents: int, machines: int, delay: float, mix: str = ""
) -> AbstractContextManager[LiveFederation]:
    plans = [
        AgentPlan(
            name=f"c{number}",
            mix=mix or ("cloud" if number % 10 < 3 else "edge"),
            machines=machines,
            delay=delay,
        )
        for number in range(agents)
    ]
    return started(plans, "--timeout", "60")


def job(number: int) -> bytes:
    cores = MIX[number % len(MIX)]
    request = {"cpu": str(cores), "memory": f"{cores}GiB"}
    return msgspec.json.encode({"id": f"j{number}", "command": "true", "request": request})


async def rate(arguments: argparse.Namespace) -> None:
    with federation(arguments.agents, arguments.machines, arguments.delay) as live:
        processes = (*live.agents, live.scheduler)
        link = AgentLink(parse_endpoint(live.scheduler.url, "scheduler"), timeout=PATIENCE)
        before = [processor_time(process) for process in processes]
        own, began = time.process_time(), time.perf_counter()
        turns = asyncio.Semaphore(32)

        async def submit(number: int) -> None:
            async with turns:
                reply = await link.ask("POST", "/v1/jobs", job(number))
                assert reply.status == 201, reply

        await asyncio.gather(*(submit(number) for number in range(arguments.jobs)))
        while True:
            found = live.scheduler.metrics()
            if found["placed"] + found["abandoned"] >= arguments.jobs:
                break
            if time.perf_counter() - began > PATIENCE:
                break
            await asyncio.sleep(0.05)
        seconds = time.perf_counter() - began
        spent = [processor_time(p) - b for p, b in zip(processes, before, strict=True)]
        placed, attempts = found["placed"], found["attempts"]
        total = sum(spent) + time.process_time() - own
        print(
            f"{arguments.jobs} jobs over {len(live.agents)} agents of {arguments.machines} machines"
        )
        print(f"  placed {placed:g} in {seconds:.1f} s: {placed / seconds:.0f} jobs/s")
        print(f"  placing alone, as the paper counts: {placed / found['placing s']:.0f} jobs/s")
        print(
            f"  conflicts {found['conflicts']:g} ({100 * found['conflicts'] / attempts:.2f} %), "
            f"commits refused {found['commits refused']:g}, "
            f"not reached {found['agents not reached']:g}, abandoned {found['abandoned']:g}"
        )
        per_job = 1e3 / max(1, placed)
        print(
            f"  processor time per job: scheduler {spent[-1] * per_job:.2f} ms, agents together "
            f"{sum(spent[:-1]) * per_job:.2f} ms, this client {(total - sum(spent)) * per_job:.2f} ms"
        )
        print(f"  that is {2 * placed / total:.0f} jobs/s on two cores without other load")
        report_agents(live.agents)
        link.close()


def report_agents(agents: Sequence[LiveProcess]) -> None:
    samples = taken = reservations = 0.0
    for agent in agents:
        found = agent.metrics()
        samples += found["argosy_agent_samples_total"]
        taken += found["argosy_agent_sampling_seconds_total"]
        reservations += found["argosy_agent_reservations"]
    print(f"  pipeline: {1e3 * taken / max(1, samples):.3f} ms per sample")
    print(f"  reservations left: {reservations:g}")


async def latency(arguments: argparse.Namespace) -> None:
    with federation(arguments.agents, arguments.machines, arguments.delay) as live:
        link = AgentLink(parse_endpoint(live.scheduler.url, "scheduler"), timeout=PATIENCE)
        placed: list[float] = []
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{live.scheduler.url}/v1/events?after=now") as stream,
        ):
            await stream.content.readuntil(b"\n\n")
            for number in range(arguments.jobs):
                began = time.perf_counter()
                await link.ask("POST", "/v1/jobs", job(number))
                while True:
                    event = await stream.content.readuntil(b"\n\n")
                    if b"event: task" in event and b'"state":"running"' in event:
                        break
                placed.append(1e3 * (time.perf_counter() - began))
        found = live.scheduler.metrics()
        print(f"one job at a time, agents answer {arguments.delay:g} ms late")
        print(f"  submission to event, through the disk: median {statistics.median(placed):.1f} ms")
        print(
            f"  mean without queue, as the paper counts: "
            f"{found['mean end to end without queue ms']:.1f} ms "
            f"(sampling {found['mean sampling ms']:.1f}, commit {found['mean commit ms']:.1f}); "
            f"{found['placed']:g} placed"
        )
        link.close()


async def sample(arguments: argparse.Namespace) -> None:
    print("processor time of an agent per sample, whole process")
    for machines, share in (
        (500, 0.04),
        (2_000, 0.04),
        (2_000, 0.16),
        (8_000, 0.04),
        (8_000, 0.01),
    ):
        with federation(1, machines, 0.0, mix="edge") as live:
            agent = live.agents[0]
            link = AgentLink(parse_endpoint(agent.url, "agent"))
            asked: dict[str, Any] = {"request": {"cpu": 1000, "memory": 2**30}, "share": share}
            asked |= {
                "filters": ["ResourcesFit", "GeoLocation", "BatteryLevel"],
                "scores": ["ResourcesFit", "GeoLocation"],
            }
            body = msgspec.json.encode(asked)
            for _ in range(100):
                await link.ask("POST", "/v1/sample", body)
            before, count = processor_time(agent), arguments.jobs
            first = agent.metrics()
            for _ in range(count):
                await link.ask("POST", "/v1/sample", body)
            spent, found = processor_time(agent) - before, agent.metrics()
            name = "argosy_agent_sampling_seconds_total"
            inside = 1e3 * (found[name] - first[name]) / count
            size = round(machines * share)
            print(
                f"  {machines:>6} machines, sample of {size:>4}: {1e3 * spent / count:.3f} ms, "
                f"of which the pipeline {inside:.3f} ms"
            )
            link.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="?", choices=["rate", "latency", "sample"], default="rate")
    parser.add_argument("--agents", type=int, default=10)
    parser.add_argument("--machines", type=int, default=2_000)
    parser.add_argument("--jobs", type=int, default=2_000)
    parser.add_argument("--delay", type=float, default=0.0, help="in milliseconds")
    arguments = parser.parse_args()
    what = {"rate": rate, "latency": latency, "sample": sample}[arguments.what]
    asyncio.run(what(arguments))


if __name__ == "__main__":
    main()
