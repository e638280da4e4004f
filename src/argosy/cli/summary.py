"""`argosy summary`: what happened in a run so far."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from argosy.cli.kept import kept_run, summary_of
from argosy.cli.output import emit, output_option, tell_unmet


@click.command(epilog="Example: argosy summary runs/quickstart-1 -o json")
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option("--recount", is_flag=True, help="Compute it from the journal, even if it was saved.")
@output_option
def command(run: Path | None, recount: bool, output: str) -> None:
    """Print the summary of RUN, a run directory or a journal file.

    A finished run has its summary saved. For a run in progress, a run that was cut short, or a
    journal file, it is computed from the journal so far; it then lacks messages and placement
    quality. By default, RUN is the latest run under runs/.
    """
    from argosy.report import summaries

    recorded = kept_run(run)
    summary = summary_of(recorded, recount=recount)
    status = recorded.status.value

    def document() -> dict[str, Any]:
        return {"run": str(recorded.path), "status": status, **summaries.document(summary)}

    def csv() -> str:
        from argosy.report.tables import csv_text

        row = {"run": str(recorded.path), "status": status, **summaries.flat(summary)}
        return csv_text([row], list(row))

    tell_unmet(summary.left_out)
    emit(
        output,
        sections=lambda width: summaries.sections(summary, width),
        document=document,
        csv=csv,
    )
