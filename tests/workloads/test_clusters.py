"""The Omega paper's clusters: their parameters add up, and the jobs are what the parameters say."""

import hashlib
import tomllib
import tracemalloc
from collections import Counter
from importlib.resources import files
from itertools import islice, pairwise

import msgspec
import pytest

from argosy.experiments.execute import execute
from argosy.model.errors import ArgosyError, ModelError, UnknownName
from argosy.model.random import Random
from argosy.model.scenario import CellSpec, FleetEntry, Output, Scenario, Takes
from argosy.model.truth import group_with_truth, simulated_job
from argosy.scenarios.loader import load, scenario_digest
from argosy.workloads.cluster_specs import STEPS, Curve, WholeExponential, read_specs
from argosy.workloads.clusters import FILL, cluster, cluster_names, fill, jobs, machines
from argosy.workloads.job_tables import job_table

SECOND = 1_000_000
DAY = 86_400 * SECOND
WEEK = 7 * DAY
PAPERS = ("A", "B", "C")
AT_ONCE = {"t_job": 0, "t_task": 0}


def document():
    return tomllib.loads(files("argosy.workloads").joinpath("clusters.toml").read_text("utf-8"))


def within(duration, window):
    """The time that jobs arriving evenly within a window run in it, on average."""
    total = sum(d - d * d / (2 * window) if d < window else window / 2 for d in duration.steps)
    return total / STEPS


def held(spec, kind, window=WEEK):
    """The part of the cell's cores that a kind holds on average over a window."""
    cores = spec.machines.count * spec.machines.capacity.cpu
    return kind.cores_asked() * within(kind.duration, window) / SECOND / cores


def test_there_are_the_papers_clusters_and_the_simulators():
    assert cluster_names() == ("A", "B", "C", "D", "lightweight")
    with pytest.raises(UnknownName, match="did you mean 'lightweight'"):
        cluster("lightwight")


def test_every_value_has_a_source():
    for name, table in document().items():
        for part in (table["machines"], table["fill"], *table["kinds"].values()):
            values = set(part) - {"sources"}
            assert values <= set(part["sources"]), name


def test_a_value_without_a_source_is_refused():
    broken = document()
    del broken["A"]["kinds"]["batch"]["sources"]["tasks"]
    with pytest.raises(ModelError, match="the source of tasks") as caught:
        read_specs(broken)
    assert caught.value.field == "A.kinds.batch"


@pytest.mark.parametrize(("name", "multiple"), [("A", 2.5), ("B", 6), ("C", 9.5)])
def test_a_scheduler_saturates_at_the_papers_multiple_of_the_arrival_rate(name, multiple):
    batch = cluster(name).kinds["batch"]
    assert batch.saturates_at == multiple
    assert batch.busyness(rate=multiple) == pytest.approx(1, rel=0.01)


def test_clusters_saturate_in_the_papers_order():
    busyness = [cluster(name).kinds["batch"].busyness() for name in PAPERS]
    assert busyness == sorted(busyness, reverse=True)
    # Also when decisions take longer: section 4.1 varies t_job.
    slow = [cluster(name).kinds["batch"].busyness(t_job=SECOND) for name in PAPERS]
    assert slow == sorted(slow, reverse=True)


@pytest.mark.parametrize("name", PAPERS)
def test_the_cell_has_room_where_the_scheduler_saturates(name):
    spec = cluster(name)
    batch, service = spec.kinds["batch"], spec.kinds["service"]
    cores = spec.machines.count * spec.machines.capacity.cpu
    # Services pile up: at the end of a week there are those of the whole week.
    ran = sum(min(duration, WEEK) for duration in service.duration.steps) / STEPS
    piled_up = service.cores_asked() * ran / SECOND / cores
    assert spec.fill.share + batch.saturates_at * held(spec, batch) + piled_up < 0.9


@pytest.mark.parametrize("window", [WEEK, 30 * DAY])
@pytest.mark.parametrize("name", PAPERS)
def test_services_have_most_of_the_resources_and_few_of_the_jobs(name, window):
    spec = cluster(name)
    batch, service = spec.kinds["batch"], spec.kinds["service"]
    for asked in ("cores_asked", "memory_asked"):
        work = [getattr(kind, asked)() * within(kind.duration, window) for kind in (batch, service)]
        assert 0.55 <= work[1] / sum(work) <= 0.8
    assert service.interarrival / (service.interarrival + batch.interarrival) > 0.8
    assert service.tasks.average < batch.tasks.average
    assert 0.2 <= service.duration.above(30 * DAY) <= 0.4


def test_the_small_cluster_is_a_quarter_of_c_and_idle():
    small, large = cluster("D"), cluster("C")
    assert small.machines.count * 4 == large.machines.count
    assert small.fill.share + sum(held(small, kind) for kind in small.kinds.values()) < 0.4


def test_the_lightweight_workload_is_the_published_one():
    batch, service = cluster("lightweight").kinds.values()
    assert (batch.interarrival, batch.tasks.mean, batch.duration.mean) == (
        SECOND,
        100,
        100 * SECOND,
    )
    assert (service.interarrival, service.tasks.mean, service.duration.mean) == (
        20 * SECOND,
        10,
        500 * SECOND,
    )
    assert batch.busyness() == pytest.approx(0.6025, rel=1e-3)
    drawn = list(islice(jobs(cluster("lightweight"), WEEK, Random(2)), 20_000))
    counts = [job.tasks for job in drawn if job.kind == "batch"]
    assert min(counts) >= 1
    assert sum(counts) / len(counts) == pytest.approx(batch.tasks.average, rel=0.03)


@pytest.mark.parametrize("name", cluster_names())
def test_jobs_are_those_of_the_parameters(name):
    spec = cluster(name)
    span = 20_000 * spec.kinds["batch"].interarrival
    drawn = list(jobs(spec, span, Random(7)))
    assert [job.submit for job in drawn] == sorted(job.submit for job in drawn)
    assert 0 <= drawn[0].submit <= drawn[-1].submit < span
    assert len({job.id for job in drawn}) == len(drawn)
    counted = Counter(job.kind for job in drawn)
    for kind, told in spec.kinds.items():
        assert counted[kind] == pytest.approx(span / told.interarrival, rel=0.15)
        assert {job.job.precedence for job in drawn if job.kind == kind} == {told.precedence}
    batch = [job.groups[0] for job in drawn if job.kind == "batch"]
    told = spec.kinds["batch"]
    assert all(len(job.groups) == 1 and len(job.truth[0].durations) == 1 for job in drawn)
    times = [job.truth[0].durations[0] for job in drawn if job.kind == "batch"]
    assert sum(times) / len(times) == pytest.approx(told.duration.average, rel=0.05)
    asked = sum(group.count * group.request.cpu for group in batch) / span * SECOND
    assert asked == pytest.approx(told.cores_asked(), rel=0.15)


def correlation(pairs):
    """Of ranks, which heavy tails do not sway."""
    n = len(pairs)
    ranks = []
    for column in zip(*pairs, strict=True):
        order = sorted(range(n), key=lambda at: column[at])
        ranks.append({at: rank for rank, at in enumerate(order)})
    mean = (n - 1) / 2
    cross = sum((ranks[0][at] - mean) * (ranks[1][at] - mean) for at in range(n))
    return cross / (n * (n * n - 1) / 12)


def test_attributes_of_a_job_are_drawn_independently():
    stream = jobs(cluster("lightweight"), WEEK, Random(3), rate={"service": 0})
    drawn = list(islice(stream, 10_000))
    rows = [
        (after.submit - job.submit, job.tasks, job.truth[0].durations[0])
        for job, after in pairwise(drawn)
    ]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        pairs = [(row[first], row[second]) for row in rows]
        # Chance alone gives about 0.01.
        assert abs(correlation(pairs)) < 0.05


def test_a_rate_submits_the_same_jobs_sooner():
    spec = cluster("B")

    def batch(**settings):
        stream = jobs(spec, WEEK, Random(4), **settings)
        return [job for job in islice(stream, 500) if job.kind == "batch"][:400]

    usual, faster = batch(), batch(rate={"batch": 4.0})
    assert [job.groups for job in usual] == [job.groups for job in faster]
    assert all(
        abs(job.submit - 4 * sooner.submit) <= 4 for job, sooner in zip(usual, faster, strict=True)
    )
    assert [job.submit for job in batch(rate=4.0)] == [job.submit for job in faster]
    half = batch(scale=0.5)
    assert all(
        abs(late.submit - 2 * job.submit) <= 2 for late, job in zip(half, usual, strict=True)
    )


def test_a_rate_of_nothing_leaves_a_kind_out():
    kinds = {job.kind for job in jobs(cluster("B"), DAY // 10, Random(1), rate={"service": 0})}
    assert kinds == {"batch"}


@pytest.mark.parametrize(
    "settings", [{"rate": -1.0}, {"scale": 0.0}, {"rate": float("nan")}, {"rate": {"bach": 2.0}}]
)
def test_impossible_rates_are_refused(settings):
    with pytest.raises(ArgosyError):
        list(jobs(cluster("B"), SECOND, Random(1), **settings))


def test_one_seed_gives_one_workload_on_every_platform():
    def digest(seed):
        encoder = msgspec.json.Encoder()
        found = hashlib.sha256()
        for name in cluster_names():
            for job in islice(jobs(cluster(name), WEEK, Random(seed)), 300):
                found.update(encoder.encode(job_table(job)))
            for job in islice(fill(cluster(name), Random(seed)), 50):
                found.update(encoder.encode(job_table(job)))
        return found.hexdigest()[:16]

    assert digest(1) == digest(1) != digest(2)
    assert digest(1) == "1e1f7705fe8416da"


def test_jobs_stream_and_share_their_resource_vectors():
    stream = jobs(cluster("B"), WEEK, Random(5))
    list(islice(stream, 1000))
    tracemalloc.start()
    requests = {id(job.groups[0].request) for job in islice(stream, 20_000)}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(requests) <= 8
    assert peak < 200_000


@pytest.mark.parametrize("scale", [1.0, 0.02])
@pytest.mark.parametrize("name", cluster_names())
def test_the_fill_takes_its_share_of_the_cell(name, scale):
    spec = cluster(name)
    cell = machines(spec, scale)
    standing = [job.groups[0] for job in fill(spec, Random(6), scale=scale)]
    assert all(group.endless for group in standing)
    largest = max(group.request.cpu for group in standing)
    used = sum(group.count * group.request.cpu for group in standing)
    whole = sum(machine.capacity.cpu for machine in cell)
    assert spec.fill.share * whole - largest <= used <= spec.fill.share * whole
    memory = sum(group.count * group.request.memory for group in standing)
    assert memory <= spec.fill.share * sum(machine.capacity.memory for machine in cell)


def test_a_fill_that_turns_over_stays_at_its_share():
    spec, hour = cluster("B"), 3600 * SECOND
    found = list(fill(spec, Random(8), scale=0.5, turnover=hour, span=10 * hour))
    assert [job.submit for job in found] == sorted(job.submit for job in found)
    assert {job.kind for job in found} == {FILL}
    whole = 7500 * 4000
    for at in (0, hour // 2, 3 * hour, 9 * hour):
        used = sum(
            job.groups[0].count * job.groups[0].request.cpu
            for job in found
            if job.submit <= at < job.submit + job.truth[0].durations[0]
        )
        assert used / whole == pytest.approx(0.6, abs=0.1)
    with pytest.raises(ModelError, match="turnover"):
        list(fill(spec, Random(8), turnover=0))


def test_machines_are_scaled_and_there_is_always_one():
    assert len(machines(cluster("C"))) == 12_500
    assert len(machines(cluster("C"), 0.01)) == 125
    assert len(machines(cluster("C"), 1e-9)) == 1
    assert len({machine.name for machine in machines(cluster("A"), 0.1)}) == 1000


def test_a_curve_goes_through_its_points():
    curve = Curve((0, 0.5, 0.9, 1), (1, 1, 10, 1000))
    assert curve.above(1) == pytest.approx(0.5, abs=0.1)
    assert curve.above(10) == pytest.approx(0.1, abs=0.01)
    assert (curve.steps[0], len(curve.steps)) == (1, STEPS)
    assert 900 < curve.steps[-1] <= 1000
    assert curve.steps == tuple(sorted(curve.steps))


@pytest.mark.parametrize(
    ("at", "values"),
    [
        ((0, 1), (1,)),
        ((0,), (1,)),
        ((0, 0.5), (1, 2)),
        ((0.1, 1), (1, 2)),
        ((0, 0.5, 0.5, 1), (1, 2, 3, 4)),
        ((0, 0.5, 1), (1, 3, 2)),
        ((0, 1), (0, 2)),
    ],
)
def test_a_curve_that_is_none_is_refused(at, values):
    with pytest.raises(ModelError):
        Curve(at, values)


def test_an_exponential_rounded_up_has_the_mean_it_says():
    draw = WholeExponential(3).drawer(Random(1), 100)
    drawn = [draw() for _ in range(20_000)]
    assert sum(drawn) / len(drawn) == pytest.approx(WholeExponential(3).average, rel=0.03)
    assert min(drawn) == 1
    assert max(drawn) <= 100


SCENARIO = """
name = "paper"
horizon = "10min"
{cell}
[workload.cluster]
name = "B"
span = "10min"
scale = 0.01
{more}
[[fleet]]
name = "all"
engine = "omega"
"""


def scenario(path, more="", cell=""):
    file = path / "scenario.toml"
    file.write_text(SCENARIO.format(more=more, cell=cell), "utf-8")
    return load(file)


def test_a_scenario_names_a_cluster_and_gets_its_machines(tmp_path):
    loaded = scenario(tmp_path, "rate = { batch = 50 }", "[cell.groups]\nrack = { size = 40 }")
    assert len(loaded.cell.machines) == 150
    assert loaded.cell.machines[149].joins == {"rack": ("rack-3",)}
    assert [group.name for group in loaded.cell.groups] == ["rack"]
    assert {job.kind for job in loaded.jobs} >= {"batch", FILL}
    assert [job.submit for job in loaded.jobs] == sorted(job.submit for job in loaded.jobs)
    assert scenario_digest(scenario(tmp_path)) == scenario_digest(scenario(tmp_path))


def test_a_scenario_keeps_the_machines_it_has(tmp_path):
    cell = '[[cell.machines]]\nname = "own"\ncapacity = { cpu = 4000, memory = "16GB" }'
    assert [machine.name for machine in scenario(tmp_path, "", cell).cell.machines] == ["own"]


def test_a_scenario_may_do_without_the_fill_or_let_it_turn_over(tmp_path):
    none = scenario(tmp_path, "fill = false\nrate = 30")
    assert FILL not in {job.kind for job in none.jobs}
    turning = scenario(tmp_path, 'turnover = "1min"')
    assert all(truth.durations for job in turning.jobs for truth in job.truth)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ("rate = -1", "workload.cluster.rate"),
        ("rate = { bach = 1 }", "workload.cluster.rate"),
        ("rate = { batch = 2000 }", "workload.cluster.rate.batch"),
        ('turnover = "0s"', "workload.cluster.turnover"),
        ("scale = 0", "workload.cluster.scale"),
        ("fil = true", "workload.cluster.fil"),
        ("fill = false\nrate = 0", "workload.cluster"),
    ],
)
def test_a_mistake_in_a_cluster_is_placed(tmp_path, more, field):
    if "scale" in more:
        text = SCENARIO.replace("scale = 0.01\n", "")
    else:
        text = SCENARIO
    file = tmp_path / "scenario.toml"
    file.write_text(text.format(more=more, cell=""), "utf-8")
    with pytest.raises(ArgosyError) as caught:
        load(file)
    assert (caught.value.file, caught.value.field) == (str(file), field)
    assert caught.value.line is not None


def test_an_unknown_cluster_is_placed(tmp_path):
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO.format(more="", cell="").replace('"B"', '"E"'), "utf-8")
    with pytest.raises(ArgosyError, match="unknown cluster 'E'") as caught:
        load(file)
    assert caught.value.field == "workload.cluster.name"


def test_a_scheduler_is_as_busy_as_the_parameters_say():
    """Cluster C at twice its rate, for a quarter of an hour, with the cell as full as it begins."""
    spec, span = cluster("C"), 900 * SECOND
    arriving = jobs(spec, span, Random(1), rate={"batch": 2.0, "service": 0})
    fleet = (
        FleetEntry(name="fill", engine="omega", takes=Takes(kinds=(FILL,)), settings=AT_ONCE),
        FleetEntry(name="batch", engine="omega", takes=Takes(kinds=("batch",))),
    )
    told = Scenario(
        name="busy",
        seed=1,
        cell=CellSpec(machines=machines(spec)),
        jobs=(*fill(spec, Random(1)), *arriving),
        fleet=fleet,
        horizon=span,
        output=Output(log="none"),
    )
    summary = execute(told, None)
    offered = sum(100_000 + 5_000 * job.tasks for job in told.jobs if job.kind == "batch") / span
    busy = next(one.busyness for one in summary.schedulers if one.name == "batch")
    assert busy == pytest.approx(offered, rel=0.1)
    assert summary.utilisation["cpu"] > 0.6


@pytest.mark.parametrize("name", ["B", "C"])
def test_a_varied_cluster_has_machines_of_several_kinds(name):
    spec = cluster(name)
    found = Counter((m.capacity.cpu, m.capacity.memory) for m in machines(spec, varied=True))
    assert found.total() == spec.machines.count
    weights = {(k.capacity.cpu, k.capacity.memory): k.weight for k in spec.machines.mix}
    whole = sum(weights.values())
    for size, weight in weights.items():
        assert found[size] == pytest.approx(spec.machines.count * weight / whole, rel=0.1, abs=3)
    # About as much in all as machines that are alike have.
    cpu = sum(size[0] * count for size, count in found.items()) / found.total()
    assert cpu == pytest.approx(spec.machines.capacity.cpu, rel=0.1)


def test_machines_of_a_kind_are_spread_over_a_varied_cluster():
    platforms = [m.attributes["platform"] for m in machines(cluster("C"), varied=True)]
    for part in range(10):
        share = platforms[part * 1_250 : (part + 1) * 1_250].count("C") / 1_250
        assert share == pytest.approx(0.063, abs=0.01)


def test_a_cluster_whose_machines_are_alike_cannot_be_varied():
    with pytest.raises(ModelError, match="all alike") as told:
        machines(cluster("A"), varied=True)
    assert told.value.expected == "one of B, C"


def test_the_fill_of_a_varied_cluster_is_a_share_of_what_there_is():
    spec = cluster("C")
    there = sum(m.capacity.memory for m in machines(spec, 0.1, varied=True))
    held = sum(
        made.tasks * made.groups[0].request.memory
        for made in fill(spec, Random(1), scale=0.1, varied=True)
    )
    assert held / there == pytest.approx(0.6, abs=0.005)


def test_some_jobs_of_a_varied_cluster_are_picky_and_otherwise_the_same():
    spec, plain, varied = cluster("B"), [], []
    for into, is_varied in ((plain, False), (varied, True)):
        into += jobs(spec, DAY, Random(1), rate={"batch": 0.1}, varied=is_varied)
    picky = Counter()
    for one, other in zip(plain, varied, strict=True):
        assert (one.id, one.submit, one.tasks) == (other.id, other.submit, other.tasks)
        assert not one.job.constraints
        assert not one.groups[0].requires
        picky[other.kind, tuple(other.groups[0].requires), bool(other.job.constraints)] += 1
    total = Counter(made.kind for made in plain)
    assert picky["batch", ("platform",), False] / total["batch"] == pytest.approx(0.05, abs=0.01)
    assert picky["service", ("platform",), False] / total["service"] == pytest.approx(0.1, abs=0.03)
    assert picky["service", (), True] / total["service"] == pytest.approx(0.2, abs=0.03)
    assert picky["batch", (), True] == 0


@pytest.mark.parametrize("burstiness", [1.0, 2.0, 4.0])
def test_bursty_arrivals_are_as_many_and_vary_more(burstiness):
    made = jobs(cluster("B"), 2 * WEEK, Random(3), rate={"service": 0}, burstiness=burstiness)
    gaps = [b.submit - a.submit for a, b in pairwise(islice(made, 200_000))]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert mean == pytest.approx(1_065_000, rel=0.03)
    assert deviation / mean == pytest.approx(burstiness, rel=0.03)


@pytest.mark.parametrize("burstiness", [0.5, 101.0])
def test_a_burstiness_beyond_its_bounds_is_refused(burstiness):
    with pytest.raises(ModelError, match="a burstiness of"):
        jobs(cluster("B"), DAY, Random(1), burstiness=burstiness)


def test_a_scenario_may_ask_for_a_varied_bursty_cluster(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        """name = "varied"
        seed = 1
        horizon = "1h"
        [workload.cluster]
        name = "B"
        span = "1h"
        scale = 0.2
        turnover = "1h"
        varied = true
        burstiness = 3
        [[fleet]]
        name = "all"
        engine = "omega"
        """
    )
    scenario = load(path)
    assert {m.attributes["platform"] for m in scenario.cell.machines} == {"A", "B", "C"}
    assert any(made.groups[0].requires for made in scenario.jobs)
    path.write_text(path.read_text().replace('name = "B"', 'name = "A"'))
    with pytest.raises(ArgosyError, match="all alike"):
        load(path)


def test_drawn_jobs_are_as_if_each_had_been_made_and_checked_on_its_own():
    for made in jobs(cluster("lightweight"), DAY // 24, Random(3)):
        [group], [truth] = made.groups, made.truth
        plain = group_with_truth(group.count, group.request, truth.durations)
        fields = {"kind": made.kind, "precedence": made.job.precedence}
        assert made == simulated_job(made.id, plain, submit=made.submit, **fields)
