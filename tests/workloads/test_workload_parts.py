"""Parts of workloads by themselves, with draws that a test has chosen."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from argosy.model.errors import ModelError
from argosy.model.resources import Resources
from argosy.model.units import LARGEST, Micros
from argosy.testing.builders import job
from argosy.workloads import mapreduce, trace
from argosy.workloads.arrivals import Bursty, Poisson
from argosy.workloads.cluster_specs import WeightedRequest
from argosy.workloads.clusters import gap_drawer, positive, request_drawer
from argosy.workloads.distributions import (
    Constant,
    Exponential,
    Lognormal,
    Pareto,
    Uniform,
    least_parameter,
)
from argosy.workloads.fanout import _Rates
from argosy.workloads.google_conditions import Condition, satisfied
from argosy.workloads.job_tables import JobFields, TaskGroupTable
from argosy.workloads.tables import _example, expectation

SECOND = 1_000_000


class Chosen:
    """Random numbers that come in a given order; each kind has its own."""

    def __init__(self, **draws: list[float]) -> None:
        self.draws = draws

    def child(self, name: str) -> Chosen:
        return self

    def uniform(self) -> float:
        return self.draws["uniform"].pop(0)

    def exponential(self) -> float:
        return self.draws["exponential"].pop(0)

    def exponentials(self, count: int) -> list[float]:
        return [self.exponential() for _ in self.draws["exponential"][:count]]

    def normal(self) -> float:
        return self.draws["normal"].pop(0)

    def below(self, bound: int) -> int:
        return min(int(self.draws["below"].pop(0)), bound - 1)


def chosen(**draws: list[float]) -> Any:
    return Chosen(**draws)


class TestConditions:
    @pytest.mark.parametrize(
        ("relation", "value", "holds"),
        [
            ("EQUAL", "3", (False, True, False)),
            ("NOT_EQUAL", "3", (True, False, True)),
            ("LESS_THAN", "3", (True, False, False)),
            ("GREATER_THAN", "3", (False, False, True)),
        ],
    )
    def test_each_relation_has_its_bounds(
        self, relation: str, value: str, holds: tuple[bool, ...]
    ) -> None:
        condition = Condition("a", relation, value)
        assert tuple(condition.holds({"a": has}) for has in ("2", "3", "4")) == holds

    def test_what_is_no_number_counts_as_zero(self) -> None:
        assert Condition("a", "LESS_THAN", "1").holds({"a": "text"})
        assert not Condition("a", "GREATER_THAN", "x").holds({})
        both = [Condition("a", "EQUAL", "1"), Condition("b", "NOT_EQUAL", "2")]
        assert list(satisfied(both, {"a": "1", "b": "2"}).values()) == ["yes"]


class TestDraws:
    def test_bursts_have_balanced_means(self) -> None:
        plain = gap_drawer(chosen(exponential=[0.5]), 1)
        assert plain() == 0.5
        drawn = gap_drawer(chosen(exponential=[1, 1, 1], uniform=[0.0, 0.99, 0.8]), 2)
        # The square is 4, so the short gaps have a share of (1 + (3/5)^0.5) / 2 = 0.887.
        short = (1 + 0.6**0.5) / 2
        expected = [1 / (2 * short), 1 / (2 * (1 - short)), 1 / (2 * short)]
        assert [drawn() for _ in range(3)] == pytest.approx(expected)

    def test_requests_are_drawn_by_weight(self) -> None:
        vectors = [Resources(cpu, 1) for cpu in (1, 2, 3)]
        choices = [
            WeightedRequest(request=vector, weight=weight)
            for vector, weight in zip(vectors, (1.0, 2.0, 1.0), strict=True)
        ]
        draw = request_drawer(choices, chosen(uniform=[0.0, 0.249, 0.25, 0.74, 0.75, 1.0]))
        assert [draw().cpu for _ in range(6)] == [1, 1, 2, 2, 3, 3]
        only = request_drawer(choices[1:2], chosen())
        assert only() is vectors[1]

    @pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
    def test_what_is_not_positive_is_refused(self, value: float) -> None:
        with pytest.raises(ModelError, match=f"a rate of {value}; expected a number above 0"):
            positive("rate", value)
        assert positive("rate", 0.1) == 0.1

    def test_distributions_draw_whole_numbers_within_their_bounds(self) -> None:
        assert Constant(7).draw(chosen()) == 7
        assert [Uniform(3, 5).draw(chosen(below=[at])) for at in (0, 1, 99)] == [3, 4, 5]
        assert Exponential(10).draw(chosen(exponential=[0.29])) == 2
        assert Exponential(LARGEST).draw(chosen(exponential=[5])) == LARGEST
        assert Lognormal(10, 1.0).draw(chosen(normal=[0.0])) == 10
        assert Lognormal(100, 0.5).draw(chosen(normal=[2.0])) == 271
        shapes: list[Any] = [
            Constant(1),
            Uniform(2, 9),
            Exponential(3),
            Lognormal(4, 1.0),
            Pareto(5, 9, 1.0),
        ]
        assert [least_parameter(shape) for shape in shapes] == [1, 2, 3, 4, 5]

    @pytest.mark.parametrize(
        ("make", "fits"),
        [
            (lambda: Uniform(0, 0), True),
            (lambda: Uniform(-1, 0), False),
            (lambda: Uniform(2, 1), False),
            (lambda: Pareto(1, 2, 1.0), True),
            (lambda: Pareto(0, 2, 1.0), False),
            (lambda: Pareto(2, 2, 1.0), False),
        ],
    )
    def test_bounds_that_make_no_sense_are_refused(self, make: Any, fits: bool) -> None:
        if fits:
            make()
            return
        with pytest.raises(ModelError, match="low"):
            make()

    def test_arrivals_are_sorted_draws_stretched_by_the_rate(self) -> None:
        even = [1.0, 1.0, 1.0, 1.0]
        assert list(Poisson().times(3, 80, chosen(exponential=list(even)))) == [20, 40, 60]
        # Calm to 51, a burst of four times the rate to 77, and calm again.
        bursty = Bursty(factor=4, burst=25, every=50)
        periods = [1.0, 1.0, 1.0]
        found = list(bursty.times(3, 80, chosen(exponential=[*periods, *even])))
        total = 51 + 26 * 4 + 3
        assert found == [
            int(total / 4),
            51 + int((total / 2 - 51) / 4),
            51 + int((total * 3 / 4 - 51) / 4),
        ]


class TestRates:
    def pattern(self) -> Any:
        return SimpleNamespace(median=10.0, peak=20.0, sigma=1.0)

    def test_a_job_comes_when_those_before_it_have_been_offered(self) -> None:
        rates = _Rates(self.pattern(), chosen(normal=[0.0, 5.0, 0.0]), 10 * SECOND)
        # Ten a second at first: all 100 of the first period; then never above the peak.
        assert [rates.after(tasks) for tasks in (50, 50, 100, 0, 40)] == [
            0,
            5 * SECOND,
            10 * SECOND,
            15 * SECOND,
            15 * SECOND,
        ]
        assert rates.after(1) == 17 * SECOND

    def test_the_busiest_period_has_the_peak(self) -> None:
        rates = _Rates(self.pattern(), chosen(normal=[0.0, 0.0, 0.0]), SECOND, busiest=1)
        assert [rates.after(10) for _ in range(4)] == [
            0,
            SECOND,
            SECOND + SECOND // 2,
            2 * SECOND,
        ]


class TestTables:
    @pytest.mark.parametrize(
        ("keys", "field"),
        [
            ({"phases": ((),), "duration": 1}, "phases"),
            ({"phases": ((),), "durations": (1, 2)}, "phases"),
            ({"duration": 1, "durations": (1, 2)}, "durations"),
            ({"durations": (1,)}, "durations"),
            ({"durations": (1, 2, 3)}, "durations"),
            ({"durations": (1, 2)}, None),
            ({"duration": 1}, None),
            ({"tags": ("not a tag",)}, "tags"),
        ],
    )
    @pytest.mark.parametrize("kind", [TaskGroupTable, JobFields])
    def test_running_times_are_said_once(
        self, kind: Any, keys: dict[str, Any], field: str | None
    ) -> None:
        known = {
            "count": 2,
            "request": Resources(1, 1),
            **({"id": "a"} if kind is JobFields else {}),
        }
        if field is None:
            kind(**known, **keys)
            return
        with pytest.raises(ModelError) as caught:
            kind(**known, **keys)
        assert (caught.value.field or "").startswith(field)

    @pytest.mark.parametrize(
        ("message", "expected"),
        [
            ("Expected `int`, got `str`", "a whole number"),
            ("Expected `int` >= 1, got `str`", "a whole number of at least 1"),
            ("Expected `float` <= 2.0", "a number of at most 2.0"),
        ],
    )
    def test_what_was_expected_is_told_in_words(self, message: str, expected: str) -> None:
        assert expectation(message) == expected

    def test_examples_are_of_the_kind_that_is_asked_for(self) -> None:
        assert _example(Micros) == '"10s"'
        assert _example(Resources) == '{cpu = 500, memory = "2GiB"}'
        kinds = (str, int, float, bool, list)
        assert [_example(kind) for kind in kinds] == ['"..."', "1", "0.5", "true", "..."]


class TestTraces:
    def test_what_is_written_is_whole_and_counted(self, tmp_path: Path) -> None:
        path = tmp_path / "t.jsonl"
        assert trace.write_trace(path, [job("a"), job("b")]) == 2
        assert len(path.read_bytes().splitlines()) == 2
        assert trace.write_trace(path, []) == 0
        assert path.read_bytes() == b""
        assert [each.name for each in tmp_path.iterdir()] == ["t.jsonl"]

    def test_a_speed_up_divides_the_times_of_submission(self) -> None:
        late = job("a", submit=8)
        assert trace._sooner(late, 4).submit == 2 * SECOND
        assert trace._sooner(late, 0.5).submit == 16 * SECOND
        assert trace._sooner(late, 1e-18).submit == LARGEST

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            (b'{"id": "a", "id": "b"}', "key 'id' twice in one object"),
            (b'{"id": NaN}', "not JSON: NaN is not a number"),
            (b'{"id"', "not JSON: "),
            (b'{"id": "\xff"}', "not UTF-8 at byte 9 of the line"),
        ],
    )
    def test_what_is_no_line_of_a_trace_is_said(self, line: bytes, said: str) -> None:
        with pytest.raises(trace._NotJson) as caught:
            trace._decode(line)
        assert str(caught.value).startswith(said)


def test_mapreduce_jobs_are_a_share_of_all_jobs_of_a_cluster() -> None:
    shape = mapreduce.shape()
    kinds = {"a": SimpleNamespace(interarrival=10.0), "b": SimpleNamespace(interarrival=40.0)}
    cluster: Any = SimpleNamespace(kinds=kinds)
    assert shape.interarrival(cluster) == pytest.approx(8.0 / shape.share)
    whole = sum(choice.weight for choice in shape.workers)
    mean = sum(choice.weight * choice.count for choice in shape.workers) / whole
    assert shape.mean_workers() == pytest.approx(mean)
