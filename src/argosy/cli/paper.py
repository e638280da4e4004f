"""`argosy paper`: reproduces a published paper's figures and checks its claims."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from argosy.cli.output import emit, note, output_option
from argosy.cli.progress import progress
from argosy.model.errors import CommandError, UnknownName, excerpt
from argosy.report.tables import Column, Table

if TYPE_CHECKING:
    from argosy.papers.claims import Claim
    from argosy.papers.paper import Paper, Scale


@click.command(epilog="Example: argosy paper omega --figure 8")
@click.argument("name", metavar="PAPER")
@click.option("--full", "scale", flag_value="full", help="The paper's own scale; takes hours.")
@click.option(
    "--smoke", "scale", flag_value="smoke", help="A few seconds, just to see that it works."
)
@click.option(
    "--figure", "figures", multiple=True, metavar="N", help="Only this figure; repeatable."
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to draw the figures.  [default: runs/paper-<PAPER>.html]",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where to keep finished results.  [default: runs/paper-<PAPER>-<scale>]",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Use the recorded jobs in DIR, for papers that have a trace.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="NAME=VALUE",
    help="Only points whose parameter has this value; repeatable.",
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change a parameter of all points that have it; repeatable.",
)
@click.option("--again", is_flag=True, help="Rerun everything, including finished results.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="How many processes to use.  [default: one per CPU]",
)
@output_option
def command(
    name: str,
    scale: str | None,
    figures: tuple[str, ...],
    html: Path | None,
    state: Path | None,
    trace: Path | None,
    where: tuple[str, ...],
    changes: tuple[str, ...],
    again: bool,
    jobs: int | None,
    output: str,
) -> None:
    """Rerun the experiments of PAPER, and say which of its claims hold.

    Without --full, the experiments are smaller than the paper's; the output says what is smaller.
    --where and --set run a part of them, or shorter ones; names and values of parameters are those in
    the files of results.
    Finished results are kept, so an interrupted run continues where it stopped.
    """
    from argosy.papers.experiment import Findings, Store, run_points
    from argosy.papers.registry import find_paper
    from argosy.papers.selection import distinct, selected
    from argosy.records.files import write_whole
    from argosy.report.html import page

    paper = find_paper(name)
    for figure in figures:
        if figure not in paper.figures:
            raise UnknownName(f"figure of {paper.name}:", figure, paper.figures)
    default = [figure for figure in paper.figures if figure not in paper.on_request]
    chosen = [f for f in paper.figures if f in (figures or default)]
    size = paper.scales[scale or "quick"]
    wanted: dict[str, list[str]] = {}
    for key, value in _pairs("--where", where):
        wanted.setdefault(key, []).append(value)
    planned = paper.plan(size.name, chosen)
    points = selected(planned, wanted, dict(_pairs("--set", changes)), paper.usual)
    if trace is not None:
        if paper.traced is None:
            raise CommandError(
                f"{paper.name} has no recorded input",
                hint="leave out --trace: its workloads are drawn",
            )
        # Points that differ in what is drawn are one on a trace.
        points = distinct([paper.traced(point, trace) for point in points])
    store = Store(state or Path("runs") / f"paper-{paper.name}-{size.name}")
    with progress(f"{paper.name}, {len(points)} points") as tell:
        results = run_points(
            points,
            paper.runner,
            store,
            processes=jobs or os.cpu_count() or 1,
            tell=tell,
            again=again,
            alone=paper.alone,
        )
    found = Findings(points, results)
    claims = paper.claims(found, chosen)
    missing = paper.notes(chosen)
    if where or changes:
        told = f" with {', '.join(changes)}" if changes else ""
        missing = [*missing, f"claims are about {len(points)} of {len(planned)} points{told}"]
    for text in missing:
        note(f"note: {text}")

    def document() -> list[dict[str, Any]]:
        import msgspec

        return [msgspec.structs.asdict(claim) for claim in claims]

    emit(
        output,
        sections=lambda width: _sections(paper, size, claims, width),
        document=document,
        csv=lambda: _table(claims).csv(),
    )
    target = html or Path("runs") / f"paper-{paper.name}.html"
    text = page(paper, size, claims, paper.draw(found, chosen), missing)
    write_whole(target, text.encode())
    note(f"\nfigures drawn in {target}, results saved in {store.directory}")


def _pairs(option: str, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals or not value:
            raise CommandError(
                f"{option} {excerpt(text)}", expected="NAME=VALUE such as seconds=20"
            )
        yield name, value


def _table(claims: Sequence[Claim]) -> Table:
    names = ("id", "figure", "paper", "here", "tolerance", "holds", "setup", "note")
    rows = tuple(
        tuple(
            ("holds" if claim.holds else "does not hold")
            if name == "holds"
            else getattr(claim, name)
            for name in names
        )
        for claim in claims
    )
    return Table(tuple(Column(name, name) for name in names), rows)


def _sections(
    paper: Paper, scale: Scale, claims: Sequence[Claim], width: int | None
) -> list[list[str]]:
    """What was run, then a block per claim, because sentences do not fit into columns."""
    held = sum(claim.holds for claim in claims)
    head = [
        f"{paper.title}",
        f"scale {scale.name}: {scale.about}",
        f"{held} of {len(claims)} claims hold",
    ]
    return [head, *(_section(claim, width) for claim in claims)]


def _section(claim: Claim, width: int | None) -> list[str]:
    told = [
        ("paper", claim.paper),
        ("set-up", claim.setup),
        ("here", claim.here),
        ("tolerance", claim.tolerance),
        ("note", claim.note),
    ]
    rows = tuple((f"  {name}", text) for name, text in told if text)
    lines = Table((Column("name", ""), Column("text", "")), rows).wrapped(width)
    verdict = "holds" if claim.holds else "does not hold"
    return [f"{verdict}: {claim.id}", *lines[1:]]
