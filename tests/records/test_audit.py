"""Who used what: the audit of a kept run against recounts that share no code with it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from argosy.cli.app import app
from argosy.experiments.execute import execute
from argosy.host import records
from argosy.model.errors import RunDirectoryError
from argosy.model.jobs import task_number
from argosy.model.resources import Resources
from argosy.model.scenario import (
    FleetEntry,
    MachineCrash,
    MachineDrain,
    Output,
    RandomCrashes,
    Scenario,
    SchedulerLimits,
    Takes,
)
from argosy.records.audit import Audit, SchedulerAudit, audit
from argosy.records.directory import RunDirectory, open_run
from argosy.scenarios.loader import load
from argosy.testing.builders import GIB, SECOND, cell, job, scenario
from argosy.testing.conformance import workload

HOUR = 3_600 * SECOND


def a_scenario(**fields: Any) -> Scenario:
    """Three schedulers that meet: one limited, one that preempts, one whose decisions are slow."""
    jobs = workload(120, spacing=0.1)
    fields.setdefault("horizon", 25 * SECOND)
    fleet = (
        FleetEntry(
            name="service",
            engine="omega",
            takes=Takes(kinds=("service",)),
            settings={"preempt": True, "t_job": SECOND},
        ),
        FleetEntry(
            name="batch",
            engine="omega",
            replicas=2,
            takes=Takes(kinds=("batch",)),
            settings={"t_job": SECOND // 2, "placement": "best-fit"},
            limits=SchedulerLimits(resources=Resources(9_000, 0), jobs=6, precedence=1),
        ),
    )
    return scenario("omega", jobs, fleet=fleet, **fields)


def kept(tmp_path: Path, spec: Scenario) -> RunDirectory:
    execute(spec, tmp_path / "run")
    return open_run(tmp_path / "run")


def by_name(found: Audit) -> dict[str, SchedulerAudit]:
    return {scheduler.name: scheduler for scheduler in found.schedulers}


class Recount:
    """The log read line by line and task by task, with dictionaries and loops."""

    def __init__(self, run: RunDirectory) -> None:
        spec, end = run.scenario(), run.summary().ended_at
        jobs = {j.id: j for j in spec.jobs}
        numbers: dict[str, int] = {}
        rows = run.task_rows()
        ends = dict(zip(rows["task"].tolist(), rows["finished"].tolist(), strict=True))
        open_claims: dict[tuple[str, int], tuple[str, int]] = {}
        #: Scheduler, job, index, begin, end.
        self.claims: list[tuple[str, str, int, int, int]] = []
        self.refused: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self.suffered: Counter[str] = Counter()
        for record in run.journal.records():
            match record:
                case records.SubmittedRecord(job=submitted):
                    numbers[submitted.id] = len(numbers)
                case records.PlacedRecord(at, name, indices, _, scheduler):
                    for index in indices:
                        open_claims[name, index] = (scheduler, at)
                case records.LostRecord(at, name, indices) | records.ReleasedRecord(
                    at, name, indices
                ):
                    for index in indices:
                        holder, begin = open_claims.pop((name, index))
                        self.claims.append((holder, name, index, begin, at))
                        was_pushed_out = isinstance(record, records.LostRecord)
                        self.suffered[holder] += was_pushed_out and record.why == "preempted"
                case records.RefusedRecord(scheduler=scheduler, whys=whys):
                    self.refused[scheduler].update(whys)
        for (name, index), (holder, begin) in open_claims.items():
            done = ends.get(task_number(numbers[name], index), -1)
            self.claims.append((holder, name, index, begin, done if done >= 0 else end))
        self.requests: dict[tuple[str, int], dict[str, int]] = {}
        for _, name, index, _, _ in self.claims:
            at = index
            for group in jobs[name].groups:
                if at < group.count:
                    self.requests[name, index] = dict(group.request.items())
                    break
                at -= group.count

    def time(self, scheduler: str, resource: str) -> int:
        return sum(
            (end - begin) * self.requests[name, index].get(resource, 0)
            for holder, name, index, begin, end in self.claims
            if holder == scheduler
        )

    def peak(self, scheduler: str, resource: str) -> int:
        """Looked at just after every beginning."""
        mine = [claim for claim in self.claims if claim[0] == scheduler]
        return max(
            sum(
                self.requests[name, index].get(resource, 0)
                for _, name, index, begin, end in mine
                if begin <= at < end
            )
            for at in {claim[3] for claim in mine}
        )

    def peak_jobs(self, scheduler: str) -> int:
        mine = [claim for claim in self.claims if claim[0] == scheduler]
        return max(
            len({name for _, name, _, begin, end in mine if begin <= at < end})
            for at in {claim[3] for claim in mine}
        )


@pytest.mark.parametrize(
    "faults",
    [
        (),
        (
            MachineCrash(at=4 * SECOND, machine="m1", down=3 * SECOND),
            MachineDrain(at=6 * SECOND, machine="m2", lasts=2 * SECOND),
            RandomCrashes(what="machines", every=2 * SECOND, down=SECOND),
        ),
    ],
    ids=["calm", "faults"],
)
def test_the_audit_agrees_with_a_recount_from_the_log(tmp_path: Path, faults: Any) -> None:
    run = kept(tmp_path, a_scenario(faults=faults))
    found, recount = by_name(audit(run)), Recount(run)
    assert set(found) == {"service", "batch-0", "batch-1"}
    for name, mine in found.items():
        for resource, unit in (("cpu", 1_000), ("memory", GIB)):
            held = mine.resources[resource]
            assert held.hours == pytest.approx(recount.time(name, resource) / unit / HOUR)
            assert held.peak == recount.peak(name, resource)
        assert mine.claims == sum(claim[0] == name for claim in recount.claims)
        assert mine.jobs_admitted == len({c[1] for c in recount.claims if c[0] == name})
        assert mine.peak_jobs == recount.peak_jobs(name)
        assert mine.preemptions_suffered == recount.suffered[name]
        assert mine.claims_lost == sum(recount.refused[name][why] for why in (1, 2, 4, 5))
        assert sum(mine.limit_refusals.values()) == sum(
            recount.refused[name][w] for w in (6, 7, 16)
        )
    assert found["batch-0"].limit_refusals
    assert found["batch-0"].preemptions_suffered + found["batch-1"].preemptions_suffered


def test_the_audit_agrees_with_what_the_world_counted(tmp_path: Path) -> None:
    run = kept(tmp_path, a_scenario())
    found, summary = audit(run), run.summary()
    for mine, counted in zip(found.schedulers, summary.schedulers, strict=True):
        assert mine.conflicts_lost == counted.conflicts
    assert sum(s.conflicts_lost for s in found.schedulers)
    for resource, used in summary.utilisation.items():
        shares = [scheduler.resources[resource].share for scheduler in found.schedulers]
        assert sum(shares) == pytest.approx(used)
    made = sum(scheduler.preemptions_made for scheduler in found.schedulers)
    suffered = sum(scheduler.preemptions_suffered for scheduler in found.schedulers)
    assert made == suffered == summary.counts.preemptions > 0
    assert by_name(found)["service"].preemptions_made == made


def test_limits_are_shown_and_kept(tmp_path: Path) -> None:
    found = by_name(audit(kept(tmp_path, a_scenario())))
    cpu = found["batch-1"].resources["cpu"]
    assert (cpu.limit, found["batch-1"].job_limit) == (9_000, 6)
    assert cpu.peak_of_limit == cpu.peak / 9_000 <= 1
    assert found["batch-1"].peak_jobs <= 6
    assert found["batch-1"].resources["memory"].limit is None
    assert found["service"].resources["cpu"].limit is None


def test_a_conflict_is_blamed_on_who_claimed_the_machine(tmp_path: Path) -> None:
    """The slow scheduler decides from the start; the fast one takes the only machine in the
    meantime."""
    jobs = [job("slow", 1, cpu=3_000, kind="slow"), job("quick", 1, cpu=3_000, kind="quick")]
    fleet = tuple(
        FleetEntry(name=kind, engine="omega", takes=Takes(kinds=(kind,)), settings={"t_job": t_job})
        for kind, t_job in (("slow", 2 * SECOND), ("quick", SECOND))
    )
    found = audit(kept(tmp_path, scenario("omega", jobs, fleet=fleet, cell=cell(1))))
    lost = {s.name: (s.conflicts_lost, s.claims_lost) for s in found.schedulers}
    caused = {s.name: (s.conflicts_caused, s.claims_caused) for s in found.schedulers}
    assert lost == {"slow": (1, 1), "quick": (0, 0)}
    assert caused == {"slow": (0, 0), "quick": (1, 1)}
    assert found.claims_lost_to_nobody == 0


def test_a_conflict_over_a_lost_machine_is_blamed_on_nobody(tmp_path: Path) -> None:
    """Though a claim from before the decision was the machine's last."""
    jobs = [job("before", 1, seconds=1), job("a", 1, submit=5)]
    crash = MachineCrash(at=6 * SECOND, machine="m0", down=SECOND)
    spec = scenario(
        "omega", jobs, cell=cell(1), replicas=1, faults=(crash,), settings={"t_job": 1_500_000}
    )
    found = audit(kept(tmp_path, spec))
    assert (found.claims_lost_to_nobody, found.schedulers[0].conflicts_lost) == (1, 1)


def test_tasks_in_queues_hold_nothing_until_they_start(tmp_path: Path) -> None:
    jobs = [job("a", 8, cpu=4_000, seconds=10)]
    run = kept(tmp_path, scenario("murmuration", jobs, cell=cell(2), replicas=1))
    held = audit(run).schedulers[0].resources["cpu"]
    assert held.hours == pytest.approx(8 * 4 * 10 / 3_600)
    assert held.peak == 8_000


def test_workers_beyond_a_jobs_own_count_until_the_job_ends(tmp_path: Path) -> None:
    run = kept(tmp_path, load(Path(__file__).parents[2] / "scenarios" / "mapreduce.toml"))
    found, used = audit(run), run.summary().utilisation
    for resource in used:
        shares = [scheduler.resources[resource].share for scheduler in found.schedulers]
        assert sum(shares) == pytest.approx(used[resource])


def test_who_placed_nothing_used_nothing(tmp_path: Path) -> None:
    spec = scenario("omega", [job("giant", 1, cpu=64_000)], horizon=5 * SECOND)
    for scheduler in audit(kept(tmp_path, spec)).schedulers:
        assert (scheduler.claims, scheduler.jobs_admitted, scheduler.peak_jobs) == (0, 0, 0)
        assert [held.peak for held in scheduler.resources.values()] == [0, 0]


def test_a_run_without_a_log_cannot_be_audited(tmp_path: Path) -> None:
    run = kept(tmp_path, a_scenario(output=Output(log="none")))
    with pytest.raises(RunDirectoryError, match="no journal"):
        audit(run)


def test_a_journal_of_decisions_alone_is_audited_with_the_kept_timeline(tmp_path: Path) -> None:
    whole = audit(kept(tmp_path / "whole", a_scenario()))
    assert audit(kept(tmp_path / "alone", a_scenario(output=Output(log="decisions")))) == whole


def test_a_journal_of_decisions_alone_cannot_be_audited_without_a_timeline(tmp_path: Path) -> None:
    run = kept(tmp_path, a_scenario(output=Output(log="decisions", tasks=False)))
    with pytest.raises(RunDirectoryError, match="no starts and ends of tasks"):
        audit(run)


def test_an_audit_needs_no_kept_timeline(tmp_path: Path) -> None:
    whole = audit(kept(tmp_path / "whole", a_scenario()))
    assert audit(kept(tmp_path / "lean", a_scenario(output=Output(tasks=False)))) == whole


@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_the_command_prints_the_audit(tmp_path: Path, output: str) -> None:
    kept(tmp_path, a_scenario())
    done = CliRunner().invoke(app, ["audit", "--run", str(tmp_path / "run"), "-o", output])
    assert done.exit_code == 0, done.output
    for name in ("service", "batch-0", "batch-1"):
        assert name in done.stdout
    if output == "json":
        assert json.loads(done.stdout)["schedulers"][1]["resources"]["cpu"]["limit"] == 9_000
    if output == "table":
        assert "core-hours" in done.stdout
        assert "9 cores" in done.stdout
