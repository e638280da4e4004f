"""Parts of the service on their own: events, metrics, recordings, plans, problems and doors."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from golden_log import require_golden
from live_bench import LiveBench

from argosy.api.values import (
    DisplacedTask,
    FleetEvent,
    JobEvent,
    MachineEvent,
    TaskCounts,
    TaskEvent,
)
from argosy.model.errors import ArgosyError, CommandError, EngineFault, ModelError
from argosy.model.explanations import Refusal, Why
from argosy.model.resources import Resources
from argosy.model.truth import GroupTruth, group_with_truth, simulated_job
from argosy.service import event_log, problems
from argosy.service.dates import Calendar
from argosy.service.doors import Door, FullHouse
from argosy.service.event_log import EventLog, Position
from argosy.service.live import Unavailable
from argosy.service.metrics import Metrics
from argosy.service.planning import _displaced, _running
from argosy.service.recording import _ended, _truth
from argosy.service.routes import TableSchema, Text
from argosy.service.submissions import digest_of, scaled
from argosy.testing.builders import job, shared_job
from argosy.worlds.local.changes import JobNote, LifeNote, MachineNote, TaskNote, encode_changes
from argosy.worlds.local.store import StoreError

#: 2001-09-09 at 01:46:40.
ORIGIN = 1_000_000_000 * 10**6


def test_routes_are_pinned_with_what_they_take_and_for_whom(
    live: LiveBench, request: pytest.FixtureRequest
) -> None:
    def named(kind: Any) -> str:
        match kind:
            case None:
                return "-"
            case Text():
                return kind.media_type
            case TableSchema():
                return kind.name
        return str(kind.__name__)

    lines = []
    for route in live.server.routes:
        body = named(route.body) + ("?" if route.body_is_optional else "")
        lines.append(
            f"{route.method} {route.path} ({route.scope}): {body} -> {named(route.result)}"
        )
        lines.append(f"    {int(route.status)} {' '.join(map(str, route.problems))}".rstrip())
        if route.query is not None:
            names = " ".join(route.query.__struct_encode_fields__)
            lines.append(f"    query {route.query.__name__}: {names}")
        for what, names in (("takes", route.headers), ("gives", route.answers_with)):
            if names:
                lines.append(f"    {what} {', '.join(names)}")
    update = request.config.getoption("--update-golden")
    text = "\n".join(lines) + "\n"
    require_golden("routes", text, update=update, folder=Path(__file__).parent)


class Turns:
    """A database of turns: each has its changes."""

    origin = ORIGIN

    def __init__(self, *turns: tuple[int, list[Any]]) -> None:
        self.turns = dict(turns)
        self.reads: list[tuple[Any, ...]] = []

    def meta(self, key: str) -> str | None:
        """No turn was forgotten."""
        return None

    def rows(self, question: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        if "max(turn)" in question:
            return [(max(self.turns, default=None),)]
        self.reads.append(values)
        first = values[0] + ("turn > ?" in question)
        limit = values[1] if len(values) > 1 else None
        kept = sorted(turn for turn in self.turns if turn >= first)[:limit]
        return [(turn, encode_changes(self.turns[turn])) for turn in kept]


def task(at: int, name: str, state: str, index: int = 0) -> TaskNote:
    return TaskNote(at, name, index, state, "m", 3, "why")


def seen(log: EventLog, text: str, wanted: str | None = None) -> list[tuple[str, str]]:
    """Places and names of what follows; `|` is the end of a turn."""
    return [
        (str(place), "|" if event is None else f"{event.at[17:19]}{getattr(event, 'job', '')}")
        for place, event in log.after(log.position(text), wanted)
    ]


class TestEvents:
    def test_every_change_becomes_an_event(self) -> None:
        notes = [
            task(1, "a", "failed", 2),
            JobNote(2, "a", "running", 7, (1, 2, 3, 4, 5, 6, 7)),
            MachineNote(3, "m", "draining"),
            LifeNote(4, 9),
        ]
        log = EventLog(Turns((5, notes)))  # type: ignore[arg-type]
        found = list(log.after(Position.parse("0"), None))
        assert [place for place, _ in found] == [*((5, n) for n in range(4)), Position.parse("5")]
        date = "2001-09-09T01:46:40.00000{}Z".format
        counts = dict(zip(TaskCounts.__struct_fields__, (0,) * 7, strict=True))
        event = found[1][1]
        assert isinstance(event, JobEvent)
        assert sorted(getattr(event.tasks, name) for name in counts) == [1, 2, 3, 4, 5, 6, 7]
        assert (event.at, event.job, event.state, event.version) == (date(2), "a", "running", 7)
        assert (event.tasks.pending, event.tasks.queued, event.tasks.running) == (1, 2, 3)
        assert [found[at][1] for at in (0, 2, 3)] == [
            TaskEvent(
                at=date(1), job="a", index=2, state="failed", machine="m", exit_status=3, reason="why"
            ),
            MachineEvent(at=date(3), machine="m", change="draining"),
            FleetEvent(at=date(4), version=9),
        ]  # fmt: skip

    def test_what_follows_begins_after_the_place_and_may_be_of_one_job(self) -> None:
        second = 10**6
        turns = [
            (3, [task(0, "a", "running"), task(second, "b", "running"), LifeNote(2 * second, 1)]),
            (4, []),
            (6, [task(3 * second, "a", "finished")]),
        ]
        log = EventLog(Turns(*turns))  # type: ignore[arg-type]
        whole = [("3.0", "40a"), ("3.1", "41b"), ("3.2", "42"), ("3", "|"), ("4", "|")]
        whole += [("6.0", "43a"), ("6", "|")]
        assert seen(log, "0") == whole
        assert seen(log, "3.1") == whole[2:]
        assert seen(log, "3") == whole[3:]
        assert seen(log, "now") == whole[-1:]
        assert seen(log, "3.0", "b") == [whole[1], *whole[3:5], whole[-1]]

    def test_new_turns_are_read_once_and_the_last_are_kept(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(event_log, "_RECENT", 5)
        store = Turns((1, []))
        log = EventLog(store)  # type: ignore[arg-type]
        log.turn_ended()
        assert log.now == Position.parse("1")
        for turn in (2, 3, 4):
            store.turns[turn] = [task(0, "a", "running")]
            log.turn_ended()
        assert store.reads == [(1,), (1,), (2,), (3,)]
        # Three turns with a change each count for two each.
        assert [turn for turn, _ in log._recent] == [3, 4]
        assert log.now == Position.parse("4")
        assert len(list(log.changes_after(Position.parse("3")))) == 1
        assert len(list(log.changes_after(Position.parse("2")))) == 2
        store.reads.clear()
        assert [place for place, _ in seen(log, "3.0")] == ["3", "4.0", "4"]
        assert store.reads == []
        assert [place for place, _ in seen(log, "2")] == ["2", "3.0", "3", "4.0", "4"]
        assert store.reads == [(2, 100)]
        store.turns[9] = [task(0, "a", "running")] * 50
        log.turn_ended()
        assert [turn for turn, _ in log._recent] == [9]

    def test_a_watcher_waits_for_the_next_turn(self) -> None:
        async def watch() -> list[bool]:
            store = Turns((1, []))
            log = EventLog(store)  # type: ignore[arg-type]
            await asyncio.wait_for(log.wait(Position.parse("0")), 5)
            waits = asyncio.ensure_future(log.wait(log.now))
            await asyncio.sleep(0)
            found = [waits.done()]
            log.turn_ended()
            await asyncio.sleep(0)
            found.append(waits.done())
            store.turns[2] = []
            log.turn_ended()
            await asyncio.wait_for(waits, 5)
            return found

        assert asyncio.run(watch()) == [False, False]


class TestMetrics:
    def test_turns_are_counted_by_what_became_of_tasks(self) -> None:
        second = 10**6
        row = SimpleNamespace(submitted=second, counts={"pending": 2, "queued": 3, "running": 4})
        changes = [
            task(3 * second, "a", "running"),
            task(3 * second, "gone", "running"),
            task(0, "a", "queued"),
            task(0, "a", "abandoned"),
            task(0, "a", "finished"),
            task(0, "a", "pending"),
            LifeNote(0, 1),
        ]
        events = SimpleNamespace(
            now=0, changes_after=lambda position: changes if position == 0 else []
        )
        scheduler = SimpleNamespace(
            name="s",
            entry=SimpleNamespace(engine="omega"),
            busy_time=lambda now: now // 4,
            figures=lambda: {"rounds": 2.5},
        )
        view = SimpleNamespace(used_total=lambda: {"cpu": 5}, capacity_total=lambda: {"cpu": 8})
        host = SimpleNamespace(schedulers=[scheduler], view=view, setup=SimpleNamespace(began=4))
        world = SimpleNamespace(now=12, host=host, projection=SimpleNamespace(by_id={"a": row}))
        counts = SimpleNamespace(
            samples=1, drawn=2, eligible=3, sampling_time=4 * 10**9, released=5, expired=6,
            commits=7, conflicts=8, repeated=9,
        )  # fmt: skip
        agent: Any = SimpleNamespace(counts=counts, open_reservations=10)
        cluster: Any = SimpleNamespace(world=world)
        metrics = Metrics(cluster, events, agent)  # type: ignore[arg-type]
        metrics.turn_ended(0.5)
        events.now = 1
        metrics.turn_ended(0.25)
        metrics.turn_ended(0.25)
        metrics.request_ended("GET", 200, 0.001)
        metrics.request_ended("GET", 200, 0.002)
        metrics.request_ended("DELETE", 404, 0.003)
        lines = [line for line in metrics.text().decode().splitlines() if not line.startswith("#")]
        values = dict(line.rsplit(" ", 1) for line in lines if "_bucket" not in line)
        assert len([line for line in lines if "build_info" in line]) == 1
        counted = {name.removeprefix("argosy_"): value for name, value in values.items()}
        del counted[next(name for name in counted if name.startswith("build"))]
        assert counted == {
            'scheduler_pending_tasks{queue="active"}': "2",
            'scheduler_pending_tasks{queue="machines"}': "3",
            "scheduler_running_tasks": "4",
            'scheduler_schedule_attempts_total{result="scheduled"}': "6",
            'scheduler_schedule_attempts_total{result="unschedulable"}': "2",
            'scheduler_task_ends_total{state="finished"}': "2",
            'scheduler_task_ends_total{state="failed"}': "0",
            'scheduler_task_ends_total{state="cancelled"}': "0",
            'scheduler_task_ends_total{state="abandoned"}': "2",
            "scheduler_jobs_open": "1",
            'scheduler_busyness_ratio{scheduler="s",engine="omega"}': "0.375",
            'scheduler_figure{scheduler="s",figure="rounds"}': "2.5",
            'cluster_used{resource="cpu"}': "5",
            'cluster_capacity{resource="cpu"}': "8",
            "scheduler_task_scheduling_sli_duration_seconds_sum": "4.000000",
            "scheduler_task_scheduling_sli_duration_seconds_count": "2",
            "turn_duration_seconds_sum": "1.000000",
            "turn_duration_seconds_count": "3",
            "agent_samples_total": "1",
            "agent_machines_drawn_total": "2",
            "agent_machines_eligible_total": "3",
            "agent_sampling_seconds_total": "4",
            "agent_releases_total": "5",
            "agent_reservations_expired_total": "6",
            'agent_commits_total{result="success"}': "7",
            'agent_commits_total{result="conflict"}': "8",
            'agent_commits_total{result="repeated"}': "9",
            "agent_reservations": "10",
            'http_requests_total{method="DELETE",code="404"}': "1",
            'http_requests_total{method="GET",code="200"}': "2",
            "http_request_duration_seconds_sum": "0.006000",
            "http_request_duration_seconds_count": "3",
        }  # fmt: skip
        alone = Metrics(cluster, events, None).text().decode()  # type: ignore[arg-type]
        assert "agent_" not in alone


class TestRecording:
    def truth(self, made: Any, *tries: tuple[int, int, int | None], is_over: bool = True) -> Any:
        store: Any = SimpleNamespace(rows=lambda question, values: list(tries))
        return _truth(store, 1, made, 100, is_over=is_over)

    def test_a_task_counts_with_its_last_try(self) -> None:
        made = job("a", 3, seconds=20 / 10**6).job
        tries = [(0, 0, 5), (1, 3, 9), (0, 10, 17), (2, 90, None)]
        # The third runs for 10 so far, and is estimated to need 20.
        assert self.truth(made, *tries) == (GroupTruth((7, 6, 20)),)
        assert self.truth(made, (0, 0, 5), (1, 2, 7), (2, 60, None)) == (GroupTruth((5, 5, 40)),)
        assert self.truth(made, (0, 0, 5), (1, 2, 7), (2, 4, 9)) == (GroupTruth((5,)),)
        assert self.truth(made, (0, 7, 5)) == (GroupTruth((0, 20, 20)),)

    def test_a_service_counts_from_its_first_start_to_its_last_end_if_it_was_stopped(self) -> None:
        made = job("a", 2, seconds=None).job
        tries = [(0, 10, 20), (0, 30, 70), (1, 5, 6)]
        assert self.truth(made, *tries) == (GroupTruth((60, 1)),)
        assert self.truth(made, *tries, is_over=False) == (GroupTruth(),)
        assert [group.endless for group in _ended(made).groups] == [False]

    def test_groups_are_apart(self) -> None:
        room = Resources(1, 1)
        made = simulated_job(
            "a", group_with_truth(1, room, (9,)), group_with_truth(2, room, (9,))
        ).job
        assert self.truth(made, (0, 0, 1), (1, 0, 2), (2, 0, 3)) == (
            GroupTruth((1,)),
            GroupTruth((2, 3)),
        )


def test_a_plan_names_who_moves_and_who_is_preempted() -> None:
    def running(**machines: str) -> dict[str, str]:
        rows = [
            SimpleNamespace(
                job=SimpleNamespace(id=name),
                tasks={
                    0: SimpleNamespace(state="running", machine=machine),
                    1: SimpleNamespace(state="queued", machine="q"),
                },
            )
            for name, machine in machines.items()
        ]
        return _running(rows)  # type: ignore[arg-type]

    before = running(c="m1", a="m1", b="m2")
    assert before == {"a/0": "m1", "b/0": "m2", "c/0": "m1"}
    assert _displaced(before, running(a="m3", b="m2", d="m9")) == [
        DisplacedTask(task="a/0", machine="m1", outcome="moved", to="m3"),
        DisplacedTask(task="c/0", machine="m1", outcome="preempted", to=""),
    ]


class TestProblems:
    @pytest.mark.parametrize(
        ("error", "status", "code"),
        [
            (problems.RequestError("x"), 400, "request"),
            (problems.Unauthorised("x"), 401, "unauthorised"),
            (problems.Forbidden("x"), 403, "forbidden"),
            (problems.NotFound("x"), 404, "not-found"),
            (problems.WrongMethod("PUT", {"POST", "GET"}), 405, "method"),
            (problems.TooSlow("x"), 408, "too-slow"),
            (problems.Conflict("x"), 409, "conflict"),
            (problems.CommitConflict(Refusal(Why.NO_ROOM), "m"), 409, "commit-conflict"),
            (problems.VersionChanged("x"), 412, "version-changed"),
            (problems.TooLarge("x"), 413, "too-large"),
            (problems.WrongMediaType("x"), 415, "media-type"),
            (problems.TooMany("x"), 429, "too-many"),
            (problems.InternalError("x"), 500, "internal"),
            (problems.PlainHttpError(418, "x"), 418, "http"),
            (Unavailable("x"), 503, "unavailable"),
            (StoreError("x"), 503, StoreError.code),
            (EngineFault("x"), 503, EngineFault.code),
            (ModelError("x"), 422, ModelError.code),
            (CommandError("x"), 422, CommandError.code),
        ],
    )
    def test_every_error_has_its_status(self, error: ArgosyError, status: int, code: str) -> None:
        document = problems.problem_of(error)
        assert (document.status, document.code) == (status, code)
        assert document.type == f"urn:argosy:problem:{code}"

    def test_a_document_has_the_parts_of_its_error(self) -> None:
        error = problems.NotFound("no such thing", field="f", expected="another", hint="look")
        document = problems.problem_of(error)
        assert (document.title, document.detail) == ("Not Found", str(error))
        assert (document.field, document.expected, document.hint) == ("f", "another", "look")
        assert document.refused is None
        refusal = Refusal(Why.NO_ROOM, machine=4, dimension="cpu", lacking=7)
        refused = problems.problem_of(problems.CommitConflict(refusal, "m")).refused
        assert refused is not None
        assert (refused.why, refused.machine) == ("no_room", "m")
        assert (refused.resource, refused.lacking) == ("cpu", 7)
        wrong = problems.WrongMethod("PUT", {"POST", "GET"})
        assert str(wrong) == "PUT is not possible here; expected one of GET, POST"


def test_a_full_house_lets_people_in_as_soon_as_others_have_left() -> None:
    class House:
        connections: list[Any]

        def __call__(self) -> Any:
            return object()

    house = House()
    door = Door(house, 2)  # type: ignore[arg-type]
    first, second = door(), door()
    house.connections = [first, second]
    assert isinstance(door(), FullHouse)
    house.connections = [second]
    third = door()
    assert not isinstance(third, FullHouse)
    house.connections = [second, third]
    assert isinstance(door(), FullHouse)


def test_dates_are_counted_from_the_origin_of_the_cluster() -> None:
    calendar = Calendar(ORIGIN)
    assert calendar.date(0) == "2001-09-09T01:46:40.000000Z"
    assert calendar.date(3_600_000_001) == "2001-09-09T02:46:40.000001Z"
    assert (calendar.known_date(None), calendar.known_date(0)) == (None, calendar.date(0))


def test_the_last_group_of_a_job_grows_and_shrinks() -> None:
    room = Resources(1, 1)
    two = simulated_job("a", group_with_truth(2, room, (9,)), group_with_truth(3, room, (9,))).job
    assert [[group.count for group in scaled(two, tasks).groups] for tasks in (3, 9)] == [
        [2, 1],
        [2, 7],
    ]
    with pytest.raises(ModelError, match="more than the 2 of the groups before the last") as caught:
        scaled(two, 2)
    assert caught.value.field == "tasks"
    with pytest.raises(ModelError, match="0 tasks; expected 1"):
        scaled(job("b", 2).job, 0)
    assert scaled(job("b", 2).job, 1).tasks == 1
    with pytest.raises(ModelError) as caught:
        scaled(shared_job("c", 2, (4,), (1.0,)).job, 2**40)
    assert caught.value.field == "tasks"


def test_documents_are_the_same_whatever_the_order_of_their_keys() -> None:
    one, other = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert digest_of(one) == digest_of(other)
    assert digest_of(one) != digest_of({**one, "a": 2})
    assert len(digest_of(one)) == 32
