"""`argosy run`: execute one scenario."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from argosy.cli.output import (
    NO_JOBS,
    emit,
    html_option,
    markdown_option,
    note,
    output_option,
    tell_unmet,
    write_page,
)
from argosy.cli.progress import progress
from argosy.cli.strictness import strict_option, unmet_notes
from argosy.model.errors import CommandError

if TYPE_CHECKING:
    from argosy.records.record import RunRecord
    from argosy.records.summary import Summary

#: The largest seed that a scenario file can contain.
LARGEST_SEED: Final = 2**63 - 1
#: Reasons for slow and unfinished jobs are left to `argosy why` if they would take seconds to find.
LARGEST_JOURNAL: Final = 50_000_000
#: How much of a path that is too long to exist is shown.
LONGEST_ECHO: Final = 100


@click.command(epilog="Example: argosy run scenarios/quickstart.toml --engine murmuration --seed 7")
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option(
    "--seed",
    type=click.IntRange(0, LARGEST_SEED),
    metavar="N",
    help="Use this seed instead of the scenario's.",
)
@click.option(
    "--engine",
    metavar="NAME",
    help="Replace the whole fleet with this engine: a name, or a class as package.module:Class.",
)
@click.option(
    "--as-published",
    "published",
    is_flag=True,
    help="Use the settings, machines and number of schedulers of the published simulations.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to save the run.  [default: runs/<scenario>-<number>]",
)
@click.option("--no-save", is_flag=True, help="Do not save the run.")
@strict_option
@html_option
@markdown_option
@output_option
def command(
    scenario: Path,
    seed: int | None,
    engine: str | None,
    published: bool,
    out: Path | None,
    no_save: bool,
    strict: bool,
    html: Path | None,
    markdown: Path | None,
    output: str,
) -> None:
    """Simulate SCENARIO and print a summary.

    The run is saved in a directory with its scenario, journal and results. `argosy story`,
    `argosy why` and others can read it, even while it is running. The same scenario and seed give the
    same journal, byte for byte.
    """
    if no_save and out is not None:
        raise CommandError("both --no-save and --out", expected="one of them")

    from argosy.engines.registry import find_engines
    from argosy.experiments.execute import execute, execute_in_memory
    from argosy.records.directory import default_directory
    from argosy.report import summaries
    from argosy.report.priorities import ignored_notes
    from argosy.scenarios.ignored_demands import ignored_demands
    from argosy.scenarios.loader import as_published, load, with_engine

    loaded = load(scenario, seed=seed, published=published)
    if engine is not None:
        loaded = with_engine(loaded, engine)
    elif published:
        loaded = as_published(loaded)
    unmet = unmet_notes(loaded, scenario, strict)
    directory = None if no_save else out or default_directory(loaded.name, engine or "")
    kept: RunRecord | None = None
    try:
        with progress(f"running {loaded.name}") as tell:
            if html is not None and directory is None:
                kept = execute_in_memory(loaded, progress=tell)
                summary = kept.summary()
            else:
                call = ["argosy", *sys.argv[1:]]
                summary = execute(loaded, directory, command=call, progress=tell)
    except OSError as error:
        raise CommandError(
            f"the run cannot be saved in {_shortened(str(directory))}: {error.strerror}",
            hint="name another directory with --out, or save nothing with --no-save",
        ) from None

    ignored = ignored_demands(loaded, find_engines(loaded.engine_names()))
    notes = [*loaded.left_out, *unmet, *ignored_notes(ignored, summary)]
    if not loaded.jobs:
        notes.append(NO_JOBS)

    kept = kept or _readable(directory, LARGEST_JOURNAL if html is None else None)
    if html is not None:
        write_page(html, _page(kept, summary, notes))
    if markdown is not None:
        from argosy.report.markdown import run_markdown

        text = run_markdown(kept, summary, notes, shlex.join(["argosy", *sys.argv[1:]]))
        write_page(markdown, text, "--markdown")

    def document() -> dict[str, Any]:
        import msgspec

        from argosy.report.notable_jobs import notable_jobs

        return {
            "directory": None if directory is None else str(directory),
            "notes": notes,
            **summaries.document(summary),
            "notable_jobs": [] if kept is None else msgspec.to_builtins(notable_jobs(kept)),
        }

    def sections(width: int | None) -> list[list[str]]:
        from argosy.report.notable_jobs import notable_sections

        told = summaries.sections(summary, width)
        return told if kept is None else [*told, *notable_sections(kept, width)]

    def csv() -> str:
        from argosy.report.tables import csv_text

        row = summaries.flat(summary)
        return csv_text([row], list(row))

    tell_unmet(notes)
    emit(
        output,
        sections=sections,
        document=document,
        csv=csv,
    )
    if directory is not None:
        note(f"\nsaved in {directory}")
        note(f"next: argosy why TASK --run {directory}, or argosy compare {scenario}")


def _page(run: RunRecord | None, summary: Summary, notes: list[str]) -> str:
    from argosy.report.run_report import run_page

    if run is None:
        raise CommandError(
            "--html needs the journal of the run",
            expected='output.log = "replayable", which is the default',
        )
    return run_page(run, summary, notes, shlex.join(["argosy", *sys.argv[1:]]))


def _readable(directory: Path | None, most: int | None) -> RunRecord | None:
    """The run, if it has a journal of at most so many bytes."""
    from argosy.records.directory import JOURNAL, open_run

    if directory is None or not (directory / JOURNAL).is_file():
        return None
    is_small = most is None or (directory / JOURNAL).stat().st_size <= most
    run = open_run(directory) if is_small else None
    return run if run is not None and run.journal.has_ends else None


def _shortened(path: str) -> str:
    return path if len(path) <= LONGEST_ECHO else f"{path[: LONGEST_ECHO - 3]}..."
