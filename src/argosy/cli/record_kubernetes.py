"""`argosy record --kubeconfig`: a Kubernetes cluster as a workload, by watching it."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from argosy.cli.output import note
from argosy.model.errors import CommandError

if TYPE_CHECKING:
    from argosy.service.kubernetes.recorder import PodRecorder
    from argosy.workloads.pod_lives import ClusterRecording
    from argosy.workloads.pod_workloads import CarriedOver

_NAME: Final = "recorded"


def record_kubernetes(
    kubeconfig: Path | None, context: str | None, duration: str | None, *, pinned: bool
) -> CarriedOver:
    """Watches until `duration` is over, or until it is interrupted."""
    import asyncio

    from argosy.cli.server_start import require_serve
    from argosy.model.units import format_count, parse_duration

    require_serve("argosy record --kubeconfig")

    from argosy.kubernetes.kubeconfig import load_connection
    from argosy.service.kubernetes.recorder import record_cluster
    from argosy.workloads.pod_workloads import carry_over

    seconds = None if duration is None else parse_duration(duration) / 1e6
    connection = load_connection(kubeconfig, context)

    def ready(recorder: PodRecorder) -> None:
        until = "until Ctrl-C" if duration is None else f"for {duration}"
        nodes, pods = format_count(recorder.nodes, "node"), format_count(recorder.pods, "pod")
        note(f"argosy: recording {nodes} and {pods} {until}, changing nothing")

    async def main() -> ClusterRecording:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        if seconds is not None:
            loop.call_later(seconds, stop.set)
        return await record_cluster(connection, stop, ready)

    recording = asyncio.run(main())
    if not recording.nodes:
        raise CommandError("the cluster has no nodes", expected="at least one")
    carried = carry_over(recording, pinned=pinned)
    if not carried.jobs:
        raise CommandError("no pods that ran or waited", expected="at least one")
    return carried


def write_cluster(directory: Path, carried: CarriedOver, scenario: str, trace: str) -> None:
    """Writes the two files."""
    from argosy.model.scenario import CellSpec, FleetEntry
    from argosy.scenarios.kubernetes_tables import DEFAULT_ENGINE, default_horizon
    from argosy.scenarios.scenario_tables import cluster_tables
    from argosy.scenarios.toml_text import to_toml
    from argosy.workloads.trace import write_trace

    directory.mkdir(parents=True, exist_ok=True)
    write_trace(directory / trace, carried.jobs)
    cell = CellSpec(machines=carried.machines, groups=carried.groups)
    fleet = (FleetEntry(name="scheduler", engine=DEFAULT_ENGINE),)
    horizon = default_horizon(carried.jobs)
    document = {
        "name": _NAME,
        "horizon": None if horizon is None else f"{horizon}us",
        **cluster_tables(cell, carried.machines, fleet),
        "workload": {"trace": {"path": trace}},
    }
    (directory / scenario).write_text(to_toml(document), encoding="utf-8")
