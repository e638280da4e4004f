"""A campaign: many trials, what they found, and small scenarios that show it."""

from __future__ import annotations

import queue
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

from argosy.campaign.draw import DrawnScenario
from argosy.campaign.findings import CHECKS, Finding
from argosy.campaign.processes import TrialAnswer, TrialLane
from argosy.campaign.shrink import Shrinker
from argosy.campaign.worlds import find_world
from argosy.model.errors import CommandError
from argosy.scenarios.toml_text import to_toml

#: In place of an engine's name, of fleets of several.
MIXED: Final = "mixed fleets"
DEFAULT_SECONDS: Final = 20.0
#: What shrinking one failure may cost.
MOST_TRIES: Final = 300
SHRINK_SECONDS: Final = 60.0
#: Runs that do not end have to be waited for, so they get more time, and each of them less.
SLOW_SHRINK_SECONDS: Final = 180.0
SLOW_PART: Final = 4


class CampaignFailure(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that went wrong, and where it was seen first."""

    #: The engine; `MIXED`, if there were several.
    engine: str
    engines: tuple[str, ...]
    check: str
    kind: str
    detail: str
    #: The scenario's number in the campaign, and how many failed in this way.
    number: int
    times: int
    #: A scenario that fails in this way, and how to run it again; empty if none was written.
    file: str = ""
    command: str = ""
    #: Trials that shrinking it took.
    tries: int = 0


class CampaignRow(msgspec.Struct, frozen=True, kw_only=True):
    engine: str
    runs: int
    #: Runs in which something was found; runs that an engine refused, because of its settings.
    failed: int
    refused: int
    #: Such runs by check.
    checks: dict[str, int]


class CampaignResult(msgspec.Struct, frozen=True, kw_only=True):
    world: str
    rows: list[CampaignRow]
    failures: list[CampaignFailure]
    seconds: float

    @property
    def runs(self) -> int:
        return sum(row.runs for row in self.rows)


class FailedTrial(msgspec.Struct, frozen=True):
    scenario: DrawnScenario
    findings: list[Finding]


class RowCount:
    """Counts the runs of one engine."""

    def __init__(self) -> None:
        self.runs = 0
        self.failed = 0
        self.refused = 0
        self.checks: Counter[str] = Counter()

    def add(self, answer: TrialAnswer) -> None:
        self.runs += 1
        self.failed += bool(answer.findings)
        self.refused += bool(answer.refusal)
        self.checks.update({finding.check for finding in answer.findings})

    def row(self, engine: str) -> CampaignRow:
        checks = {check: self.checks[check] for check in CHECKS if self.checks[check]}
        return CampaignRow(
            engine=engine,
            runs=self.runs,
            failed=self.failed,
            refused=self.refused,
            checks=checks,
        )


class Campaign:
    """Runs scenarios in some worker lanes; close it afterwards, or use it in a `with` statement."""

    def __init__(
        self, *, world: str = "simulated", seconds: float = DEFAULT_SECONDS, workers: int = 1
    ) -> None:
        self._repeats = find_world(world).repeats
        self.world = world
        self._seconds = seconds
        self._lanes: queue.SimpleQueue[TrialLane] = queue.SimpleQueue()
        self._all = [TrialLane(world, seconds) for _ in range(workers)]
        for lane in self._all:
            self._lanes.put(lane)

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for lane in self._all:
            lane.close()

    def run(
        self,
        scenarios: Iterable[DrawnScenario],
        *,
        folder: Path | None = None,
        tell: Callable[[int, int], None] = lambda done, failed: None,
        tell_shrinking: Callable[[int, int], None] = lambda done, total: None,
    ) -> CampaignResult:
        """The result does not depend on the number of workers. With a `folder`, the first scenario of
        each kind of failure is shrunk and written there. `tell` is told how many trials are done, and
        how many of them failed."""
        began = time.monotonic()
        rows: dict[str, RowCount] = {}
        failed: list[FailedTrial] = []
        for done, (scenario, answer) in enumerate(self._spread(self._trial, scenarios), 1):
            rows.setdefault(row_of(scenario), RowCount()).add(answer)
            if answer.findings:
                failed.append(FailedTrial(scenario, answer.findings))
            tell(done, len(failed))
        failures = self._failures(failed, folder, tell_shrinking)
        return CampaignResult(
            world=self.world,
            rows=[rows[name].row(name) for name in sorted(rows, key=lambda name: name == MIXED)],
            failures=failures,
            seconds=time.monotonic() - began,
        )

    def _spread(
        self, work: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterable[tuple[Any, Any]]:
        """Each item with its result, in the order of the items, computed by as many threads as lanes."""
        with ThreadPoolExecutor(len(self._all)) as pool:
            try:
                waiting: list[tuple[Any, Any]] = []
                for item in items:
                    waiting.append((item, pool.submit(work, item)))
                    # A campaign may be long: only a few are drawn ahead.
                    if len(waiting) > 4 * len(self._all):
                        first, future = waiting.pop(0)
                        yield first, future.result()
                for item, future in waiting:
                    yield item, future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                # Whoever waits for a process now gets the answer that it died.
                self.close()
                raise

    def _trial(self, scenario: DrawnScenario) -> TrialAnswer:
        lane = self._lanes.get()
        try:
            return lane.run(scenario.document, repeats=self._repeats)
        finally:
            self._lanes.put(lane)

    def _failures(
        self,
        failed: Sequence[FailedTrial],
        folder: Path | None,
        tell: Callable[[int, int], None],
    ) -> list[CampaignFailure]:
        """The first of each kind, shrunk."""
        kinds: dict[tuple[str, str, str], list[tuple[DrawnScenario, Finding]]] = {}
        for trial in failed:
            for finding in trial.findings:
                key = (row_of(trial.scenario), *finding.signature)
                kinds.setdefault(key, []).append((trial.scenario, finding))
        made = []
        tell(0, len(kinds))
        for done, (_, failure) in enumerate(
            self._spread(lambda each: self._failure(each, folder), kinds.values()), 1
        ):
            made.append(failure)
            tell(done, len(kinds))
        return made

    def _failure(
        self, seen: Sequence[tuple[DrawnScenario, Finding]], folder: Path | None
    ) -> CampaignFailure:
        scenario, finding = seen[0]
        failure = CampaignFailure(
            engine=row_of(scenario),
            engines=scenario.engines,
            check=finding.check,
            kind=finding.kind,
            detail=finding.detail,
            number=scenario.number,
            times=len(seen),
        )
        if folder is None:
            return failure
        document, finding, tries = self._shrunk(scenario, finding)
        file = folder / file_name(failure)
        command = repeat_command(file, self.world)
        write_scenario(file, document, finding, command)
        return msgspec.structs.replace(
            failure, detail=finding.detail, file=str(file), command=command, tries=tries
        )

    def _shrunk(
        self, scenario: DrawnScenario, finding: Finding
    ) -> tuple[dict[str, Any], Finding, int]:
        """A smaller scenario, what is found in it, and how many were tried."""
        lane = self._lanes.get()
        is_slow = finding.check == "time-limit"
        deadline = time.monotonic() + (SLOW_SHRINK_SECONDS if is_slow else SHRINK_SECONDS)
        seconds = self._seconds / SLOW_PART if is_slow else self._seconds
        latest = finding

        def fails(document: dict[str, Any]) -> bool:
            nonlocal latest
            repeats = finding.check == "nondeterministic"
            answer = lane.run(document, repeats=repeats, seconds=seconds)
            same = [each for each in answer.findings if each.signature == finding.signature]
            if same:
                latest = same[0]
            return bool(same)

        try:
            shrinker = Shrinker(
                scenario.document,
                fails,
                most=MOST_TRIES,
                is_over=lambda: time.monotonic() > deadline,
            )
            document = shrinker.run()
            seconds = self._seconds
            if is_slow and not fails(document):
                return scenario.document, finding, shrinker.tries
            return document, latest, shrinker.tries
        finally:
            self._lanes.put(lane)


def merged(results: Sequence[CampaignResult]) -> CampaignResult:
    """The result of several campaigns, one after the other, as that of one."""
    rows: dict[str, RowCount] = {}
    failures: dict[tuple[str, str, str], CampaignFailure] = {}
    for result in results:
        for row in result.rows:
            count = rows.setdefault(row.engine, RowCount())
            count.runs += row.runs
            count.failed += row.failed
            count.refused += row.refused
            count.checks.update(row.checks)
        for failure in result.failures:
            key = (failure.engine, failure.check, failure.kind)
            known = failures.setdefault(key, failure)
            if known is not failure:
                times = known.times + failure.times
                failures[key] = msgspec.structs.replace(known, times=times)
    return CampaignResult(
        world=results[0].world,
        rows=[rows[name].row(name) for name in sorted(rows, key=lambda name: name == MIXED)],
        failures=list(failures.values()),
        seconds=sum(result.seconds for result in results),
    )


def row_of(scenario: DrawnScenario) -> str:
    engines = scenario.engines
    return engines[0] if len(engines) == 1 else MIXED


def file_name(failure: CampaignFailure) -> str:
    """Tells of what, and one from another."""
    engine = "".join(c if c.isalnum() or c in "+-" else "-" for c in failure.engine)
    return f"{engine}-{failure.check}-{failure.number}.toml"


def repeat_command(file: Path, world: str) -> str:
    option = "" if world == "simulated" else f" --world {world}"
    return f"argosy campaign {shlex.quote(str(file))}{option}"


def write_scenario(file: Path, document: dict[str, Any], finding: Finding, command: str) -> None:
    said = [f"{finding.check}: {CHECKS[finding.check]}.", *finding.detail.splitlines()[:1]]
    said.append(f"Run it again: {command}")
    comment = "".join(f"# {line}\n" for line in said)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{comment}\n{to_toml(document)}", "utf-8")
    except OSError as error:
        raise CommandError(
            f"{file} cannot be written: {error.strerror}", hint="name another directory with --out"
        ) from None
