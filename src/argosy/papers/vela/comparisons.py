"""What the paper asserts without measuring it: several instances, losses, and other ways to sample."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.papers.charts import Axis, Chart, Figure, Line, Mark
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings, Parameter, PointResult
from argosy.papers.vela.points import BASELINE, INSTANCES, LOSSES, SAMPLING


def _one(found: Findings, figure: str, **wanted: Parameter) -> PointResult | None:
    results = found.select(figure, **wanted)
    return results[0][1] if results else None


def draw_instances(found: Findings) -> Figure:
    panels = []
    for name, title, factor in (
        ("throughput", "jobs placed per second", 1),
        ("conflicting", "conflicts per job [%]", 100),
    ):
        lines = []
        for colour, (rate, label) in enumerate(
            ((94, "94 requests/s, one scheduler divided"), (290, "290 requests/s, more of them"))
        ):
            results = found.select(INSTANCES, rate=rate)
            marks = tuple(
                Mark(float(point.parameters["instances"]), factor * result[name])
                for point, result in results
            )
            lines.append(Line(label=label, marks=marks, colour=colour))
        panels.append(
            Chart(
                title=title,
                x=Axis(label="instances", low=0),
                y=Axis(label=title, low=0),
                lines=tuple(lines),
            )
        )
    return Figure(
        number=INSTANCES,
        title="Several scheduler instances",
        caption="Jobs end after 60 s.",
        panels=tuple(panels),
    )


def claims_instances(found: Findings) -> Iterator[Claim]:
    one = _one(found, INSTANCES, instances=1, rate=94)
    four = _one(found, INSTANCES, instances=4, rate=94)
    if one is not None and four is not None:
        apart = abs(four["retried"] - one["retried"])
        yield Claim(
            id="vela-instances-as-one",
            figure=INSTANCES,
            paper="several pipelines in one instance are the same as several instances",
            here=f"{one['throughput']:.1f} and {four['throughput']:.1f} jobs/s;"
            f" {100 * one['retried']:.2f} % and {100 * four['retried']:.2f} % of jobs placed by a"
            " later candidate",
            tolerance="throughput within 2 %, the other within one percentage point",
            holds=abs(four["throughput"] / one["throughput"] - 1) <= 0.02 and apart <= 0.01,
            note="one instance with 80 samplers and 8 processors, against four with a quarter each",
        )
    one = _one(found, INSTANCES, instances=1, rate=290)
    two = _one(found, INSTANCES, instances=2, rate=290)
    if one is not None and two is not None:
        yield Claim(
            id="vela-instances-scale-out",
            figure=INSTANCES,
            paper="more instances increase the throughput",
            here=f"{one['throughput']:.0f} jobs/s with one, {two['throughput']:.0f} with two",
            tolerance="at least 1.8 times",
            holds=two["throughput"] >= 1.8 * one["throughput"],
            note="290 requests/s of jobs that end after 60 s",
        )


def draw_losses(found: Findings) -> Figure:
    marks = tuple(
        Mark(float(number), result["ms during"])
        for number, (_, result) in enumerate(found.select(LOSSES))
    )
    chart = Chart(
        title="Time to a machine while something is lost",
        x=Axis(label="nothing, an agent, an instance"),
        y=Axis(label="mean time from submission to placement [ms]", low=0),
        lines=(Line(label="jobs submitted meanwhile", marks=marks),),
    )
    return Figure(
        number=LOSSES,
        title="Losing an agent, and losing an instance",
        caption="Two instances, 72 requests/s; the loss lasts from 60 s to 120 s.",
        panels=(chart,),
    )


def claims_losses(found: Findings) -> Iterator[Claim]:
    usual = _one(found, LOSSES, lost="nothing")
    agent = _one(found, LOSSES, lost="agent")
    instance = _one(found, LOSSES, lost="instance")
    if usual is not None and agent is not None:
        yield Claim(
            id="vela-losses-agent",
            figure=LOSSES,
            paper="without its agent a cluster is unavailable, and all others are as before",
            here=f"{100 * agent['placed']:.2f} % of jobs placed;"
            f" {agent['ms during']:.0f} instead of {usual['ms during']:.0f} ms meanwhile",
            tolerance="all jobs are placed, and at most 25 % later",
            holds=agent["placed"] == 1 and agent["ms during"] <= 1.25 * usual["ms during"],
        )
    if usual is not None and instance is not None:
        ratio = instance["ms during of others"] / max(usual["ms during of others"], 1e-9)
        yield Claim(
            id="vela-losses-instance",
            figure=LOSSES,
            paper="losing an instance has no effect on the others",
            here=f"{100 * instance['placed of others']:.2f} % of the other's jobs placed, in"
            f" {instance['ms during of others']:.0f} instead of"
            f" {usual['ms during of others']:.0f} ms",
            tolerance="all are placed, and times are within 10 %",
            holds=instance["placed of others"] == 1 and abs(ratio - 1) <= 0.1,
        )


def draw_sampling(found: Findings) -> Figure:
    filling = [
        (str(point.parameters["asks"]), result)
        for point, result in found.select(SAMPLING)
        if "failed" in result.values
    ]
    burst = [
        (str(point.parameters["asks"]), result)
        for point, result in found.select(SAMPLING)
        if "failed" not in result.values
    ]
    panels = []
    for title, rows, name in (
        ("jobs that failed [%]", filling, "failed"),
        ("end to end without queue [ms]", burst, "mean end to end without queue ms"),
    ):
        factor = 100 if name == "failed" else 1
        marks = tuple(
            Mark(float(number), factor * result[name]) for number, (_, result) in enumerate(rows)
        )
        panels.append(
            Chart(
                title=title,
                x=Axis(label=", ".join(label for label, _ in rows) or "none"),
                y=Axis(label=title, low=0),
                lines=(Line(label=title, marks=marks),),
            )
        )
    return Figure(
        number=SAMPLING,
        title="Other ways to sample",
        caption="Left: jobs that exactly fill the clusters. Right: a burst of 1,000 jobs.",
        panels=tuple(panels),
    )


def claims_sampling(found: Findings) -> Iterator[Claim]:
    informed = _one(found, SAMPLING, asks="informed")
    blind = _one(found, SAMPLING, asks="uninformed")
    if informed is not None and blind is not None:
        yield Claim(
            id="vela-sampling-informed",
            figure=SAMPLING,
            paper="informed sampling needs no larger samples as clusters fill up",
            here=f"{100 * informed['failed']:.2f} % of jobs fail; {100 * blind['failed']:.2f} % if"
            " samples of the same size are filtered afterwards",
            tolerance="at least ten times as many fail if not informed",
            holds=blind["failed"] > 0 and blind["failed"] >= 10 * informed["failed"],
            note="C_p 50 %, N_p 4 %, jobs that exactly fill the clusters",
        )
    learned = _one(found, SAMPLING, asks="learned")
    if informed is not None and learned is not None:
        wasted = [
            each["machines drawn"] / max(each["machines eligible"], 1)
            for each in (informed, learned)
        ]
        yield Claim(
            id="vela-sampling-learned",
            figure=SAMPLING,
            paper="learned sampling should give better samples (future work)",
            here=f"{wasted[1]:.2f} machines drawn for each that fits, {wasted[0]:.2f} at random",
            tolerance="fewer",
            holds=wasted[1] < wasted[0],
        )
    agents = _one(found, SAMPLING, asks="agents")
    name = "mean end to end without queue ms"
    for asks, limit in (("machines, 20 at once", 2.0), ("machines", 1.0)):
        direct = _one(found, SAMPLING, asks=asks)
        if agents is None or direct is None:
            continue
        factor = "twice as long" if limit > 1 else "longer"
        yield Claim(
            id="vela-sampling-agents-20" if limit > 1 else "vela-sampling-agents",
            figure=SAMPLING,
            paper="asking agents takes less time than asking machines over wide-area links",
            here=f"{agents[name]:.0f} ms and {agents['samples asked'] / agents['jobs']:.0f} requests"
            f" a job against {direct[name]:.0f} ms and"
            f" {direct['samples asked'] / direct['jobs']:.0f}",
            tolerance=f"machines take {factor}",
            holds=direct[name] >= limit * agents[name],
            note="at most 20 machines of a job are asked at once"
            if limit > 1
            else "all 400 machines of a job are asked at once",
        )


def draw_baseline(found: Findings) -> Figure:
    results = found.select(BASELINE)
    marks = tuple(
        Mark(float(number), 100 * result["conflicting"])
        for number, (_, result) in enumerate(results)
    )
    labels = ", ".join(
        f"{point.parameters['engine']} x{point.parameters['instances']}"
        f" ({point.parameters['placement']})"
        for point, _ in results
    )
    chart = Chart(
        title="Conflicts",
        x=Axis(label=labels or "none"),
        y=Axis(label="conflicts per job [%]", low=0),
        lines=(Line(label="94 requests/s", marks=marks),),
    )
    return Figure(
        number=BASELINE,
        title="Schedulers that read the whole state",
        caption="The same jobs, with the same computing time per job.",
        panels=(chart,),
    )


def claims_baseline(found: Findings) -> Iterator[Claim]:
    vela = _one(found, BASELINE, engine="vela")
    for placement in ("worst-fit", "first-fit"):
        omega = _one(found, BASELINE, engine="omega", instances=8, placement=placement)
        if vela is None or omega is None:
            continue
        yield Claim(
            id=f"vela-baseline-{placement}",
            figure=BASELINE,
            paper="shared-state schedulers suffer from conflicts, which Vela reduces drastically",
            here=f"{100 * omega['conflicting']:.2f} % of jobs conflict with eight schedulers that"
            f" read the whole state, {100 * vela['conflicting']:.2f} % with Vela",
            tolerance="at least ten times as many",
            holds=omega["conflicting"] > 0 and omega["conflicting"] >= 10 * vela["conflicting"],
            note=f"{placement}, 94 requests/s; {omega['throughput']:.0f} and"
            f" {vela['throughput']:.0f} jobs/s",
        )
