"""`argosy why`: the explanation behind a task's state."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from argosy.cli.kept import kept_run, run_option
from argosy.cli.live import ServerChoice, complete_task, live_options
from argosy.cli.live_answers import answered
from argosy.cli.output import emit, output_option

if TYPE_CHECKING:
    from argosy.client import Client
    from argosy.model.answers import WhyAnswer


@click.command(epilog="Example: argosy why crawl/199 --run runs/quickstart-1")
@click.argument("task", shell_complete=complete_task)
@run_option
@live_options
@output_option
def command(task: str, path: Path | None, where: ServerChoice, output: str) -> None:
    """Explain why TASK is where it is.

    For a task without a machine: what makes it impossible, or which machines could take it, what they
    lack, who holds it, and what would help. For a placed task: what decided on its machine, how long it
    waited and for what, and which constraints it breaks there.

    Without --run, a live cluster answers if its server can be reached and knows the job; otherwise the
    latest run under runs/ does.
    """
    import msgspec

    def saved() -> tuple[WhyAnswer, list[str]]:
        from argosy.records.answers import TaskAnswers
        from argosy.report.answers import sentences

        answer = TaskAnswers(kept_run(path), task).why()
        return answer, sentences(answer)

    def live(client: Client, job: str, index: int) -> tuple[WhyAnswer, list[str]]:
        document = client.why(job, index)
        return document.answer, list(document.text)

    answer, text = answered(task, path, where, live, saved)

    def sections(width: int | None) -> list[list[str]]:
        lines = text
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
