"""`argosy replay`: the same decisions again, or other engines on what was recorded."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from argosy.cli.kept import kept_run, summary_of
from argosy.cli.output import emit, output_option, tell_unmet
from argosy.cli.progress import progress
from argosy.model.errors import ReplayDiverged

if TYPE_CHECKING:
    from argosy.records.record import RunRecord
    from argosy.records.summary import Summary


@click.command(epilog="Example: argosy replay runs/quickstart-1 --engine omega --engine sparrow")
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help="Run the recorded jobs with this engine instead, a name or a class as package.module:Class, "
    "and compare; repeatable.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="With --engine: as for `argosy compare`; repeatable.  [default: jct]",
)
@output_option
def command(
    run: Path | None, engines: tuple[str, ...], metrics: tuple[str, ...], output: str
) -> None:
    """Feed the recorded inputs of RUN to its engines again and check that they decide the same.

    RUN is a run directory, also of a run in progress, or a journal file; by default, the latest run
    under runs/. Every line of the journal must be the same, byte for byte; otherwise the command names
    the first line that differs and exits with 1. With --engine nothing is checked: jobs are submitted
    as recorded, tasks run as long as they did, machines and schedulers fail as they did, and the
    result is compared with the recorded run.
    """
    recorded = kept_run(run)
    if engines:
        _under(recorded, engines, metrics or ("jct",), output)
    else:
        _check(recorded, output)


def _check(run: RunRecord, output: str) -> None:
    from argosy.engines.registry import find_engines
    from argosy.model.units import format_count, format_duration
    from argosy.records.replay import Replay

    began = time.perf_counter()
    found: dict[str, Any] = {"journal": run.journal.name}
    try:
        with progress("replaying") as tell:
            fleet = run.journal.header().setup.fleet
            engines = find_engines({entry.engine for entry in fleet})
            replay = Replay(run.journal, engines, finished=run.is_finished)
            done = replay.run(tell)
    except ReplayDiverged as error:
        found |= {
            "same": False,
            "line": error.line,
            "problem": error.problem,
            "recorded": error.expected,
            "hint": error.hint,
        }
    else:
        found |= {
            "same": True,
            "inputs": done.inputs,
            "lines": done.lines,
            "reached": done.ended_at,
            "seconds": round(time.perf_counter() - began, 3),
        }

    def sections(_: int | None) -> list[list[str]]:
        if found["same"]:
            return [
                [f"{found['journal']}: same decisions"],
                [
                    f"{format_count(found['inputs'], 'input')}, "
                    f"{format_count(found['lines'], 'line')}, "
                    f"{format_duration(found['reached'])} of the run's time, "
                    f"replayed in {found['seconds']:.1f} s"
                ],
            ]
        heading = f"{found['journal']}:{found['line']}: decisions differ from here on"
        parts = [heading, f"replayed: {found['problem']}"]
        if found["recorded"]:
            parts.append(f"recorded: {found['recorded']}")
        return [parts + ([found["hint"]] if found["hint"] else [])]

    def csv() -> str:
        from argosy.report.tables import csv_text

        return csv_text([found], list(found))

    emit(output, sections=sections, document=lambda: found, csv=csv)
    if not found["same"]:
        raise click.exceptions.Exit(1)


def _under(run: RunRecord, names: tuple[str, ...], metrics: tuple[str, ...], output: str) -> None:
    """The recorded jobs under each engine, compared with the recording."""
    from argosy.cli import compare as comparing
    from argosy.engines.registry import find_engine
    from argosy.experiments.on_recorded import RECORDED, recorded_ignores, try_engine
    from argosy.records.observed import observed_scenario
    from argosy.report.comparison import compare
    from argosy.report.metrics import find_metric

    wanted = [find_metric(name) for name in dict.fromkeys(metrics)]
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        # A mistake in one of the names is reported before the first engine runs.
        find_engine(name)
    scenario = observed_scenario(run.state)
    runs: dict[str, list[Summary]] = {RECORDED: [summary_of(run)]}
    ignores = {RECORDED: recorded_ignores(scenario)}
    for number, name in enumerate(chosen):
        with progress(f"{name}, {number + 1} of {len(chosen)}") as tell:
            tried = try_engine(scenario, name, progress=tell)
        runs[name], ignores[name] = [tried.summary], tried.ignores
    comparisons = [compare(runs, metric, ignores) for metric in wanted]

    def document() -> dict[str, Any]:
        import msgspec

        return {
            "journal": run.journal.name,
            "left_out": scenario.left_out,
            "comparisons": msgspec.to_builtins(comparisons),
            "runs": comparing.rows_of(runs),
        }

    tell_unmet(scenario.left_out)
    emit(
        output,
        sections=lambda width: comparing.sections(comparisons, width, has_seeds=False),
        document=document,
        csv=lambda: comparing.csv(runs),
    )
