"""`argosy summary`: what happened in a run so far."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from argosy.cli.kept import Recording
from argosy.cli.output import emit, output_option, tell_unmet


@click.command(epilog="Example: argosy summary runs/quickstart-1 -o json")
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option("--recount", is_flag=True, help="Count from the journal, whatever was kept.")
@output_option
def command(run: Path | None, recount: bool, output: str) -> None:
    """Print the summary of RUN: its directory, or a journal on its own.

    A finished run has kept its summary. Of one that still goes on, was cut short, or is told by its
    journal alone, what happened so far is counted from the journal; messages and the quality of the
    placement are then missing. Without RUN, the latest under runs/ is meant.
    """
    from argosy.report import summaries

    recording = Recording(run)
    summary = recording.summary(recount=recount)
    status = "journal" if recording.run is None else recording.run.status.value

    def document() -> dict[str, Any]:
        return {"run": str(recording.path), "status": status, **summaries.document(summary)}

    def csv() -> str:
        from argosy.report.tables import csv_text

        row = {"run": str(recording.path), "status": status, **summaries.flat(summary)}
        return csv_text([row], list(row))

    tell_unmet(summary.left_out)
    emit(
        output,
        sections=lambda width: summaries.sections(summary, width),
        document=document,
        csv=csv,
    )
