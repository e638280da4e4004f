"""`argosy sweep`: one value of a scenario varied, for several engines."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any, Final

import click

from argosy.cli.output import emit, html_option, output_option, tell_unmet, write_page
from argosy.cli.progress import progress
from argosy.cli.strictness import strict_option, unmet_notes

DEFAULT_SEEDS: Final = 3


@click.command(
    epilog="Example: argosy sweep scenarios/quickstart.toml --vary cell.machines.small.count=8,16,32 "
    "--engine omega --engine murmuration"
)
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option(
    "--vary",
    required=True,
    metavar="PLACE=VALUES",
    help="A value as it stands in the file, and what to put there, separated by commas; an element of "
    "an array is named by its number, name or id.",
)
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help="An engine in place of the scenario's fleet; repeatable.  [default: the scenario's own fleet]",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 10_000),
    default=DEFAULT_SEEDS,
    show_default=True,
    metavar="N",
    help="How many seeds, counting up from the scenario's own.",
)
@click.option(
    "--metric",
    default="jct",
    show_default=True,
    metavar="NAME",
    help="As for argosy compare.",
)
@click.option(
    "--rank-all",
    is_flag=True,
    help="Rank engines that ignore demands of the scenario like the others.",
)
@strict_option
@html_option
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many processes to use.  [default: one per CPU]",
)
@output_option
def command(
    scenario: Path,
    vary: str,
    engines: tuple[str, ...],
    seeds: int,
    metric: str,
    rank_all: bool,
    strict: bool,
    html: Path | None,
    jobs: int | None,
    output: str,
) -> None:
    """Run SCENARIO with several values of one of its settings, and say which engine is best where.

    The load, the number of machines, a capacity, a setting of the fleet: whatever stands in the file
    can be varied. Engines that ignore demands of the scenario are shown, but are not called best.
    """
    from argosy.engines.registry import find_engine
    from argosy.experiments.contest import demands_ignored, hold_contest
    from argosy.experiments.sweep import OWN_FLEET
    from argosy.report.comparison import RankingRule, compare
    from argosy.report.metrics import find_metric
    from argosy.report.sweeps import SweepResult, SweepRow, sweep_lines, sweep_page, sweep_table
    from argosy.scenarios.changed_values import parse_values
    from argosy.scenarios.loader import load

    wanted = find_metric(metric)
    values = parse_values(vary)
    for name in engines:
        find_engine(name)
    chosen = list(dict.fromkeys(engines)) or [OWN_FLEET]
    # All variations are loaded first, so that a mistake is reported before the first run.
    loaded = [load(scenario, changes=(value,)) for value in values]
    unmet = [
        f"with {value.name} = {value.value}: {told}"
        for value, varied in zip(values, loaded, strict=True)
        for told in unmet_notes(varied, scenario, strict, changed=f"{value.name} = {value.value}")
    ]
    rows = []
    with progress(f"{len(values)} values x {len(chosen)} engines x {seeds} seeds") as tell:
        for number, (value, varied) in enumerate(zip(values, loaded, strict=True)):

            def share(part: float, number: int = number) -> None:
                tell((number + part) / len(values))

            ignores = demands_ignored(varied, chosen)
            contest = hold_contest(
                scenario,
                ignores,
                range(varied.seed, varied.seed + seeds),
                processes=jobs or os.cpu_count() or 1,
                changes=(value,),
                tell=share,
            )
            ranking = compare(
                contest.runs,
                wanted,
                ignores,
                failures=contest.failures,
                rule=RankingRule(everyone=rank_all),
            )
            rows.append(SweepRow(value.value, ranking))
    found = SweepResult(
        scenario=loaded[0].name, varied=values[0].name, metric=metric, rows=tuple(rows)
    )
    if html is not None:
        write_page(html, sweep_page([(found, wanted)], shlex.join(["argosy", *sys.argv[1:]])))

    def document() -> dict[str, Any]:
        import msgspec

        return {
            **msgspec.to_builtins(found),
            "changes": msgspec.to_builtins(found.changes()),
            "unmet": unmet,
        }

    def sections(width: int | None) -> list[list[str]]:
        heading = f"{found.scenario}: {wanted.title} by {found.varied}"
        return [[heading, *sweep_table(found, wanted).lines(width)], sweep_lines(found, wanted)]

    emit(output, sections=sections, document=document, csv=lambda: sweep_table(found, wanted).csv())
    tell_unmet(unmet)
    if any(row.ranking.failures for row in rows):
        raise click.exceptions.Exit(1)
