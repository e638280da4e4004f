"""What a campaign makes of the answers of its trials, with lanes that answer by a script."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from argosy.campaign.campaign import MIXED, Campaign, merged, repeat_command
from argosy.campaign.draw import DrawnScenario
from argosy.campaign.findings import Finding
from argosy.campaign.processes import TrialAnswer
from argosy.report import campaigns


class ScriptedLane:
    """Finds in a scenario what its jobs are called; one called `refused` is no scenario."""

    asked: ClassVar[list[tuple[int, bool, float | None]]] = []
    closed: ClassVar[int] = 0

    def __init__(self, world: str, seconds: float) -> None:
        self.world = world

    def run(
        self, document: dict[str, Any], *, repeats: bool, seconds: float | None = None
    ) -> TrialAnswer:
        names = [job["id"] for job in document.get("workload", {}).get("jobs", ())]
        type(self).asked.append((len(names), repeats, seconds))
        if "crash" in names:
            raise RuntimeError("the lane broke")
        if "refused" in names:
            return TrialAnswer(refusal="no scenario")
        wrong = [name.split(":") for name in names if ":" in name]
        said = f"{len(names)} jobs\nand more"
        return TrialAnswer([Finding(check, kind, said) for check, kind in wrong])

    def close(self) -> None:
        type(self).closed += 1


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.campaign.campaign.TrialLane", ScriptedLane)
    ScriptedLane.asked, ScriptedLane.closed = [], 0


def drawn(number: int, engines: str, *jobs: str) -> DrawnScenario:
    fleet = [{"name": engine, "engine": engine} for engine in engines.split()]
    named = [{"id": name} for name in jobs]
    cell = {"machines": [{"name": "m", "capacity": {"cpu": 1}}]}
    document = {"name": "x", "cell": cell, "workload": {"jobs": named}, "fleet": fleet}
    return DrawnScenario(number, document)


GANG, LIMIT = "gang:first half", "limits:jobs"
SCENARIOS = [
    drawn(0, "omega", "a"),
    drawn(1, "omega sparrow", "a", GANG),
    drawn(2, "sparrow", "refused"),
    drawn(3, "omega", "a", LIMIT, GANG, "b"),
    drawn(4, "omega", GANG),
    drawn(5, "sparrow sparrow", "a"),
    drawn(6, "zeta", "gang:other half"),
]


def counted(*, workers: int = 1, folder: Path | None = None, **options: Any) -> Any:
    with Campaign(workers=workers, **options) as campaign:
        return campaign.run(SCENARIOS, folder=folder)


@pytest.mark.parametrize("workers", [1, 3])
def test_runs_are_counted_by_engine_and_failures_by_kind(workers: int) -> None:
    result = counted(workers=workers)
    rows = [(r.engine, r.runs, r.failed, r.refused, list(r.checks.items())) for r in result.rows]
    assert rows == [
        ("omega", 3, 2, 0, [("gang", 2), ("limits", 1)]),
        ("sparrow", 2, 0, 1, []),
        ("zeta", 1, 1, 0, [("gang", 1)]),
        (MIXED, 1, 1, 0, [("gang", 1)]),
    ]
    assert result.runs == 7
    shown = {str(row["engine"]): row["refused"] for row in campaigns.table(result).records()}
    assert shown == {"omega": 0, "sparrow": 1, "zeta": 0, MIXED: 0}
    found = [(f.engine, f.check, f.kind, f.number, f.times) for f in result.failures]
    assert found == [
        (MIXED, "gang", "first half", 1, 1),
        ("omega", "limits", "jobs", 3, 1),
        ("omega", "gang", "first half", 3, 2),
        ("zeta", "gang", "other half", 6, 1),
    ]
    assert result.failures[0].engines == ("omega", "sparrow")
    assert (result.failures[0].file, result.failures[0].command) == ("", "")
    assert ScriptedLane.closed == workers


def test_who_waits_is_told_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    shrinking: list[tuple[int, int]] = []
    with Campaign() as campaign:
        campaign.run(
            SCENARIOS,
            tell=lambda *each: told.append(each),
            tell_shrinking=lambda *each: shrinking.append(each),
        )
    assert told == [(1, 0), (2, 1), (3, 1), (4, 2), (5, 3), (6, 3), (7, 4)]
    assert shrinking == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]


def test_each_kind_of_failure_is_written_as_small_as_it_still_fails(tmp_path: Path) -> None:
    result = counted(folder=tmp_path / "found", world="scripted", seconds=8.0)
    files = sorted(path.name for path in (tmp_path / "found").iterdir())
    assert files == [
        "mixed-fleets-gang-1.toml",
        "omega-gang-3.toml",
        "omega-limits-3.toml",
        "zeta-gang-6.toml",
    ]
    [_, limits, *_] = result.failures
    text = Path(limits.file).read_text()
    assert [job["id"] for job in tomllib.loads(text)["workload"]["jobs"]] == [LIMIT]
    assert text.splitlines()[:3] == [
        "# limits: a scheduler held more than its limits allow.",
        "# 1 jobs",
        f"# Run it again: argosy campaign {limits.file} --world scripted",
    ]
    assert limits.command == f"argosy campaign {limits.file} --world scripted"
    assert limits.detail == "1 jobs\nand more"
    assert limits.tries > 0


def test_a_scenario_that_hangs_is_shrunk_with_less_time_for_each_run(tmp_path: Path) -> None:
    slow = drawn(0, "omega", "time-limit:hangs", "a")
    with Campaign(seconds=8.0) as campaign:
        [failure] = campaign.run([slow], folder=tmp_path).failures
    first, *shrinking, last = ScriptedLane.asked
    assert first == (2, True, None)
    assert {(repeats, seconds) for _, repeats, seconds in shrinking} == {(False, 2.0)}
    # What was found is tried once more with all the time.
    assert last == (1, False, 8.0)
    assert failure.tries == len(shrinking)


def test_only_what_differs_between_processes_is_run_twice_when_it_is_shrunk(tmp_path: Path) -> None:
    for name, repeats in (("nondeterministic:x", True), (GANG, False)):
        ScriptedLane.asked = []
        with Campaign() as campaign:
            campaign.run([drawn(0, "omega", name, "a")], folder=tmp_path)
        assert {again for _, again, _ in ScriptedLane.asked[1:]} == {repeats}


def test_a_lane_that_breaks_ends_the_campaign() -> None:
    campaign = Campaign(workers=2)
    with pytest.raises(RuntimeError, match="the lane broke"):
        campaign.run([drawn(0, "omega", "a"), drawn(1, "omega", "crash"), *SCENARIOS])
    assert ScriptedLane.closed == 2


def test_campaigns_one_after_the_other_are_one() -> None:
    whole = counted()
    with Campaign() as campaign:
        parts = [campaign.run(part) for part in (SCENARIOS[:4], SCENARIOS[4:])]
    joined = merged(parts)
    assert joined.rows == whole.rows
    assert joined.failures == whole.failures
    assert joined.world == "simulated"
    assert joined.seconds == parts[0].seconds + parts[1].seconds


def test_the_command_that_repeats_a_failure_can_be_pasted() -> None:
    assert repeat_command(Path("a b.toml"), "simulated") == "argosy campaign 'a b.toml'"


class TestShrinking:
    """With lanes that fail as they are told, on a clock of their own."""

    WHOLE = tuple(f"j{number}" for number in range(30))

    def shrunk(
        self,
        monkeypatch: pytest.MonkeyPatch,
        folder: Path,
        finding: Callable[[list[str]], str],
        *jobs: str,
        seconds: float = 0.0,
    ) -> Any:
        """The failure; each run takes so many seconds and finds, by the names of jobs, a check with a
        kind, or nothing."""
        clock = [0.0]

        def run(
            lane: ScriptedLane,
            document: dict[str, Any],
            *,
            repeats: bool,
            seconds_: float = seconds,
            **_: Any,
        ) -> TrialAnswer:
            names = [job["id"] for job in document.get("workload", {}).get("jobs", ())]
            ScriptedLane.asked.append((len(names), repeats, None))
            clock[0] += seconds_
            found = finding(names)
            return TrialAnswer([Finding(*found.split(":"), "said")] if found else [])

        monkeypatch.setattr(ScriptedLane, "run", run)
        watch = SimpleNamespace(monotonic=lambda: clock[0])
        monkeypatch.setattr("argosy.campaign.campaign.time", watch)
        with Campaign(seconds=8.0) as campaign:
            [failure] = campaign.run([drawn(0, "omega", *jobs)], folder=folder).failures
        return failure

    @pytest.mark.parametrize(("check", "tries"), [("gang", 9), ("time-limit", 26)])
    def test_it_takes_no_more_time_than_a_failure_is_worth(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, check: str, tries: int
    ) -> None:
        failure = self.shrunk(
            monkeypatch,
            tmp_path,
            lambda names: f"{check}:x" if len(names) == 30 else "",
            *self.WHOLE,
            seconds=7.0,
        )
        assert failure.tries == tries
        # The first run; and only what hangs is run once more in the end.
        assert len(ScriptedLane.asked) == 1 + tries + (check == "time-limit")

    def test_there_is_a_number_of_tries_that_is_never_exceeded(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        many = [f"j{number}" for number in range(400)]
        failure = self.shrunk(
            monkeypatch, tmp_path, lambda names: "gang:x" if len(names) == 400 else "", *many
        )
        assert failure.tries == 300

    def test_what_fails_in_another_way_is_no_smaller_failure(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        failure = self.shrunk(
            monkeypatch,
            tmp_path,
            lambda names: "gang:whole" if len(names) > 2 else "gang:other",
            *self.WHOLE,
        )
        document = tomllib.loads(Path(failure.file).read_text())
        assert len(document["workload"]["jobs"]) == 3


def test_failures_of_two_kinds_stay_two_and_folders_are_made(tmp_path: Path) -> None:
    scenarios = [drawn(0, "omega", GANG), drawn(1, "omega", "gang:other half")]
    with Campaign() as campaign:
        parts = [campaign.run([each], folder=tmp_path / "a" / "b") for each in scenarios]
    joined = merged(parts)
    found = [(f.kind, f.number, f.times) for f in joined.failures]
    assert found == [("first half", 0, 1), ("other half", 1, 1)]
    assert len(list((tmp_path / "a" / "b").iterdir())) == 2
