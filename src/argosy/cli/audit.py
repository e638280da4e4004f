"""`argosy audit`: which scheduler used what."""

from __future__ import annotations

from pathlib import Path

import click

from argosy.cli.kept import kept_run, run_option
from argosy.cli.output import emit, output_option


@click.command(epilog="Example: argosy audit --run runs/quickstart-1 -o json")
@run_option
@output_option
def command(path: Path | None, output: str) -> None:
    """Show for each scheduler what it held, compared with its limits, and its admissions,
    preemptions and conflicts with others."""
    import msgspec

    from argosy.records.audit import audit
    from argosy.report import audits

    found = audit(kept_run(path))
    emit(
        output,
        sections=lambda width: audits.sections(found, width),
        document=lambda: msgspec.to_builtins(found),
        csv=lambda: audits.csv(found),
    )
