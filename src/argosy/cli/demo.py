"""`argosy demo`: engines compared in simulation, then the best one with real tasks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from argosy.cli.output import emit, note, output_option
from argosy.cli.progress import progress

if TYPE_CHECKING:
    from argosy.api.values import JobDetails
    from argosy.client import Client
    from argosy.library import Comparison

MACHINES: Final = 4
#: What the live half runs: enough to wait for each other on four small machines.
_JOBS: Final[tuple[dict[str, Any], ...]] = (
    {
        "id": "render",
        "count": 40,
        "command": ["sh", "-c", "sleep 0.$((ARGOSY_TASK % 5 + 2)); echo frame $ARGOSY_TASK"],
        "estimate": "400ms",
    },
    {"id": "report", "count": 4, "command": ["sh", "-c", "sleep 1; echo done"], "estimate": "1s"},
    {"id": "flaky", "command": ["sh", "-c", "exit 3"], "retries": 1, "estimate": "10ms"},
)
_TOO_LARGE: Final = {"id": "too-large", "command": ["true"], "estimate": "1s"}


@click.command(epilog="Example: argosy demo scenarios/demo.toml")
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help="An engine to compare; repeatable.  [default: omega and murmuration]",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    metavar="N",
    help="How many runs of each.",
)
@output_option
def command(scenario: Path, engines: tuple[str, ...], seeds: int, output: str) -> None:
    """Compare engines on SCENARIO in simulation, then run the best one for real.

    The second half starts a live cluster in a temporary directory, gives it real tasks, and takes
    everything down again.
    """
    from argosy.cli.compare import sections
    from argosy.cli.server_start import require_serve
    from argosy.library import compare

    require_serve()
    names = engines or ("omega", "murmuration")
    with progress(f"comparing {len(names)} engines x {seeds} seeds") as tell:
        compared = compare(scenario, list(names), seeds=seeds, progress=tell)
    if output == "table":
        emit(
            output,
            sections=lambda width: sections([compared.ranking()], width),
            document=dict,
            csv=str,
        )
    best = compared.best() or names[0]
    note("")
    with progress(f"{best} runs real tasks on {MACHINES} slices of this computer") as tell:
        jobs, why = _run_live(best, tell)
    _show(output, best, compared, jobs, why)


def _run_live(engine: str, tell: Any) -> tuple[list[JobDetails], list[str]]:
    """The jobs when they are over, and why the one that does not fit is not placed."""
    from argosy.cli.server_start import start_server
    from argosy.client import Client

    with tempfile.TemporaryDirectory(prefix="argosy-demo-") as folder:
        arguments = ["up", "--dir", folder, "--listen", "none", "--machines", str(MACHINES)]
        start_server([*arguments, "--engine", engine], Path(folder))
        with Client(directory=folder) as client:
            try:
                return _use(client, tell)
            finally:
                _take_down(client, Path(folder))


def _use(client: Client, tell: Any) -> tuple[list[JobDetails], list[str]]:
    cores = {machine.capacity["cpu"] for machine in client.machines()}
    small = {"cpu": max(1, min(cores) // 2), "memory": "32MiB"}
    for document in _JOBS:
        client.submit({**document, "request": small})
    planned = client.plan([{**_TOO_LARGE, "request": {"cpu": 2 * max(cores) + 1000}}])
    total = sum(int(document.get("count", 1)) for document in _JOBS)
    over = 0
    for document in _JOBS:
        for job in client.watch(document["id"]):
            tell((over + job.tasks.finished + job.tasks.failed) / total)
        over += int(document.get("count", 1))
    task = planned.tasks[0]
    return [client.job(document["id"]) for document in _JOBS], [task.sentence, task.remedy]


def _take_down(client: Client, folder: Path) -> None:
    """Nothing is left: neither tasks nor the server nor its files."""
    import time

    from argosy.api.sockets import SOCKET

    client.shutdown(stop_tasks=True)
    while (folder / SOCKET).exists():
        time.sleep(0.02)


def _show(
    output: str, best: str, compared: Comparison, jobs: list[JobDetails], why: list[str]
) -> None:
    import msgspec

    from argosy.cli.job_tables import JOB_COLUMNS, job_row
    from argosy.report.tables import Table

    table = Table(JOB_COLUMNS, tuple(map(job_row, jobs)))
    dull = ("name", "kind", "owner", "precedence", "submitted")

    def sections(width: int | None) -> list[list[str]]:
        return [
            [f"{best} for real: what ran", *table.without(dull).lines(width)],
            ["a job that is too large, planned but not submitted", *(text for text in why if text)],
        ]

    emit(
        output,
        sections=sections,
        document=lambda: {
            "best": best,
            "verdict": compared.verdict(),
            "jobs": msgspec.to_builtins(jobs),
            "plan": why,
        },
        csv=table.csv,
    )
