"""`argosy why`: the explanation behind a task's state."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import click

from argosy.cli.kept import kept_run, run_option
from argosy.cli.output import emit, output_option


@click.command(epilog="Example: argosy why crawl/199 --run runs/quickstart-1")
@click.argument("task")
@run_option
@output_option
def command(task: str, path: Path | None, output: str) -> None:
    """Explain why TASK is where it is.

    For a task without a machine: how many machines were checked and ruled out, the nearest miss, and
    what would help. For a placed task: the rule that chose its machine, and the runner-up.
    """
    import msgspec

    from argosy.records.answers import TaskAnswers
    from argosy.report.answers import sentences

    answer = TaskAnswers(kept_run(path), task).why()

    def sections(width: int | None) -> list[list[str]]:
        lines = sentences(answer)
        if width is not None:
            lines = [part for line in lines for part in textwrap.wrap(line, width)]
        return [[f"{answer.task}: {answer.state}"], lines]

    def row() -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(answer)
        ruled_out = built.pop("ruled_out", None) or {}
        built["ruled_out"] = "; ".join(f"{name} {count}" for name, count in ruled_out.items())
        return built

    def csv() -> str:
        from argosy.report.tables import csv_text

        return csv_text([row()], list(row()))

    emit(output, sections=sections, document=lambda: msgspec.to_builtins(answer), csv=csv)
