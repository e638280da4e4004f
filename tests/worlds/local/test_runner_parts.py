"""The runner of processes without processes: what it would start, and what it makes of what it hears."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.model.jobs import Execution, Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.worlds.local import runner as runners
from argosy.worlds.local.isolation import Isolation
from argosy.worlds.local.records import EndCause, StartFailure, TryEnd, TryOutcome
from argosy.worlds.local.reports import TryReport
from argosy.worlds.local.runner import LONGEST_START, ProcessRunner, _capture, _unlaunched
from argosy.worlds.local.spec import CaptureLimits, ProcessLimits, SupervisorError
from argosy.worlds.local.supervised import TryState, TryStatus
from argosy.worlds.local.turn import TryResult

Ends = list[tuple[int, TryResult | None]]


@pytest.fixture
def ends() -> Ends:
    return []


@pytest.fixture
def runner(tmp_path: Path, ends: Ends) -> Iterator[ProcessRunner]:
    made = ProcessRunner(
        tmp_path, lambda *end: ends.append(end), environment={"PATH": "/own", "A": "1"}
    )
    yield made
    made.close()


class KnownTry:
    """A supervised try that remembers what it was told."""

    def __init__(self, state: TryState = TryState.RUNNING, *, claimed: bool = False) -> None:
        self.state, self.claimed, self.told = state, claimed, list[str]()

    def status(self) -> TryStatus:
        if self.state is TryState.LOST and "damaged" in self.told:
            raise SupervisorError("damaged")
        return TryStatus(state=self.state)

    def stop(self) -> bool:
        self.told.append("stop")
        return True

    def kill(self) -> bool:
        self.told.append("kill")
        return True

    def withdraw(self) -> bool:
        self.told.append("withdraw")
        return not self.claimed

    def identity(self) -> str | None:
        return "somebody" if self.claimed else None

    def clear_leftovers(self) -> int:
        self.told.append("clear")
        return 0


def job(**how: Any) -> Job:
    plain = TaskGroup(2, Resources(10, 10), execution=Execution(("other",)))
    group = TaskGroup(3, Resources(2_500, 77), execution=Execution(("run", "it"), **how))
    return Job("j", (plain, group))


def spec(runner: ProcessRunner, made: Job) -> Any:
    machine = Machine("m4", Resources(1, 1))
    return runner._spec(12, made, made.group_at(3), 3, machine, "/d")


class TestSpecifications:
    def test_a_try_gets_what_its_group_says(self, runner: ProcessRunner) -> None:
        found = spec(
            runner,
            job(
                environment={"A": "2", "B": "3", "ARGOSY_JOB": "forged"},
                working_directory="/w",
                timeout=5,
                grace=6,
                stdin="text",
                output_limit=40,
            ),
        )
        assert (found.name, found.command) == ("12", ("run", "it"))
        assert found.environment == {
            "PATH": "/own",
            "A": "2",
            "B": "3",
            "ARGOSY_JOB": "j",
            "ARGOSY_TASK": "3",
            "ARGOSY_TASKS": "5",
            "ARGOSY_MACHINE": "m4",
            "ARGOSY_TRY": "12",
        }
        assert (found.directory, found.input) == ("/w", "/d/stdin")
        assert (found.timeout, found.grace) == (5, 6)
        assert found.capture == CaptureLimits(segment_bytes=10, segments=4)
        assert found.limits == ProcessLimits(memory_bytes=77)
        assert (found.cgroup, found.reports_start) == ("", False)
        assert found.reports == runner.reports.path

    def test_what_is_left_out_comes_from_the_server(
        self, runner: ProcessRunner, tmp_path: Path, ends: Ends
    ) -> None:
        found = spec(runner, job())
        assert (found.directory, found.input) == (os.getcwd(), "/dev/null")
        (tmp_path / "other").mkdir()
        plain = ProcessRunner(tmp_path / "other", lambda *end: ends.append(end))
        assert spec(plain, job()).environment["PATH"] == os.defpath
        plain.close()

    @pytest.mark.parametrize(
        ("execution", "said"),
        [
            (None, "the job has no command"),
            (Execution((), image="i"), "the job has no command"),
            (Execution(("x",), image="i"), "container images cannot be run here"),
        ],
    )
    def test_what_cannot_be_run_fails_once_somebody_listens(
        self, runner: ProcessRunner, ends: Ends, execution: Execution | None, said: str
    ) -> None:
        made = Job("j", (TaskGroup(1, Resources(1, 1), execution=execution),))
        runner.launch(3, made, 0, Machine("m", Resources(1, 1)))
        assert ends == []
        assert (runner.has_stillborn, runner.is_idle, runner.is_running(3)) == (True, False, False)
        runner.hear()
        assert ends == [(3, TryResult(126, f"cannot start: {said}; expected a command"))]
        assert (runner.has_stillborn, runner.is_idle) == (False, True)

    @pytest.mark.parametrize(
        ("cpu", "weight"), [(1, 1), (19, 1), (20, 2), (100_000, 10_000), (200_000, 10_000)]
    )
    def test_in_a_cgroup_processors_are_shared_as_requests_say(
        self, runner: ProcessRunner, monkeypatch: pytest.MonkeyPatch, cpu: int, weight: int
    ) -> None:
        monkeypatch.setattr(runner, "_cgroups", type("Parent", (), {"path": "/c"})())
        limits = runner._limits(Resources(cpu, 9))
        assert limits == ProcessLimits(memory_bytes=9, cpu_weight=weight)
        assert spec(runner, job()).cgroup == "/c/try-12"

    @pytest.mark.parametrize(("limit", "segment"), [(1, 1), (4, 1), (7, 1), (8, 2), (2**20, 2**18)])
    def test_an_output_has_four_segments(self, limit: int, segment: int) -> None:
        found = _capture(Execution(("x",), output_limit=limit))
        assert found == CaptureLimits(segment_bytes=segment, segments=4)

    def test_each_thousand_tries_have_a_directory(self, runner: ProcessRunner) -> None:
        base = runner._directory
        assert [runner.directory_of(number) for number in (1, 999, 1000, 1_234_567)] == [
            f"{base}/000/000001",
            f"{base}/000/000999",
            f"{base}/001/001000",
            f"{base}/1234/1234567",
        ]

    def test_a_parent_is_made_only_where_there_can_be_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made: list[str] = []
        monkeypatch.setattr(runners, "CgroupParent", made.append)
        for isolation in (None, Isolation(platform="linux")):
            assert runners._cgroup_parent(tmp_path, isolation) is None
        runners._cgroup_parent(tmp_path, Isolation(platform="linux", parent="/c"))
        runners._cgroup_parent(tmp_path / "x" / "..", Isolation(platform="linux", parent="/c"))
        runners._cgroup_parent(tmp_path / "x", Isolation(platform="linux", parent="/c"))
        assert made[0] == made[1] != made[2], "one for each directory"
        assert made[0].startswith("argosy-")
        assert len(made[0]) == len("argosy-") + 12


@pytest.mark.parametrize(
    ("number", "is_passing"),
    [
        *(
            (number, True)
            for number in ("ENOSPC", "EDQUOT", "EAGAIN", "ENOMEM", "EMFILE", "ENFILE")
        ),
        *((number, False) for number in ("EACCES", "ENOENT", "ENOTDIR")),
    ],
)
def test_what_the_system_may_have_again_is_no_failure(number: str, is_passing: bool) -> None:
    reason = OSError(getattr(errno, number), "lacks it")
    wrapped = SupervisorError("no supervisor")
    wrapped.__cause__ = reason
    for error, said in ((reason, "lacks it"), (wrapped, "no supervisor")):
        expected = None if is_passing else TryResult(126, f"cannot start: {said}")
        assert _unlaunched(error) == expected


class TestHearing:
    def tell(self, runner: ProcessRunner, monkeypatch: Any, *reports: TryReport) -> None:
        monkeypatch.setattr(runner.reports, "pending", lambda: list(reports))
        runner.hear()

    def test_a_report_of_an_end_is_looked_up(
        self, runner: ProcessRunner, ends: Ends, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        known = {1: KnownTry(), 2: KnownTry(TryState.LOST), 3: KnownTry(TryState.WITHDRAWN)}
        runner._tries.update(known)  # type: ignore[arg-type]
        self.tell(
            runner,
            monkeypatch,
            TryReport("1", TryState.ENDED, 0),
            TryReport("strange", TryState.ENDED, 0),
            TryReport("9", TryState.ENDED, 0),
            TryReport("2", TryState.RUNNING, 0),
        )
        assert ends == [], "one runs, and of the others nothing ended"
        self.tell(
            runner,
            monkeypatch,
            TryReport("2", TryState.ENDED, 0),
            TryReport("3", TryState.ENDED, 0),
            TryReport("2", TryState.ENDED, 0),
        )
        assert ends == [(2, None), (3, None)]
        assert (known[2].told, known[3].told) == (["clear"], [])
        assert [number for number in known if runner.is_running(number)] == [1]

    def test_a_try_that_was_withdrawn_says_why(
        self, runner: ProcessRunner, ends: Ends, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runner._tries.update({1: KnownTry(), 2: KnownTry()})  # type: ignore[dict-item]
        self.tell(
            runner,
            monkeypatch,
            TryReport("1", TryState.WITHDRAWN, errno.EACCES),
            TryReport("1", TryState.WITHDRAWN, errno.EACCES),
            TryReport("2", TryState.WITHDRAWN, errno.ENOSPC),
            TryReport("3", TryState.WITHDRAWN, errno.EACCES),
        )
        assert ends == [(1, TryResult(126, "cannot start: Permission denied")), (2, None)]
        assert runner.is_idle

    def test_a_try_that_nobody_claims_is_given_up_in_time(
        self, runner: ProcessRunner, ends: Ends, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = [100.0]
        monkeypatch.setattr(runners.time, "monotonic", lambda: clock[0])
        late, claimed, quick = KnownTry(), KnownTry(claimed=True), KnownTry()
        runner._tries.update({1: late, 2: claimed, 3: quick})  # type: ignore[dict-item]
        runner._unclaimed.update({1: 100.0, 2: 100.0, 3: 100.5, 4: 0.0})
        clock[0] += LONGEST_START
        runner.sweep()
        assert (ends, list(runner._unclaimed)) == ([], [1, 3])
        clock[0] += 0.25
        # It claims it at the last moment.
        monkeypatch.setattr(quick, "withdraw", lambda: False)
        runner.sweep()
        assert ends == [(1, TryResult(126, "its supervisor did not start"))]
        assert (late.told, list(runner._unclaimed)) == (["withdraw"], [3])
        clock[0] += 1
        runner.sweep()
        assert (len(ends), runner.is_running(3), runner._unclaimed) == (1, True, {})

    def test_a_sweep_tells_what_no_report_will_come_for(
        self, runner: ProcessRunner, ends: Ends
    ) -> None:
        runner.stop(7)
        ended = KnownTry(TryState.WITHDRAWN)
        runner._tries[8] = ended  # type: ignore[assignment]
        runner.sweep()
        assert ends == [(7, None), (8, None)]
        assert runner.is_idle
        assert not runner.has_stillborn


def ended(**changes: Any) -> TryStatus:
    usual: dict[str, Any] = {
        "outcome": TryOutcome.EXITED,
        "code": 0,
        "signal": 0,
        "cause": EndCause.NONE,
        "failure": StartFailure.NONE,
        "errno": 0,
        "out_of_memory": None,
        "started_at": 1,
        "ended_at": 2,
        "ran": 1,
        "user_cpu": 0,
        "system_cpu": 0,
        "max_rss": 0,
        "left_behind": 0,
        "streams": {},
    }
    return TryStatus(state=TryState.ENDED, end=TryEnd(**{**usual, **changes}))


class TestEnds:
    def test_a_try_that_has_ended_is_adopted_with_its_end(
        self, runner: ProcessRunner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = KnownTry()
        monkeypatch.setattr(found, "status", lambda: ended(code=3))
        monkeypatch.setattr(runner, "_find", lambda number: found)
        assert runner.adopt(5) == TryResult(3, "exited with code 3")
        assert not runner.is_running(5)
        assert found.told == []

    def test_nothing_is_known_of_a_try_without_files(self, runner: ProcessRunner) -> None:
        Path(runner.directory_of(5)).mkdir(parents=True)
        assert runner.adopt(5) is False
        assert (runner.is_running(5), runner.is_idle) == (False, True)

    def test_a_try_of_an_earlier_server_is_watched_once_it_was_told_to_stop(
        self, runner: ProcessRunner, ends: Ends, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = KnownTry()
        monkeypatch.setattr(runner, "_find", lambda number: found)
        runner.stop(5)
        assert (found.told, runner.is_running(5)) == (["stop"], True)
        monkeypatch.setattr(found, "status", lambda: ended(code=0, cause=EndCause.STOP))
        runner.sweep()
        result = TryResult(-15, "exited with code 0 after it was asked to stop", was_stopped=True)
        assert ends == [(5, result)]
        assert runner.is_idle

    def test_the_end_of_a_try_that_is_over_when_it_is_stopped_is_told_later(
        self, runner: ProcessRunner, ends: Ends, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = KnownTry()
        monkeypatch.setattr(found, "status", ended)
        runner._tries[5] = found  # type: ignore[assignment]
        runner.stop(5)
        assert (ends, runner.is_running(5), runner.has_stillborn) == ([], False, True)
        runner.hear()
        assert ends == [(5, TryResult(0))]

    @pytest.mark.parametrize(
        ("how", "result"),
        [
            ({}, TryResult(0)),
            ({"code": 1}, TryResult(1, "exited with code 1")),
            (
                {"outcome": TryOutcome.SIGNALLED, "signal": 9, "out_of_memory": True},
                TryResult(-9, "killed by signal 9, out of memory"),
            ),
            (
                {"outcome": TryOutcome.SIGNALLED, "signal": 9, "cause": EndCause.KILL},
                TryResult(-9, "killed by signal 9 because it was to be killed", was_stopped=True),
            ),
            (
                {"cause": EndCause.TIMEOUT},
                TryResult(-15, "exited with code 0 after its time was up"),
            ),
            (
                {"code": 4, "cause": EndCause.TIMEOUT},
                TryResult(4, "exited with code 4 after its time was up"),
            ),
            (
                {
                    "outcome": TryOutcome.NOT_STARTED,
                    "failure": StartFailure.NOT_FOUND,
                    "errno": errno.ENOENT,
                },
                TryResult(
                    127,
                    "could not start: the command was not found (No such file or directory)",
                ),
            ),
            (
                {"outcome": TryOutcome.NOT_STARTED, "failure": StartFailure.BAD_LIMITS},
                TryResult(126, "could not start: its limits cannot be set"),
            ),
            (
                {"outcome": TryOutcome.NOT_STARTED, "cause": EndCause.STOP},
                TryResult(126, "stopped before it started", was_stopped=True),
            ),
        ],
    )
    def test_how_a_try_ended_is_its_result(self, how: dict[str, Any], result: TryResult) -> None:
        assert runners._result(ended(**how)) == result


class TestStops:
    def test_what_is_over_or_unknown_ends_all_the_same(
        self, runner: ProcessRunner, ends: Ends
    ) -> None:
        known = {1: KnownTry(), 2: KnownTry(TryState.LOST)}
        runner._tries.update(known)  # type: ignore[arg-type]
        for number in (1, 2, 3):
            runner.stop(number)
        # What a lost one has left behind is stopped as well.
        assert (known[1].told, known[2].told) == (["stop"], ["stop", "clear"])
        assert ends == []
        runner.hear()
        assert ends == [(2, None), (3, None)]
        assert [number for number in (1, 2, 3) if runner.is_running(number)] == [1]

    def test_a_try_whose_records_are_damaged_is_killed_and_lost(
        self, runner: ProcessRunner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken = KnownTry(TryState.LOST)
        broken.told.append("damaged")
        monkeypatch.setattr(runner, "_find", lambda number: broken)
        assert runner.adopt(5) is False
        assert broken.told == ["damaged", "kill", "clear"]
        assert not runner.is_running(5)

    @pytest.mark.parametrize(
        ("state", "is_adopted"),
        [(TryState.RUNNING, True), (TryState.LOST, False), (TryState.WITHDRAWN, False)],
    )
    def test_only_what_runs_is_adopted(
        self,
        runner: ProcessRunner,
        monkeypatch: pytest.MonkeyPatch,
        state: TryState,
        is_adopted: bool,
    ) -> None:
        found = KnownTry(state)
        monkeypatch.setattr(runner, "_find", lambda number: found)
        assert runner.adopt(5) is is_adopted
        assert runner.is_running(5) is is_adopted
        assert found.told == ([] if is_adopted else ["clear"])

    def test_tries_after_a_number_are_stopped_and_the_last_is_told(
        self, runner: ProcessRunner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for path in ("000/000007", "001/001999", "002/002000", "002/002001", "003/003005"):
            (runner._directory / path).mkdir(parents=True)
        (runner._directory / "003" / "notes").mkdir()
        (runner._directory / "strange").mkdir()
        stopped: list[int] = []
        monkeypatch.setattr(runner, "stop", stopped.append)
        assert runner.discard_after(2000) == 3005
        assert sorted(stopped) == [2001, 3005]
        stopped.clear()
        assert runner.discard_after(5000) == 5000
        assert stopped == []
