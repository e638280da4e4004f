"""Jobs, tasks and journals read from a database that was filled by hand; and small parts of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from store_tables import STATES, Database

from argosy.model.errors import CommandError
from argosy.service import agent, reading, scheduling
from argosy.service.backend import check_version, etag, index_in, is_seen
from argosy.service.journals import Journals
from argosy.service.problems import NotFound, RequestError, VersionChanged
from argosy.service.reading import StoreReader
from argosy.service.recording import recorded_lines
from argosy.service.routes import check_key
from argosy.service.submissions import _check_addressable, _check_name
from argosy.workloads.tables import Misfit


@pytest.fixture
def database() -> Iterator[Database]:
    made = Database()
    yield made
    made.close()


@pytest.fixture
def reader(database: Database) -> StoreReader:
    database.add_job(1, "old", "finished", ended=9_000, finished=2)
    database.add_job(2, "wide", running=1, queued=1, pending=2, finished=1)
    database.add_job(3, "bad", "failed", ended=8_000, failed=2, finished=1)
    database.add_job(4, "gone", "cancelled", ended=7_000, cancelled=1)
    database.add_job(5, "new", pending=3)
    database.add_task(2, 0, "running", started=5)
    database.add_task(2, 1, "queued")
    database.add_task(2, 4, "finished", exit_status=0)
    database.add_task(3, 1, "failed", exit_status=7)
    database.add_task(3, 2, "failed", exit_status=-9, reason="killed")
    return StoreReader(database)  # type: ignore[arg-type]


def listed(reader: StoreReader, **query: Any) -> tuple[list[str], str | None]:
    usual: dict[str, Any] = dict.fromkeys(("state", "kind", "owner", "is_open", "after"))
    page = reader.jobs(**usual | {"limit": 10} | query)
    return [each.id for each in page.items], page.next


class TestJobs:
    @pytest.mark.parametrize(
        ("query", "names", "following"),
        [
            ({}, ["new", "gone", "bad", "wide", "old"], None),
            ({"limit": 5}, ["new", "gone", "bad", "wide", "old"], None),
            ({"limit": 2}, ["new", "gone"], "4"),
            ({"limit": 2, "after": "4"}, ["bad", "wide"], "2"),
            ({"after": "2"}, ["old"], None),
            ({"state": "failed"}, ["bad"], None),
            ({"kind": "k1"}, ["new", "bad", "old"], None),
            ({"owner": "o4"}, ["gone"], None),
            ({"is_open": True}, ["new", "wide"], None),
            ({"match": "d"}, ["bad", "wide", "old"], None),
            ({"match": "d", "limit": 1, "after": "3"}, ["wide"], "2"),
            ({"match": "the g"}, ["gone"], None),
            ({"match": "100%"}, [], None),
            # In the documents, but in no name.
            ({"match": "groups"}, [], None),
            ({"match": '"'}, [], None),
            ({"match": ""}, ["new", "gone", "bad", "wide", "old"], None),
            ({"is_open": False, "kind": "k1"}, ["bad", "old"], None),
        ],
    )
    def test_they_come_newest_first_and_page_by_page(
        self, reader: StoreReader, query: Any, names: list[str], following: str | None
    ) -> None:
        assert listed(reader, **query) == (names, following)

    def test_a_summary_has_every_column(self, reader: StoreReader) -> None:
        wide = reader.job("wide").summary
        assert (wide.id, wide.name, wide.kind, wide.owner) == ("wide", "the wide", "k0", "o2")
        assert (wide.precedence, wide.scheduler, wide.state, wide.version) == (
            20,
            "s2",
            "running",
            7,
        )
        assert wide.submitted == "1970-01-01T00:00:00.002000Z"
        assert (wide.ended, wide.exit_code) == (None, None)
        counts = [getattr(wide.tasks, state) for state in STATES]
        assert counts == [2, 1, 1, 1, 0, 0, 0]

    def test_the_exit_code_is_that_of_the_first_task_that_failed(self, reader: StoreReader) -> None:
        codes = {name: reader.job(name).summary.exit_code for name in ("old", "bad", "gone")}
        assert codes == {"old": 0, "bad": 7, "gone": 1}
        assert reader.job("bad").summary.ended == "1970-01-01T00:00:00.008000Z"
        found = [reading._exit_code(status) for status in (None, 0, 3, -9)]
        assert found == [1, 1, 3, 137]

    def test_details_have_the_document_and_notes(self, reader: StoreReader) -> None:
        found = reader.details("wide", "no limits", lambda made: (f"of {made.id}",))
        assert (found.isolation, found.notes) == ("no limits", ("of wide",))
        assert found.document["id"] == "wide"
        assert found.tasks.pending == 2

    def test_an_unknown_job_offers_one_like_it(self, reader: StoreReader) -> None:
        with pytest.raises(NotFound, match="unknown job 'wyde'") as caught:
            reader.job("wyde")
        assert "wide" in (caught.value.hint or "")
        with pytest.raises(NotFound) as caught:
            reader.job("zzzzzz")
        assert caught.value.hint == "`argosy jobs` lists them"


class TestTasks:
    def tasks(self, reader: StoreReader, **query: Any) -> tuple[list[tuple[int, str]], str | None]:
        page = reader.tasks("wide", **{"state": None, "limit": 10, "after": None} | query)
        return [(each.index, each.state) for each in page.items], page.next

    @pytest.mark.parametrize("stretch", [1, 2, 1_000])
    def test_tasks_that_were_never_anything_but_pending_have_no_row(
        self, reader: StoreReader, monkeypatch: pytest.MonkeyPatch, stretch: int
    ) -> None:
        monkeypatch.setattr(reading, "_STRETCH", stretch)
        whole = ["running", "queued", "pending", "pending", "finished"]
        rows = list(enumerate(whole))
        assert self.tasks(reader) == (rows, None)
        assert self.tasks(reader, limit=5) == (rows, None)
        assert self.tasks(reader, limit=2) == (rows[:2], "1")
        assert self.tasks(reader, limit=2, after="1") == (rows[2:4], "3")
        assert self.tasks(reader, state="pending") == (rows[2:4], None)
        assert self.tasks(reader, state="finished") == (rows[4:], None)
        assert self.tasks(reader, state="failed") == ([], None)

    def test_open_tasks_are_those_of_the_newest_jobs_first(self, reader: StoreReader) -> None:
        def found(**query: Any) -> tuple[list[str], str | None]:
            page = reader.open_tasks(**{"state": None, "limit": 10, "after": None} | query)
            return [f"{each.job}/{each.index}" for each in page.items], page.next

        new, wide = [f"new/{n}" for n in range(3)], [f"wide/{n}" for n in range(4)]
        assert found() == (new + wide, None)
        assert found(limit=7) == (new + wide, None)
        assert found(limit=3) == (new, "5.2")
        assert found(limit=4) == ([*new, wide[0]], "2.0")
        assert found(limit=2, after="5.1") == ([new[2], wide[0]], "2.0")
        assert found(after="2.0") == (wide[1:], None)
        assert found(state="pending", limit=4) == ([*new, wide[2]], "2.2")
        assert found(state="queued") == ([wide[1]], None)
        assert found(state="running", after="5.2") == ([wide[0]], None)
        assert found(state="running", after="2.0") == ([], None)
        assert found(machine="m") == (wide[:2], None)
        assert found(machine="m", limit=1) == (wide[:1], "2.0")
        assert found(machine="m", limit=1, after="2.0") == (wide[1:2], None)
        assert found(machine="m", state="queued") == (wide[1:2], None)
        assert found(machine="other") == ([], None)
        for wrong in ("x", "1", "1.x", "9" * 19 + ".0"):
            with pytest.raises(RequestError, match="what `next` of the page before said"):
                found(after=wrong)

    def test_a_task_has_its_tries(self, reader: StoreReader, database: Database) -> None:
        database.add_try(12, 3, 2, "n", 7_000, None, None, "")
        database.add_try(11, 3, 2, "m", 5_000, 6_000, -9, "failed")
        database.add_try(10, 3, 1, "m", 5_000, 6_000, 7, "failed")
        task = reader.task("bad", 2)
        assert (task.state, task.exit_status, task.reason) == ("failed", -9, "killed")
        assert [
            (each.number, each.machine, each.exit_status, each.outcome) for each in task.tries
        ] == [
            (11, "m", -9, "failed"),
            (12, "n", None, ""),
        ]
        assert task.tries[0].started == "1970-01-01T00:00:00.005000Z"
        assert task.tries[0].ended == "1970-01-01T00:00:00.006000Z"
        assert task.tries[1].ended is None
        assert reader.task("new", 2).state == "pending"
        with pytest.raises(NotFound, match="job new has no task 3; expected 0 to 2"):
            reader.task("new", 3)


class TestJournals:
    @pytest.fixture
    def journals(self, database: Database) -> Journals:
        for life, header in ((1, b"h1\n"), (2, b"h2\n")):
            database.rows("INSERT INTO lives VALUES (?, 0, ?)", [life, header])
        for turn, life in ((1, 1), (2, 1), (3, 2), (4, 2)):
            lines = f"t{turn}\n".encode()
            database.rows("INSERT INTO turns VALUES (?, ?, 0, ?, ?)", [turn, life, lines, b"[]"])
        for number, turn in ((7, 1), (8, 2), (0, 2), (7, 3), (8, 4)):
            database.rows("INSERT INTO job_turns VALUES (?, ?)", [number, turn])
        return Journals(database)  # type: ignore[arg-type]

    def test_a_life_is_its_header_and_its_turns(self, journals: Journals) -> None:
        found = {life: b"".join(journals.life(life)) for life in (1, 2, None)}
        assert found == {1: b"h1\nt1\nt2\n", 2: b"h2\nt3\nt4\n", None: b"h2\nt3\nt4\n"}
        with pytest.raises(NotFound, match="there is no life 3; expected 1 to 2"):
            journals.life(3)

    def test_of_a_job_only_its_turns_and_those_of_machines_are_read(
        self, journals: Journals
    ) -> None:
        found = [(each.name, bytes(each.data)) for each in journals._of_job(7)]
        assert found == [("life 1", b"h1\nt1\nt2\n"), ("life 2", b"h2\nt3\n")]
        assert [each.name for each in journals._of_job(9)] == []


def test_a_recording_has_every_job_from_the_first_submission_on(
    reader: StoreReader, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argosy.service.recording._BATCH", 2)
    monkeypatch.setattr("argosy.service.recording.cluster_tables", lambda *parts: {"cell": {}})
    database.add_try(1, 1, 0, "m", 100, 130, 0, "finished")
    world: Any = SimpleNamespace(
        now=9_000,
        present_machines=list,
        cluster=SimpleNamespace(name="c", seed=3, cell=None, fleet=()),
    )
    pieces = list(recorded_lines(database, world))  # type: ignore[arg-type]
    assert [piece.count(b"\n") for piece in pieces] == [1, 2, 2, 1]
    first, *jobs = [msgspec.json.decode(line) for line in b"".join(pieces).splitlines()]
    assert first == {"cluster": {"name": "c", "seed": 3, "cell": {}}}
    assert [(each["id"], each["submit"]) for each in jobs] == [
        ("old", 0),
        ("wide", 1_000),
        ("bad", 2_000),
        ("gone", 3_000),
        ("new", 4_000),
    ]
    assert jobs[0]["durations"][0] == 30


class TestHeaders:
    @pytest.mark.parametrize(
        ("wanted", "is_fine"),
        [
            (None, True),
            ("*", True),
            (" * ", True),
            ('"3"', True),
            ('"2", "3"', True),
            ('"2"', False),
            ("3", False),
        ],
    )
    def test_a_change_may_be_tied_to_a_version(self, wanted: str | None, is_fine: bool) -> None:
        if is_fine:
            check_version(wanted, 3, "it")
        else:
            with pytest.raises(VersionChanged, match="it has changed: it has version 3"):
                check_version(wanted, 3, "it")

    @pytest.mark.parametrize(
        ("seen", "expected"),
        [
            (None, False),
            ("*", True),
            ('"3"', True),
            ('W/"3"', True),
            ('"2", W/"3"', True),
            ('"2"', False),
        ],
    )
    def test_what_the_client_has_is_not_sent_again(self, seen: str | None, expected: bool) -> None:
        assert is_seen(seen, etag(3)) is expected

    def test_an_index_is_a_small_number(self) -> None:
        assert (index_in("0", "a"), index_in("999999999", "a")) == (0, 999_999_999)
        for text in ("", "-1", "1.0", "x", "1" * 10, "٣"):
            with pytest.raises(NotFound):
                index_in(text, "a")

    @pytest.mark.parametrize("key", ["", "x" * 201, "a\nb"])
    def test_a_key_is_short_and_printable(self, key: str) -> None:
        with pytest.raises(RequestError, match="1 to 200 printable characters"):
            check_key(key)
        check_key("x" * 200)

    def test_names_can_be_part_of_a_path(self) -> None:
        for name in (".", ".."):
            with pytest.raises(Misfit) as caught:
                _check_addressable(name, ("id",))
            assert caught.value.path == ("id",)
        _check_addressable("...", ("id",))
        with pytest.raises(Misfit) as caught:
            _check_name("resource", "a b", ("capacity",))
        assert "resource 'a b'" in str(caught.value.error)


def test_an_agent_may_be_told_to_answer_late(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(agent.asyncio, "sleep", sleep)
    for delay in (0, 2_500_000):
        late: Any = SimpleNamespace(_options=agent.AgentOptions(delay=delay))
        asyncio.run(agent.LiveAgent.answer_later(late))
    assert waits == [2.5]


class TestFeeding:
    def test_jobs_are_submitted_as_they_come_and_mistakes_are_told(self) -> None:
        submitted: list[Any] = []
        lines: list[str] = []

        def read(world: Any, document: dict[str, Any], default: str) -> Any:
            if document.get("bad"):
                raise CommandError("wrong")
            return (document.get("id"), default)

        class Cluster:
            world = SimpleNamespace(new_id=lambda: "made-up", submit=submitted.append)

            async def do(self, action: Any) -> None:
                action(self.world)

        server: Any = SimpleNamespace(
            cluster=Cluster(), backend=SimpleNamespace(submissions=SimpleNamespace(read=read))
        )
        documents = iter([{"id": "a"}, {"bad": True}, {"command": "x"}])
        asyncio.run(scheduling._feed(server, documents, lines.append))
        assert submitted == [("a", ""), (None, "made-up")]
        assert lines == ["not submitted: wrong"]

    def test_no_more_is_read_ahead_than_there_is_room_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(scheduling, "_READ_AHEAD", 2)
        read: list[int] = []

        def documents() -> Iterator[dict[str, Any]]:
            for number in range(6):
                read.append(number)
                yield {"n": number}

        async def consume() -> list[int]:
            return [each["n"] async for each in scheduling._read_beside(documents())]

        assert asyncio.run(consume()) == list(range(6))
        assert read == list(range(6))


class TestNames:
    def named(self, *answers: Any) -> Any:
        class Link:
            endpoint = "http://h:1"

            async def ask(self, method: str, path: str) -> Any:
                answer = answers[0]
                if isinstance(answer, Exception):
                    raise answer
                return SimpleNamespace(body=answer)

        links: Any = {
            scheduling.AgentAddress.parse("edge=http://h:1"): "given",
            scheduling.AgentAddress.parse("http://h:2"): Link(),
        }
        return asyncio.run(scheduling._named(links))

    def health(self, name: str) -> bytes:
        return msgspec.json.encode(
            {"status": "ok", "version": "1", "cluster": name, "started": "", "open_jobs": 0,
             "running_tasks": 0, "machines": 1}
        )  # fmt: skip

    def test_an_agent_has_the_name_that_is_given_or_its_own(self) -> None:
        assert list(self.named(self.health("a/b"))) == ["edge", "a-b"]
        with pytest.raises(CommandError, match="two agents are called edge"):
            self.named(self.health("edge"))
        with pytest.raises(CommandError, match="cannot ask http://h:1 for its name"):
            self.named(b"[]")

    def test_a_directory_belongs_to_the_same_agents(self) -> None:
        closed: list[bool] = []

        def server(*names: str) -> Any:
            known = [SimpleNamespace(name=name) for name in names]
            federation = SimpleNamespace(clusters=known) if names else None
            world = SimpleNamespace(cluster=SimpleNamespace(federation=federation))
            return SimpleNamespace(
                cluster=SimpleNamespace(world=world), close=lambda: closed.append(True)
            )

        links: Any = {"a": 1, "b": 2}
        scheduling._check_clusters(server("b", "a"), links)
        assert closed == []
        for names, says in ((("c", "a"), "over a, c"), ((), "over nothing")):
            with pytest.raises(CommandError, match=f"the directory is that of a scheduler {says}"):
                scheduling._check_clusters(server(*names), links)
        assert closed == [True, True]
