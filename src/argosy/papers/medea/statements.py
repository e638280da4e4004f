"""What the Medea paper says of its figures, beside what was measured.

The rules were written down before the first measurement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings
from argosy.papers.medea.figures import mean
from argosy.papers.medea.world import STEPS

_HEURISTICS = ("node-candidates-first-fit", "tag-popularity-first-fit", "serial-first-fit")


def claims(found: Findings, figures: Sequence[str]) -> list[Claim]:
    """Those that the points at hand can decide."""
    makers = {
        "8": _eight,
        "9a": _nine_a,
        "9b": _nine_b,
        "9c": _nine_c,
        "9d": _nine_d,
        "10": _ten,
        "11a": _eleven_a,
        "11b": _eleven_b,
    }
    return [claim for figure in figures for claim in makers[figure](found)]


def _steps(found: Findings, name: str, algorithm: str) -> list[float]:
    values = [mean(found, "9a", f"{name}.{step}", algorithm=algorithm) for step in STEPS]
    return [value for value in values if value is not None]


def _shares(values: Sequence[float]) -> str:
    return f"{100 * min(values):.1f} % to {100 * max(values):.1f} %"


def _nine_a(found: Findings) -> Iterator[Claim]:
    mine = _steps(found, "violating", "ilp")
    if not mine:
        return
    yield Claim(
        id="medea-9a-ilp",
        figure="9a",
        paper="the integer program has almost no violations, even at 90 %",
        here=_shares(mine),
        tolerance="at most 1 % of containers at every step",
        holds=max(mine) <= 0.01,
    )
    others = {name: _steps(found, "violating", name) for name in _HEURISTICS}
    jkube = _steps(found, "violating", "jkube")
    if jkube:
        yield Claim(
            id="medea-9a-tenth",
            figure="9a",
            paper="J-Kube exhibits even more violations than the heuristics",
            here=f"integer program {sum(mine):.3f}, J-Kube {sum(jkube):.3f}, summed over the steps",
            tolerance="the integer program has at most a tenth of J-Kube's, which has some",
            holds=sum(mine) <= sum(jkube) / 10 and sum(jkube) > 0,
        )
    if all(others.values()):
        means = {name: sum(values) / len(values) for name, values in others.items()}
        yield Claim(
            id="medea-9a-heuristics",
            figure="9a",
            paper="heuristics have 10 % to 20 %, also at low use",
            here=", ".join(f"{name} {100 * value:.1f} %" for name, value in means.items()),
            tolerance="5 % to 30 % on average over the steps, for each",
            holds=all(0.05 <= value <= 0.3 for value in means.values()),
            note="the first-fit variants; the paper leaves open how a machine is chosen",
        )


def _nine_b(found: Findings) -> Iterator[Claim]:
    shares = found.values("9b", "tasks")
    mine = [mean(found, "9b", "violating", algorithm="ilp", tasks=share) for share in shares]
    known = [value for value in mine if value is not None]
    if not known:
        return
    yield Claim(
        id="medea-9b-ilp",
        figure="9b",
        paper="the integer program stays below 10 % beside tasks",
        here=_shares(known),
        tolerance="below 10 % at every step",
        holds=max(known) < 0.1,
    )
    rest = [
        value
        for name in (*_HEURISTICS, "jkube")
        for share in shares
        if (value := mean(found, "9b", "violating", algorithm=name, tasks=share)) is not None
    ]
    if rest:
        yield Claim(
            id="medea-9b-others",
            figure="9b",
            paper="the others have more than 15 %, up to 40 %",
            here=_shares(rest),
            tolerance="each above 7.5 % at every step",
            holds=min(rest) > 0.075,
        )


def _nine_c(found: Findings) -> Iterator[Claim]:
    periods = sorted(int(x) for x in found.values("9c", "period"))
    values = [mean(found, "9c", "violating", algorithm="ilp", period=p) for p in periods]
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return
    yield Claim(
        id="medea-9c",
        figure="9c",
        paper="with one application per interval there are violations; longer intervals have fewer",
        here=", ".join(f"{p}: {100 * v:.1f} %" for p, v in zip(periods, known, strict=True)),
        tolerance="some with one, fewer with the most",
        holds=known[0] > 0 and known[-1] < known[0],
    )


def _nine_d(found: Findings) -> Iterator[Claim]:
    sizes = [int(x) for x in found.values("9d", "complexity")]
    if not sizes:
        return
    most = max(sizes)
    bounds = {
        "ilp": (0.0, 0.1),
        "node-candidates-first-fit": (0.0, 0.2),
        "tag-popularity-first-fit": (0.0, 0.2),
        "jkube": (0.2, 1.0),
    }
    for name, (low, high) in bounds.items():
        value = mean(found, "9d", "violating", algorithm=name, complexity=most)
        if value is not None:
            said = f"below {100 * high:.0f} %" if low == 0 else f"above {100 * low:.0f} %"
            yield Claim(
                id=f"medea-9d-{name}",
                figure="9d",
                paper=f"{name} has violations {said} with constraints over 10 applications",
                here=f"{100 * value:.1f} % over {most}",
                tolerance=said,
                holds=low <= value <= high,
            )


def _ten(found: Findings) -> Iterator[Claim]:
    mine = _steps(found, "fragmented", "ilp")
    if len(mine) < len(STEPS):
        return
    yield Claim(
        id="medea-10a",
        figure="10",
        paper="few fragmented machines except for high use",
        here=f"{_shares(mine[:8])} up to 80 %",
        tolerance="at most 10 % of machines up to 80 %",
        holds=max(mine[:8]) <= 0.1,
    )
    load = _steps(found, "imbalance", "ilp")
    yield Claim(
        id="medea-10b",
        figure="10",
        paper="load imbalance is more pronounced for low use and evens out",
        here=f"{load[0]:.2f} at 10 %, {load[-1]:.2f} at 90 %",
        tolerance="less at 90 % than at 10 %",
        holds=load[-1] < load[0],
    )


def _eight(found: Findings) -> Iterator[Claim]:
    for measure, said in (("median", "16 %"), ("largest", "24 %")):
        mine = mean(found, "8", measure, algorithm="ilp")
        other = mean(found, "8", measure, algorithm="jkube")
        if mine is None or other is None:
            continue
        gain = 1 - mine / other if other else 0.0
        yield Claim(
            id=f"medea-8-{measure}",
            figure="8",
            paper=f"the {measure} unavailability is {said} lower than J-Kube's",
            here=f"{100 * mine:.2f} % against {100 * other:.2f} %: {100 * gain:.0f} % lower",
            tolerance="lower by at least 5 %",
            holds=gain >= 0.05,
        )


def _eleven_a(found: Findings) -> Iterator[Claim]:
    sizes = [int(x) for x in found.values("11a", "machines")]
    if not sizes:
        return
    most = max(sizes)
    times = {
        name: mean(found, "11a", "milliseconds", algorithm=name, machines=most)
        for name in ("ilp", "ilp-solved", "node-candidates", "tag-popularity", "serial", "jkube")
    }
    solved = times["ilp-solved"]
    if solved is not None:
        yield Claim(
            id="medea-11a-ilp",
            figure="11a",
            paper="850 ms per application with 5,000 machines",
            here=f"{solved:.1f} ms of CPU with {most:,}, solver always run",
            tolerance="at most 850 ms",
            holds=solved <= 850,
            note="another solver, another formulation and another computer",
        )
    rest = [v for n, v in times.items() if not n.startswith("ilp") and v is not None]
    if solved is not None and rest:
        yield Claim(
            id="medea-11a-order",
            figure="11a",
            paper="the integer program has the highest latency",
            here=f"{solved:.1f} ms against {min(rest):.2f} to {max(rest):.2f} ms",
            tolerance="above all others",
            holds=solved > max(rest),
        )


def _eleven_b(found: Findings) -> Iterator[Claim]:
    both = [
        mean(found, "11b", "milliseconds", design=design, share=0.2)
        for design in ("ilp-all", "medea")
    ]
    if both[0] is None or not both[1]:
        return
    ratio = both[0] / both[1]
    yield Claim(
        id="medea-11b",
        figure="11b",
        paper="one scheduler for all is 9.5 times slower at 20 % applications",
        here=f"{ratio:.1f} times",
        tolerance="at least half of that",
        holds=ratio >= 4.75,
    )
