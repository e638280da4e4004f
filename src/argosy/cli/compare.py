"""`argosy compare`: engines x seeds, which is best and why."""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from argosy.cli.forecast import Forecast
from argosy.cli.output import (
    NO_JOBS,
    emit,
    engines_option,
    html_option,
    markdown_option,
    note,
    output_option,
    tell_unmet,
    write_page,
)
from argosy.cli.progress import progress
from argosy.cli.run import LARGEST_SEED
from argosy.cli.strictness import strict_option, unmet_notes
from argosy.model.errors import ArgosyError, CommandError, MissingExtra

if TYPE_CHECKING:
    from argosy.model.scenario import Scenario
    from argosy.records.record import RunRecord
    from argosy.records.summary import Summary
    from argosy.report.comparison import Ranking
    from argosy.report.overall import Overall
    from argosy.scenarios.ignored_demands import IgnoredDemand

DEFAULT_SEEDS: Final = 5
#: Every run's summary is kept until the end.
MOST_SEEDS: Final = 10_000
#: Wider bars show nothing more.
WIDEST_PLOT: Final = 100
#: How many places and engines are shown in detail, unless all are asked for.
SHOWN: Final = 5
#: How many engines a report draws, if all are shown.
DRAWN: Final = 12
#: A share; the same as the report's own, which is not imported only to print help.
DEFAULT_THRESHOLD: Final = 0.02


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
    "--objective",
    "objectives",
    multiple=True,
    metavar="NAME",
    help="A metric that matters, the most important first; repeatable. Engines that tie by one are "
    "ordered by the next.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1_000),
    default=100 * DEFAULT_THRESHOLD,
    show_default=True,
    metavar="PERCENT",
    help="Engines that differ by less are a tie.",
)
@click.option(
    "--rank-all",
    is_flag=True,
    help="Rank engines that ignore demands of the scenario like the others.",
)
@click.option("--all", "everything", is_flag=True, help=f"Show more than {SHOWN} engines.")
@click.option(
    "--time-limit",
    metavar="TIME",
    help="Give up an engine when one of its runs takes longer, such as 30s or 5min.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many processes to use.  [default: one per CPU]",
)
@strict_option
@html_option
@markdown_option
@output_option
def command(
    scenario: Path,
    engines: tuple[str, ...],
    published: bool,
    seeds: int | None,
    chosen: tuple[int, ...],
    metrics: tuple[str, ...],
    objectives: tuple[str, ...],
    threshold: float,
    rank_all: bool,
    everything: bool,
    time_limit: str | None,
    jobs: int | None,
    strict: bool,
    html: Path | None,
    markdown: Path | None,
    output: str,
) -> None:
    """Run SCENARIO with each engine and the same seeds, and say which engine is best and why.

    A metric is one number per run; less is better. Medians over the seeds have a 95 % bootstrap
    interval, ratios of medians a standard error. Engines tie if their medians differ by less than the
    threshold, or by no more than chance explains. Engines that ignore what the scenario asks for are
    shown, but not ranked. Nothing is saved.

    The exit code is 1 if an engine fails; the others are compared all the same.
    """
    if seeds is not None and seeds > MOST_SEEDS:
        raise CommandError(f"--seeds {seeds}", expected=f"at most {MOST_SEEDS:,}")
    if seeds is not None and chosen:
        raise CommandError("both --seeds and --seed", expected="one of them")
    if metrics and objectives:
        raise CommandError("both --metric and --objective", expected="one of them")

    from argosy.engines.registry import find_engine, find_published
    from argosy.experiments.contest import demands_ignored, hold_contest
    from argosy.report.comparison import RankingRule, compare
    from argosy.report.metrics import find_metric
    from argosy.report.overall import overall
    from argosy.scenarios.loader import load

    limit = None if time_limit is None else _seconds(time_limit)
    wanted = [find_metric(name) for name in dict.fromkeys(metrics or objectives or ("jct",))]
    # Loaded even if the seeds are given, so that a mistake in the file is not reported by a worker
    # process.
    loaded = load(scenario, seed=chosen[0] if chosen else None, published=published)
    unmet = unmet_notes(loaded, scenario, strict)
    for name in engines:
        find_published(name) if loaded.as_published else find_engine(name)
    skipped: dict[str, ArgosyError] = {}
    if engines:
        ignores = demands_ignored(loaded, list(dict.fromkeys(engines)))
    else:
        ignores, skipped = _able(loaded)
    numbers = list(dict.fromkeys(chosen)) or _seeds(loaded, seeds or DEFAULT_SEEDS)
    forecast = Forecast("shorter with fewer --engine or --seeds, or with --time-limit")
    with progress(f"comparing {len(ignores)} engines x {len(numbers)} seeds") as show:

        def tell(share: float) -> None:
            show(share)
            if (line := forecast.line(share)) is not None:
                note(line)

        contest = hold_contest(
            scenario,
            ignores,
            numbers,
            published=published,
            processes=jobs or os.cpu_count() or 1,
            time_limit=limit,
            tell=tell,
        )
    rule = RankingRule(threshold=threshold / 100, everyone=rank_all)
    comparisons = [
        compare(contest.runs, metric, ignores, failures=contest.failures, rule=rule)
        for metric in wanted
    ]
    by_all = overall(comparisons) if objectives else None

    def document() -> dict[str, Any]:
        import msgspec

        return {
            "scenario": str(scenario),
            "seeds": numbers,
            "left_out": loaded.left_out,
            "unmet": unmet,
            "skipped": {name: str(error) for name, error in skipped.items()},
            "failures": contest.failures,
            "comparisons": msgspec.to_builtins(comparisons),
            "overall": msgspec.to_builtins(by_all),
            "runs": rows_of(contest.runs),
        }

    most = None if engines or everything else SHOWN
    told = [f"skipped: {error}" for error in skipped.values()]
    notes = [*loaded.left_out, *unmet, *([] if loaded.jobs else [NO_JOBS]), *told]
    tell_unmet(notes)
    call = shlex.join(["argosy", *sys.argv[1:]])
    if html is not None:
        from argosy.report.compare_report import compare_page

        drawn = [s.engine for s in comparisons[0].standings][: most or DRAWN]
        runs = _drawn_runs(scenario, drawn, numbers[0], published)
        write_page(html, compare_page(comparisons, runs, notes, call, by_all))
    if markdown is not None:
        from argosy.report.markdown import compare_markdown

        write_page(markdown, compare_markdown(comparisons, notes, call, by_all), "--markdown")
    emit(
        output,
        sections=lambda width: sections(comparisons, width, overall=by_all, most=most),
        document=document,
        csv=lambda: csv(contest.runs),
    )
    if contest.failures:
        raise click.exceptions.Exit(1)


def _drawn_runs(
    path: Path, engines: Sequence[str], seed: int, published: bool
) -> dict[str, RunRecord]:
    """The engines once more, with everything kept: runs are repeatable, so these are the same."""
    from argosy.experiments.execute import execute_in_memory
    from argosy.scenarios.loader import as_published, load, with_engine

    runs: dict[str, RunRecord] = {}
    with progress(f"drawing {len(engines)} engines") as tell:
        for number, name in enumerate(engines):
            tell(number / len(engines))
            loaded = with_engine(load(path, seed=seed, published=published), name)
            if published:
                loaded = as_published(loaded)
            runs[name] = execute_in_memory(loaded)
    return runs


def _seconds(duration: str) -> float:
    from argosy.model.errors import UnitError
    from argosy.model.units import parse_duration

    try:
        return parse_duration(duration) / 1e6
    except UnitError as error:
        raise CommandError(f"--time-limit: {error.problem}", expected=error.expected) from None


def _able(
    scenario: Scenario,
) -> tuple[dict[str, tuple[IgnoredDemand, ...]], dict[str, ArgosyError]]:
    """What each engine ignores, and the error of each that cannot run."""
    from argosy.experiments.contest import demands_ignored

    names, skipped = _all_names(scenario)
    ignores: dict[str, tuple[IgnoredDemand, ...]] = {}
    for name in names:
        try:
            ignores |= demands_ignored(scenario, [name])
        except MissingExtra as lack:
            skipped[name] = lack
    return ignores, skipped


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
    from argosy.engines.registry import forms_compared, survey

    if scenario.as_published:
        return forms_compared(), {}
    engines, broken = survey()
    # An engine with the name of a built-in one is hidden by it, not missing.
    return list(engines), {name: error for name, error in broken.items() if name not in engines}


def rows_of(runs: Mapping[str, Sequence[Summary]]) -> list[dict[str, Any]]:
    """One row per run."""
    from argosy.report.summaries import flat

    return [{"engine": name, **flat(s)} for name, ran in runs.items() for s in ran]


def csv(runs: Mapping[str, Sequence[Summary]]) -> str:
    from argosy.report.tables import csv_text

    rows = rows_of(runs)
    # Engines may send different kinds of messages: the header is the union, in order of appearance.
    return csv_text(rows, list(dict.fromkeys(name for row in rows for name in row)))


def sections(
    comparisons: list[Ranking],
    width: int | None,
    *,
    overall: Overall | None = None,
    has_seeds: bool = True,
    most: int | None = None,
) -> list[list[str]]:
    """Comparisons of the same runs as readable text; at most so many engines in detail."""
    from argosy.model.units import format_count
    from argosy.report import comparison as report
    from argosy.report import verdicts
    from argosy.report.metrics import find_metric
    from argosy.report.overall import overall_lines, overall_table

    room = min(width or 80, WIDEST_PLOT)
    first = comparisons[0]
    shown = [[f"{first.scenario}, {_seed_words(first.seeds)}"]]
    for compared in comparisons:
        metric = find_metric(compared.metric)
        if ranked := compared.ranked():
            lines = report.table(compared, metric, most).wrapped(width)
            shown.append([metric.title, *lines, "", *report.bars(ranked[:most], metric, room)])
        told = verdicts.verdict(compared, metric, has_seeds=has_seeds, most=most)
        shown.append(_wrapped(told, width))
    apart = report.apart_table(first, find_metric(first.metric))
    if apart.rows:
        shown.append(["not ranked", *apart.wrapped(width)])
    if overall is not None:
        lines = [*overall_table(overall).wrapped(width), *overall_lines(overall)]
        shown.append(["all objectives together", *_wrapped(lines, width)])
    details = first.standings if most is None else (first.ranked() or first.standings)[:most]
    for parts, words in (("kinds", "kind of job"), ("owners", "owner")):
        if (table := report.kinds_table(details, parts)) is not None:
            shown.append([f"median JCT and finished jobs by {words}", *table.lines(width)])
    shown.append(["spread of JCT", *report.spread(details, room)])
    if bars := report.breakdown(details, room):
        shown.append(["where a finished job's time goes, on average", *bars])
    reasons = [
        line for reason in verdicts.reasons(first, most) for line in textwrap.wrap(reason, room)
    ]
    heading = "why: parts of the mean JCT, conflicts, messages, share of resources in use"
    causes = report.causes(details)
    lines = causes.lines(width)
    if width is not None and max(map(len, lines)) > width:
        lines = causes.without(["notices"]).lines(width)
    shown.append([heading, *lines, *reasons])
    hidden = len(first.standings) - len(details)
    if hidden:
        shown[-1].append(f"{format_count(hidden, 'more engine')} in detail: --all")
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
