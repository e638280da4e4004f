"""Both clients against a real server with real tasks."""

import asyncio
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_server import PATIENCE, LiveServer, live_server

import argosy
from argosy.api.agent_values import (
    ClusterPlace,
    CommitOrder,
    ReservationRequest,
    SampleRequest,
)
from argosy.api.values import JobEvent, MachinePatch, TaskEvent
from argosy.client import AsyncClient, Client
from argosy.client.server_sent import EventParser

SMALL = {"cpu": 100, "memory": "64MiB"}


def shell(script: str, **keys: Any) -> dict[str, Any]:
    return {"command": ["sh", "-c", script], "request": SMALL, **keys}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    # Longer than the path of a Unix socket may be.
    directory = tmp_path_factory.mktemp("a" * 60) / ("b" * 60)
    with live_server(directory, "--machines", "2") as started:
        yield started


@pytest.fixture
def client(server: LiveServer) -> Iterator[Client]:
    with server.client() as client:
        yield client


class TestJobs:
    def test_a_job_runs_and_its_end_is_seen(self, client: Client) -> None:
        job = client.submit(shell("echo out; echo err >&2", name="greeting", owner="ann"))
        assert (job.name, job.owner, job.kind) == ("greeting", "ann", "batch")
        over = client.wait(job.id)
        assert (over.state, over.exit_code, over.tasks.finished) == ("finished", 0, 1)
        assert client.logs(job.id, 0) == b"out\n"
        assert client.logs(job.id, 0, stream="stderr") == b"err\n"

    def test_a_failure_is_the_exit_code_of_the_job(self, client: Client) -> None:
        assert client.wait(client.submit(shell("exit 3")).id).exit_code == 3
        assert client.wait(client.submit(shell("kill -9 $$")).id).exit_code == 137

    def test_a_repeated_submission_is_one_job(self, client: Client) -> None:
        first = client.submit(shell("true"), key="once")
        assert client.submit(shell("true"), key="once").id == first.id
        with pytest.raises(argosy.ServerError, match="used for another document") as caught:
            client.submit(shell("false"), key="once")
        assert (caught.value.status, caught.value.code) == (409, "conflict")
        assert client.submit(shell("true")).id != first.id

    def test_an_array_knows_its_indices(self, client: Client) -> None:
        job = client.submit(shell("echo $ARGOSY_TASK of $ARGOSY_TASKS", count=3))
        client.wait(job.id)
        assert [client.logs(job.id, index) for index in range(3)] == [
            b"0 of 3\n",
            b"1 of 3\n",
            b"2 of 3\n",
        ]
        assert [task.index for task in client.tasks(job.id, state="finished")] == [0, 1, 2]
        assert len(list(client.tasks(job.id, limit=2))) == 2

    def test_waiting_ends_after_a_while(self, client: Client) -> None:
        job = client.submit(shell("sleep 600"))
        assert client.wait(job.id, timeout=0.01).state in ("pending", "running")
        client.cancel(job.id)

    def test_jobs_are_listed_newest_first_in_pages(self, client: Client) -> None:
        made = [client.submit(shell("true", owner="pages")).id for _ in range(5)]
        assert [job.id for job in client.jobs(owner="pages")] == made[::-1]
        assert [job.id for job in client.jobs(owner="pages", limit=2)] == made[:2:-1]
        for name in made:
            client.wait(name)
        assert list(client.jobs(owner="pages", is_open=True)) == []
        assert len(list(client.jobs(owner="pages", is_open=False, state="finished"))) == 5

    def test_jobs_are_scaled_and_cancelled(self, client: Client) -> None:
        job = client.submit(shell("sleep 600", kind="service", endless=True))
        scaled = client.scale(job.id, 3)
        assert scaled.tasks.total == 3
        with pytest.raises(argosy.ServerError) as caught:
            client.scale(job.id, 4, version=job.version)
        assert caught.value.status == 412
        assert client.cancel(job.id, [1]).cancelled == 1
        assert client.cancel(job.id).cancelled == 2
        over = client.wait(job.id)
        assert (over.state, over.tasks.cancelled) == ("cancelled", 3)

    def test_a_mistake_is_the_servers_sentence(self, client: Client) -> None:
        with pytest.raises(argosy.ServerError) as caught:
            client.submit({**shell("true"), "request": {"cpu": 1, "gpu": 1}})
        error = caught.value
        assert (error.field, error.status) == ("request.gpu", 422)
        assert str(error).startswith("request.gpu: unknown resource 'gpu'")

    def test_why_and_story_are_told(self, client: Client) -> None:
        job = client.submit({**shell("true"), "request": {"cpu": "500"}})
        client.wait(job.id, timeout=0.2)
        answer = client.why(job.id, 0)
        assert answer.answer.task == f"{job.id}/0"
        assert "cannot run: " in answer.text[0]
        assert client.story(job.id, 0).lines[0].what == "submitted"
        client.cancel(job.id)

    def test_a_plan_changes_nothing(self, client: Client) -> None:
        before = [job.id for job in client.jobs()]
        assert client.plan([shell("true")]).fits
        plan = client.plan([{**shell("true"), "request": {"cpu": "500"}}])
        assert not plan.fits
        assert plan.tasks[0].remedy
        assert [job.id for job in client.jobs()] == before


class TestLogs:
    def test_a_task_that_still_writes_is_followed_to_its_end(
        self, client: Client, tmp_path: Path
    ) -> None:
        gate = tmp_path / "gate"
        script = f"echo first; while [ ! -e {gate} ]; do sleep 0.02; done; echo second"
        job = client.submit(shell(script))
        pieces = client.follow_logs(job.id, 0)
        assert next(pieces) == b"first\n"
        gate.touch()
        assert b"".join(pieces) == b"second\n"

    def test_every_try_is_followed(self, client: Client, tmp_path: Path) -> None:
        mark = tmp_path / "mark"
        script = f"if [ -e {mark} ]; then echo again; else touch {mark}; echo once; exit 1; fi"
        job = client.submit(shell(script, retries=1))
        assert b"".join(client.follow_logs(job.id, 0)) == b"once\nagain\n"
        tries = client.task(job.id, 0).tries
        assert client.logs(job.id, 0, try_number=tries[0].number) == b"once\n"
        assert client.logs(job.id, 0, tail=3) == b"in\n"


class TestCluster:
    def test_machines_are_added_drained_resized_and_removed(self, client: Client) -> None:
        assert [machine.name for machine in client.machines()] == ["local-0", "local-1"]
        added = client.add_machine({"name": "extra", "capacity": {"cpu": "1", "memory": "1GiB"}})
        assert added.capacity == {"cpu": 1000, "memory": 2**30}
        with pytest.raises(argosy.ServerError):
            client.add_machine({"name": "extra", "capacity": {"cpu": "1"}})
        assert client.drain("extra").draining
        assert not client.drain("extra", undo=True).draining
        patch = MachinePatch(capacity={"cpu": 2000, "memory": "2GiB"})
        assert client.change_machine("extra", patch).capacity["cpu"] == 2000
        assert client.machine("extra").capacity["memory"] == 2**31
        client.remove_machine("extra")
        with pytest.raises(argosy.ServerError) as caught:
            client.machine("extra")
        assert caught.value.status == 404

    def test_the_fleet_is_replaced(self, client: Client) -> None:
        before = client.fleet()
        after = client.set_fleet([{"name": "m", "engine": "murmuration"}], version=before.version)
        assert [each.engine for each in after.schedulers] == ["murmuration"]
        with pytest.raises(argosy.ServerError) as caught:
            client.set_fleet(before.fleet, version=before.version)
        assert caught.value.status == 412
        client.set_fleet(before.fleet)

    def test_events_tell_what_happens(self, client: Client) -> None:
        events = client.events(after="0")
        job = client.submit(shell("exit 4"))
        states = []
        for streamed in events:
            match streamed.event:
                case TaskEvent(job=job.id, state=state, exit_status=status):
                    states.append((state, status))
                case JobEvent(job=job.id, state="failed"):
                    break
        assert states[-1] == ("failed", 4)
        again = client.events(job_id=job.id, after="0")
        assert any(each == streamed for each in again)

    def test_the_run_is_recorded(self, client: Client) -> None:
        client.wait(client.submit(shell("true", id="recorded")).id)
        first, *jobs = [json.loads(x) for x in b"".join(client.recording()).splitlines()]
        assert [m["name"] for m in first["cluster"]["cell"]["machines"]] == ["local-0", "local-1"]
        assert "recorded" in [job["id"] for job in jobs]
        assert b"".join(client.journal()).endswith(b"\n")

    def test_a_service_that_was_stopped_is_recorded_with_an_end(self, client: Client) -> None:
        for name in ("stopped", "going-on"):
            client.submit(shell("sleep 600", id=name, kind="service"))
        while client.task("stopped", 0).state != "running":
            client.wait("stopped", timeout=0.05)
        client.cancel("stopped")
        lines = [json.loads(x) for x in b"".join(client.recording()).splitlines()]
        jobs = {job["id"]: job for job in lines[1:]}
        assert 0 < jobs["stopped"]["duration"] < 600_000_000
        assert "duration" not in jobs["going-on"]
        client.cancel("going-on")

    def test_events_that_were_missed_before_the_first_are_made_up_for(
        self, server: LiveServer
    ) -> None:
        """The server says where a stream begins, so that it can be resumed from there."""
        with socket.socket(socket.AF_INET) as raw:
            raw.settimeout(PATIENCE)
            host, _, port = server.url.removeprefix("http://").partition(":")
            raw.connect((host, int(port)))
            raw.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            text = b""
            while b"id: " not in text:
                piece = raw.recv(4096)
                assert piece, f"the stream ended: {text!r}"
                text += piece
        parser = EventParser()
        parser.feed(text[text.index(b"id: ") :].split(b"\r")[0] + b"\n\n")
        with server.client() as client:
            job = client.submit(shell("true"))
            seen = (each.event for each in client.events(after=parser.last))
            assert any(isinstance(each, JobEvent) and each.job == job.id for each in seen)

    def test_the_server_is_well(self, client: Client) -> None:
        health = client.health()
        assert (health.status, health.machines) == ("ok", 2)
        assert health.version == argosy.__version__

    def test_the_cluster_in_numbers_and_parts_of_its_lists(self, client: Client) -> None:
        job = client.submit({**shell("sleep 1000", count=2), "name": "looked for"})
        found = next(each for each in client.watch(job.id) if each.tasks.running == 2)
        summary = client.summary()
        assert (summary.machines, summary.status) == (2, "ok")
        assert summary.tasks.running >= found.tasks.running
        assert [each.id for each in client.jobs(match="looked f")] == [job.id]
        running = list(client.tasks(job.id))
        for machine in client.machines():
            here = client.open_tasks(machine=machine.name, limit=10)
            assert {each.index for each in here if each.job == job.id} == {
                each.index for each in running if each.machine == machine.name
            }
        client.cancel(job.id)
        client.wait(job.id)


class TestConnections:
    def test_tcp_is_as_good_as_the_socket(self, server: LiveServer) -> None:
        with Client(server.url) as client:
            assert client.health().status == "ok"

    def test_nobody_there_is_one_clear_error(self, tmp_path: Path) -> None:
        with pytest.raises(argosy.ServerUnreachable, match="no server answers at unix:") as caught:
            Client(directory=tmp_path).health()
        assert "argosy up" in str(caught.value)
        with pytest.raises(argosy.ServerUnreachable, match="no server answers at http:"):
            Client("http://127.0.0.1:1").health()
        with pytest.raises(argosy.ServerUnreachable, match="cannot be reached"):
            Client("http://nowhere.invalid:1").health()

    def test_a_client_outlives_a_restart_of_the_server(self, tmp_path: Path) -> None:
        gate = tmp_path / "gate"
        with live_server(tmp_path / "state") as server, server.client() as client:
            script = f"echo a; while [ ! -e {gate} ]; do sleep 0.02; done; echo b"
            job = client.submit(shell(script))
            output, watched = client.follow_logs(job.id, 0), client.watch(job.id)
            assert next(output) == b"a\n"
            assert next(watched).state in ("pending", "running")
            server.stop()
            server.start()
            gate.touch()
            assert b"".join(output) == b"b\n"
            *_, last = watched
            assert last.exit_code == 0


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with a certificate of its own and a token; both are in its directory's parent."""
    around = tmp_path_factory.mktemp("guarded")
    names = "subjectAltName=IP:127.0.0.1"
    options = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext {names}".split()
    subprocess.run(
        ["openssl", *options, "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=around,
        check=True,
        capture_output=True,
    )
    (around / "token").write_text("a-token-of-this-test\n")
    files = ("--token-file", "token", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
    arguments = [text if text.startswith("--") else str(around / text) for text in files]
    with live_server(around / "state", *arguments) as started:
        yield started


class TestGuards:
    @pytest.fixture(autouse=True)
    def trusted(self, guarded: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(guarded.directory.parent / "cert.pem"))
        monkeypatch.delenv("ARGOSY_TOKEN", raising=False)

    def test_a_token_opens_the_door(
        self, guarded: LiveServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = guarded.directory.parent / "token"
        assert guarded.url.startswith("https://")
        with Client(guarded.url, token_file=file) as client:
            assert client.health().status == "ok"
        monkeypatch.setenv("ARGOSY_TOKEN", file.read_text())
        with Client(guarded.url) as client:
            assert client.health().status == "ok"

    def test_without_it_the_server_says_what_is_missing(self, guarded: LiveServer) -> None:
        with Client(guarded.url) as client:
            with pytest.raises(argosy.ServerError, match="missing token") as caught:
                next(client.jobs())
            assert caught.value.status == 401
        wrong = Client(guarded.url, token="wrong-wrong-wrong")
        with wrong, pytest.raises(argosy.ServerError, match="wrong token"):
            next(wrong.events())

    def test_a_certificate_that_nobody_trusts_is_refused(
        self, guarded: LiveServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(argosy.ServerUnreachable, match=r"not trusted.*SSL_CERT_FILE"):
            Client(guarded.url, token="x").health()

    def test_the_asynchronous_client_does_the_same(
        self, guarded: LiveServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = guarded.directory.parent / "token"

        async def use() -> None:
            async with AsyncClient(guarded.url, token_file=file) as client:
                assert (await client.health()).status == "ok"
            async with AsyncClient(guarded.url) as client:
                with pytest.raises(argosy.ServerError, match="missing token"):
                    await client.fleet()
            monkeypatch.delenv("SSL_CERT_FILE")
            async with AsyncClient(guarded.url, token_file=file) as client:
                with pytest.raises(argosy.ServerUnreachable, match="not trusted"):
                    await client.health()

        asyncio.run(use())


class TestAsync:
    def test_it_does_the_same(self, server: LiveServer) -> None:
        async def use() -> None:
            async with AsyncClient(directory=server.directory) as client:
                job = await client.submit(shell("echo out; exit 5", count=2), key="async")
                assert (
                    await client.submit(shell("echo out; exit 5", count=2), key="async")
                ) is not job
                assert (await client.wait(job.id)).exit_code == 5
                assert await client.logs(job.id, 1) == b"out\n"
                assert [piece async for piece in client.follow_logs(job.id, 0)] == [b"out\n"]
                assert [task.index async for task in client.tasks(job.id)] == [0, 1]
                assert job.id in [each.id async for each in client.jobs()]
                assert [each.name async for each in client.machines()] == ["local-0", "local-1"]
                assert (await client.why(job.id, 0)).text
                assert (await client.story(job.id, 0)).lines
                assert (await client.plan([shell("true")])).fits
                assert (await client.drain("local-0")).draining
                assert not (await client.drain("local-0", undo=True)).draining
                assert (await client.fleet()).schedulers
                assert (await client.health()).status == "ok"
                async for streamed in client.events(job_id=job.id, after="0"):
                    assert streamed.event
                    break
                with pytest.raises(argosy.ServerError, match="unknown job 'none'"):
                    await client.job("none")

        asyncio.run(use())

    def test_nobody_there_is_one_clear_error(self, tmp_path: Path) -> None:
        async def use() -> None:
            for client in (AsyncClient(directory=tmp_path), AsyncClient("http://127.0.0.1:1")):
                async with client:
                    with pytest.raises(argosy.ServerUnreachable, match="no server answers at"):
                        await client.health()

        asyncio.run(use())

    def test_both_clients_have_the_same_methods(self) -> None:
        def methods(kind: type) -> set[str]:
            return {name for name in vars(kind) if not name.startswith("_")}

        assert methods(Client) == methods(AsyncClient)


ROOM = {"cpu": 100, "memory": 2**20}


def order(name: str, *machines: str, cpu: int = 100) -> CommitOrder:
    document = {"id": name, "command": ["sleep", "600"], "request": {"cpu": cpu, "memory": 2**20}}
    return CommitOrder(job=document, machines=machines)


class TestAgents:
    """What a scheduler asks of a cluster."""

    def test_a_job_is_committed_to_a_machine_of_a_sample_and_released(self, client: Client) -> None:
        found = client.sample(SampleRequest(request=ROOM, share=1.0))
        assert sorted(found.machines) == ["local-0", "local-1"]
        machine = found.machines[0]
        result = client.commit(order("committed", machine), key="commit-1")
        assert (result.key, result.job, result.machine) == ("commit-1", "committed", machine)
        assert client.commit(order("committed", machine), key="commit-1") == result
        assert [each.key for each in client.commits()] == ["commit-1"]
        assert client.commit_info("commit-1").state == "running"
        assert client.release("commit-1").job == "committed"
        assert client.wait("committed").state == "cancelled"
        assert list(client.commits()) == []

    def test_a_refused_commit_says_why(self, client: Client) -> None:
        with pytest.raises(argosy.CommitRefused, match="local-1 lacks") as caught:
            client.commit(order("huge", "local-0", "local-1", cpu=10**9))
        error = caught.value
        assert (error.why, error.machine, error.resource) == ("no_room", "local-1", "cpu")
        assert 0 < error.lacking < 10**9
        assert (error.status, error.code) == (409, "commit-conflict")

    def test_room_is_reserved_and_given_back(self, client: Client) -> None:
        held = client.reserve(ReservationRequest(machine="local-0", request=ROOM))
        assert [each.id for each in client.reservations()] == [held.id]
        client.unreserve(held.id)
        assert client.reservations() == ()
        with pytest.raises(argosy.ServerError) as caught:
            client.unreserve(held.id)
        assert caught.value.status == 404

    def test_a_cluster_without_a_place_is_at_its_own_name(self, client: Client) -> None:
        assert client.place() == ClusterPlace(place=client.health().cluster)

    def test_both_clients_have_the_same_calls(self, server: LiveServer) -> None:
        async def scheduled() -> list[str]:
            async with AsyncClient(directory=server.directory) as client:
                found = await client.sample(SampleRequest(request=ROOM, share=1.0))
                held = await client.reserve(
                    ReservationRequest(machine=found.machines[0], request=ROOM)
                )
                assert [each.id for each in await client.reservations()] == [held.id]
                await client.unreserve(held.id)
                await client.commit(order("async", found.machines[0]), key="commit-2")
                keys = [each.key async for each in client.commits()]
                assert (await client.commit_info("commit-2")).job == "async"
                await client.release("commit-2")
                assert (await client.place()).location == ""
                return keys

        assert asyncio.run(scheduled()) == ["commit-2"]
        calls = {name for name in vars(Client) if not name.startswith("_")}
        assert calls == {name for name in vars(AsyncClient) if not name.startswith("_")}
