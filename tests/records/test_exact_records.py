"""Small parts of records, case by case: what a replay hands to the host, who holds what at one moment,
and how choices are worded."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, call

import msgspec
import numpy as np
import pytest

import argosy
from argosy.engines.registry import ENGINES
from argosy.experiments.execute import execute
from argosy.host import records
from argosy.host.journal import Journal
from argosy.host.remote_desks import RemoteCommit, RemoteSample
from argosy.host.reports import REPORT_EVENTS
from argosy.model.errors import RunDirectoryError
from argosy.model.explanations import (
    FEWEST_VICTIMS,
    SAME_JOB,
    SHORTEST_WAIT,
    WHOLE_SHARE,
    Explanation,
    Why,
)
from argosy.model.jobs import task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import (
    CellSpec,
    MachineCrash,
    MachineDrain,
    MachineResize,
    Output,
    Scenario,
    SchedulerCrash,
)
from argosy.model.transactions import (
    AddMachine,
    DrainMachine,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)
from argosy.model.truth import group_with_truth, simulated_job
from argosy.records import directory, replay
from argosy.records.choices import choice_text, decision_text, probes_text, taken_text
from argosy.records.holdings import GroupRequests
from argosy.records.journal_file import JournalFile
from argosy.records.observed import PATIENCE, _Observer, observed_scenario
from argosy.records.occupancy import Occupancy, _machines
from argosy.records.replay import Replay
from argosy.records.state import RunState
from argosy.records.task_history import TaskHistory
from argosy.testing import conformance
from argosy.testing.builders import SECOND, job, scenario
from argosy.worlds.sim import SimulatedWorld


def recorded(spec: Scenario) -> tuple[JournalFile, int]:
    stream = io.BytesIO()
    journal = Journal(stream)
    world = SimulatedWorld(spec, ENGINES, journal)
    world.run()
    journal.flush()
    return JournalFile(stream.getvalue()), world.host.runtime.now


def state_of(spec: Scenario) -> RunState:
    journal, until = recorded(spec)
    return RunState.of(journal, until=until)


SUBMITTED = job("a", 3).job
DRAIN = DrainMachine(2, True)
ARRAYS = (task_number(4, 1), task_number(4, 2))
#: An input of a journal, and what the host is told.
INPUTS: list[tuple[records.InputRecord, Any]] = [
    (records.SubmittedRecord(7, 1, SUBMITTED, "s"), call.submit(SUBMITTED)),
    (
        records.SubmittedRecord(7, 1, SUBMITTED, "s", 5, "by", "plug-in"),
        call.place(SUBMITTED, 5, "by", "plug-in"),
    ),
    (records.MachineRecord(7, DRAIN), call.membership.change(DRAIN)),
    (
        records.MarkedRecord(7, "zone", "rack", ["r1"], False),
        call.membership.mark("zone", "rack", ["r1"], is_given=False),
    ),
    (
        records.MarkedRecord(7, "zone", "rack", ["r1"]),
        call.membership.mark("zone", "rack", ["r1"], is_given=True),
    ),
    (
        records.ObservedRecord(7, "cpu", [1, 2], [30, 40]),
        call.membership.observe("cpu", [1, 2], [30, 40]),
    ),
    (records.FailedRecord(7, 11, 2, 9, "killed"), call.fail_task(11, 2, 9, "killed")),
    (records.ScaledRecord(7, 4, SUBMITTED), call.scale(4, SUBMITTED)),
    (
        records.SampleAnswerRecord(7, "s", 3, [1], [[2]], [[4]], 5, {"cpu": 6}, False),
        call.sampled("s", 3, RemoteSample([1], [[2]], [[4]], 5, {"cpu": 6}, False)),
    ),
    (
        records.CommitAnswerRecord(7, "s", 3, 8, None, False),
        call.committed("s", 3, RemoteCommit(8, None, False)),
    ),
]


class TestInputs:
    @pytest.fixture
    def replayed(self) -> Any:
        """A replay whose host only notes what it is told."""
        journal, _ = recorded(scenario("omega", [job("a", 1)]))
        made: Any = Replay(journal, ENGINES)
        made.host, made._runtime, made._journal = MagicMock(), MagicMock(), MagicMock()
        return made

    def take(self, replayed: Any, record: records.InputRecord) -> None:
        written = Journal(stream := io.BytesIO())
        written.write(record)
        written.flush()
        replayed._take(stream.getvalue(), 0)
        replayed._runtime.advance.assert_called_once_with(7)

    @pytest.mark.parametrize(("record", "told"), INPUTS, ids=lambda each: type(each).__name__)
    def test_an_input_is_handed_to_the_host(
        self, record: records.InputRecord, told: Any, replayed: Any
    ) -> None:
        self.take(replayed, record)
        assert replayed.host.mock_calls == [told]

    def test_a_phase_ends_in_the_core(self, replayed: Any) -> None:
        self.take(replayed, records.PhaseEndedRecord(7, 1, 2, 3))
        assert replayed._runtime.mock_calls == [call.advance(7), call.end_phase(1, 2, 3)]

    @pytest.mark.parametrize("kind", REPORT_EVENTS)
    def test_a_report_is_written_and_carried_out(self, kind: Any, replayed: Any) -> None:
        record = records.ReportRecord(7, kind)
        self.take(replayed, record)
        assert replayed._journal.mock_calls == [call.write(record)]
        assert replayed.host.mock_calls == [call.carry_out((REPORT_EVENTS[kind], 7, 0, 0))]

    @pytest.mark.parametrize("what", ["confirm", "forget"])
    def test_answers_are_about_current_incarnations(self, what: str, replayed: Any) -> None:
        replayed._runtime.incarnation.side_effect = lambda task: task + 1
        confirmed = what == "confirm"
        record: records.InputRecord = (
            records.ConfirmedRecord(7, [3, 5])
            if confirmed
            else records.ForgottenRecord(7, [3, 5], "no_room")
        )
        self.take(replayed, record)
        ((name, args, _),) = replayed.host.mock_calls
        assert name == what
        assert [part.tolist() for part in args[:2]] == [[3, 5], [4, 6]]
        assert args[2:] == (() if confirmed else (Why.NO_ROOM,))

    def test_tasks_are_cancelled_by_number(self, replayed: Any) -> None:
        self.take(replayed, records.CancelledRecord(7, 4, [1, 2]))
        ((name, (number, tasks), _),) = replayed.host.mock_calls
        assert (name, number, tuple(tasks.tolist())) == ("cancel", 4, ARRAYS)

    @pytest.mark.parametrize(
        ("record", "what"),
        [
            (records.CrashedRecord(7, "s-1"), "crash"),
            (records.RestartedRecord(7, "s-1"), "restart"),
        ],
    )
    def test_schedulers_crash_and_restart_by_name(
        self, record: records.InputRecord, what: str, replayed: Any
    ) -> None:
        self.take(replayed, record)
        named = replayed.host.named.return_value
        assert replayed.host.mock_calls == [call.named("s-1"), getattr(call, what)(named)]

    def test_measured_times_are_in_order_by_scheduler(self) -> None:
        journal = Journal(stream := io.BytesIO())
        for name, duration in (("a", 3), ("b", 4), ("a", 5)):
            journal.write(records.MeasuredRecord(7, name, duration))
        journal.flush()
        times = replay._measured(stream.getvalue())
        assert {name: list(found) for name, found in times.items()} == {"a": [3, 5], "b": [4]}


@pytest.mark.parametrize(
    ("length", "around", "expected"),
    [
        (400, 0, "x" * 400),
        (401, 0, "x" * 200 + "..."),
        (401, 200, "x" * 400 + "..."),
        (401, 201, "x" * 100 + "..." + "x" * 300),
        (1000, 500, "x" * 100 + "..." + "x" * 300 + "..."),
    ],
)
def test_long_lines_are_shortened_around_the_difference(
    length: int, around: int, expected: str
) -> None:
    assert replay._shortened("x" * length, around) == expected


class TestOccupancy:
    def test_a_claim_is_held_from_its_beginning_to_just_before_its_end(self) -> None:
        fault = MachineCrash(at=2 * SECOND, machine="m3", down=6 * SECOND)
        state = state_of(scenario("omega", conformance.workload(30), faults=(fault,)))
        claims = state.claims
        assert (claims.end < state.until).any()
        requests = GroupRequests(state.steps.jobs, state.steps.dimensions)
        rows = list(
            zip(*(each.tolist() for each in (claims.begin, claims.end, claims.tasks)), strict=True)
        )
        for at in sorted(
            {at for begin, end, _ in rows[:9] for at in (begin - 1, begin, end - 1, end)}
        ):
            held = [t for begin, end, t in rows if begin <= at and (at < end or end >= state.until)]
            assert sorted(Occupancy(state, at).tasks.tolist()) == sorted(held)
        middle = Occupancy(state, int(claims.begin[5]))
        free = middle.capacity.copy()
        for task, machine in zip(middle.tasks, middle.where, strict=True):
            free[machine] -= requests.of(np.array([task]))[0]
        free[~middle.takes_claims] = 0
        assert middle.free.tolist() == free.tolist()

    def test_machines_are_as_they_were_at_that_time(self) -> None:
        machines = [Machine(f"m{n}", Resources(1_000, 10), {"a": "b"}) for n in range(5)]
        joined = Machine("new", Resources(3_000, 30))
        changes = [
            (10, AddMachine(joined)),
            (20, RemoveMachine(0)),
            (20, DrainMachine(1, True)),
            (20, ResizeMachine(2, Resources(2_000, 20))),
            (20, RelabelMachine(3, {"c": "d"}, {"rack": ("r",)})),
            (30, ReviveMachine(0)),
            (30, DrainMachine(1, False)),
            (40, DrainMachine(4, True)),
            (50, RemoveMachine(4)),
            (60, ReviveMachine(4)),
        ]
        state: Any = SimpleNamespace(
            setup=SimpleNamespace(cell=SimpleNamespace(machines=tuple(machines))),
            steps=SimpleNamespace(machine_changes=changes),
        )

        def takes(at: int) -> str:
            return "".join("ny"[each] for each in _machines(state, at)[1].tolist())

        assert {at: takes(at) for at in (9, 10, 19, 20, 29, 30, 39, 40, 50, 59, 60)} == {
            9: "yyyyyn", 10: "yyyyyy", 19: "yyyyyy", 20: "nnyyyy", 29: "nnyyyy", 30: "yyyyyy",
            39: "yyyyyy", 40: "yyyyny", 50: "yyyyny", 59: "yyyyny", 60: "yyyyyy",
        }  # fmt: skip
        assert _machines(state, 19)[0] == [*machines, joined]
        later = _machines(state, 20)[0]
        assert later[2] == Machine("m2", Resources(2_000, 20), {"a": "b"})
        assert later[3] == Machine("m3", Resources(1_000, 10), {"c": "d"}, {"rack": ("r",)})


class TestChoices:
    @pytest.mark.parametrize(
        ("explanation", "text"),
        [
            (Explanation(), "s placed it there"),
            (
                Explanation(rule="random machine"),
                "no machine reserved for such tasks could take it, so it was drawn at random",
            ),
            (Explanation(rule="odd"), "decided by odd"),
            (Explanation(rule="odd", feasible=2, looked_at=3), "odd, 2 of 3 machines could take it"),
            (
                Explanation(rule="best fit", measure="room", feasible=2, looked_at=9),
                "of 2 machines with room, it keeps least free (cpu and memory)",
            ),
            (
                Explanation(rule="worst fit", feasible=2, looked_at=9),
                "of 2 machines with room, it keeps most free",
            ),
            (
                Explanation(rule="best fit", measure="room", feasible=1, looked_at=9),
                "it was the only one of 9 machines with room",
            ),
            (
                Explanation(rule="highest score", measure="points", feasible=1, looked_at=9),
                "it was the only machine in the sample that could take it",
            ),
            (
                Explanation(rule="highest score", measure="points", feasible=4, looked_at=9),
                "of 4 machines that could take it, it has the highest score",
            ),
            (
                Explanation(rule=FEWEST_VICTIMS, measure="victims", feasible=1, looked_at=9),
                "it was the only one of 9 machines with room if tasks make way",
            ),
            (
                Explanation(rule=SHORTEST_WAIT, measure="wait", feasible=3, looked_at=3),
                "of 3 machines that could take it, it has the shortest expected wait",
            ),
        ],
    )  # fmt: skip
    def test_the_rule(self, explanation: Explanation, text: str) -> None:
        assert choice_text(explanation, ("cpu", "memory"), "s") == text

    @pytest.mark.parametrize(
        ("told", "second", "first", "text"),
        [
            ({"score": 5}, "", "", "a score of 5"),
            ({"score": 5, "second_score": 4}, "", "", "a score of 5"),
            (
                {"score": 5, "second_score": 4},
                "m2",
                "",
                "a score of 5; m2 came second with a score of 4",
            ),
            ({"score": 5, "second_score": 5}, "m2", "", "a score of 5; m2 was as good"),
            ({"score": 5, "second_score": 5}, "m2", "j/0", ""),
            ({"score": 5, "second_score": 4}, "", "j/0", "for j/0, decided with it, a score of 5"),
            ({"score": 5, "second_score": 4, "feasible": 1}, "m2", "", ""),
            (
                {"score": 5, "second_score": 1_400, "measure": "cost", "feasible": 1},
                "",
                "",
                "a cost of 5; waiting would have been a cost of 1,400",
            ),
            (
                {"score": 0, "second_score": 2_000_000, "measure": "wait"},
                "m2",
                "",
                "none at all, against 2 s on m2",
            ),
            (
                {"score": WHOLE_SHARE, "second_score": WHOLE_SHARE // 2, "measure": "room"},
                "m2",
                "",
                "the free shares add up to 1.00, against 0.50 on m2",
            ),
            (
                {"score": 2 * SAME_JOB + 7, "second_score": SAME_JOB + 9, "measure": "tasks"},
                "m2",
                "",
                "2 tasks of its job and 7 in all; m2 came second with 1 task of its job and 9 in all",
            ),
            ({"score": 1, "second_score": 2, "measure": "victims"}, "m2", "",
             "1 task; m2 came second with 2 tasks"),
            (
                {
                    "score": 9, "second_score": 8, "measure": "points",
                    "points": {"room": 4, "spread": 5}, "second_points": {"room": 8},
                },
                "m2",
                "",
                "9 points (room 4 and spread 5); m2 came second with 8 points (room 8)",
            ),
        ],
    )  # fmt: skip
    def test_the_comparison(self, told: dict[str, Any], second: str, first: str, text: str) -> None:
        explanation = Explanation(rule="cheapest flow", **told)
        rule = choice_text(explanation, (), "s")
        expected = f"{rule}: {text}" if text else rule
        assert decision_text(explanation, (), "s", "m1", second, first) == expected

    def test_a_second_choice_that_was_taken(self) -> None:
        explanation = Explanation(rule="cheapest flow", score=5, second_score=4)
        assert (
            decision_text(explanation, (), "s", "m1", "m1")
            == "its first choice was taken meanwhile, and this was the second"
        )
        assert (
            decision_text(explanation, (), "s", "m1", "m1", "j/0")
            == "the cheapest assignment of all tasks puts it there: "
            "for j/0, decided with it, a score of 5"
        )

    def test_probes_and_queues(self) -> None:
        told = "s sent 2 probes for tasks of its job, and "
        assert probes_text("s", ["m1", "m2"], "m2") == told + "the one there was ready first"
        assert (
            probes_text("s", ["m1", "m2"], "m3")
            == told + "m3 took one from another machine's queue"
        )
        assert taken_text("m1", "m1") == ""
        assert taken_text("m1", "m2") == ", which took it from the queue of m1"


@pytest.mark.parametrize(("seconds", "factor"), [(3, PATIENCE), (None, 1), (30, 1)])
def test_a_run_with_open_ends_gives_others_its_own_time(seconds: float | None, factor: int) -> None:
    state = state_of(scenario("omega", [job("a", 1, seconds=seconds)], horizon=20 * SECOND))
    assert observed_scenario(state).horizon == factor * state.until


def test_files_of_a_run_are_known_by_size_and_digest(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert directory._entry(tmp_path / "file") == directory.FileEntry(
        3, "cf4ab791c62b8d2b2109c90275287816"
    )


def test_a_run_gets_the_first_free_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(directory.default_directory("a b")) == "runs/a-b-1"
    for number in (1, 2, 4):
        (tmp_path / f"runs/x-{number}").mkdir(parents=True)
    assert str(directory.default_directory("x")) == "runs/x-3"
    assert str(directory.default_directory("x", "omega/2")) == "runs/x-omega-2-1"
    with pytest.raises(RunDirectoryError) as caught:
        directory.latest_directory()
    assert (caught.value.problem, caught.value.file) == ("no run found", "runs")


@pytest.mark.parametrize("files", [("decisions.jsonl",), ("decisions.jsonl", "journal.jsonl")])
def test_a_run_of_an_older_version_is_one_without_a_journal(
    files: tuple[str, ...], tmp_path: Path
) -> None:
    entries = {}
    for name in files:
        (tmp_path / name).write_text("")
        entries[name] = directory._entry(tmp_path / name)
    (tmp_path / directory.MANIFEST).write_bytes(msgspec.json.encode(entries))
    if directory.JOURNAL in files:
        assert directory.open_run(tmp_path).status == directory.RunStatus.FINISHED
        return
    with pytest.raises(RunDirectoryError) as caught:
        directory.open_run(tmp_path)
    assert caught.value.problem == "a run of an older version, with a decisions.jsonl"


@pytest.mark.parametrize(
    ("change", "problem", "expected"),
    [
        (None, "missing", None),
        (b"ab", "2 bytes long", "3 bytes"),
        (b"abd", "changed since the run was saved", None),
    ],
)
def test_a_file_that_was_changed_is_named(
    change: bytes | None, problem: str, expected: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_bytes(b"abc")
    manifest = msgspec.json.encode({file.name: directory._entry(file)})
    (tmp_path / directory.MANIFEST).write_bytes(manifest)
    file.unlink() if change is None else file.write_bytes(change)
    with pytest.raises(RunDirectoryError) as caught:
        directory.open_run(tmp_path)
    told = caught.value
    assert (told.problem, told.expected, told.file) == (problem, expected, str(file))


def test_only_an_empty_journal_may_just_have_started() -> None:
    for data, hint in (
        (b"", "a run that has just started may not have written its first line yet"),
        (b"other\n", None),
    ):
        with pytest.raises(RunDirectoryError) as caught:
            JournalFile(data).header()
        told = caught.value
        assert (told.problem, told.line, told.hint) == ("not a journal", 1, hint)


def test_faults_last_until_the_same_machine_or_scheduler_is_back() -> None:
    changes = [
        (10, RemoveMachine(0)), (11, RemoveMachine(1)), (12, DrainMachine(0, True)),
        (13, DrainMachine(1, True)), (14, DrainMachine(1, False)), (15, ReviveMachine(1)),
        (16, DrainMachine(0, False)), (17, ReviveMachine(0)), (18, RemoveMachine(1)),
        (19, ResizeMachine(1, Resources(1, 1))), (20, AddMachine(Machine("new", Resources(1, 1)))),
        (21, RemoveMachine(2)),
    ]  # fmt: skip
    crashes = [
        (30, "s", False), (31, "t", False), (32, "s", False), (33, "t", True), (34, "s", True),
        (35, "t", False),
    ]  # fmt: skip
    machines = tuple(Machine(f"m{n}", Resources(1, 1)) for n in range(2))
    state: Any = SimpleNamespace(
        setup=SimpleNamespace(cell=SimpleNamespace(machines=machines)),
        steps=SimpleNamespace(machine_changes=changes, scheduler_changes=crashes),
    )
    assert list(_Observer(state).faults()) == [
        MachineCrash(at=10, machine="m0", down=7),
        MachineCrash(at=11, machine="m1", down=4),
        MachineDrain(at=12, machine="m0", lasts=4),
        MachineDrain(at=13, machine="m1", lasts=1),
        MachineCrash(at=18, machine="m1", down=None),
        MachineResize(at=19, machine="m1", capacity=Resources(1, 1)),
        MachineCrash(at=0, machine="new", down=20),
        MachineCrash(at=21, machine="new", down=None),
        SchedulerCrash(at=30, scheduler="s", down=4),
        SchedulerCrash(at=31, scheduler="t", down=2),
        SchedulerCrash(at=32, scheduler="s", down=2),
        SchedulerCrash(at=35, scheduler="t", down=None),
    ]


def test_devices_are_held_as_long_as_their_tasks_run() -> None:
    shares = [
        job("half", 1, seconds=10, request=Resources(100, 1, extras={"gpu": 500})),
        job("whole", 1, seconds=4, request=Resources(100, 1, extras={"gpu": 2000}), submit=1),
    ]
    machine = Machine("m", Resources(8_000, 100, extras={"gpu": 3_000}))
    site = CellSpec(machines=(machine,), devices="gpu")
    state = state_of(scenario("omega", shares, cell=site, replicas=1))
    half, whole = (slice(at, at + 1) for at in (0, 1))
    begin, end = state.claims.begin, state.claims.end
    alone, both = int(begin[half][0]), int(begin[whole][0])
    over = int(end[whole][0])

    def free(at: int) -> tuple[int, int, int]:
        cell = Occupancy(state, at)
        here = np.array([0])
        slots = [cell.slots(here, np.array([0, 0, amount])) for amount in (500, 1_000)]
        return int(cell.free[0, 2]), slots[0], slots[1]

    assert state.steps.dimensions == ("cpu", "memory", "gpu")
    assert free(alone - 1) == (3_000, 6, 3)
    assert free(alone) == (2_000, 5, 2)
    assert free(both) == (500, 1, 0)
    assert free(over - 1) == (500, 1, 0)
    assert free(over) == (2_000, 5, 2)


@pytest.mark.parametrize(
    ("gang", "task", "cannot"),
    [(False, 0, True), (False, 1, False), (True, 0, True), (True, 1, True)],
)
def test_what_is_impossible_for_one_group_concerns_others_only_in_a_gang(
    gang: bool, task: int, cannot: bool
) -> None:
    sizes = (99_000, 3_000)
    groups = [group_with_truth(1, Resources(cpu, 1), (SECOND,)) for cpu in sizes]
    mixed = simulated_job("mixed", *groups, submit=SECOND, gang=gang)
    hogs = job("hog", 8, cpu=3_000, seconds=1_000)
    told = argosy.run(scenario("omega", [hogs, mixed], replicas=1, horizon=60 * SECOND))
    answer = told.why(f"mixed/{task}")
    assert answer.state in ("pending", "abandoned")
    assert answer.sentence.startswith(f"mixed/{task} cannot run: ") is cannot


@pytest.mark.parametrize("engine", ["omega", "sparrow", "yaq-d"])
def test_a_journal_of_decisions_tells_of_starts_and_ends_from_the_kept_times(
    engine: str, tmp_path: Path
) -> None:
    """The same story as from a whole journal."""
    stories = []
    for log in ("decisions", "replayable"):
        spec = scenario(engine, [job("a", 3, seconds=2)], replicas=1, output=Output(log=log))
        execute(spec, tmp_path / log)
        history = TaskHistory(directory.open_run(tmp_path / log), "a/2")
        kinds = (records.StartedRecord, records.EndedRecord)
        told = [x for x in history.facts if isinstance(x, kinds)]
        # A whole journal has when a start was decided, and how much later it took effect.
        stories.append([(type(x), x.at + getattr(x, "after", 0)) for x in told])
    assert stories[0] == stories[1]
    assert stories[0][-1][0] is records.EndedRecord
