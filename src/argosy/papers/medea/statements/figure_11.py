"""Figure 11: scheduling latency."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.papers.charts import Axis, Figure
from argosy.papers.claims import Claim, if_done
from argosy.papers.experiment import Findings
from argosy.papers.medea.points import HEURISTICS
from argosy.papers.medea.statements.reading import along, chart, distribution, mean, series

_OTHERS = (*HEURISTICS, "jkube")
_DESIGNS = ("medea", "ilp-all")


def draw_11a(found: Findings) -> Figure:
    lines = along(found, "11a", "machines", "milliseconds", "algorithm", ("ilp", *_OTHERS))
    always = along(
        found, "11a", "machines", "milliseconds", "algorithm", ("ilp-solved",), dashed=True
    )
    x = Axis(label="machines", logarithmic=True)
    y = Axis(label="CPU time [ms]", logarithmic=True)
    return Figure(
        number="11a",
        title="Time to place one application",
        caption="Applications fill the cell to 20 %.",
        panels=(chart("(a)", x, y, lines + always),),
    )


def claims_11a(found: Findings) -> Iterator[Claim]:
    sizes = [int(x) for x in found.values("11a", "machines")]
    if not sizes:
        return
    most = max(sizes)
    times = {
        name: mean(found, "11a", "milliseconds", algorithm=name, machines=most)
        for name in ("ilp-solved", *_OTHERS)
    }
    solved = times.pop("ilp-solved")
    if solved is None:
        return
    yield if_done(
        Claim(
            id="medea-11a-ilp",
            figure="11a",
            paper="850 ms per application with 5,000 machines",
            here=f"{solved:.1f} ms of CPU with {most:,}, solver always run",
            tolerance="at most 850 ms",
            holds=solved <= 850,
            note="another solver, another formulation and another computer",
        ),
        found.done("11a", algorithm="ilp-solved", machines=most),
    )
    rest = [v for v in times.values() if v is not None]
    if rest:
        yield if_done(
            Claim(
                id="medea-11a-order",
                figure="11a",
                paper="the integer program has the highest latency",
                here=f"{solved:.1f} ms against {min(rest):.2f} to {max(rest):.2f} ms",
                tolerance="above all others",
                holds=solved > max(rest),
            ),
            found.done("11a", machines=most),
        )
    heuristics = [times[name] for name in HEURISTICS]
    candidates, popularity = times["node-candidates"], times["tag-popularity"]
    if candidates is not None and popularity is not None:
        yield if_done(
            Claim(
                id="medea-11a-node-candidates",
                figure="11a",
                paper="node candidates is more expensive than the other heuristics",
                here=f"{candidates:.2f} ms against {popularity:.2f} ms of tag popularity",
                tolerance="more than tag popularity",
                holds=candidates > popularity,
            ),
            found.done("11a", algorithm="node-candidates", machines=most),
        )
    if times["jkube"] is not None and all(value is not None for value in heuristics):
        slowest = max(value for value in heuristics if value is not None)
        yield if_done(
            Claim(
                id="medea-11a-jkube",
                figure="11a",
                paper="J-Kube has higher latencies than the heuristics",
                here=f"{times['jkube']:.2f} ms against at most {slowest:.2f} ms",
                tolerance="above each of them",
                holds=times["jkube"] > slowest,
            ),
            found.done("11a", algorithm="jkube", machines=most),
        )


def draw_11b(found: Findings) -> Figure:
    x = "share of applications"
    y = "CPU time per application [ms]"
    return Figure(
        number="11b",
        title="One scheduler or two",
        caption="256 machines, full in the end.",
        note="All machines are in the program, and containers that are alike are told apart.",
        panels=(
            chart(
                "(b) mean", x, y, along(found, "11b", "share", "milliseconds", "design", _DESIGNS)
            ),
            chart("(b) median", x, y, along(found, "11b", "share", "median", "design", _DESIGNS)),
        ),
    )


def claims_11b(found: Findings) -> Iterator[Claim]:
    both = [mean(found, "11b", "milliseconds", design=d, share=0.2) for d in ("ilp-all", "medea")]
    middle = [mean(found, "11b", "median", design=d, share=0.2) for d in ("ilp-all", "medea")]
    if both[0] is None or not both[1] or middle[0] is None or not middle[1]:
        return
    ratio = both[0] / both[1]
    yield if_done(
        Claim(
            id="medea-11b",
            figure="11b",
            paper="one scheduler for all is 9.5 times slower at 20 % applications",
            here=f"{ratio:.1f} times in the mean ({middle[0] / middle[1]:.1f} in the median cycle)",
            tolerance="at least half of that, in the mean",
            holds=ratio >= 4.75,
        ),
        found.done("11b", share=0.2),
    )


def draw_11c(found: Findings) -> Figure:
    lines = []
    for number, engine in enumerate(("medea", "yarn")):
        waits = series(found, "11c", "waits", engine=engine)
        if waits:
            label = f"{engine}, with applications" if engine == "medea" else engine
            lines.append(distribution(waits, label, number))
    x = Axis(label="task latency [ms]", logarithmic=True)
    return Figure(
        number="11c",
        title="What tasks wait for, with applications beside them and without",
        caption="256 machines; a Google-like load, 200 times as fast.",
        note="Decisions take the processor time that they really take.",
        panels=(chart("(c)", x, "share of tasks", lines),),
    )


def claims_11c(found: Findings) -> Iterator[Claim]:
    for name, percentiles, said in (
        ("box", (25, 50, 75), "25th, 50th and 75th percentiles"),
        ("tail", (99,), "99th percentile"),
    ):
        ratios, told = [], []
        for share in percentiles:
            mine = mean(found, "11c", f"p{share}", engine="medea")
            other = mean(found, "11c", f"p{share}", engine="yarn")
            if mine is None or not other:
                return
            ratios.append(mine / other)
            told.append(f"{mine:.3f} against {other:.3f} ms")
        yield if_done(
            Claim(
                id=f"medea-11c-{name}",
                figure="11c",
                paper=f"10 % more load by applications leaves task latencies as YARN's ({said})",
                here=", ".join(told),
                tolerance="at most 1.25 times YARN's",
                holds=max(ratios) <= 1.25,
                note="rule written after a first look",
            ),
            found.done("11c"),
        )
