"""Several objectives at once: who is best by the first that distinguishes engines, and who is beaten by
another in every one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from argosy.report.comparison import Ranking
from argosy.report.metrics import find_metric
from argosy.report.tables import Column, Table, Unit, Value


class OverallRank(msgspec.Struct, frozen=True, kw_only=True):
    engine: str
    #: Engines that tie by every objective share a place.
    place: int
    #: By objective: the engine's place and its median.
    places: dict[str, int]
    values: dict[str, float]
    #: An engine that is nowhere worse and somewhere better; empty if there is none.
    beaten_by: str = ""


class Overall(msgspec.Struct, frozen=True):
    """Engines by objectives in order of importance."""

    objectives: tuple[str, ...]
    ranks: tuple[OverallRank, ...]


def overall(rankings: Sequence[Ranking]) -> Overall:
    """From a ranking for each objective, the most important first. Only engines that every ranking ranks
    take part."""
    names = tuple(ranking.metric for ranking in rankings)
    found = []
    for standing in rankings[0].ranked():
        mine = [ranking.standing(standing.engine) for ranking in rankings]
        places = [each.place for each in mine if each.place is not None]
        values = [each.estimate.value for each in mine if each.estimate is not None]
        if len(places) == len(values) == len(names):
            found.append((tuple(places), tuple(values), standing.engine))
    found.sort()
    order = sorted({places for places, _, _ in found})
    return Overall(
        names,
        tuple(
            OverallRank(
                engine=engine,
                place=order.index(places) + 1,
                places=dict(zip(names, places, strict=True)),
                values=dict(zip(names, values, strict=True)),
                beaten_by=next((other for theirs, _, other in found if _beats(theirs, places)), ""),
            )
            for places, values, engine in found
        ),
    )


def _beats(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def overall_table(found: Overall) -> Table:
    metrics = [find_metric(name) for name in found.objectives]
    columns = (
        Column("place", "place", Unit.COUNT),
        Column("engine", "engine"),
        *(Column(metric.name, metric.title, metric.unit) for metric in metrics),
        Column("beaten_by", "beaten in all by"),
    )
    rows: list[tuple[Value, ...]] = [
        (rank.place, rank.engine, *rank.values.values(), rank.beaten_by or None)
        for rank in found.ranks
    ]
    return Table(columns, tuple(rows))


def overall_lines(found: Overall) -> list[str]:
    """The best by the order of objectives, and the engines worth a look with another order."""
    if not found.ranks:
        return ["No engine is ranked by all objectives."]
    best = [rank.engine for rank in found.ranks if rank.place == 1]
    others = [rank.engine for rank in found.ranks if not rank.beaten_by and rank.place > 1]
    are = "is" if len(best) == 1 else "are"
    lines = [f"{', '.join(best)} {are} best in this order of objectives."]
    if others:
        lines.append(f"With another order, one of these may be: {', '.join(others)}.")
    return lines
