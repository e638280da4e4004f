"""Figure 8: unavailability."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.papers.charts import Axis, Figure
from argosy.papers.claims import Claim, if_done
from argosy.papers.experiment import Findings
from argosy.papers.medea.resilience import SAID
from argosy.papers.medea.statements.reading import chart, distribution, mean, series

_ALGORITHMS = ("ilp", "jkube", "yarn")
_TITLES = {
    "anti-affinity": "(a) Said as anti-affinity, as in the paper",
    "limit": "(b) Said as a limit, unseen by J-Kube",
}


def draw_8(found: Findings) -> Figure:
    x = Axis(label="unavailable containers [%]", low=0)
    panels = []
    for said in SAID:
        lines = []
        for number, name in enumerate(_ALGORITHMS):
            worst = series(found, "8", "worst", algorithm=name, said=said)
            if worst:
                lines.append(distribution([100 * v for v in worst], name, number))
        panels.append(chart(_TITLES[said], x, "share of hours", lines))
    return Figure(
        number="8",
        title="Unavailability of the worst application, hour by hour",
        caption="Applications of 100 containers, spread over 25 service units.",
        note="Failures are generated to the paper's description of figure 3.",
        panels=tuple(panels),
    )


def claims_8(found: Findings) -> Iterator[Claim]:
    mine = mean(found, "8", "extent", algorithm="ilp", said="anti-affinity")
    other = mean(found, "8", "extent", algorithm="jkube", said="anti-affinity")
    if mine is not None and other is not None:
        yield if_done(
            Claim(
                id="medea-8-violations",
                figure="8",
                paper="Medea's placement has fewer violations of the anti-affinity than J-Kube's",
                here=f"mean extent {mine:.3f} against {other:.3f}",
                tolerance="a smaller extent, because no placement keeps it for any container",
                holds=mine < other,
            ),
            *(found.done("8", algorithm=name, said="anti-affinity") for name in ("ilp", "jkube")),
        )
    for measure, said in (("median", "16 %"), ("largest", "24 %")):
        mine = mean(found, "8", measure, algorithm="ilp", said="anti-affinity")
        other = mean(found, "8", measure, algorithm="jkube", said="anti-affinity")
        if mine is None or other is None:
            continue
        gain = 1 - mine / other if other else 0.0
        yield if_done(
            Claim(
                id=f"medea-8-{measure}",
                figure="8",
                paper=f"the {measure} unavailability is {said} lower than J-Kube's",
                here=f"{100 * mine:.2f} % against {100 * other:.2f} %: {100 * gain:.0f} % lower",
                tolerance="lower by at least 5 %",
                holds=gain >= 0.05,
            ),
            *(found.done("8", algorithm=name, said="anti-affinity") for name in ("ilp", "jkube")),
        )
