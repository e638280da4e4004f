"""`argosy record`: what happened in a cluster as a workload, or a live cluster's journal."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import click

from argosy.cli.live import ServerChoice, live_options
from argosy.cli.output import note
from argosy.model.errors import CommandError

SCENARIO: Final = "scenario.toml"
TRACE: Final = "jobs.jsonl"
#: The end of a recorded scenario whose only jobs run until stopped.
_SHORTEST_HORIZON: Final = 60_000_000


@click.command(
    epilog="Example: argosy record -o recorded; or of a Kubernetes cluster: argosy record --kubeconfig "
    "~/.kube/config --for 10min -o recorded"
)
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help=f"Write {SCENARIO} and {TRACE} there.",
)
@click.option(
    "--journal",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the journal to FILE.",
)
@click.option(
    "--life",
    type=click.IntRange(1),
    metavar="N",
    help="With --journal: of which start of the server.  [default: the present one]",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Record the Kubernetes cluster that FILE leads to, instead of a server of Argosy.",
)
@click.option(
    "--context",
    metavar="NAME",
    help="The context of the kubeconfig; without --kubeconfig, of the one that kubectl would use.",
)
@click.option(
    "--for",
    "duration",
    metavar="DURATION",
    help="Of Kubernetes: record for this time, such as 10min.  [default: until Ctrl-C]",
)
@click.option(
    "--pinned",
    is_flag=True,
    help="Of Kubernetes: pods that run already stay on their nodes; otherwise they are placed anew.",
)
@live_options
def command(
    target: Path | None,
    journal: Path | None,
    life: int | None,
    kubeconfig: Path | None,
    context: str | None,
    duration: str | None,
    pinned: bool,
    where: ServerChoice,
) -> None:
    """Turn what happened in a cluster into files for simulations.

    With -o, a scenario: the cluster's machines and fleet, and every job with the time it was submitted
    and how long its tasks ran. `argosy run` and `argosy compare` take it. With --journal, the journal
    of the server: `argosy replay` checks its decisions, or tries other engines.

    With --kubeconfig or --context, the cluster is one of Kubernetes, whoever schedules it. It is watched
    from now on, and nothing in it is changed.
    """
    if kubeconfig is not None or context is not None:
        if journal is not None or life is not None or where.is_given:
            raise CommandError(
                "a server of Argosy and a cluster of Kubernetes",
                expected="--kubeconfig with -o, --context, --for and --pinned only",
            )
        if target is None:
            raise CommandError("nowhere to write to", expected="-o DIR")
        _record_kubernetes(target, kubeconfig, context, duration, pinned)
        return
    if duration is not None or pinned:
        given = "--for" if duration is not None else "--pinned"
        raise CommandError(f"{given} without --kubeconfig", expected="both")
    if target is None and journal is None:
        raise CommandError("nothing to write", expected="-o DIR, --journal FILE, or both")
    if life is not None and journal is None:
        raise CommandError("--life without --journal", expected="both")
    with where.client() as client:
        if target is not None:
            jobs = _write_scenario(target, _lines(client.recording()))
            note(f"{target / SCENARIO}: {jobs:,} {'job' if jobs == 1 else 'jobs'}")
        if journal is not None:
            with _whole(journal) as file:
                for piece in client.journal(life):
                    file.write(piece)
            note(f"{journal}: {journal.stat().st_size:,} bytes")


def _record_kubernetes(
    target: Path, kubeconfig: Path | None, context: str | None, duration: str | None, pinned: bool
) -> None:
    from argosy.cli.record_kubernetes import record_kubernetes, write_cluster
    from argosy.model.units import format_count

    carried = record_kubernetes(kubeconfig, context, duration, pinned=pinned)
    write_cluster(target, carried, SCENARIO, TRACE)
    for sentence in carried.left_out:
        note(f"note: {sentence}")
    pods = format_count(sum(job.tasks for job in carried.jobs), "pod")
    jobs = format_count(len(carried.jobs), "job")
    nodes = format_count(len(carried.machines), "machine")
    note(f"{target / SCENARIO}: {nodes}, {pods} in {jobs}")


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _write_scenario(directory: Path, lines: Iterator[bytes]) -> int:
    """Writes the files, and returns the number of jobs."""
    import msgspec

    from argosy.scenarios.toml_text import to_toml

    cluster: dict[str, Any] = msgspec.json.decode(next(lines))["cluster"]
    directory.mkdir(parents=True, exist_ok=True)
    jobs, last, has_endless = 0, _SHORTEST_HORIZON, False
    with _whole(directory / TRACE) as trace:
        for line in lines:
            end, is_endless = _extent(msgspec.json.decode(line))
            last, has_endless = max(last, end), has_endless or is_endless
            trace.write(line + b"\n")
            jobs += 1
    document = {**cluster, "workload": {"trace": {"path": TRACE}}}
    if has_endless:
        # Such a simulation would never end. Jobs that wait longer than they did need time, too.
        document["horizon"] = f"{2 * last}us"
    with _whole(directory / SCENARIO) as file:
        file.write(to_toml(document).encode())
    return jobs


def _extent(job: dict[str, Any]) -> tuple[int, bool]:
    """When the job would end if it never waited, and whether it runs until stopped."""
    longest, is_endless = 0, False
    for group in job.get("groups", [job]):
        times = group.get("durations", [group["duration"]] if "duration" in group else [])
        longest = max([longest, *times])
        is_endless = is_endless or not times
    return int(job["submit"]) + longest, is_endless


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[Any]:
    """A file that is there as a whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
