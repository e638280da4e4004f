"""Numbers of clusters, mistakes of drawn workloads, and rules of pods, as they are defined."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest
from test_pod_recordings import REQUIRED, pod

from argosy.model.constraints.text import format_constraint
from argosy.model.errors import ModelError, ScenarioError
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.workloads import clusters
from argosy.workloads.cluster_specs import (
    STEPS,
    Curve,
    KindSpec,
    PickyJobs,
    TimeCurve,
    TimeExponential,
    WholeExponential,
    cluster,
    read_specs,
)
from argosy.workloads.distributions import Constant
from argosy.workloads.google_jobs import Notes
from argosy.workloads.pod_constraints import constraints_of
from argosy.workloads.synthetic import Estimates, JobKind, Synthetic, WeightedRequest

SECOND = 1_000_000
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class TestClusters:
    def kind(self, **fields: Any) -> KindSpec:
        sources = dict.fromkeys(KindSpec.__struct_fields__, "estimate: a guess")
        given: dict[str, Any] = {
            "interarrival": 2 * SECOND,
            "tasks": Curve((0, 1), (10, 10)),
            "duration": TimeCurve((0, 1), (SECOND, SECOND)),
            "requests": (
                WeightedRequest(request=Resources(1_000, 6), weight=1.0),
                WeightedRequest(request=Resources(2_000, 2), weight=3.0),
            ),
            "sources": sources,
        }
        return KindSpec(**{**given, **fields})

    def test_sums_of_a_kind(self) -> None:
        kind = self.kind()
        assert kind.cores_asked() == 1_750 * 10 / 2
        assert kind.memory_asked() == 3 * 10 / 2
        assert kind.busyness() == (100_000 + 50_000) / (2 * SECOND)
        assert kind.busyness(SECOND, 0, 3.0) == 1.5

    @pytest.mark.parametrize(
        ("fields", "problem", "expected"),
        [
            ({"interarrival": 0}, "no time between arrivals", 'a mean such as "1s"'),
            ({"requests": ()}, "no requests", "at least one resource vector"),
            (
                {"picky": (PickyJobs(share=0.6), PickyJobs(share=0.5))},
                "shares of picky jobs above 1",
                "1 or less together",
            ),
            (
                {"sources": {"tasks": "hearsay"}},
                "the source of interarrival is ''",
                "one that begins with paper, simulator, public trace, literature, derived, estimate",
            ),
        ],
    )
    def test_mistakes_of_a_kind(self, fields: dict[str, Any], problem: str, expected: str) -> None:
        with pytest.raises(ModelError) as caught:
            self.kind(**fields)
        assert (caught.value.problem, caught.value.expected) == (problem, expected)
        self.kind(picky=(PickyJobs(share=0.5), PickyJobs(share=0.5)))

    def test_a_curve_is_linear_in_the_logarithm(self) -> None:
        curve = Curve((0, 0.5, 1), (1, 100, 100))
        steps = curve.steps
        assert (len(steps), steps[0], steps[-1]) == (STEPS, 1, 100)
        # A quarter of all draws are below ten, the middle of 1 and 100.
        quarter = STEPS // 4
        assert (steps[quarter - 1], steps[quarter]) == (10, 10)
        assert steps[STEPS // 2 - 1] == steps[STEPS // 2] == 100
        assert curve.average == sum(steps) / STEPS
        assert [curve.above(value) for value in (0, 100)] == [1.0, 0.0]
        assert curve.above(99) == sum(step > 99 for step in steps) / STEPS

        class Last:
            def below(self, bound: int) -> int:
                assert bound == STEPS
                return bound - 1

        last: Any = Last()
        assert (curve.drawer(last, 1_000)(), curve.drawer(last, 60)()) == (100, 60)

    @pytest.mark.parametrize(
        ("at", "values", "problem", "expected"),
        [
            ((0, 1), (1,), "2 shares and 1 values", "as many of one as of the other, two or more"),
            ((0,), (1,), "1 shares and 1 values", "as many of one as of the other, two or more"),
            ((0.0, 0.5), (1, 2), "shares [0.0, 0.5]", "rising from 0 to 1"),
            ((0.0, 0.0, 1.0), (1, 2, 3), "shares [0.0, 0.0, 1.0]", "rising from 0 to 1"),
            ((0, 1), (2, 1), "values [2, 1]", "values that never fall"),
            ((0, 1), (0, 1), "a value of 0", "values of 1 or more"),
        ],
    )
    def test_mistakes_of_a_curve(self, at: Any, values: Any, problem: str, expected: str) -> None:
        with pytest.raises(ModelError) as caught:
            Curve(at, values)
        assert (caught.value.problem, caught.value.expected) == (problem, expected)

    def test_exponential_draws_are_rounded_up_and_cut(self) -> None:
        class Units:
            def exponentials(self, count: int) -> list[float]:
                return [0.0, 0.09, 0.1, 0.39, 0.4, 5.0]

        units: Any = Units()
        for kind in (WholeExponential(10), TimeExponential(mean=10)):
            draw = kind.drawer(units, 40)
            assert [draw() for _ in range(7)] == [1, 1, 2, 4, 5, 40, 1]
            assert kind.average == pytest.approx(10.5, abs=0.01)

    def test_a_mistake_in_a_file_has_its_place(self) -> None:
        with pytest.raises(ScenarioError) as caught:
            read_specs({"X": {"about": "x", "machines": {"count": 0}}})
        assert caught.value.field is not None
        assert caught.value.field.startswith("X.machines")

    def test_machines_are_rounded_and_named_by_their_numbers(self) -> None:
        spec = cluster("D")
        for scale in (1.0, 0.5, 1e-9):
            found = clusters.machines(spec, scale)
            assert len(found) == max(1, round(spec.machines.count * scale))
        assert [found[0].name, found[-1].name] == ["D-0", f"D-{len(found) - 1}"]
        for wrong in (0.0, -1.0, float("inf")):
            with pytest.raises(ModelError, match="a scale of "):
                clusters.machines(spec, wrong)

    def test_a_fill_ends_where_the_next_task_would_not_fit(self) -> None:
        spec = cluster("C")
        there = clusters._room(spec, 0.01, varied=False)
        left = {name: int(spec.fill.share * amount) for name, amount in there.items()}
        made = list(clusters.fill(spec, Random(1), scale=0.01))
        for each in made:
            [group] = each.groups
            for name, amount in group.request.items():
                left[name] -= group.count * amount
        assert min(left.values()) >= 0
        sizes = [each.tasks for each in made]
        assert set(sizes[:-1]) == {spec.fill.tasks}
        assert [each.id for each in made] == [f"fill-{at}" for at in range(len(made))]
        assert {each.job.precedence for each in made} == {spec.fill.precedence}

    def test_burstiness_and_rates_have_bounds(self) -> None:
        spec = cluster("D")
        for burstiness in (1, 100):
            clusters.jobs(spec, SECOND, Random(1), burstiness=burstiness)
        for wrong in (0.99, 100.1):
            with pytest.raises(ModelError) as caught:
                clusters.jobs(spec, SECOND, Random(1), burstiness=wrong)
            assert caught.value.expected == "1 to 100"


class TestSynthetic:
    KIND = JobKind(
        requests=(WeightedRequest(request=Resources(1, 1)),),
        tasks=Constant(1),
    )

    @pytest.mark.parametrize(
        ("fields", "field", "problem", "expected"),
        [
            ({"kinds": {}}, "kinds", "no kinds of jobs", "at least one, such as kinds.batch"),
            ({"span": 0}, "span", "a span of 0", 'a span such as "1h"'),
            (
                {"name": "a/b"},
                "kinds",
                "kind 'a/b'",
                "a printable name without spaces or slashes",
            ),
            ({"requests": ()}, "requests", "no requests", "at least one resource vector"),
            ({"precedence": 32_768}, "precedence", "precedence 32768", "-32768 to 32767"),
            ({"owner": "a\n"}, "owner", "owner 'a\\n'", "printable characters"),
        ],
    )
    def test_mistakes(
        self, fields: dict[str, Any], field: str, problem: str, expected: str
    ) -> None:
        whole = {"span": fields.pop("span", 1), "utilisation": 0.5}
        name = fields.pop("name", "a")

        def make() -> object:
            kinds = fields.pop("kinds", None)
            if kinds is None:
                kinds = {name: msgspec.structs.replace(self.KIND, **fields)}
            return Synthetic(**whole, kinds=kinds)

        with pytest.raises(ModelError) as caught:
            make()
        error = caught.value
        assert (error.field, error.problem, error.expected) == (field, problem, expected)

    def test_small_parts(self) -> None:
        assert Estimates(low=2.0, high=2.0).low == 2.0
        with pytest.raises(ModelError, match=r"low 2\.0 and high 1\.9; expected low <= high"):
            Estimates(low=2.0, high=1.9)
        with pytest.raises(ModelError, match="an empty request; expected an amount above 0"):
            WeightedRequest(request=Resources(0, 0, {"gpu": 0}))
        assert WeightedRequest(request=Resources(0, 0, {"gpu": 1})).weight == 1.0


class TestPods:
    TERM: ClassVar = {"labelSelector": {"matchLabels": {"app": "w"}}, "topologyKey": "zone"}

    def rules(self, **spec: Any) -> tuple[list[str], list[str]]:
        noted: list[str] = []
        made = pod(metadata={"labels": {"app": "v", "tier": "x"}}, **spec)
        return [format_constraint(each) for each in constraints_of(made, noted.append)], noted

    def test_every_rule_about_other_pods_is_about_those_of_the_namespace(self) -> None:
        wish = {"weight": 40, "podAffinityTerm": self.TERM}
        affinity = {
            "podAffinity": {REQUIRED: [self.TERM], PREFERRED: [wish]},
            "podAntiAffinity": {REQUIRED: [self.TERM, self.TERM], PREFERRED: [wish]},
        }
        assert self.rules(affinity=affinity) == (
            [
                "appID:self -> {owner:one & app:w, 1, inf} in zone hard",
                "appID:self -> {owner:one & app:w, 1, inf} in zone weight 0.4",
                "appID:self -> {owner:one & app:w, 0, 0} in zone hard",
                "appID:self -> {owner:one & app:w, 0, 0} in zone weight 0.4",
            ],
            [],
        )

    def test_a_rule_without_a_counterpart_costs_no_other(self) -> None:
        other = {**self.TERM, "namespaces": ["two"]}
        affinity = {"podAntiAffinity": {REQUIRED: [other, self.TERM]}}
        assert self.rules(affinity=affinity) == (
            ["appID:self -> {owner:one & app:w, 0, 0} in zone hard"],
            ["podAntiAffinity: namespaces has no counterpart"],
        )

    @pytest.mark.parametrize(
        ("labels", "bound"),
        [({"app": "v"}, 1), ({"app": "v", "tier": "x"}, 1), ({"app": "w"}, 2), ({"tier": "y"}, 2)],
    )
    def test_a_spread_counts_the_pod_itself_if_it_is_one_of_those(
        self, labels: dict[str, str], bound: int
    ) -> None:
        spread = {
            "maxSkew": 2,
            "minDomains": 1_000_000,
            "topologyKey": "rack",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
        tags = " & ".join(f"{key}:{value}" for key, value in labels.items())
        expected = [f"appID:self -> {{owner:one & {tags}, 0, {bound}}} in rack hard"]
        assert self.rules(topologySpreadConstraints=[spread]) == (expected, [])

    def test_wishes_about_nodes_name_nobody(self) -> None:
        term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
        nodes = {PREFERRED: [{"weight": 100, "preference": term}]}
        assert self.rules(affinity={"nodeAffinity": nodes}) == (
            ["appID:self -> {disk:ssd, 1, inf} in machine"],
            [],
        )

    def test_a_selector_may_be_an_expression(self) -> None:
        chosen = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["w"]}]}
        term = {"labelSelector": chosen, "topologyKey": "zone"}
        assert self.rules(affinity={"podAntiAffinity": {REQUIRED: [term]}}) == (
            ["appID:self -> {owner:one & app:w, 0, 0} in zone hard"],
            [],
        )

    def test_ports_keep_pods_apart(self) -> None:
        ports = [{"containerPort": 1, "hostPort": 80}]
        found, _ = self.rules(containers=[{"name": "c", "ports": ports}])
        assert found == ["appID:self -> {hostPort:TCP-80, 0, 0} in machine hard"]


def test_what_a_trace_does_not_say_is_told_in_sentences() -> None:
    notes = Notes(
        never_ran=1_200, reruns=2, late_events=3, machine_changes=4, machines_left_out=5,
        jobs=6, tasks=7, still_running=8,
    )  # fmt: skip
    for what in ("b", "a", "b"):
        notes.leave_out(what)
    assert notes.sentences() == [
        "ignored in the trace: tasks that never ran (1,200)",
        "ignored in the trace: runs that a task's last one repeated (2)",
        "ignored in the trace: events of jobs that were over (3)",
        "ignored in the trace: machines that came, went or changed later (4)",
        "ignored in the trace: machines without a capacity (5)",
        "a job cannot express what the trace says: a (1)",
        "a job cannot express what the trace says: b (2)",
    ]
    assert Notes().sentences() == []
    known = {"a": "1"}
    fresh = Notes()
    for relation, name, value in (
        ("EQUAL", "a", "1"),
        ("EQUAL", "b", "2"),
        ("EQUAL", "a", "2"),
        ("EQUAL", "c", ""),
        ("NOT_EQUAL", "d", "1"),
    ):
        fresh.require(known, relation, name, value)
    assert known == {"a": "1", "b": "2"}
    assert fresh.not_expressible == {
        "attribute equal to two values": 1,
        "attribute equal to nothing": 1,
        "attribute not-equal": 1,
    }
