"""`argosy compare`: engines x seeds, which is best and why."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from argosy.cli.output import emit, engines_option, output_option, tell_unmet
from argosy.cli.progress import progress
from argosy.cli.run import LARGEST_SEED
from argosy.model.errors import ArgosyError, CommandError

if TYPE_CHECKING:
    from argosy.experiments.sweep import SweepPoint
    from argosy.model.scenario import Scenario
    from argosy.records.summary import Summary
    from argosy.report.comparison import Ranking

DEFAULT_SEEDS: Final = 5
#: Every run's summary is kept until the end.
MOST_SEEDS: Final = 10_000
#: Wider bars show nothing more.
WIDEST_PLOT: Final = 100


@click.command(
    epilog="Example: argosy compare scenarios/quickstart.toml --engine omega --engine murmuration"
)
@click.argument("scenario", type=click.Path(path_type=Path))
@engines_option
@click.option(
    "--as-published",
    "published",
    is_flag=True,
    help="Use the settings, machines and number of schedulers of the published simulations; --engine "
    "then names a published configuration.  [default: all of these]",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"How many seeds, counting up from the scenario's own.  [default: {DEFAULT_SEEDS}]",
)
@click.option(
    "--seed",
    "chosen",
    multiple=True,
    type=click.IntRange(0, LARGEST_SEED),
    metavar="N",
    help="Use this seed; repeatable.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="jct, wait, placement, response (each also .mean, .p50, .p90, .p99, .largest), end, "
    "conflicts, violations, extent, fragmented, imbalance or machines; repeatable.  [default: jct]",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many processes to use.  [default: one per CPU]",
)
@output_option
def command(
    scenario: Path,
    engines: tuple[str, ...],
    published: bool,
    seeds: int | None,
    chosen: tuple[int, ...],
    metrics: tuple[str, ...],
    jobs: int | None,
    output: str,
) -> None:
    """Run SCENARIO with each engine and the same seeds, and say which engine is best and why.

    A metric is one number per run; less is better. Medians over the seeds have a 95 % bootstrap
    interval, ratios of medians a standard error. Nothing is saved.
    """
    if seeds is not None and seeds > MOST_SEEDS:
        raise CommandError(f"--seeds {seeds}", expected=f"at most {MOST_SEEDS:,}")
    if seeds is not None and chosen:
        raise CommandError("both --seeds and --seed", expected="one of them")

    from argosy.engines.registry import find_engine, find_engines, find_published
    from argosy.experiments.sweep import SweepPoint
    from argosy.report.comparison import compare
    from argosy.report.metrics import find_metric
    from argosy.scenarios.loader import load, with_engine
    from argosy.scenarios.missing_extras import missing, unmet

    wanted = [find_metric(name) for name in dict.fromkeys(metrics or ("jct",))]
    # Loaded even if the seeds are given, so that a mistake in the file is not reported by a worker
    # process.
    loaded = load(scenario, seed=chosen[0] if chosen else None, published=published)
    for name in engines:
        find_published(name) if loaded.as_published else find_engine(name)
    names, broken = (list(dict.fromkeys(engines)), {}) if engines else _all_names(loaded)
    numbers = list(dict.fromkeys(chosen)) or _seeds(loaded, seeds or DEFAULT_SEEDS)
    skipped: dict[str, ArgosyError] = dict(broken)
    notes: dict[str, list[str]] = {}
    for name in names:
        changed = with_engine(loaded, name)
        known = find_engines(changed.engine_names())
        notes[name] = unmet(changed, known)
        if (lack := missing(changed, known)) is not None:
            # Without names, all engines that can run are compared; engines that were named must run.
            if engines:
                raise lack
            skipped[name] = lack
    names = [name for name in names if name not in skipped]
    points = [SweepPoint(scenario, name, seed, published) for name in names for seed in numbers]
    runs = _runs(points, names, jobs or os.cpu_count() or 1)
    comparisons = [compare(runs, metric, notes) for metric in wanted]

    def document() -> dict[str, Any]:
        import msgspec

        from argosy.report.summaries import flat

        return {
            "scenario": str(scenario),
            "seeds": numbers,
            "left_out": loaded.left_out,
            "skipped": {name: str(error) for name, error in skipped.items()},
            "comparisons": msgspec.to_builtins(comparisons),
            "runs": [{"engine": name, **flat(s)} for name, ran in runs.items() for s in ran],
        }

    told = [f"skipped: {error}" for error in skipped.values()]
    tell_unmet([*loaded.left_out, *told, *(text for name in names for text in notes[name])])
    emit(
        output,
        sections=lambda width: sections(comparisons, width),
        document=document,
        csv=lambda: csv(runs),
    )


def _seeds(scenario: Scenario, count: int) -> list[int]:
    """Consecutive seeds from the scenario's own; all must be valid seeds."""
    last = scenario.seed + count - 1
    if last > LARGEST_SEED:
        raise CommandError(
            f"--seeds {count} from seed {scenario.seed} would go beyond 2^63 - 1",
            expected="fewer seeds, or a smaller seed in the scenario",
        )
    return list(range(scenario.seed, last + 1))


def _all_names(scenario: Scenario) -> tuple[list[str], dict[str, ArgosyError]]:
    """Every engine or published configuration that can be loaded, and the error of each that cannot."""
    from argosy.engines.registry import forms_named, survey

    if scenario.as_published:
        return forms_named(), {}
    engines, broken = survey()
    # An engine with the name of a built-in one is hidden by it, not missing.
    return list(engines), {name: error for name, error in broken.items() if name not in engines}


def _runs(points: list[SweepPoint], engines: list[str], processes: int) -> dict[str, list[Summary]]:
    from argosy.experiments.sweep import run_all

    seeds = len(points) // max(1, len(engines))
    with progress(f"comparing {len(engines)} engines x {seeds} seeds") as tell:
        summaries = run_all(points, processes, tell)
    return {engine: summaries[at * seeds : (at + 1) * seeds] for at, engine in enumerate(engines)}


def csv(runs: dict[str, list[Summary]]) -> str:
    """One row per run."""
    from argosy.report.summaries import flat
    from argosy.report.tables import csv_text

    rows = [{"engine": name, **flat(s)} for name, ran in runs.items() for s in ran]
    # Engines may send different kinds of messages: the header is the union, in order of appearance.
    return csv_text(rows, list(dict.fromkeys(name for row in rows for name in row)))


def sections(
    comparisons: list[Ranking], width: int | None, *, has_seeds: bool = True
) -> list[list[str]]:
    """Comparisons of the same runs as readable text."""
    from argosy.report import comparison as report
    from argosy.report import verdicts
    from argosy.report.metrics import find_metric

    room = min(width or 80, WIDEST_PLOT)
    first = comparisons[0]
    shown = [[f"{first.scenario}, {_seed_words(first.seeds)}"]]
    for compared in comparisons:
        metric = find_metric(compared.metric)
        lines = report.table(compared, metric).lines(width)
        shown.append([metric.title, *lines, "", *report.bars(compared, metric, room)])
        shown.append(_wrapped(verdicts.verdict(compared, metric, has_seeds=has_seeds), width))
    shown.append(["spread of JCT", *report.spread(first, room)])
    if parts := report.breakdown(first, room):
        shown.append(["where a finished job's time goes, on average", *parts])
    reasons = [line for reason in verdicts.reasons(first) for line in textwrap.wrap(reason, room)]
    heading = "why: parts of the mean JCT, conflicts, messages, share of resources in use"
    causes = report.causes(first)
    lines = causes.lines(width)
    if width is not None and max(map(len, lines)) > width:
        lines = causes.without(["notices"]).lines(width)
    shown.append([heading, *lines, *reasons])
    return shown


def _wrapped(lines: list[str], width: int | None) -> list[str]:
    if width is None:
        return lines
    return [part for line in lines for part in textwrap.wrap(line, width, subsequent_indent="    ")]


def _seed_words(seeds: tuple[int, ...]) -> str:
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds == tuple(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return "seeds " + ", ".join(map(str, seeds))
