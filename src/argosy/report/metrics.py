"""Metrics by which runs are compared: one number per run, less is better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from argosy.model.errors import UnknownName
from argosy.records.summary import Distribution, Summary
from argosy.report.summaries import STATISTICS
from argosy.report.tables import Unit


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    title: str
    unit: Unit
    #: What a run with a lower value is: "1.4 times *faster* than".
    better: str
    #: None if the run has nothing to measure, such as the JCT without finished jobs.
    value: Callable[[Summary], float | None]


#: Name on the command line, field of the summary, description, and the word for a lower value.
_TIMES: Final = (
    ("jct", "jct", "JCT", "faster"),
    ("wait", "wait_time", "wait time", "shorter"),
    ("placement", "placement_latency", "placement latency", "faster"),
    ("response", "response_time", "response time", "faster"),
)


def _of(field: str, statistic: str) -> Callable[[Summary], float | None]:
    def value(summary: Summary) -> float | None:
        observed: Distribution = getattr(summary, field)
        return float(getattr(observed, statistic)) if observed.count else None

    return value


def _violations(summary: Summary) -> float | None:
    """The share of containers under constraints that violate one, over time."""
    use = summary.placement.mean
    return use.violating / use.concerned if use.concerned else None


def _extent(summary: Summary) -> float | None:
    use = summary.placement.mean
    return use.extent if use.concerned else None


def _imbalance(summary: Summary) -> float | None:
    """For the least evenly used resource."""
    return max(summary.placement.mean.imbalance.values(), default=None)


def _all() -> dict[str, Metric]:
    metrics = []
    for name, field, title, better in _TIMES:
        metrics.append(Metric(name, f"median {title}", Unit.TIME, better, _of(field, "p50")))
        for statistic, words in STATISTICS.items():
            value = _of(field, statistic)
            metrics.append(
                Metric(f"{name}.{statistic}", f"{words} {title}", Unit.TIME, better, value)
            )
    metrics += [
        Metric("end", "end of the run", Unit.TIME, "earlier", lambda s: float(s.ended_at)),
        Metric(
            "conflicts", "conflict fraction", Unit.NUMBER, "lower", lambda s: s.conflict_fraction
        ),
        Metric("violations", "violating containers", Unit.SHARE, "lower", _violations),
        Metric("extent", "extent of violations", Unit.NUMBER, "lower", _extent),
        Metric(
            "fragmented",
            "fragmented machines",
            Unit.NUMBER,
            "lower",
            lambda s: s.placement.mean.fragmented,
        ),
        Metric("imbalance", "load imbalance", Unit.NUMBER, "lower", _imbalance),
        Metric(
            "machines",
            "machines used",
            Unit.NUMBER,
            "lower",
            lambda s: s.placement.mean.machines_used,
        ),
    ]
    return {metric.name: metric for metric in metrics}


METRICS: Final = _all()


def find_metric(name: str) -> Metric:
    if name not in METRICS:
        raise UnknownName("metric", name, METRICS)
    return METRICS[name]


def related_metrics(metric: Metric) -> list[Metric]:
    """The mean, the median and the tail of the times that a metric is a statistic of, if it is one."""
    family = metric.name.partition(".")[0]
    if family not in {name for name, *_ in _TIMES}:
        return []
    return [METRICS[f"{family}.{statistic}"] for statistic in ("mean", "p50", "p99")]
