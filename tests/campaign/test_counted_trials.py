"""What a campaign makes of the answers of its trials, without running any."""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from argosy.campaign import campaign as campaigns
from argosy.campaign import processes
from argosy.campaign.campaign import (
    DEFAULT_SECONDS,
    MIXED,
    MOST_TRIES,
    Campaign,
    CampaignFailure,
    CampaignResult,
    CampaignRow,
    file_name,
    merged,
    repeat_command,
    write_scenario,
)
from argosy.campaign.dice import time_text, without_nothing
from argosy.campaign.draw import DrawnScenario
from argosy.campaign.findings import CHECKS, Finding
from argosy.campaign.processes import (
    TrialAnswer,
    TrialLane,
    TrialProcess,
    TrialRequest,
    cpu_seconds,
)
from argosy.campaign.shrink import mended
from argosy.model.errors import CommandError

Judge = Callable[[dict[str, Any]], TrialAnswer]
GANG = Finding("gang", "k", "part of a gang\nin full")
OTHER = Finding("gang", "l", "another kind")
LIMITS = Finding("limits", "k", "too much")
SLOW = Finding("time-limit", "", "no end")
VARIED = Finding("nondeterministic", "", "two ways")


def drawn(number: int, *engines: str, **more: Any) -> DrawnScenario:
    fleet = [{"name": f"s{at}", "engine": engine} for at, engine in enumerate(engines)]
    jobs = [{"id": "a", "number": number}]
    return DrawnScenario(number, {"workload": {"jobs": jobs}, "fleet": fleet, **more})


class ToldLane:
    """Answers without running anything, and notes what it was asked."""

    judge: Judge
    asked: list[dict[str, Any]]

    def __init__(self, world: str, seconds: float) -> None:
        self.made = (world, seconds)
        self.is_closed = False

    def run(self, document: dict[str, Any], **told: Any) -> TrialAnswer:
        type(self).asked.append(told)
        return type(self).judge(document)

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[[Judge], type[ToldLane]]:
    def tell(judge: Judge) -> type[ToldLane]:
        kind = type("Told", (ToldLane,), {"judge": staticmethod(judge), "asked": []})
        monkeypatch.setattr(campaigns, "TrialLane", kind)
        return kind

    return tell


def number_of(document: dict[str, Any]) -> int:
    return int(document["workload"]["jobs"][0]["number"])


def test_runs_are_counted_by_engine_and_failures_by_kind(told: Any) -> None:
    answers = {
        0: TrialAnswer([GANG, GANG, LIMITS]),
        1: TrialAnswer(refusal="no"),
        2: TrialAnswer([OTHER]),
        3: TrialAnswer([GANG]),
        4: TrialAnswer([GANG]),
        5: TrialAnswer(),
    }
    kind = told(lambda document: answers[number_of(document)])
    scenarios = [
        drawn(0, "a", "b"), drawn(1, "z"), drawn(2, "z"), drawn(3, "a", "b", "a"), drawn(4, "z", "z"),
        drawn(5, "a"),
    ]  # fmt: skip
    progress: list[tuple[int, int]] = []
    shrinking: list[tuple[int, int]] = []
    with Campaign() as campaign:
        result = campaign.run(
            scenarios,
            tell=lambda *told: progress.append(told),
            tell_shrinking=lambda *told: shrinking.append(told),
        )
        assert [lane.made for lane in campaign._all] == [("simulated", DEFAULT_SECONDS)]
    assert all(lane.is_closed for lane in campaign._all)
    assert kind.asked == [{"repeats": True}] * 6
    assert progress == [(1, 1), (2, 1), (3, 2), (4, 3), (5, 4), (6, 4)]
    assert shrinking == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert result.world == "simulated"
    assert result.runs == 6
    # Mixed fleets come last; checks are in their order, each once a run.
    assert result.rows == [
        CampaignRow(engine="z", runs=3, failed=2, refused=1, checks={"gang": 2}),
        CampaignRow(engine="a", runs=1, failed=0, refused=0, checks={}),
        CampaignRow(engine=MIXED, runs=2, failed=2, refused=0, checks={"gang": 2, "limits": 1}),
    ]
    seen = [
        (each.engine, each.check, each.kind, each.number, each.times) for each in result.failures
    ]
    assert seen == [
        (MIXED, "gang", "k", 0, 3),
        (MIXED, "limits", "k", 0, 1),
        ("z", "gang", "l", 2, 1),
        ("z", "gang", "k", 4, 1),
    ]
    assert result.failures[0].engines == ("a", "b")
    assert {(each.file, each.command, each.tries) for each in result.failures} == {("", "", 0)}


@pytest.mark.parametrize("workers", [1, 2])
def test_only_a_few_scenarios_are_drawn_ahead(told: Any, workers: int) -> None:
    told(lambda document: TrialAnswer())
    ahead: list[int] = []
    done = 0

    def scenarios() -> Iterator[DrawnScenario]:
        for number in range(20 * workers):
            ahead.append(number + 1 - done)
            yield drawn(number, "a")

    def tell(count: int, failed: int) -> None:
        nonlocal done
        done = count

    with Campaign(workers=workers) as campaign:
        campaign.run(scenarios(), tell=tell)
    assert max(ahead) == 4 * workers + 1


def test_the_first_of_a_kind_is_shrunk_and_written(told: Any, tmp_path: Path) -> None:
    def judge(document: dict[str, Any]) -> TrialAnswer:
        needed = "horizon" in document and "failover" in document
        return TrialAnswer(
            [LIMITS, msgspec.structs.replace(GANG, detail="smaller")] if needed else []
        )

    kind = told(judge)
    more = {"horizon": "10s", "failover": "1s", "seed": 4}
    with Campaign(world="scripted", seconds=7.0) as campaign:
        result = campaign.run([drawn(3, "a", **more)], folder=tmp_path / "new")
    gang = next(each for each in result.failures if each.check == "gang")
    assert gang.detail == "smaller"
    assert gang.file == str(tmp_path / "new" / "a-gang-3.toml")
    assert gang.command == f"argosy campaign {gang.file} --world scripted"
    text = Path(gang.file).read_text()
    assert text.startswith(
        f"# gang: {CHECKS['gang']}.\n# smaller\n# Run it again: {gang.command}\n\n"
    )
    assert "seed" not in tomllib.loads(text)
    assert tomllib.loads(text)["failover"] == "0s"
    assert 0 < gang.tries <= MOST_TRIES
    # Only what does not repeat has to be run twice.
    assert all(each == {"repeats": False, "seconds": 7.0} for each in kind.asked[1:])


@pytest.mark.parametrize(
    ("finding", "repeats", "seconds"),
    [(GANG, False, 8.0), (VARIED, True, 8.0), (SLOW, False, 2.0)],
    ids=lambda each: getattr(each, "check", None),
)
def test_slow_runs_are_shrunk_with_less_time_each(
    finding: Finding, repeats: bool, seconds: float, told: Any, tmp_path: Path
) -> None:
    kind = told(lambda document: TrialAnswer([finding]))
    with Campaign(seconds=8.0) as campaign:
        [failure] = campaign.run([drawn(0, "a", seed=4)], folder=tmp_path).failures
    assert kind.asked[1] == {"repeats": repeats, "seconds": seconds}
    # In the end, once more with all of its time.
    assert kind.asked[-1] == {"repeats": repeats, "seconds": 8.0}
    assert "seed" not in tomllib.loads(Path(failure.file).read_text())


def test_a_slow_run_that_ends_in_time_is_written_as_it_was(told: Any, tmp_path: Path) -> None:
    trials: list[dict[str, Any]] = []

    def judge(document: dict[str, Any]) -> TrialAnswer:
        is_first = not trials
        trials.append(document)
        limited = kind.asked[-1].get("seconds") == 2.0
        return TrialAnswer([SLOW] if is_first or limited else [])

    kind = told(judge)
    with Campaign(seconds=8.0) as campaign:
        [failure] = campaign.run([drawn(0, "a", seed=4)], folder=tmp_path).failures
    assert tomllib.loads(Path(failure.file).read_text())["seed"] == 4


def result(*rows: CampaignRow, failures: list[CampaignFailure], seconds: float) -> CampaignResult:
    return CampaignResult(world="scripted", rows=list(rows), failures=failures, seconds=seconds)


def test_results_add_up() -> None:
    def row(engine: str, runs: int, failed: int, refused: int, **checks: int) -> CampaignRow:
        return CampaignRow(engine=engine, runs=runs, failed=failed, refused=refused, checks=checks)

    def failure(engine: str, check: str, times: int, number: int = 0) -> CampaignFailure:
        return CampaignFailure(
            engine=engine, engines=(engine,), check=check, kind="k", detail="", number=number,
            times=times,
        )  # fmt: skip

    both = merged(
        [
            result(row(MIXED, 1, 0, 0), row("a", 2, 1, 1, gang=1),
                   failures=[failure("a", "gang", 1)], seconds=1.5),
            result(row("a", 3, 2, 0, gang=1, crash=2), row("b", 4, 0, 1),
                   failures=[failure("a", "gang", 4, 9), failure("b", "gang", 1)], seconds=2.0),
        ]
    )  # fmt: skip
    assert both == CampaignResult(
        world="scripted",
        rows=[
            row("a", 5, 3, 1, crash=2, gang=2),
            row("b", 4, 0, 1),
            row(MIXED, 1, 0, 0),
        ],
        failures=[failure("a", "gang", 5), failure("b", "gang", 1)],
        seconds=3.5,
    )
    assert list(both.rows[0].checks) == ["crash", "gang"]


def test_files_are_named_after_engine_check_and_number(tmp_path: Path) -> None:
    failure = CampaignFailure(
        engine="my.module:En_gine+x-1", engines=(), check="gang", kind="", detail="", number=7, times=1
    )  # fmt: skip
    assert file_name(failure) == "my-module-En-gine+x-1-gang-7.toml"
    assert repeat_command(Path("a b.toml"), "simulated") == "argosy campaign 'a b.toml'"
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError) as caught:
        write_scenario(tmp_path / "file" / "x.toml", {}, GANG, "again")
    assert caught.value.hint == "name another directory with --out"


class TestLanes:
    @pytest.fixture
    def lane(self) -> Iterator[Any]:
        lane: Any = TrialLane("scripted", 3.0)
        yield lane
        lane.close()

    @pytest.mark.parametrize(
        ("first", "second", "repeats", "findings", "requests"),
        [
            (TrialAnswer(digest="x"), TrialAnswer(digest="x"), True, [], [True, False]),
            (TrialAnswer(digest="x"), TrialAnswer(digest="y"), False, [], [True]),
            (TrialAnswer([GANG]), TrialAnswer(digest="y"), True, [GANG], [True]),
            (
                TrialAnswer([GANG], digest="x"),
                TrialAnswer(digest="y"),
                True,
                [
                    GANG,
                    Finding(
                        "nondeterministic",
                        "",
                        "another process recorded another journal for the same scenario",
                    ),
                ],
                [True, False],
            ),
            (
                TrialAnswer(digest="x"),
                TrialAnswer([LIMITS]),
                True,
                [
                    Finding(
                        "nondeterministic",
                        "",
                        "another process failed on the same scenario: too much",
                    )
                ],
                [True, False],
            ),
        ],
    )
    def test_two_processes_must_record_the_same(
        self,
        lane: Any,
        first: TrialAnswer,
        second: TrialAnswer,
        repeats: bool,
        findings: list[Finding],
        requests: list[bool],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        asked: list[TrialRequest] = []

        def answering(answer: TrialAnswer) -> Callable[[TrialRequest], TrialAnswer]:
            return lambda request: asked.append(request) or answer  # type: ignore[func-returns-value]

        monkeypatch.setattr(lane._first, "run", answering(first))
        monkeypatch.setattr(lane._second, "run", answering(second))
        assert lane.run({"seed": 1}, repeats=repeats).findings == findings
        assert [each.is_judged for each in asked] == requests
        assert {(each.world, each.seconds) for each in asked} == {("scripted", 3.0)}

    def test_a_trial_may_have_a_limit_of_its_own(
        self, lane: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[TrialRequest] = []
        monkeypatch.setattr(lane._first, "run", lambda each: asked.append(each) or TrialAnswer())
        lane.run({}, seconds=0.5)
        assert asked[0].seconds == 0.5

    def test_a_lane_that_was_closed_answers_at_once(self, lane: Any) -> None:
        lane.close()
        assert lane.run({}).findings == [Finding("crash", "ended", "the campaign was ended")]


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0s"), (1, "1us"), (999, "999us"), (1_000, "1ms"), (1_001, "1001us"),
        (1_000_000, "1s"), (60_000_000, "1min"), (90_000_000, "90s"), (7_200_000_000, "2h"),
    ],
)  # fmt: skip
def test_times_are_written_in_the_largest_unit_that_fits(micros: int, text: str) -> None:
    assert time_text(micros) == text


def test_keys_without_a_value_are_left_out() -> None:
    assert without_nothing({"a": None, "b": 0, "c": ""}) == {"b": 0, "c": ""}


def test_what_refers_to_nothing_is_mended() -> None:
    document = {
        "cell": {"machines": [{"name": "m", "count": 1}, {"name": "n", "count": 2}]},
        "fleet": [{"name": "s", "engine": "a", "takes": {"kinds": ["batch"]}}],
        "workload": {"jobs": [{"id": "j", "kind": "service"}]},
        "faults": [
            {"kind": "machine-crash", "machine": "m-0"},
            {"kind": "machine-crash", "machine": "n-1"},
            {"kind": "machine-crash", "machine": "gone-3"},
            {"kind": "scheduler-crash", "scheduler": "s-4"},
            {"kind": "partition", "isolated": ["s", "t"]},
            {"kind": "partition", "isolated": ["t"]},
        ],
        "network": {"latency": {"delays": {"s>cell": "1s", "t>cell": "1s", "s>t": "1s"}}},
        "empty": {},
        "none": [],
    }
    again = mended(document)
    assert again["faults"] == [
        {"kind": "machine-crash", "machine": "m"},
        {"kind": "machine-crash", "machine": "n-1"},
        {"kind": "scheduler-crash", "scheduler": "s"},
        {"kind": "partition", "isolated": ["s"]},
        {"kind": "partition", "isolated": ["s"]},
    ]
    assert again["network"]["latency"]["delays"] == {"s>cell": "1s"}
    # No scheduler took jobs of that kind.
    assert again["fleet"] == [{"name": "s", "engine": "a"}]
    assert {"empty", "none"}.isdisjoint(again)
    taken = {**document, "workload": {"jobs": [{"id": "j"}]}}
    assert mended(taken)["fleet"] == document["fleet"]


class FakeConnection:
    """Has an answer after so many waits."""

    def __init__(self, waits: int) -> None:
        self.waits = waits

    def poll(self, patience: float) -> bool:
        self.waits -= 1
        return self.waits < 0


@pytest.mark.parametrize(
    ("computed", "answers"),
    [
        ([0.0, 3.0, 3.5], True),
        ([0.0, 3.0, 3.01], False),
        ([None, 3.0, 6.0], False),
        ([0.0, None, 3.0], False),
    ],
)
def test_only_a_process_that_does_not_compute_is_ended_by_the_clock(
    computed: list[float | None], answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter(computed)
    monkeypatch.setattr(processes, "cpu_seconds", lambda process: next(told))
    trial: Any = TrialProcess("1")
    trial._process = SimpleNamespace(pid=1)
    assert trial._answers(FakeConnection(2), 1.0) is answers


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell")
def test_what_a_process_has_computed_is_known_while_it_lives() -> None:
    assert cpu_seconds(os.getpid()) == pytest.approx(time.process_time(), abs=0.5)
    assert cpu_seconds(2**31 - 1) is None
