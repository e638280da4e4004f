"""Scenarios with what a campaign never draws: generated workloads, traces in public formats, devices,
clusters at places, agents, all kinds of faults, outputs. Each is a document and the files that it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich_jobs import Document, Files, Stream
from rich_workloads import WORKLOADS

_PLACES: Final = ("helsinki", "lisbon", "rome")
_ARCHES: Final = ("x86", "arm")


class RichScenario(NamedTuple):
    workload: str
    document: Document
    files: Files


def rich_scenario(seed: int, number: int) -> RichScenario:
    workload = list(WORKLOADS)[number % len(WORKLOADS)]
    stream = Stream(f"{seed} {number}")
    brings = workload in ("cluster", "google2011", "google2019", "alibaba2023", "kubernetes")
    has_clusters = not brings and stream.has(0.3)
    files: Files = {}
    table = WORKLOADS[workload](stream, files)
    places = []
    document: Document = {
        "name": f"rich-{number}",
        "seed": stream.among(0, 10_000),
        "horizon": stream.pick(("90s", "4min", "10min", "500ms", "1.5min")),
        **stream.maybe(0.3, failover=stream.pick(("0s", "2s", "100ms"))),
        **stream.maybe(0.3, audit=True),
    }
    if has_clusters:
        document["clusters"] = [
            {"name": f"c{at}", **stream.maybe(0.7, place=place), **cell_table(stream)}
            for at, place in enumerate(_PLACES[: stream.among(2, 3)])
        ]
        places = [each.get("place", each["name"]) for each in document["clusters"]]
    elif not brings or (workload == "alibaba2023" and stream.has(0.2)):
        document["cell"] = cell_table(stream)
        if stream.has(0.3):
            text = stream.pick(
                (
                    "web -> {web, 0, 2} in machine",
                    "db -> {web, 1, inf} in rack",
                    "web -> {db, 0, 1} in zone",
                )
            )
            document["cell"]["constraints"] = [text]
    elif stream.has(0.5):
        document["cell"] = {"groups": {"rack": {"size": stream.among(1, 4)}}}
    if workload in ("jobs", "trace") and not has_clusters and stream.has(0.4):
        document["cell"]["devices"] = "gpu"
        for machine in document["cell"]["machines"]:
            machine["capacity"]["gpu"] = stream.pick((0, 1000, 2000, 4000))
    document["workload"] = {workload: table}
    document["fleet"] = fleet(stream, places)
    document["network"] = network(stream, document, places)
    document["machines"] = machine_model(stream)
    if stream.has(0.4):
        document["agents"] = agents(stream)
    document["faults"] = faults(stream, document)
    if stream.has(0.5):
        log = stream.pick(("replayable", "decisions", "everything", "none"))
        document["output"] = {"log": log, **stream.maybe(0.4, tasks=stream.has(0.5))}
    if stream.has(0.08):
        document["as_published"] = True
    kept = {key: value for key, value in document.items() if value or key == "seed"}
    return RichScenario(workload, kept, files)


def machine_names(document: Document) -> list[str]:
    found = []
    cells = [("", document.get("cell", {}))]
    cells += [(f"{each['name']}/", each) for each in document.get("clusters", ())]
    for prefix, cell in cells:
        for table in cell.get("machines", ()):
            count = table.get("count", 1)
            names = [table["name"]] if count == 1 else [f"{table['name']}-0", f"{table['name']}-1"]
            found += [prefix + name for name in names]
    return found


def cell_table(stream: Stream) -> Document:
    machines = [
        {
            "name": f"m{at}",
            **stream.maybe(0.7, count=stream.among(1, 4)),
            "capacity": {
                "cpu": stream.pick((2000, 4000, "8", "1500m", "2.5", 16000)),
                "memory": stream.pick(("4GiB", "16GB", "8192MiB", 2**33, "1TiB")),
                **stream.maybe(0.3, bandwidth=stream.among(1, 9)),
            },
            **stream.maybe(0.5 if at else 1, attributes={"arch": _ARCHES[at % 2], "disk": "ssd"}),
            **stream.maybe(0.4, joins={"zone": stream.some(("z1", "z2"))}),
        }
        for at in range(stream.among(1, 3))
    ]
    groups: Document = {"zone": {"sets": ["z1", "z2"]}, "rack": {"size": stream.among(1, 3)}}
    return {"machines": machines, "groups": groups}


def fleet(stream: Stream, places: Sequence[str]) -> list[Document]:
    engines = ("omega", "kube", "eagle", "medea", "murmuration", "vela", "sparrow", "spread")
    entries: list[Document] = []
    for at in range(stream.pick((1, 1, 2))):
        table: Document = {"name": f"s{at}", "engine": stream.pick(engines)}
        if stream.has(0.4) and table["engine"] != "medea":
            split = stream.pick(("hash", "round-robin", "random", "owner"))
            table |= {"replicas": stream.among(2, 3), "split": split}
        if stream.has(0.3):
            table["limits"] = {
                **stream.maybe(0.5, resources={"cpu": stream.pick((1000, 8000))}),
                **stream.maybe(0.5, jobs=stream.among(1, 9)),
                **stream.maybe(0.5, precedence=stream.among(-1, 5)),
            }
        models: tuple[Document, ...] = (
            {"model": "as-told"},
            {"model": "scaled", "factor": 2.5},
            {"model": "jittered", "low": 0.8, "high": 1.5},
            {"model": "none"},
        )
        table |= stream.maybe(0.4, decision_time=stream.pick(models))
        if places:
            table |= stream.maybe(0.6, place=stream.pick(places))
        entries.append(table)
    return entries


def scheduler_names(document: Document) -> list[str]:
    return [
        f"{entry['name']}-{at}" if entry.get("replicas", 1) > 1 else entry["name"]
        for entry in document["fleet"]
        for at in range(entry.get("replicas", 1))
    ]


def network(stream: Stream, document: Document, places: Sequence[str]) -> Document:
    names = scheduler_names(document)
    models: tuple[Document, ...] = (
        {"model": "constant", "delay": "2ms"},
        {"model": "uniform", "low": "0.2ms", "high": "30ms"},
        {"model": "per-pair", "default": "1ms", "delays": {f"{names[0]}>cell": "5ms"}},
        {"model": "per-pair", "default": "0s", "delays": {f"{names[-1]}>machines": "0.1s"}},
    )
    table: Document = stream.maybe(0.6, latency=stream.pick(models))
    table |= stream.maybe(0.3, loss=0.05, duplication=0.02)
    table |= stream.maybe(0.2, reordering=0.2, extra_delay="10ms")
    if places and stream.has(0.7):
        table["places"] = {
            "default": stream.pick(("40ms", "0s")),
            **stream.maybe(0.5, within="0.5ms"),
            **stream.maybe(0.5, delays={f"{places[0]}<>{places[1]}": "30ms"}),
        }
    return table


def machine_model(stream: Stream) -> Document:
    orders = ("fcfs", "shortest-first", "shortest-remaining")
    steal = {"attempts": stream.among(1, 9), "most": stream.among(1, 3), "after": 0.5}
    return {
        **stream.maybe(0.3, queue=stream.pick(orders), slack=stream.among(0, 3)),
        **stream.maybe(0.2, limit=stream.among(0, 3)),
        **stream.maybe(0.2, start_delay="20ms", long_above="30s"),
        **stream.maybe(0.3, heartbeat=stream.pick(("0s", "1s"))),
        **stream.maybe(0.2, heartbeat_counts_sent=True),
        **stream.maybe(0.2, steal=steal),
    }


def agents(stream: Stream) -> Document:
    return {
        **stream.maybe(0.5, samplers=stream.among(0, 3), committers=stream.among(0, 3)),
        **stream.maybe(0.5, t_sample="2ms", t_machine="20us"),
        **stream.maybe(0.5, t_fetch="5ms", t_bind="2ms"),
        **stream.maybe(0.4, refresh=stream.pick(("0s", "1s"))),
        **stream.maybe(0.3, shards=stream.among(1, 3)),
    }


def faults(stream: Stream, document: Document) -> list[Document]:
    machines, schedulers = machine_names(document), scheduler_names(document)
    clusters = [each["name"] for each in document.get("clusters", ())]
    of_cluster = {"cluster": clusters[0]} if clusters else {}
    first, last = schedulers[0], schedulers[-1]
    known: list[Document] = [
        {"kind": "agent-down", "at": "3s", "lasts": "4s", **of_cluster},
        {"kind": "agent-slow", "at": "1s", "extra": "200ms", **of_cluster},
        {"kind": "agent-stale", "at": "2s", "lasts": "30s", **of_cluster},
        {"kind": "scheduler-crash", "at": "5s", "scheduler": last, "down": "2s"},
        {"kind": "scheduler-crash", "at": "50s", "scheduler": first},
        {"kind": "random-crashes", "what": "schedulers", "every": "20s", "down": "1s"},
        {"kind": "random-crashes", "what": "machines", "every": "9s", "down": "3s", "end": "1min"},
        {"kind": "partition", "at": "4s", "lasts": "9s", "isolated": [last]},
    ]
    if machines:
        name = stream.pick(machines)
        joins = {"zone": [f"{name.partition('/')[0]}/z1" if clusters else "z1"]}
        known += [
            {"kind": "machine-crash", "at": "6s", "machine": name, "down": "5s"},
            {"kind": "machine-crash", "at": "30s", "machine": name},
            {"kind": "machine-drain", "at": "2s", "machine": name, "lasts": "20s"},
            {"kind": "machine-resize", "at": "8s", "machine": name, "capacity": {"cpu": 1000}},
            {"kind": "machine-relabel", "at": "9s", "machine": name, "joins": joins},
            {"kind": "machine-relabel", "at": "9s", "machine": name, "attributes": {"arch": "arm"}},
            {"kind": "machine-use", "at": "1s", "machine": name, "used": {"cpu": 1500}},
        ]
    return [stream.pick(known) for _ in range(stream.pick((0, 0, 1, 2, 4)))]
