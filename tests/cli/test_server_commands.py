"""What commands that run a server make of their options, without serving."""

from __future__ import annotations

import io
import json
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import Call
from msgspec import structs

from argosy.api.sockets import SOCKET
from argosy.cli import server_start, up
from argosy.model.resources import Resources
from argosy.service import scheduling, server
from argosy.service.agent import AgentOptions
from argosy.service.server import ServerOptions
from argosy.testing.builders import GIB

LISTENING = (
    *("--listen", "10.0.0.1:99", "--token-file", "t", "--tokens", "ts"),
    *("--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "ca"),
)
LISTENS = {
    "host": "10.0.0.1",
    "port": 99,
    "token_file": Path("t"),
    "tokens": Path("ts"),
    "certificate": Path("c"),
    "key": Path("k"),
    "client_ca": Path("ca"),
}
PLAIN = dict.fromkeys(("token_file", "tokens", "certificate", "key", "client_ca"))


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The options of servers that would have been started."""
    given: list[Any] = []

    def serve(options: Any, ready: Any, log: Any) -> bool:
        log("a line")
        given.append(options)
        return True

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr(scheduling, "serve_scheduler", serve)
    monkeypatch.delenv("ARGOSY_TOKEN", raising=False)
    monkeypatch.delenv("ARGOSY_DIR", raising=False)
    return given


def listening(options: ServerOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in LISTENS}


class TestScheduler:
    def test_every_option_reaches_the_scheduler(
        self, argosy: Call, served: list[scheduling.SchedulerOptions], tmp_path: Path
    ) -> None:
        (tmp_path / "secret").write_text("of-the-agents\n")
        (tmp_path / "jobs.toml").write_text(
            'jobs = [{id = "a", command = "true", request = {cpu = "1", memory = "1MiB"}}]\n'
        )
        result = argosy(
            *("scheduler", "--agent", "http://127.0.0.1:1", "--agent", "b=https://b:2"),
            *("--set", "attempts=3", "--set", "x = word", "--set", "y=[1, 2]"),
            *("--name", "me", "--timeout", "2.5", "--agent-token-file", "secret"),
            *("--agent-ca", "theirs.pem", "--agent-cert", "mine.pem", "--jobs", "jobs.toml"),
            *("--dir", "kept", *LISTENING),
        )
        assert (result.code, result.out) == (0, "")
        assert result.err == "argosy: a line\nargosy: down\n"
        [options] = served
        assert listening(options.server) == LISTENS
        assert (options.server.directory, options.server.is_lasting) == (Path("kept"), True)
        assert [(each.name, str(each.endpoint)) for each in options.agents] == [
            ("", "http://127.0.0.1:1"),
            ("b", "https://b:2"),
        ]
        assert (options.engine, options.name, options.timeout) == ("vela", "me", 2.5)
        assert options.settings == {"attempts": 3, "x": "word", "y": [1, 2]}
        assert (options.token, options.ca, options.certificate) == (
            "of-the-agents",
            Path("theirs.pem"),
            Path("mine.pem"),
        )
        assert options.jobs is not None
        assert [job["id"] for job in options.jobs] == ["a"]

    def test_without_a_directory_nothing_is_kept(
        self, argosy: Call, served: list[scheduling.SchedulerOptions]
    ) -> None:
        argosy("scheduler", "--agent", "unix:a.sock")
        [options] = served
        assert listening(options.server) == {"host": "127.0.0.1", "port": 0, **PLAIN}
        assert not options.server.is_lasting
        assert not options.server.directory.exists()
        assert options.name.startswith("scheduler-")
        assert (options.engine, options.timeout, options.settings) == ("vela", 5.0, {})
        assert (options.token, options.ca, options.certificate) == ("", None, None)
        assert options.jobs is None

    def test_a_scheduler_that_starts_again_has_its_name(
        self, argosy: Call, served: list[scheduling.SchedulerOptions], tmp_path: Path
    ) -> None:
        for directory in ("one", "one", "two"):
            argosy("scheduler", "--agent", "unix:a", "--dir", directory)
        first, again, other = (options.name for options in served)
        assert first == again != other
        assert (tmp_path / "one/name").read_text() == f"{first}\n"
        assert (tmp_path / "one").stat().st_mode & 0o777 == 0o700
        (tmp_path / "file").write_text("")
        result = argosy("scheduler", "--agent", "unix:a", "--dir", "file/below")
        assert result.code == 2
        assert "cannot write to file/below: " in result.err

    @pytest.mark.parametrize(
        ("option", "text", "says"),
        [
            ("--name", "a b", "--name 'a b'; expected letters, digits, - and _"),
            ("--name", "", "--name ''; expected letters"),
            ("--name", "x" * 61, "; expected letters"),
            ("--set", "attempts", "--set 'attempts'; expected KEY=VALUE"),
            ("--set", " =3", "--set ' =3'; expected KEY=VALUE"),
            ("--timeout", "0", "0.001"),
        ],
    )
    def test_what_is_wrong_is_named(
        self, argosy: Call, served: list[Any], option: str, text: str, says: str
    ) -> None:
        result = argosy("scheduler", "--agent", "unix:a", option, text)
        assert result.code == 2
        assert says in result.err
        assert served == []

    def test_jobs_of_standard_input_come_a_line_each(
        self,
        argosy: Call,
        served: list[scheduling.SchedulerOptions],
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO('{"id": "a"}\n\n{\n[1]\n{"id": "b"}\n'))
        argosy("scheduler", "--agent", "unix:a", "--jobs", "-")
        [options] = served
        assert options.jobs is not None
        assert list(options.jobs) == [{"id": "a"}, {"id": "b"}]
        first, second = capsys.readouterr().err.splitlines()
        assert first.startswith("argosy: line 3 of standard input is not JSON: ")
        assert second == "argosy: line 4 of standard input is no job document"


class TestAgent:
    def test_every_option_reaches_the_server(
        self, argosy: Call, served: list[ServerOptions]
    ) -> None:
        result = argosy(
            *("agent", "--name", "edge", "--machines", "3", "--mix", "2.5x4GiB"),
            *("--engine", "sparrow", "--refresh", "2s", "--delay", "3ms", "--dir", "kept"),
            *LISTENING,
        )
        assert (result.code, result.err) == (0, "argosy: a line\nargosy: down\n")
        [options] = served
        assert listening(options) == LISTENS
        assert (options.directory, options.is_lasting) == (Path("kept"), True)
        assert options.tasks == "simulated"
        assert options.agent == AgentOptions(refresh=2_000_000, delay=3_000)
        cluster = options.cluster
        assert cluster is not None
        assert (cluster.name, [each.engine for each in cluster.fleet]) == ("edge", ["sparrow"])
        assert [(each.name, each.capacity) for each in cluster.cell.machines] == [
            (f"m{n}", Resources(2_500, 4 * GIB)) for n in range(3)
        ]

    def test_the_default_is_a_hundred_machines_that_nobody_keeps(
        self, argosy: Call, served: list[ServerOptions]
    ) -> None:
        argosy("agent")
        [options] = served
        assert listening(options) == {"host": "127.0.0.1", "port": 0, **PLAIN}
        assert not options.is_lasting
        assert options.agent == AgentOptions(refresh=0, delay=0)
        assert options.cluster is not None
        assert options.cluster.name == "agent"
        assert [each.engine for each in options.cluster.fleet] == ["omega"]
        sizes = [machine.capacity for machine in options.cluster.cell.machines]
        assert sizes == [Resources(4_000, 8 * GIB)] * 100

    @pytest.mark.parametrize("mix", ["cloud", "edge"])
    def test_a_mix_is_that_of_the_paper(
        self, argosy: Call, served: list[ServerOptions], mix: str
    ) -> None:
        from argosy.papers.vela import world

        argosy("agent", "--machines", "200", "--mix", mix)
        [options] = served
        assert options.cluster is not None
        table = world.CLOUD if mix == "cloud" else world.EDGE
        sizes = [machine.capacity for machine in options.cluster.cell.machines]
        assert sizes == [
            Resources(1_000 * cores, memory * GIB)
            for percent, cores, memory in table
            for _ in range(2 * percent)
        ]
        assert len(sizes) == 200

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["s.toml", "--machines", "2"], "both a scenario and --machines"),
            (["s.toml", "--mix", "cloud"], "both a scenario and --mix"),
            (["--cluster", "c"], "--cluster without a scenario"),
            (["--cluster", "c", "--mix", "edge"], "--cluster without a scenario"),
            (["--refresh", "soon"], "--refresh 'soon'"),
            (["--delay", "-1s"], "--delay '-1s'"),
            (["--mix", "4x"], "--mix '4x'; expected cloud, edge, or a size such as 4x8GiB"),
            (["--tls-key", "k"], "--tls-key without --tls-cert"),
            (["--tls-client-ca", "k"], "--tls-client-ca without --tls-cert"),
            (["--detach"], "--detach without --dir"),
        ],
    )
    def test_what_does_not_go_together_is_refused(
        self, argosy: Call, served: list[Any], arguments: list[str], says: str
    ) -> None:
        result = argosy("agent", *arguments)
        assert (result.code, served) == (2, [])
        assert says in result.err

    @pytest.mark.parametrize("option", [["--machines", "2"], ["--name", "n"], ["--mix", "edge"]])
    def test_a_cluster_that_is_kept_stays_as_it_is(
        self,
        argosy: Call,
        served: list[ServerOptions],
        monkeypatch: pytest.MonkeyPatch,
        option: list[str],
    ) -> None:
        monkeypatch.setattr("argosy.worlds.local.store.holds_cluster", lambda directory: True)
        assert argosy("agent", "--dir", "kept").code == 0
        assert served[0].cluster is None
        result = argosy("agent", "--dir", "kept", *option)
        assert (result.code, len(served)) == (2, 1)
        assert "kept holds a cluster already" in result.err


class TestUp:
    def test_every_option_reaches_the_server(
        self, argosy: Call, served: list[ServerOptions]
    ) -> None:
        result = argosy(
            *("up", "--dir", "kept", "--machines", "2", "--engine", "sparrow"), *LISTENING
        )
        assert result.code == 0
        assert result.err == (
            "argosy: a line\nargosy: down; its tasks go on, and `argosy up` adopts them\n"
        )
        [options] = served
        assert listening(options) == LISTENS
        assert (options.directory, options.is_lasting, options.tasks) == (
            Path("kept"),
            True,
            "processes",
        )
        assert options.cluster is not None
        assert [each.engine for each in options.cluster.fleet] == ["sparrow"]
        assert len(options.cluster.cell.machines) == 2

    def test_a_scenario_gives_machines_and_fleet(
        self, argosy: Call, served: list[ServerOptions], tmp_path: Path
    ) -> None:
        (tmp_path / "s.toml").write_text(
            'name = "mine"\nseed = 9\naudit = true\n'
            '[[cell.machines]]\nname = "m"\ncount = 3\ncapacity = {cpu = 2, memory = "1GiB"}\n'
            '[[fleet]]\nname = "s"\nengine = "yaq-d"\n[machines]\nqueue = "shortest-first"\n'
        )
        result = argosy("up", "s.toml", "--dir", "kept")
        assert result.code == 0, result.err
        cluster = served[0].cluster
        assert cluster is not None
        assert (cluster.name, cluster.seed, cluster.audit) == ("mine", 9, True)
        assert cluster.machines.queue == "shortest-first"
        assert [(each.name, each.engine) for each in cluster.fleet] == [("s", "yaq-d")]
        assert len(cluster.cell.machines) == 3
        for option in (["--machines", "2"], ["--engine", "omega"]):
            result = argosy("up", "s.toml", *option)
            assert f"both a scenario and {option[0]}" in result.err

    @pytest.mark.parametrize("more", [["--machines", "2"], ["--engine", "omega"], ["s.toml"]])
    def test_a_cluster_that_is_kept_stays_as_it_is(
        self,
        argosy: Call,
        served: list[ServerOptions],
        monkeypatch: pytest.MonkeyPatch,
        more: list[str],
    ) -> None:
        monkeypatch.setattr("argosy.worlds.local.store.holds_cluster", lambda directory: True)
        assert argosy("up", "--dir", "kept").code == 0
        assert served[0].cluster is None
        result = argosy("up", "--dir", "kept", *more)
        assert (result.code, len(served)) == (2, 1)
        assert "kept holds a cluster already" in result.err


def test_a_simulated_cluster_leaves_no_tasks(
    served: list[ServerOptions], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    up.run_server(ServerOptions(directory=tmp_path, tasks="simulated"), as_json=False)
    assert capsys.readouterr().err == "argosy: a line\nargosy: down\n"


class TestAnnouncement:
    def server(self, url: str = "http://h:1", jobs: int = 2) -> Any:
        fleet = [SimpleNamespace(engine=engine) for engine in ("omega", "sparrow", "omega")]
        world = SimpleNamespace(
            machine_numbers=lambda: {"m0": 0},
            cluster=SimpleNamespace(fleet=fleet),
            projection=SimpleNamespace(by_id=dict.fromkeys(range(jobs))),
        )
        return SimpleNamespace(
            url=url,
            cluster=SimpleNamespace(world=world),
            store=SimpleNamespace(path=Path("/kept/db")),
        )

    def test_the_line_says_what_is_up(self, capsys: pytest.CaptureFixture[str]) -> None:
        up.announce(self.server())
        up.announce(self.server(url="", jobs=0))
        assert capsys.readouterr().err.splitlines() == [
            "argosy: up: 1 machine, omega, sparrow; page and API at http://h:1, /kept; "
            "going on with 2 jobs",
            "argosy: up: 1 machine, omega, sparrow; /kept",
        ]

    def test_the_document_says_it_to_programs(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(up.os, "getpid", lambda: 77)
        up.announce_json(self.server())
        up.announce_json(self.server(url="", jobs=0))
        known = {"directory": "/kept", "pid": 77, "machines": 1}
        engines = {"engines": ["omega", "sparrow", "omega"]}
        assert list(map(json.loads, capsys.readouterr().out.splitlines())) == [
            {**known, **engines, "url": "http://h:1", "open_jobs": 2},
            {**known, **engines, "url": None, "open_jobs": 0},
        ]


class TestDetaching:
    @pytest.mark.parametrize("as_json", [False, True])
    def test_the_server_gets_all_but_the_option_that_detaches_it(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        tmp_path: Path,
        as_json: bool,
    ) -> None:
        seen: list[Any] = []

        def start(arguments: list[str], directory: Path, ready: str) -> str:
            seen.append((arguments, directory, ready))
            return "up"

        monkeypatch.setattr(server_start, "start_server", start)
        given = ["up", "-d", "--machines", "2", "--detach"]
        server_start.detached(given, tmp_path, as_json=as_json)
        ready = '{"directory"' if as_json else "argosy: up:"
        assert seen == [(["up", "--machines", "2"], tmp_path, ready)]
        assert capsys.readouterr() == (("up\n", "") if as_json else ("", "up\n"))

    def test_why_a_server_could_not_start_is_its_last_line(self) -> None:
        refused = server_start._refusal("one\nargosy: error: taken\n\n", 2)
        assert str(refused) == "the server could not start: error: taken"
        assert "it ended with code 3" in str(server_start._refusal("", 3))

    def test_only_what_this_server_wrote_is_read_from_the_log(self, tmp_path: Path) -> None:
        (tmp_path / "log").write_bytes(b"before\nafter \xff")
        assert server_start._tail(tmp_path / "log", 7) == "after \ufffd"

    def test_a_server_that_does_not_listen_does_not_answer(self, tmp_path: Path) -> None:
        assert not server_start._answers(tmp_path)
        # Nor does one of which nothing but the socket is left.
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left_behind:
            left_behind.bind(str(tmp_path / SOCKET))
            assert not server_start._answers(tmp_path)
            left_behind.listen()
            assert server_start._answers(tmp_path)


def test_options_of_servers_have_one_meaning(served: list[ServerOptions], argosy: Call) -> None:
    """`none` means: only the socket in the directory."""
    argosy("up", "--dir", "kept", "--listen", "none")
    [options] = served
    assert listening(options) == {"host": None, "port": 0, **PLAIN}
    assert structs.replace(options, host="::1").port == 0


@pytest.mark.parametrize("command", [["up"], ["agent"], ["scheduler", "--agent", "unix:a"]])
@pytest.mark.parametrize(("form", "speaker"), [("text", up.announce), ("json", up.announce_json)])
def test_servers_say_that_they_are_up_as_they_are_told_to(
    argosy: Call, monkeypatch: pytest.MonkeyPatch, command: list[str], form: str, speaker: Any
) -> None:
    said: list[Any] = []

    def serve(options: Any, ready: Any, log: Any) -> bool:
        said.append(ready)
        return False

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr(scheduling, "serve_scheduler", serve)
    result = argosy(*command, "--dir", "kept", "-o", form)
    assert (result.code, result.err) == (0, "argosy: down\n")
    assert said == [speaker]
