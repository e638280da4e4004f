"""The text of metrics to the letter: labels and order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from live_bench import LiveBench

from argosy.service.metrics import BOUNDS, Histogram


@pytest.mark.parametrize(
    ("labels", "inner", "outer"), [("", "", ""), ('verb="get"', 'verb="get",', '{verb="get"}')]
)
def test_a_histogram_has_its_labels_in_every_line(labels: str, inner: str, outer: str) -> None:
    made = Histogram()
    for seconds in (0.001, 0.0011, 9_999.0):
        made.add(seconds)
    lines = list(made.lines("x", labels))
    counts = [1] + [2] * (len(BOUNDS) - 1)
    assert lines == [
        *(
            f'x_bucket{{{inner}le="{bound:g}"}} {count}'
            for bound, count in zip(BOUNDS, counts, strict=True)
        ),
        f'x_bucket{{{inner}le="+Inf"}} 3',
        f"x_sum{outer} 9999.002100",
        f"x_count{outer} 3",
    ]


def test_requests_are_told_in_order_whatever_came_first(
    make_live: Callable[..., LiveBench],
) -> None:
    live = make_live()
    live.post("/v1/jobs", {"unknown": 1})
    live.get("/v1/jobs/none")
    live.get("/v1/jobs")
    text = live.get("/metrics").body.decode()
    lines = [line for line in text.splitlines() if line.startswith("argosy_http_requests_total{")]
    assert [line.rpartition("{")[2] for line in lines] == [
        'method="GET",code="200"} 1',
        'method="GET",code="404"} 1',
        'method="POST",code="422"} 1',
    ]
