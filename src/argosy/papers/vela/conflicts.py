"""Figure 9: conflicts with and without MultiBind.

The paper counts as conflicts without MultiBind the jobs that MultiBind placed on a later candidate. Here
both are given: that count, and runs with one candidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import mean

from argosy.papers.charts import Axis, Chart, Figure, Line, Mark
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings, Parameter
from argosy.papers.vela.points import PEAK

#: The order of candidates, by the paper and by its published code.
READINGS = {"highest": "highest scores first", "lowest": "lowest scores first"}


def measured(found: Findings, name: str, **wanted: Parameter) -> float | None:
    results = found.select("9", **wanted)
    return mean(result[name] for _, result in results) if results else None


def _line(
    found: Findings, label: str, name: str, candidates: int, prefer: str, colour: int
) -> Line:
    marks = []
    for rate in found.values("9", "rate"):
        value = measured(found, name, rate=rate, candidates=candidates, prefer=prefer, ends=0)
        if value is not None:
            marks.append(Mark(float(rate), 100 * value))
    return Line(label=label, marks=tuple(marks), colour=colour)


def draw_9(found: Findings) -> Figure:
    panels = []
    for prefer, title in READINGS.items():
        lines = [
            _line(found, "m = 3", "conflicting", 3, prefer, 0),
            _line(found, "without, as the paper counts", "retried", 3, prefer, 1),
            _line(found, "m = 1, run", "conflicting", 1, prefer, 2),
        ]
        panels.append(
            Chart(
                title=title,
                x=Axis(label="requests per second, at the paper's size", low=0),
                y=Axis(label="conflicts per job [%]", low=0),
                lines=tuple(lines),
            )
        )
    return Figure(
        number="9",
        title="Scheduling conflicts with and without MultiBind",
        caption="Three minutes of jobs of 1, 2 and 4 cores and as many GiB.",
        panels=tuple(panels),
    )


def claims_9(found: Findings) -> Iterator[Claim]:
    rates = found.values("9", "rate")
    for prefer, title in READINGS.items():
        pairs = []
        for rate in rates:
            if float(rate) > PEAK:
                # The clusters are full before the end: what is measured then is exhaustion.
                continue
            one = measured(found, "conflicting", rate=rate, candidates=1, prefer=prefer, ends=0)
            three = measured(found, "conflicting", rate=rate, candidates=3, prefer=prefer, ends=0)
            if one is not None and three is not None:
                pairs.append((float(rate), one, three))
        if not pairs:
            continue
        rate, one, three = max(pairs, key=lambda pair: pair[1])
        yield Claim(
            id=f"vela-9-factor-{prefer}",
            figure="9",
            paper="MultiBind with m = 3 cuts conflicts by a factor of 10",
            here=f"{100 * one:.2f} % to {100 * three:.2f} % at {rate:g} requests/s",
            tolerance="by at least 5 where there are most",
            holds=one > 0 and five_times_fewer(one, three),
            note=f"{title}; conflicts per job, with m = 1 really run",
        )
        low = [three for rate, _, three in pairs if rate <= 94]
        if low:
            yield Claim(
                id=f"vela-9-rare-{prefer}",
                figure="9",
                paper="with MultiBind, under 1 % of jobs conflict up to 94 jobs/s",
                here=f"at most {100 * max(low):.2f} %",
                tolerance="under 1 %",
                holds=max(low) < 0.01,
                note=title,
            )
        yield from _throughput(found, prefer, title)
        yield from _more_candidates(found, prefer, title)


def five_times_fewer(one: float, three: float) -> bool:
    return 5 * three <= one


def _throughput(found: Findings, prefer: str, title: str) -> Iterator[Claim]:
    worst = None
    for rate in found.values("9", "rate"):
        one = measured(found, "throughput", rate=rate, candidates=1, prefer=prefer, ends=0)
        three = measured(found, "throughput", rate=rate, candidates=3, prefer=prefer, ends=0)
        if one and three is not None and (worst is None or three / one < worst[0]):
            worst = three / one, rate, one, three
    if worst is None:
        return
    share, rate, one, three = worst
    yield Claim(
        id=f"vela-9-throughput-{prefer}",
        figure="9",
        paper="throughput with MultiBind is at least that without, at every rate",
        here=f"at worst {three:.1f} against {one:.1f} jobs/s, at {rate} requests/s",
        tolerance="1 %",
        holds=share >= 0.99,
        note=title,
    )


def _more_candidates(found: Findings, prefer: str, title: str) -> Iterator[Claim]:
    shares = {
        m: share
        for m in (1, 2, 3, 5)
        if (share := measured(found, "conflicting", rate=PEAK, candidates=m, prefer=prefer, ends=0))
        is not None
    }
    if len(shares) == 4:
        values = list(shares.values())
        yield Claim(
            id=f"vela-9-more-candidates-{prefer}",
            figure="9",
            paper="the more candidates, the fewer conflicts (implied)",
            here=", ".join(f"{100 * share:.2f} % (m = {m})" for m, share in shares.items()),
            tolerance="never more with more candidates",
            holds=all(fewer <= more for more, fewer in pairwise(values)),
            note=title,
        )
