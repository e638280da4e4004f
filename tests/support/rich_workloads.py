"""Workloads of scenarios that a campaign never draws: generators, and traces in public formats. Each is
the table of a scenario and the files that it reads."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from rich_jobs import Document, Files, Stream, job_table, request

_RELATIONS: Final = (
    "EQUAL",
    "NOT_EQUAL",
    "LESS_THAN",
    "GREATER_THAN",
    "LESS_THAN_EQUAL",
    "GREATER_THAN_EQUAL",
    "PRESENT",
    "NOT_PRESENT",
)


def jobs_workload(stream: Stream, files: Files) -> list[Document]:
    return [job_table(stream, f"j{at}") for at in range(stream.among(1, 9))]


def trace_workload(stream: Stream, files: Files) -> Document:
    lines, submit = [], 0
    for at in range(stream.among(1, 9)):
        submit += stream.pick((0, 1, 500_000, 20_000_000))
        table = job_table(stream, f"t{at}") | {"submit": submit}
        lines.append(json.dumps(table))
    files["jobs.jsonl"] = "\n".join(lines) + "\n"
    return {"path": "jobs.jsonl", **stream.maybe(0.5, speedup=stream.pick((2, 0.5, 3.7)))}


def _shape(stream: Stream, *, is_time: bool) -> Document:
    low, high = ("1s", "40s") if is_time else (1, 9)
    middle = "5s" if is_time else 3
    shapes: tuple[Document, ...] = (
        {"shape": "constant", "value": middle},
        {"shape": "uniform", "low": low, "high": high},
        {"shape": "exponential", "mean": middle},
        {"shape": "lognormal", "median": middle, "sigma": 0.7},
        {"shape": "pareto", "low": low, "high": high, "alpha": 1.1},
    )
    return stream.pick(shapes)


def synthetic_workload(stream: Stream, files: Files) -> Document:
    kinds: Document = {}
    for name in stream.pick((("batch",), ("service", "batch"), ("a", "b", "c"))):
        weighted = [
            {"request": {"cpu": stream.pick((500, 1000))}, **stream.maybe(0.5, weight=weight)}
            for weight in (1, 3)
        ]
        bursty = {"process": "bursty", "factor": 4, "burst": "5s", "every": "9s"}
        kinds[name] = {
            "requests": weighted[: stream.among(1, 2)],
            "tasks": _shape(stream, is_time=False),
            **stream.maybe(0.8, duration=_shape(stream, is_time=True)),
            **stream.maybe(0.4, variation=0.3),
            **stream.maybe(0.4, share=stream.pick((0.3, 2, 7.5))),
            **stream.maybe(0.4, arrivals=stream.pick((bursty, {"process": "poisson"}))),
            **stream.maybe(0.3, standing=0.5),
            **stream.maybe(0.3, gang=0.4),
            **stream.maybe(0.3, estimates={"low": 0.7, "high": 1.5}),
            **stream.maybe(0.3, precedence=stream.among(-3, 3)),
            **stream.maybe(0.3, tags=[name, "web"], requires={"arch": "x86"}),
            **stream.maybe(0.2, owner="ann", constraints=["web -> {web, 0, 3} in machine"]),
        }
    span = stream.pick(("20s", "1min", "90s"))
    return {"span": span, "utilisation": stream.pick((0.2, 0.6, 1.1)), "kinds": kinds}


def eagle_workload(stream: Stream, files: Files) -> Document:
    submit, rows, bare = 0.0, ["job_id,submit_s,num_tasks,mean_task_s"], []
    for at in range(stream.among(1, 9)):
        submit += stream.pick((0, 0.5, 3, 12.25))
        count, mean = stream.among(1, 5), stream.pick((0.0001, 1, 7.5, 30))
        rows.append(f"y{at},{submit},{count},{mean}")
        times = " ".join(str(stream.pick((mean, mean * 2, 0, 1.5))) for _ in range(count))
        bare.append(f"{submit} {count} {mean} {times}")
    lines = stream.pick((rows, bare))
    files["yahoo.tr"] = "\n".join(lines) + stream.pick(("\n", "", "\n\n"))
    return {
        "path": "yahoo.tr",
        **stream.maybe(0.4, speedup=stream.pick((10, 0.5))),
        **stream.maybe(0.4, jobs=stream.among(1, 5)),
        **stream.maybe(0.3, request=request(stream)),
        **stream.maybe(0.4, estimates={"low": 0.5, "high": 1.5}),
        **stream.maybe(0.2, kind="query"),
    }


def fanout_workload(stream: Stream, files: Files) -> Document:
    return {
        "name": stream.pick(("yahoo", "cloudera")),
        "jobs": stream.among(1, 12),
        **stream.maybe(0.7, speedup=stream.pick((1000, 10))),
        **stream.maybe(0.5, pattern=stream.pick(("A", "B", "C", "D"))),
        "scale": stream.pick((0.05, 0.2)),
        **stream.maybe(0.3, request={"cpu": 200}),
        **stream.maybe(0.4, estimates={"low": 0.5, "high": 1.5}),
        **stream.maybe(0.2, kind="query"),
    }


def cluster_workload(stream: Stream, files: Files) -> Document:
    name = stream.pick(("A", "B", "C", "D", "lightweight"))
    return {
        "name": name,
        "span": stream.pick(("10s", "1min", "3min")),
        "scale": stream.pick((0.001, 0.004)),
        **stream.maybe(0.4, rate=stream.pick((0.5, 40.0, {"batch": 60.0}, {"service": 0.0}))),
        **stream.maybe(0.5, fill=stream.has(0.5)),
        **stream.maybe(0.3, mapreduce=True),
        **stream.maybe(0.3, turnover="6h"),
        **(stream.maybe(0.5, varied=True) if name in "BC" else {}),
        **stream.maybe(0.3, burstiness=stream.pick((1.0, 4.0))),
    }


SECOND: Final = 1_000_000
START: Final = 600 * SECOND


def _google_times(stream: Stream) -> dict[str, Any]:
    return {
        "path": "trace",
        **stream.maybe(0.4, start=stream.pick(("600s", "0s", "605s"))),
        **stream.maybe(0.4, span=stream.pick(("10s", "1h", "25s"))),
        **stream.maybe(0.2, machines=stream.among(1, 3)),
    }


class _Life(NamedTuple):
    """When something happened to a task, and what."""

    at: int
    job: int
    task: int
    what: int


def _lives(stream: Stream, types: dict[str, int]) -> tuple[list[_Life], list[_Life]]:
    """Events of tasks and of jobs, in order."""
    tasks, jobs = [], []
    for job in range(1, stream.among(2, 6)):
        came = START - 5 * SECOND + stream.below(20) * SECOND
        jobs.append(_Life(came, job, 0, types["SUBMIT"]))
        last = came
        for task in range(stream.among(1, 4)):
            at = came + stream.below(3) * 500_000
            tasks.append(_Life(at, job, task, types["SUBMIT"]))
            for _ in range(stream.among(0, 2)):
                at += stream.among(0, 4) * 750_000
                tasks.append(_Life(at, job, task, types["SCHEDULE"]))
                at += stream.among(0, 9) * SECOND
                ends = ("EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE_RUNNING")
                tasks.append(_Life(at, job, task, types[stream.pick(ends)]))
            last = max(last, at)
        if stream.has(0.8):
            end = types[stream.pick(("FINISH", "KILL", "FAIL"))]
            jobs.append(_Life(last + stream.below(2) * SECOND, job, 0, end))
        if stream.has(0.2):
            tasks.append(_Life(last + 9 * SECOND, job, 0, types["SCHEDULE"]))
    return sorted(tasks, key=lambda life: life.at), sorted(jobs, key=lambda life: life.at)


def google2011_workload(stream: Stream, files: Files) -> Document:
    names = "SUBMIT SCHEDULE EVICT FAIL FINISH KILL LOST UPDATE_PENDING UPDATE_RUNNING"
    types = {name: at for at, name in enumerate(names.split())}
    tasks, jobs = _lives(stream, types)
    machines = [
        f"{stream.pick((0, 0, START, START + SECOND))},{at},{stream.pick((0, 0, 0, 2, 1))},"
        f"p{at % 2},{stream.pick(('0.5', '1', '0.25', ''))},{stream.pick(('0.5', '0.999', '1'))}"
        for at in range(stream.among(2, 6))
    ]
    attributes = [
        f"0,{at},{stream.pick(('os', 'clock'))},{stream.pick(('1', '5', 'x', ''))},{stream.below(2)}"
        for at in range(stream.below(5))
    ]
    asks = [
        f"{max(0, life.at - 1)},{life.job},{life.task},{stream.below(4)},"
        f"{stream.pick(('os', 'clock'))},{stream.pick(('1', '5', 'x', ''))}"
        for life in tasks
        if life.what == 0 and stream.has(0.3)
    ]
    rows = [
        f"{life.at},,{life.job},{life.task},,{life.what},kim,2,{stream.pick((0, 8, 9, 200))},"
        f"{stream.pick(('0.01', '0.06', '', '0'))},{stream.pick(('0.02', '0.1', ''))},0.001,"
        f"{stream.pick(('', '0', '1'))}"
        for life in tasks
    ]
    told = [f"{life.at},,{life.job},{life.what},{stream.pick(('kim', ''))},1,a,b" for life in jobs]
    tables = {
        "machine_events": machines,
        "machine_attributes": attributes,
        "task_constraints": asks,
        "task_events": rows,
        "job_events": told,
    }
    _write_parts(stream, files, tables, ".csv")
    return _google_times(stream)


def _write_parts(
    stream: Stream, files: Files, tables: dict[str, list[str]], end: str, heading: str = ""
) -> None:
    for table, rows in tables.items():
        half = stream.below(len(rows) + 1)
        for part, some in enumerate((rows[:half], rows[half:])):
            if not some:
                continue
            head = [heading] if heading else []
            text = "".join(f"{row}\n" for row in [*head, *some])
            name = stream.pick((f"{table}/part-0000{part}-of-00002{end}", f"{table}-00{part}{end}"))
            if stream.has(0.2):
                files[f"trace/{name}.gz"] = gzip.compress(text.encode(), mtime=0)
            else:
                files[f"trace/{name}"] = text


def google2019_workload(stream: Stream, files: Files) -> Document:
    names = "SUBMIT QUEUE ENABLE SCHEDULE EVICT FAIL FINISH KILL LOST UPDATE_PENDING UPDATE_RUNNING"
    types = {name: at for at, name in enumerate(names.split())}
    tasks, jobs = _lives(stream, types)
    machines: list[Document] = [
        {
            "time": stream.pick((0, "0", START, START + 1)),
            "machine_id": at,
            "type": stream.pick((1, "ADD", 3, 2)) if at else 1,
            "capacity": {"cpus": stream.pick((0.5, 1, 0.25)), "memory": stream.pick((0.5, "0.9"))},
            **stream.maybe(0.5, platform_id="p", switch_id=f"sw{at % 2}"),
        }
        for at in range(stream.among(2, 5))
    ]
    attributes: list[Document] = [
        {"time": 0, "machine_id": at, "name": "os", "value": "7", **stream.maybe(0.3, deleted=True)}
        for at in range(stream.below(4))
    ]
    rows: list[Document] = [
        {
            "time": life.at,
            "type": stream.pick((life.what, names.split()[life.what])),
            "collection_id": life.job,
            **stream.maybe(0.9, instance_index=life.task),
            **stream.maybe(0.7, priority=stream.pick((0, 99, 115, 116, 360))),
            **stream.maybe(0.9, resource_request={"cpus": 0.01, "memory": stream.pick((0, 0.02))}),
            **stream.maybe(0.1, alloc_collection_id=stream.below(2)),
            **stream.maybe(
                0.3,
                constraint=[
                    {"name": "os", "relation": stream.pick(_RELATIONS), "value": "7"},
                    {"name": "os", "value": stream.pick(("7", "8", ""))},
                ],
            ),
        }
        for life in tasks
    ]
    told: list[Document] = [
        {
            "time": life.at,
            "type": life.what,
            "collection_id": life.job,
            "user": "u",
            **stream.maybe(0.3, scheduler=stream.pick((0, 1, "SCHEDULER_BATCH"))),
            **stream.maybe(0.3, max_per_machine=stream.below(2), max_per_switch=1),
            **stream.maybe(0.2, start_after_collection_ids=stream.pick(([], [3]))),
            **stream.maybe(0.2, parent_collection_id=stream.below(3), priority=200),
        }
        for life in jobs
    ]
    tables = {
        "machine_events": [json.dumps(row) for row in machines],
        "machine_attributes": [json.dumps(row) for row in attributes],
        "instance_events": [json.dumps(row) for row in rows],
        "collection_events": [json.dumps(row) for row in told],
    }
    _write_parts(stream, files, tables, ".json")
    return _google_times(stream)


def alibaba_workload(stream: Stream, files: Files) -> Document:
    models = ("V100M16", "P100", "T4", "")
    nodes = ["sn,cpu_milli,memory_mib,gpu,model"]
    for at in range(stream.among(1, 4)):
        gpus = stream.pick((0, 1, 2, 8))
        nodes.append(f"node-{at},{stream.pick((64000, 8000))},65536,{gpus},{stream.pick(models)}")
    columns = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase"
    pods = [f"{columns},creation_time,deletion_time,scheduled_time"]
    for at in range(stream.among(1, 9)):
        created = stream.below(30)
        begun = created + stream.below(5)
        count, share = stream.pick(((0, 0), (1, 460), (1, 1000), (2, 1000), (1, 1)))
        spec = stream.pick(("", "", "T4", "V100M16|T4", "P100 |V100M16"))
        quality = stream.pick(("LS", "BE", "Burstable"))
        scheduled = stream.pick((str(begun), str(begun), f"{begun}.0", ""))
        pods.append(
            f"pod-{at},{stream.pick((1000, 4000))},1024,{count},{share},{spec},{quality},Succeeded,"
            f"{created},{begun + stream.below(40)},{scheduled.removesuffix('.0')}"
        )
    which = stream.pick(("default", "multigpu20"))
    files["trace/openb_node_list_all_node.csv"] = "\n".join(nodes) + "\n"
    files[f"trace/openb_pod_list_{which}.csv"] = "\n".join(pods) + "\n"
    return {
        "path": "trace",
        **({} if which == "default" else {"pods": which}),
        **stream.maybe(0.3, start=stream.pick(("5s", "0s", "20s"))),
        **stream.maybe(0.3, span="15s"),
        **stream.maybe(0.2, machines=stream.among(1, 3)),
        **stream.maybe(0.6, sharing=stream.pick(("devices", "pooled", "none"))),
    }


def _stamp(second: int) -> str:
    return f"2026-11-17T10:{second // 60:02}:{second % 60:02}Z"


def pod_document(stream: Stream, at: int) -> Document:
    controller = stream.pick(("ReplicaSet", "Job", "StatefulSet", "DaemonSet", "Node"))
    owner = {"kind": controller, "name": f"own{at % 3}", "uid": f"own{at % 3}", "controller": True}
    term = {
        "labelSelector": {"matchLabels": {"app": stream.pick(("web", "db"))}},
        "topologyKey": stream.pick(
            ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "row")
        ),
    }
    node_term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    when = "DuringSchedulingIgnoredDuringExecution"
    affinities: tuple[Document, ...] = (
        {"podAntiAffinity": {f"required{when}": [term]}},
        {"podAffinity": {f"required{when}": [term]}},
        {"podAffinity": {f"preferred{when}": [{"weight": 5, "podAffinityTerm": term}]}},
        {"nodeAffinity": {f"preferred{when}": [{"weight": 5, "preference": node_term}]}},
        {"nodeAffinity": {f"required{when}": {"nodeSelectorTerms": [node_term]}}},
    )
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": stream.pick(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    came = stream.below(90)
    wanted = {"cpu": stream.pick(("500m", "1", "9")), "memory": "1Gi"}
    wanted |= stream.maybe(0.1, **{"example.com/gpu": "1"})
    ports = [{"containerPort": 80, "hostPort": 8080, "hostIP": stream.pick(("", "10.0.0.1"))}]
    status: Document = {"phase": stream.pick(("Running", "Running", "Pending", "Succeeded"))}
    if status["phase"] == "Succeeded":
        stopped = {"exitCode": 0, "finishedAt": _stamp(came + stream.below(60))}
        status["containerStatuses"] = [{"name": "c", "state": {"terminated": stopped}}]
    if stream.has(0.5):
        told = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _stamp(came + 2)}
        status["conditions"] = [told]
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"p{at}",
            "namespace": stream.pick(("shop", "lab")),
            "uid": f"p{at}",
            "creationTimestamp": _stamp(came),
            "labels": {"app": stream.pick(("web", "db")), **stream.maybe(0.2, **{"odd key": "x"})},
            **stream.maybe(0.6, ownerReferences=[owner]),
        },
        "spec": {
            "containers": [
                {"name": "c", "resources": {"requests": wanted}, **stream.maybe(0.2, ports=ports)}
            ],
            **stream.maybe(0.6, nodeName=stream.pick(("n0", "n1", "gone"))),
            **stream.maybe(0.2, nodeSelector={"disk": "ssd"}),
            **stream.maybe(0.4, affinity=stream.pick(affinities)),
            **stream.maybe(0.2, topologySpreadConstraints=[spread]),
            **stream.maybe(0.2, priority=stream.pick((0, 1000, 2_000_000_000))),
            **stream.maybe(0.2, activeDeadlineSeconds=30),
            **stream.maybe(0.1, preemptionPolicy="Never"),
            **stream.maybe(0.1, schedulingGates=[{"name": "later"}]),
            **stream.maybe(0.3, tolerations=[{"key": "gpu", "operator": "Exists"}]),
        },
        "status": status,
    }


def kubernetes_workload(stream: Stream, files: Files) -> Document | str:
    nodes: list[Document] = [
        {
            "kind": "Node",
            "metadata": {
                "name": f"n{at}",
                "labels": {
                    "kubernetes.io/hostname": f"n{at}",
                    "topology.kubernetes.io/zone": stream.pick(("a", "b")),
                    **stream.maybe(0.5, disk="ssd"),
                    **stream.maybe(0.2, row="r1"),
                    **stream.maybe(0.2, **{"example.com/rack": "r7"}),
                },
            },
            "spec": stream.maybe(0.3, taints=[{"key": "gpu", "effect": "NoSchedule"}]),
            "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}},
        }
        for at in range(stream.among(1, 4))
    ]
    nodes[0]["status"]["allocatable"] |= stream.maybe(0.5, **{"example.com/gpu": "2"})
    pods = [pod_document(stream, at) for at in range(stream.among(1, 9))]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes + pods}, indent=1)
    name = stream.pick(("cluster.json", "cluster.yaml"))
    files[name] = text
    if stream.has(0.3):
        return name
    return {
        "path": name,
        **stream.maybe(0.6, since=stream.pick(("30s", "2min"))),
        **stream.maybe(0.4, pinned=stream.has(0.5)),
    }


WORKLOADS: Final[dict[str, Callable[[Stream, Files], Any]]] = {
    "jobs": jobs_workload,
    "synthetic": synthetic_workload,
    "trace": trace_workload,
    "eagle": eagle_workload,
    "google2011": google2011_workload,
    "fanout": fanout_workload,
    "cluster": cluster_workload,
    "google2019": google2019_workload,
    "alibaba2023": alibaba_workload,
    "kubernetes": kubernetes_workload,
}
