"""Figure 7: the effect of schedulers on applications.

Claims whose ids end in `-model` depend on the performance model; the others on placements alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy.papers.charts import Axis, Figure
from argosy.papers.claims import Claim, if_done
from argosy.papers.experiment import Findings
from argosy.papers.medea.points import SYSTEMS
from argosy.papers.medea.statements.reading import (
    MODEL_NOTE,
    PREDICTED,
    chart,
    distribution,
    half_of,
    mean,
    series,
)

_PERCENTILES = {50: "median runtime", 99: "99th percentile"}
_BOTH = ("tensorflow", "hbase")
#: The percentiles of the paper's box plots.
_BOX = (5, 25, 50, 75, 99)
#: By name: which scheduler's percentile, for which applications, is how many times Medea's.
_RATIOS = {
    "jkube-tensorflow": ("jkube", 50, ("tensorflow",), 1.32),
    "jkube-hbase": ("jkube", 50, ("hbase",), 1.23),
    "jkube++": ("jkube++", 99, _BOTH, 1.54),
    "yarn": ("yarn", 50, _BOTH, 2.1),
    "yarn-tail": ("yarn", 99, _BOTH, 2.4),
}


def draw_7(found: Findings) -> Figure:
    panels = []
    for title, name in (("(a) TensorFlow", "tensorflow"), ("(b, c) HBase", "hbase")):
        reference = series(found, "7", f"model.{name}", algorithm="ilp")
        unit = float(np.median(reference)) if reference else 1.0
        lines = []
        for number, algorithm in enumerate(SYSTEMS):
            times = series(found, "7", f"model.{name}", algorithm=algorithm)
            if times:
                lines.append(distribution([t / unit for t in times], algorithm, number))
        x = Axis(label="runtime, Medea's median = 1 (model)")
        panels.append(chart(title, x, "share of instances", lines))
    lines = []
    for number, algorithm in enumerate(SYSTEMS):
        times = series(found, "7", "tasks", algorithm=algorithm)
        if times:
            lines.append(distribution(times, algorithm, number))
    panels.append(chart("(d) tasks", "seconds from submission to end", "share of tasks", lines))
    return Figure(
        number="7",
        title="Application performance",
        caption="45 TensorFlow and 50 HBase instances on 400 machines of 128 GB, half used by tasks.",
        note=MODEL_NOTE,
        panels=tuple(panels),
    )


def claims_7(found: Findings) -> Iterator[Claim]:
    broken = {name: mean(found, "7", "violating", algorithm=name) for name in SYSTEMS}
    if any(value is None for value in broken.values()):
        return
    known = {name: float(value or 0) for name, value in broken.items()}
    told = ", ".join(f"{name} {100 * value:.1f} %" for name, value in known.items())
    yield if_done(
        Claim(
            id="medea-7-ilp",
            figure="7",
            paper="Medea's placements keep the constraints, J-Kube's and YARN's do not",
            here=told,
            tolerance="Medea at most 1 %, J-Kube more than Medea, YARN more than J-Kube",
            holds=known["ilp"] <= 0.01 and known["ilp"] < known["jkube"] < known["yarn"],
        ),
        *(found.done("7", algorithm=name) for name in SYSTEMS),
    )
    yield if_done(
        Claim(
            id="medea-7-jkube++",
            figure="7",
            paper="J-Kube++ often leads to placements with many violations",
            here=told,
            tolerance="more than Medea",
            holds=known["jkube++"] > known["ilp"],
        ),
        *(found.done("7", algorithm=name) for name in ("ilp", "jkube++")),
    )
    yield _claim_on_tasks(found)
    yield from _claims_on_percentiles(found)
    for name, factors in _RATIOS.items():
        other, share, which, said = factors
        ratios = [
            float(np.percentile(series(found, "7", f"model.{kind}", algorithm=other), share))
            / float(np.percentile(series(found, "7", f"model.{kind}", algorithm="ilp"), share))
            for kind in which
        ]
        where = " or ".join(which)
        yield Claim(
            id=f"medea-7-{name}-model",
            figure="7",
            paper=f"{other}'s {_PERCENTILES[share]} is {said} times Medea's ({where})",
            here=" and ".join(f"{ratio:.2f} times" for ratio in ratios),
            tolerance=f"at least {half_of(said):.2f} times",
            holds=max(ratios) >= half_of(said),
            note=PREDICTED,
        )


def _claim_on_tasks(found: Findings) -> Claim:
    mine = _task_times(found, "ilp")
    ratios = {
        name: [
            theirs / max(own, 1e-9)
            for theirs, own in zip(_task_times(found, name), mine, strict=True)
        ]
        for name in SYSTEMS[1:]
    }
    everything = [ratio for each in ratios.values() for ratio in each]
    placed = min(mean(found, "7", "tasks.placed", algorithm=name) or 0.0 for name in SYSTEMS)
    return Claim(
        id="medea-7d",
        figure="7",
        paper="task-based jobs take consistently as long under all schedulers",
        here=f"{min(everything):.3f} to {max(everything):.3f} times as long as under Medea, in which "
        f"the median is {mine[2]:.1f} s; at least {100 * placed:.1f} % of tasks were placed",
        tolerance="5th, 25th, 50th, 75th and 99th percentile within a tenth of Medea's for each, "
        "99 % placed",
        holds=max(abs(ratio - 1) for ratio in everything) <= 0.1 and placed >= 0.99,
        note="from submission to end; how long a task runs is the workload's, so only waits can differ",
    )


def _task_times(found: Findings, algorithm: str) -> list[float]:
    """The percentiles of the box plots, means over seeds."""
    rows = [r.series["tasks"] for _, r in found.select("7", algorithm=algorithm)]
    return [float(np.mean([row[at] for row in rows])) for at in _BOX]


def _claims_on_percentiles(found: Findings) -> Iterator[Claim]:
    def ratios(other: str, shares: tuple[int, ...]) -> list[float]:
        return [
            float(np.percentile(series(found, "7", f"model.{kind}", algorithm=other), share))
            / float(np.percentile(series(found, "7", f"model.{kind}", algorithm="ilp"), share))
            for kind in _BOTH
            for share in shares
        ]

    whole = ratios("jkube", _BOX)
    yield Claim(
        id="medea-7-jkube-all-model",
        figure="7",
        paper="Medea is faster than J-Kube across all percentiles",
        here=f"{min(whole):.2f} to {max(whole):.2f} times Medea's",
        tolerance="above 1 at the 5th, 25th, 50th, 75th and 99th percentile, for both applications",
        holds=min(whole) > 1,
        note=PREDICTED,
    )
    middle = ratios("jkube++", _BOX[1:-1])
    yield Claim(
        id="medea-7-jkube++-28-model",
        figure="7",
        paper="Medea improves on J-Kube++ by up to 28 %",
        here=f"up to {max(middle):.2f} times Medea's",
        tolerance=f"at least {half_of(1.28):.2f} times at the 25th, 50th or 75th percentile",
        holds=max(middle) >= half_of(1.28),
        note=PREDICTED,
    )
    low = ratios("jkube++", _BOX[:1])
    high = ratios("jkube++", _BOX[-1:])
    yield Claim(
        id="medea-7-jkube++-spread-model",
        figure="7",
        paper="J-Kube++'s 5th percentile is like Medea's; its 99th is not",
        here=f"5th {', '.join(f'{r:.2f}' for r in low)}; 99th {', '.join(f'{r:.2f}' for r in high)}",
        tolerance="5th within a tenth of Medea's; the larger 99th farther away",
        holds=max(abs(r - 1) for r in low) <= 0.1 and max(high) > 1.1,
        note=PREDICTED,
    )
