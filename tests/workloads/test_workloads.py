"""Workloads: distributions, arrivals, the generator and traces."""

import hashlib
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ModelError, ScenarioError, TraceError
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.truth import group_with_truth, simulated_job
from argosy.model.units import LARGEST, Micros
from argosy.workloads.arrivals import Bursty, Poisson
from argosy.workloads.distributions import (
    Constant,
    Exponential,
    Lognormal,
    Pareto,
    RandomShape,
    Uniform,
)
from argosy.workloads.job_tables import job_table
from argosy.workloads.synthetic import Estimates, JobKind, Synthetic, WeightedRequest, generate
from argosy.workloads.tables import Converter, Misfit, path_text
from argosy.workloads.trace import read_trace, write_trace

SECOND = 1_000_000
HOUR = 3600 * SECOND


def mean_of(distribution, draws=20_000):
    random = Random(3)
    return sum(distribution.draw(random) for _ in range(draws)) / draws


@pytest.mark.parametrize(
    ("distribution", "mean"),
    [
        (Constant(7), 7),
        (Uniform(0, 1000), 500),
        (Exponential(10_000), 10_000),
        (Lognormal(10_000, 0.5), 11_331),
        (Pareto(1000, 100_000, 1.5), 2727),
    ],
)
def test_a_distribution_has_its_textbook_mean(distribution, mean):
    assert mean_of(distribution) == pytest.approx(mean, rel=0.03)


@given(
    st.sampled_from(
        [Uniform(3, 9), Uniform(5, 5), Pareto(3, 9, 0.8), Exponential(4), Lognormal(LARGEST, 20.0)]
    ),
    st.integers(0, 2**63 - 1),
)
@settings(derandomize=True, deadline=None)
def test_every_draw_is_a_whole_number_in_range(distribution, seed):
    drawn = distribution.draw(Random(seed))
    low, high = getattr(distribution, "low", 0), getattr(distribution, "high", LARGEST)
    assert type(drawn) is int
    assert low <= drawn <= high


@pytest.mark.parametrize(
    "make", [lambda: Uniform(2, 1), lambda: Pareto(0, 5, 1.0), lambda: Pareto(5, 5, 1.0)]
)
def test_bounds_out_of_order_are_refused(make):
    with pytest.raises(ModelError):
        make()


def test_the_unit_of_a_distribution_decides_how_its_parameters_are_written():
    read = Converter(ScenarioError).convert
    table = {"shape": "uniform", "low": "1s", "high": "2s"}
    assert read(table, RandomShape[Micros]) == Uniform(SECOND, 2 * SECOND)
    assert read({"shape": "constant", "value": 3}, RandomShape[int]) == Constant(3)
    for value, kind in ((3, RandomShape[Micros]), ("3s", RandomShape[int])):
        with pytest.raises(Misfit) as caught:
            read({"shape": "constant", "value": value}, kind)
        assert path_text(caught.value.path) == "value"


BURSTY = Bursty(factor=10.0, burst=60 * SECOND, every=240 * SECOND)


@pytest.mark.parametrize("process", [Poisson(), BURSTY])
@given(count=st.integers(0, 50), seed=st.integers(0, 2**63 - 1), span=st.integers(1, HOUR))
@settings(derandomize=True, deadline=None)
def test_arrivals_are_sorted_within_the_span_and_as_many_as_asked(process, count, seed, span):
    times = list(process.times(count, span, Random(seed)))
    assert len(times) == count
    assert times == sorted(times)
    assert all(0 <= time < span for time in times)


def variance_to_mean(process):
    """Of arrivals per minute: 1 for a Poisson process."""
    times = list(process.times(6000, HOUR, Random(5)))
    minutes = Counter(time // (60 * SECOND) for time in times)
    return sum((minutes[m] - 100) ** 2 for m in range(60)) / 60 / 100


def test_bursty_arrivals_bunch_and_poisson_ones_do_not():
    assert 0.5 < variance_to_mean(Poisson()) < 2
    assert variance_to_mean(BURSTY) > 20


def test_most_of_the_time_is_calm():
    times = list(BURSTY.times(6000, HOUR, Random(5)))
    minutes = Counter(time // (60 * SECOND) for time in times)
    assert sum(minutes[m] < 100 for m in range(60)) > 30


CAPACITY = {"cpu": 100_000, "memory": 400 << 30, "gpu": 0}
BATCH = JobKind(
    requests=(
        WeightedRequest(request=Resources(500, 1 << 30), weight=3.0),
        WeightedRequest(request=Resources(1000, 1 << 30)),
    ),
    tasks=Pareto(1, 50, 1.2),
    duration=Lognormal(Micros(60 * SECOND), 1.0),
    variation=0.5,
    share=3.0,
    gang=0.25,
    estimates=Estimates(low=0.5, high=2.0),
    tags=("batch",),
)
SERVICE = JobKind(
    requests=(WeightedRequest(request=Resources(2000, 8 << 30)),),
    tasks=Uniform(1, 3),
    standing=1.0,
    precedence=10,
)


def synthetic(**kinds):
    return Synthetic(span=HOUR, utilisation=0.7, kinds=kinds)


def work_within(jobs, span=HOUR):
    """Of each resource, from the times really drawn."""
    work = Counter()
    for job in jobs:
        for group, truth in zip(job.groups, job.truth, strict=True):
            for index in range(group.count):
                duration = truth.duration(index)
                left = span - job.submit
                time = left if duration is None else min(duration, left)
                for name, amount in group.request.items():
                    work[name] += amount * time
    return work


def test_the_work_offered_within_the_span_is_the_utilisation_asked_for():
    jobs = list(generate(synthetic(batch=BATCH, service=SERVICE), CAPACITY, Random(1)))
    work = work_within(jobs)
    shares = {name: work[name] / (CAPACITY[name] * HOUR) for name in ("cpu", "memory")}
    assert max(shares.values()) == pytest.approx(0.7, rel=0.05)


def test_kinds_share_the_work_as_told():
    jobs = list(generate(synthetic(batch=BATCH, service=SERVICE), CAPACITY, Random(1)))
    batch, service = (
        work_within([job for job in jobs if job.kind == kind]) for kind in ("batch", "service")
    )
    # By each kind's dominant resource, which the work is measured in.
    ratio = max(batch[name] / CAPACITY[name] for name in ("cpu", "memory")) / max(
        service[name] / CAPACITY[name] for name in ("cpu", "memory")
    )
    assert ratio == pytest.approx(3, rel=0.2)


def test_jobs_are_what_their_kind_says():
    jobs = list(generate(synthetic(batch=BATCH, service=SERVICE), CAPACITY, Random(1)))
    batch = [job for job in jobs if job.kind == "batch"]
    service = [job for job in jobs if job.kind == "service"]
    assert [job.submit for job in jobs] == sorted(job.submit for job in jobs)
    assert len({job.id for job in jobs}) == len(jobs)
    assert [job.id for job in batch] == sorted(job.id for job in batch)
    assert {job.submit for job in service} == {0}
    assert all(not job.truth[0].durations and job.job.precedence == 10 for job in service)
    assert 0.1 < sum(job.job.gang for job in batch) / len(batch) < 0.4
    light = sum(job.groups[0].request.cpu == 500 for job in batch)
    assert light / len(batch) == pytest.approx(0.75, abs=0.1)
    for job in batch:
        (group,) = job.groups
        (truth,) = job.truth
        mean = sum(truth.durations) / group.count
        assert len(truth.durations) == group.count
        assert 0.49 * mean <= group.estimate <= 2.01 * mean
        assert group.tags == ("batch",)


def test_one_seed_gives_one_workload_and_another_another():
    def trace(seed):
        return msgspec.json.encode(list(generate(synthetic(batch=BATCH), CAPACITY, Random(seed))))

    assert trace(1) == trace(1)
    assert trace(1) != trace(2)


#: Of seed 1. Whoever changes this changes the results of every synthetic scenario.
PINNED = "40c1cc12f9b86c6b"


def test_a_workload_is_pinned_byte_for_byte():
    jobs = list(generate(synthetic(batch=BATCH, service=SERVICE), CAPACITY, Random(1)))
    assert (
        hashlib.sha256(msgspec.json.encode(list(map(job_table, jobs)))).hexdigest()[:16] == PINNED
    )


def test_a_utilisation_that_cannot_be_reached_is_an_error_and_not_a_loop(monkeypatch):
    monkeypatch.setattr("argosy.workloads.synthetic.MOST_JOBS_DRAWN", 100)
    tiny = msgspec.structs.replace(BATCH, duration=Constant(Micros(0)))
    with pytest.raises(ModelError, match="100 jobs do not reach"):
        generate(synthetic(batch=tiny), CAPACITY, Random(1))


def test_more_tasks_than_a_run_could_hold_are_an_error(monkeypatch):
    monkeypatch.setattr("argosy.workloads.synthetic.MOST_TASKS_DRAWN", 100)
    with pytest.raises(ModelError, match="more than 100 tasks") as caught:
        generate(synthetic(batch=BATCH), CAPACITY, Random(1))
    assert caught.value.field == "utilisation"
    assert "span" in str(caught.value)


def test_bursts_without_number_are_an_error_and_not_a_loop(monkeypatch):
    monkeypatch.setattr("argosy.workloads.arrivals.MOST_PERIODS", 100)
    hectic = msgspec.structs.replace(BATCH, arrivals=Bursty(factor=2.0, burst=0, every=0))
    with pytest.raises(ModelError, match="more than 100 bursts and calms") as caught:
        generate(synthetic(batch=hectic), CAPACITY, Random(1))
    assert caught.value.field == "kinds.batch.arrivals"


def test_a_job_of_too_many_tasks_is_an_error_and_not_cut():
    vast = msgspec.structs.replace(BATCH, tasks=Constant(2**24 + 1))
    with pytest.raises(ModelError, match="16,777,217 tasks was drawn") as caught:
        generate(synthetic(batch=vast), CAPACITY, Random(1))
    assert caught.value.field == "kinds.batch.tasks"


@pytest.mark.parametrize(
    "make",
    [
        lambda: synthetic(),
        lambda: Synthetic(span=0, utilisation=0.5, kinds={"batch": BATCH}),
        lambda: msgspec.structs.replace(BATCH, requests=()),
        lambda: WeightedRequest(request=Resources()),
        lambda: Estimates(low=2.0, high=1.0),
        lambda: msgspec.structs.replace(BATCH, tasks=Uniform(0, 3)),
        lambda: msgspec.structs.replace(BATCH, tasks=Constant(0)),
        lambda: msgspec.structs.replace(BATCH, tags=("a b",)),
        lambda: msgspec.structs.replace(BATCH, precedence=40_000),
        lambda: synthetic(**{"a kind": BATCH}),
    ],
)
def test_parameters_that_make_no_jobs_are_refused(make):
    with pytest.raises(ModelError):
        make()


resources = st.builds(
    Resources,
    st.integers(0, 1000),
    st.integers(0, LARGEST),
    st.dictionaries(st.sampled_from(["gpu", "bandwidth"]), st.integers(1, 8), max_size=2),
)
times = st.integers(0, LARGEST)
names = st.text("abcXYZ019-_.é", min_size=1, max_size=8)
tags = st.text("abXY01_.:/-", max_size=6).map("t".__add__)
groups = st.integers(1, 4).flatmap(
    lambda count: st.builds(
        group_with_truth,
        st.just(count),
        resources,
        st.sampled_from([0, 1, count]).flatmap(
            lambda n: st.lists(times, min_size=n, max_size=n).map(tuple)
        ),
        st.none() | times,
        tags=st.lists(tags, max_size=2).map(tuple),
        requires=st.dictionaries(names, names, max_size=2),
    )
)
jobs = st.builds(
    lambda name, groups, **fields: simulated_job(name, *groups, **fields),
    names,
    st.lists(groups, min_size=1, max_size=3),
    submit=times,
    kind=st.sampled_from(["batch", "service", "lra"]),
    precedence=st.integers(-32_768, 32_767),
    gang=st.booleans(),
    owner=names | st.just(""),
    constraints=st.lists(
        st.sampled_from(["a -> {a, 0, 0} in rack hard", "a -> {b & c, 1, inf} in zone weight 2"]),
        max_size=2,
    ).map(lambda texts: tuple(map(parse_constraint, texts))),
)


@given(st.lists(jobs, max_size=4, unique_by=lambda job: job.id))
@settings(derandomize=True, deadline=None, max_examples=50)
def test_every_job_survives_a_trace(tmp_path_factory, some):
    some.sort(key=lambda job: job.submit)
    path = tmp_path_factory.mktemp("trace") / "jobs.jsonl"
    assert write_trace(path, some) == len(some)
    assert list(read_trace(path)) == some
    assert [file.name for file in path.parent.iterdir()] == ["jobs.jsonl"]


def test_a_trace_that_fails_half_way_leaves_the_old_one(tmp_path):
    path = tmp_path / "jobs.jsonl"
    path.write_text("old")

    def failing():
        yield simulated_job("a", group_with_truth(1, Resources(1)))
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_trace(path, failing())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_trace_that_cannot_be_written_is_a_trace_error(tmp_path):
    with pytest.raises(TraceError, match="cannot be written"):
        write_trace(tmp_path / "none" / "jobs.jsonl", [])


def test_times_in_a_trace_are_microseconds_or_text(tmp_path):
    path = tmp_path / "jobs.jsonl"
    path.write_text(
        '{"id": "a", "submit": 5, "request": {"cpu": 1}, "duration": "2ms"}\n'
        "\n"
        '{"id": "b", "submit": "1s", "request": {"cpu": 1}, "count": 2, "durations": [1, "1ms"]}\n'
    )
    first, second = read_trace(path)
    assert (first.submit, first.truth[0].durations) == (5, (2000,))
    assert (second.submit, second.truth[0].durations) == (SECOND, (1, 1000))


def test_a_trace_is_read_one_job_at_a_time(tmp_path):
    path = tmp_path / "jobs.jsonl"
    path.write_text('{"id": "a", "request": {"cpu": 1}}\nnot JSON\n')
    reader = read_trace(path)
    assert next(reader).id == "a"
    with pytest.raises(TraceError):
        next(reader)


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        ("{", None, "not JSON"),
        ("[]", None, "a table"),
        ('{"id": "b"}', None, "missing key 'request'"),
        ('{"request": {}}', None, "missing key 'id'"),
        ('{"id": 3, "request": {}}', "id", "expected text"),
        ('{"id": "a", "request": {}}', "id", "again"),
        ('{"id": "b", "request": {"cpu": 1.5}}', "request.cpu", "fractional"),
        ('{"id": "b", "request": {"memory": -1}}', "request.memory", "negative"),
        ('{"id": "b", "request": {}, "cuont": 3}', "cuont", "did you mean 'count'?"),
        ('{"id": "b", "request": {}, "groups": []}', "request", "request in each group"),
        ('{"id": "b", "groups": []}', "groups", "at least one task group"),
        ('{"id": "b", "groups": [{}]}', "groups[0]", "missing key 'request'"),
        ('{"id": "b", "request": {}, "submit": 1}', "submit", "sort the lines"),
        ('{"id": "b", "request": {}, "submit": "soon"}', "submit", "such as"),
        ('{"id": "b", "request": {}, "submit": -1}', "submit", "zero or more"),
        ('{"id": "b", "request": {}, "submit": 9.5}', "submit", "has no unit"),
        ('{"id": "b", "request": {}, "count": 2, "durations": [1]}', "durations", "one per task"),
        ('{"id": "b", "request": {}, "constraints": ["a b"]}', "constraints[0]", "at column 3"),
        ('{"id": "b/c", "request": {}, "submit": 9}', "id", "without spaces or slashes"),
        ('{"id": "b\\u0007", "request": {}, "submit": 9}', "id", "printable"),
        ('{"id": "b", "request": {}, "owner": "\\u001b[31m"}', "owner", "printable"),
        ('{"id": "b", "request": {}, "precedence": 40000}', "precedence", "-32768 to 32767"),
        ('{"id": "b", "groups": [{"request": {}, "count": 0}]}', "groups[0].count", "1 to "),
        ('{"id": "b", "request": {}, "tags": ["a b"]}', "tags", "not valid in constraints"),
        ('{"id": "b", "request": {}, "tags": ["hard"]}', "tags", "not valid in constraints"),
        ('{"id": "b", "id": "c", "request": {}}', None, "key 'id' twice"),
        ('{"id": "b", "request": {"cpu": 1, "cpu": 2}}', None, "key 'cpu' twice"),
        ('{"id": "b", "request": {"cpu": NaN}}', None, "NaN is not a number"),
        ('{"id": "b", "request": {"cpu": 1%s}}' % ("0" * 5000), None, "not JSON"),
        pytest.param("[" * 100_000, None, "nested too deeply", id="100,000 brackets"),
    ],
)
def test_a_mistake_in_a_trace_is_found_on_its_line(tmp_path: Path, text, field, said):
    path = tmp_path / "jobs.jsonl"
    path.write_text('{"id": "a", "submit": 2, "request": {"cpu": 1}}\n' + text)
    with pytest.raises(TraceError) as caught:
        list(read_trace(path))
    assert (caught.value.file, caught.value.line, caught.value.field) == (str(path), 2, field)
    assert said in str(caught.value)


def test_a_missing_trace_is_named(tmp_path):
    with pytest.raises(TraceError, match="No such file"):
        list(read_trace(tmp_path / "none.jsonl"))
