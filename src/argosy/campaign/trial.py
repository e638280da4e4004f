"""One scenario, run in a world and judged by its journal."""

from __future__ import annotations

import hashlib
import re
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from argosy.campaign.findings import Finding
from argosy.campaign.pod_rules import PodJudge
from argosy.campaign.recordings import WorldRecording
from argosy.campaign.recount import CampaignRule, Recount, Where
from argosy.campaign.rules import RULES
from argosy.campaign.waiting import RULES_AT_THE_END
from argosy.campaign.worlds import CampaignWorld
from argosy.engines.api import Engine
from argosy.engines.faults import locate
from argosy.engines.registry import find_engines
from argosy.model.errors import ArgosyError, EngineFault, ReplayDiverged, SettingError
from argosy.model.scenario import Scenario
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay
from argosy.scenarios.loader import load
from argosy.scenarios.missing_extras import missing

_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_LOCATED: Final = re.compile(r", (\S+:\d+ in \w+): ")
_NAMED: Final = re.compile(r"\S*\d\S*")


class TrialResult(msgspec.Struct, frozen=True):
    findings: list[Finding]
    #: Of the journal; empty if there is none.
    digest: str = ""


def run_trial(file: Path, world: CampaignWorld, *, is_judged: bool = True) -> TrialResult:
    """Runs the scenario in `file`. A mistake in the file is an `ArgosyError`; so are settings with which
    an engine cannot work in this cell, and extras that are not installed. A mistake of an engine or of
    Argosy is a finding. Without `is_judged`, only the journal's digest counts."""
    scenario = load(file)
    engines = find_engines(scenario.engine_names())
    if (lack := missing(scenario, engines)) is not None:
        raise lack
    world.check(scenario)
    try:
        recording = world.run(scenario, engines)
    except Exception as error:
        if isinstance(error.__cause__, SettingError):
            raise error.__cause__ from None
        return TrialResult([failure(error)])
    digest = hashlib.blake2b(b"".join(recording.all_journals), digest_size=16).hexdigest()
    if not is_judged:
        return TrialResult([], digest)
    return TrialResult(judge(scenario, engines, recording, is_exact=world.is_exact), digest)


def judge(
    scenario: Scenario,
    engines: Mapping[str, type[Engine]],
    recording: WorldRecording,
    *,
    is_exact: bool = True,
) -> list[Finding]:
    """What is wrong with a run, from its scenario and its journals."""
    findings: dict[str, Finding] = {}
    for disk in recording.lost:
        recount, _ = _recounted(scenario, engines, disk, is_exact=is_exact)
        findings = recount.findings | findings
    recount, rules = _recounted(scenario, engines, recording.journals, is_exact=is_exact)
    last = [rule(recount) for rule in RULES_AT_THE_END]
    recount.finish(recording.ended_at, (*rules, *last))
    _compare_counts(recount, recording.counts)
    if recording.pods is not None:
        PodJudge(recording.pods, recount, recording.ended_at).judge()
    _compare_processes(recount, recording.processes)
    findings = recount.findings | findings
    return [*findings.values(), *_replayed(recording.all_journals, engines)]


def _recounted(
    scenario: Scenario,
    engines: Mapping[str, type[Engine]],
    journals: Iterable[bytes],
    *,
    is_exact: bool,
) -> tuple[Recount, list[CampaignRule]]:
    """What the journals of one cluster tell. Where another system says which machines and jobs there
    are, the first of them says it."""
    files = [JournalFile(journal) for journal in journals]
    setup = files[0].header().setup
    if setup.is_overruled:
        scenario = msgspec.structs.replace(scenario, cell=setup.cell, fleet=setup.fleet, jobs=())
    recount = Recount(scenario, engines, is_exact=is_exact, is_overruled=setup.is_overruled)
    rules = [rule(recount) for rule in RULES]
    for file in files:
        recount.read(file.records(), rules)
    return recount, rules


def _compare_counts(recount: Recount, counts: Mapping[Where, int] | None) -> None:
    if counts is None:
        return
    found = dict.fromkeys(Where, 0)
    for held in recount.tasks_of_all_lives():
        found[held.where] += 1
    for where, count in counts.items():
        if found[where] != count:
            told = f"{count} tasks are {where.value} to the world, {found[where]} to its journal"
            recount.complain("miscounted", where.value, told)


def _compare_processes(recount: Recount, processes: Mapping[str, str] | None) -> None:
    if processes is None:
        return
    tasks = {
        recount.name(task): recount.machines[held.machine].name
        for task, held in recount.tasks.items()
        if held.where is Where.RUNNING
    }
    for name in sorted(tasks.keys() | processes.keys()):
        if tasks.get(name) != processes.get(name):
            there, really = (where.get(name, "no machine") for where in (tasks, processes))
            told = f"{name} runs on {there} by the journal, and on {really} by its process"
            recount.complain("processes", "", told)


def _replayed(journals: Iterable[bytes], engines: Mapping[str, type[Engine]]) -> list[Finding]:
    try:
        for journal in journals:
            Replay(JournalFile(journal), engines).run()
    except ReplayDiverged as error:
        return [Finding("replay", "diverged", str(error))]
    except Exception as error:
        failed = failure(error)
        return [Finding("replay", failed.kind, failed.detail)]
    return []


def failure(error: Exception) -> Finding:
    """An error that ended a run."""
    if isinstance(error, EngineFault):
        place = _LOCATED.search(str(error))
        cause = type(error.__cause__).__name__ if error.__cause__ is not None else ""
        # Without a place, the sentence tells one mistake from another, but for names and numbers.
        kind = f"{cause} {place[1]}" if place else _NAMED.sub("_", _QUOTED.sub("_", error.problem))
        return Finding("engine-fault", kind, str(error))
    kind = f"{type(error).__name__} {locate(error)}"
    told = f"{type(error).__name__}: {error}, {locate(error)}"
    if isinstance(error, ArgosyError):
        return Finding("crash", kind, told)
    return Finding("crash", kind, f"{told}\n{traceback.format_exc()}")
