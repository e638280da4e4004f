"""`argosy campaign`: random scenarios with faults, for engines and fleets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from argosy.cli.output import emit, engines_option, note, output_option
from argosy.cli.progress import progress
from argosy.cli.run import LARGEST_SEED
from argosy.model.errors import CommandError

if TYPE_CHECKING:
    from argosy.campaign.draw import DrawnScenario, ScenarioSource
    from argosy.engines.api import Engine

DEFAULT_RUNS: Final = 100
DEFAULT_FOLDER: Final = Path("campaign")


@click.command(epilog="Example: argosy campaign --engine omega --engine my_package.engine:MyEngine")
@click.argument("scenarios", nargs=-1, type=click.Path(path_type=Path), metavar="[SCENARIO]...")
@engines_option
@click.option(
    "--fleet",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Use the fleet of this scenario in all runs, instead of drawing one.",
)
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"How many scenarios to draw.  [default: {DEFAULT_RUNS}]",
)
@click.option(
    "--seed",
    type=click.IntRange(0, LARGEST_SEED),
    default=1,
    show_default=True,
    metavar="N",
    help="The same seed gives the same scenarios.",
)
@click.option(
    "--first",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="The number of the first scenario, to go on with an earlier campaign.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="FEATURE",
    help="Draw scenarios without this, such as gangs or stealing; repeatable.",
)
@click.option(
    "--world",
    default="simulated",
    show_default=True,
    metavar="NAME",
    help='"simulated"; "scripted", where tasks fail and reports of machines are late or lost; "local", '
    'the code of argosy up, whose servers are killed and start again; or "kubernetes", the code of '
    "argosy kubernetes with an API server that is played.",
)
@click.option(
    "--time-limit",
    "seconds",
    type=click.FloatRange(min=0.1, max=86_400),
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="CPU time after which a run counts as hanging.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1, max=1_000),
    metavar="N",
    help="How many runs at once.  [default: one per CPU]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=DEFAULT_FOLDER,
    show_default=True,
    metavar="DIR",
    help="Where to write scenarios that fail.",
)
@output_option
def command(
    scenarios: tuple[Path, ...],
    engines: tuple[str, ...],
    fleet: Path | None,
    runs: int | None,
    seed: int,
    first: int,
    without: tuple[str, ...],
    world: str,
    seconds: float,
    workers: int | None,
    out: Path,
    output: str,
) -> None:
    """Test engines on random scenarios, and shrink each failure to a small scenario.

    Scenarios have machines, jobs, fleets, settings, networks and faults of all kinds. Each is run twice
    and replayed, and its journal is checked: for oversubscribed machines, requirements, gangs, hard
    constraints, limits, tasks that are lost or wait without a reason, and more. With SCENARIO, these
    files are checked instead of drawn ones. Exits with 1 if something is wrong.
    """
    if scenarios and (engines or fleet or runs is not None or without or first):
        raise CommandError("both scenarios and options for drawing them", expected="one of them")
    if engines and fleet:
        raise CommandError("both --engine and --fleet", expected="one of them")

    from argosy.campaign.campaign import Campaign
    from argosy.campaign.worlds import find_world
    from argosy.report import campaigns

    if scenarios:
        chosen: Iterator[DrawnScenario] = iter(
            [_read(path, at) for at, path in enumerate(scenarios)]
        )
        total = len(scenarios)
    else:
        total = runs or DEFAULT_RUNS
        lacking = find_world(world).lacks
        source = _source(seed, engines, fleet, frozenset(without) | lacking)
        chosen = (source.draw(number) for number in range(first, first + total))
    with (
        Campaign(world=world, seconds=seconds, workers=workers or os.cpu_count() or 1) as campaign,
        progress("running scenarios") as tell,
        progress("shrinking failures") as tell_shrinking,
    ):
        result = campaign.run(
            chosen,
            # Given scenarios are as small as their authors want them.
            folder=None if scenarios else out,
            tell=lambda done, failed: tell(done / total),
            tell_shrinking=lambda done, kinds: tell_shrinking(done / max(1, kinds)),
        )
    emit(
        output,
        sections=lambda width: campaigns.sections(result, width),
        document=lambda: {"seed": seed, "first": first, **campaigns.document(result)},
        csv=lambda: campaigns.table(result).csv(),
    )
    note(f"\n{campaigns.verdict(result)}")
    if result.failures:
        raise click.exceptions.Exit(1)


def _read(path: Path, number: int) -> DrawnScenario:
    """A scenario from its file, which must be one."""
    from argosy.campaign.draw import DrawnScenario

    return DrawnScenario(number, _document(path))


def _document(path: Path) -> dict[str, Any]:
    import tomllib

    from argosy.scenarios.loader import load

    load(path)
    return tomllib.loads(path.read_text("utf-8"))


def _source(
    seed: int, names: tuple[str, ...], fleet: Path | None, without: frozenset[str]
) -> ScenarioSource:
    from argosy.campaign.draw import ScenarioSource
    from argosy.engines.registry import find_engines

    if fleet is not None:
        tables = _document(fleet)["fleet"]
        for table in tables:
            # Clusters are drawn, so their places are others.
            table.pop("place", None)
        engines = find_engines(table["engine"] for table in tables)
        return ScenarioSource(seed, engines, without=without, fleet=tables)
    return ScenarioSource(
        seed, find_engines(dict.fromkeys(names)) if names else _all(), without=without
    )


def _all() -> dict[str, type[Engine]]:
    """Every engine that can be loaded and run; a note says which cannot."""
    from argosy.engines.registry import survey
    from argosy.report.catalogue import lacking

    engines, broken = survey()
    told = {name: str(error) for name, error in broken.items()}
    told |= {name: text for name, engine in engines.items() if (text := lacking(engine))}
    for text in told.values():
        note(f"note: skipped: {text}")
    return {name: engine for name, engine in engines.items() if name not in told}
