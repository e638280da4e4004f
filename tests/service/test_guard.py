"""Who may ask, and how much: tokens, TLS, other sites, sizes, slow clients and many connections."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import ssl
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from live_bench import LiveBench, job

from argosy.model.errors import CommandError
from argosy.service import callers, guard, server, stream_routes

Make = Callable[..., LiveBench]


async def raw(live: LiveBench, data: bytes, *, network: bool = True) -> bytes:
    """All that comes back until the server closes the connection."""
    reader, writer = await connect(live, network=network)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    return answer


async def connect(
    live: LiveBench, *, network: bool = True
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if network:
        return await asyncio.open_connection("127.0.0.1", port(live))
    return await asyncio.open_unix_connection(live.directory / "argosy.sock")


def port(live: LiveBench) -> int:
    return int(live.server.url.rsplit(":", 1)[1])


def head(
    path: str = "/v1/health", *lines: str, host: str = "127.0.0.1", method: str = "GET"
) -> bytes:
    text = "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *lines, "Connection: close"])
    return (text + "\r\n\r\n").encode("utf-8", "surrogateescape")


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.fixture(scope="module")
def networked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    bench = LiveBench(tmp_path_factory.mktemp("net"), host="127.0.0.1", port=0)
    yield bench
    bench.close()


@pytest.fixture(scope="module")
def tokened(tmp_path_factory: pytest.TempPathFactory) -> Any:
    bench = LiveBench(tmp_path_factory.mktemp("token"), host="0.0.0.0", port=0)
    yield bench
    bench.close()


def test_the_socket_is_for_its_owner_alone(live: LiveBench) -> None:
    assert (live.directory / "argosy.sock").stat().st_mode & 0o777 == 0o600


def test_this_computer_needs_no_token(networked: LiveBench) -> None:
    assert status(networked.run(raw(networked, head()))) == 200
    assert not (networked.directory / "token").exists()


@pytest.mark.parametrize(
    "lines",
    [
        ("Origin: http://evil.example",),
        ("Origin: null",),
        ("Origin: http://127.0.0.1:1",),
        ("Origin: http://[bad",),
        ("Sec-Fetch-Site: cross-site",),
        ("Sec-Fetch-Site: same-site",),
    ],
)
@pytest.mark.parametrize("network", [True, False])
def test_requests_of_other_sites_are_refused(
    networked: LiveBench, lines: tuple[str, ...], network: bool
) -> None:
    answer = networked.run(raw(networked, head("/v1/jobs", *lines), network=network))
    assert status(answer) == 403
    assert b"access-control" not in answer.lower()


def test_pages_of_this_server_may_ask(networked: LiveBench) -> None:
    host = f"127.0.0.1:{port(networked)}"
    lines = (f"Origin: http://{host}", "Sec-Fetch-Site: same-origin")
    assert status(networked.run(raw(networked, head("/v1/jobs", *lines, host=host)))) == 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("evil.example", 403),
        ("evil.example:7464", 403),
        ("127.0.0.1.evil.example", 403),
        ("[bad", 403),
        ("10.0.0.1", 403),
        ("localhost:7464", 200),
        ("127.0.0.1", 200),
        ("[::1]:7464", 200),
    ],
)
def test_a_name_that_was_made_to_point_here_is_not_ours(
    networked: LiveBench, host: str, expected: int
) -> None:
    assert status(networked.run(raw(networked, head(host=host)))) == expected


def test_other_addresses_need_the_token(tokened: LiveBench) -> None:
    path = tokened.directory / "token"
    token = path.read_text().strip()
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(token) >= 32

    def ask(*lines: str) -> bytes:
        return tokened.run(raw(tokened, head("/v1/jobs", *lines)))

    for lines in (
        (),
        ("Authorization: Bearer",),
        ("Authorization: Bearer wrong",),
        (f"Authorization: Bearer {token}x",),
        (f"Authorization: Basic {token}",),
        ("Authorization: Bearer \udcff",),
    ):
        answer = ask(*lines)
        assert status(answer) == 401
        assert b"WWW-Authenticate: Bearer\r\n" in answer
        assert token.encode() not in answer
    assert status(ask(f"Authorization: Bearer {token}")) == 200
    assert status(ask(f"authorization: bearer {token}")) == 200
    # Nothing is done, and nothing told, without it.
    assert status(tokened.run(raw(tokened, head("/v1/nothing")))) == 401
    assert status(tokened.run(raw(tokened, head("/metrics")))) == 401
    # The socket in the directory is for its owner anyway.
    assert status(tokened.run(raw(tokened, head(), network=False))) == 200


def test_probes_need_no_token(tokened: LiveBench) -> None:
    for path in ("/livez", "/healthz", "/readyz"):
        answer = tokened.run(raw(tokened, head(path, host="10.1.2.3:8080")))
        assert status(answer) == 200
        assert answer.endswith(b"\r\n\r\nok")
    assert status(tokened.run(raw(tokened, head("/livez", method="POST")))) == 405


def test_the_time_an_answer_takes_tells_nothing_about_the_token(
    tokened: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Digests are looked up: how alike two of them are does not depend on how alike tokens are."""
    looked_up = []

    class Watched:
        @staticmethod
        def sha256(token: bytes) -> object:
            looked_up.append(token)
            return hashlib.sha256(token)

    monkeypatch.setattr(callers, "hashlib", Watched)
    tokened.run(raw(tokened, head("/v1/jobs", "Authorization: Bearer guess")))
    assert looked_up == [b"guess"]


def test_the_token_stays_the_same(make_live: Make) -> None:
    live = make_live(host="0.0.0.0", port=0)
    before = (live.directory / "token").read_text()
    live.stop()
    live.start()
    assert (live.directory / "token").read_text() == before


def test_a_token_can_be_given_and_must_not_be_short(make_live: Make, tmp_path: Path) -> None:
    given = tmp_path / "secret"
    given.write_text("short\n")
    with pytest.raises(CommandError, match="a token of 5 characters"):
        make_live(host="0.0.0.0", port=0, token_file=given, directory=tmp_path / "a")
    with pytest.raises(CommandError, match="cannot read the token"):
        make_live(host="0.0.0.0", port=0, token_file=tmp_path / "no", directory=tmp_path / "b")
    given.write_text("long-enough-to-be-a-token\n")
    live = make_live(host="127.0.0.1", port=0, token_file=given, directory=tmp_path / "c")
    assert status(live.run(raw(live, head()))) == 401
    line = "Authorization: Bearer long-enough-to-be-a-token"
    assert status(live.run(raw(live, head("/v1/health", line)))) == 200


def test_https_with_a_certificate(make_live: Make, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
            ),
            *(
                "-keyout",
                key,
                "-out",
                certificate,
                "-days",
                "2",
                "-nodes",
                "-subj",
                "/CN=localhost",
            ),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    live = make_live(
        host="127.0.0.1", port=0, certificate=certificate, key=key, directory=tmp_path / "d"
    )
    assert live.server.url.startswith("https://127.0.0.1:")
    trusted = ssl.create_default_context(cafile=certificate)

    async def ask() -> Any:
        url = f"{live.server.url}/v1/health"
        async with aiohttp.ClientSession() as session, session.get(url, ssl=trusted) as response:
            return await response.json()

    assert live.run(ask())["status"] == "ok"
    # Who does not speak TLS learns nothing.
    assert b"HTTP" not in live.run(raw(live, head()))
    with pytest.raises(CommandError, match="cannot use the certificate"):
        make_live(host="127.0.0.1", port=0, certificate=key, directory=tmp_path / "e")


def test_an_address_in_use_is_an_error_with_a_hint(networked: LiveBench, make_live: Make) -> None:
    with pytest.raises(CommandError, match=r"cannot listen on 127\.0\.0\.1:.*name another address"):
        make_live(host="127.0.0.1", port=port(networked))


def test_a_body_that_never_ends_is_refused_at_the_limit(networked: LiveBench) -> None:
    async def send() -> bytes:
        reader, writer = await connect(networked)
        writer.write(
            head(
                "/v1/jobs",
                "Content-Type: application/json",
                "Content-Length: 99999999999",
                method="POST",
            )
        )
        sent = 0
        answering = asyncio.create_task(reader.read())
        while not answering.done() and sent < 64 << 20:
            writer.write(b" " * (1 << 16))
            sent += 1 << 16
            try:
                await writer.drain()
            except ConnectionError:
                break
        writer.close()
        return await answering

    try:
        answer = networked.run(send())
    except ConnectionResetError:
        return
    assert status(answer) == 413


def test_the_rest_of_a_refused_document_is_not_waited_for(networked: LiveBench) -> None:
    """Without being asked to, the server closes the connection."""
    lines = ("Content-Type: application/json", "Content-Length: 1000", "Origin: http://elsewhere")
    data = head("/v1/jobs", *lines, method="POST").replace(b"Connection: close\r\n", b"")
    answer = networked.run(asyncio.wait_for(raw(networked, data + b"{"), 20))
    assert status(answer) == 403
    assert b"connection: close" in answer.lower()


def test_a_bomb_is_not_unpacked(networked: LiveBench) -> None:
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join([packer.compress(bytes(1 << 20)) for _ in range(64)]) + packer.flush()
    lines = ("Content-Type: application/json", "Content-Encoding: gzip")
    data = head("/v1/jobs", *lines, f"Content-Length: {len(bomb)}", method="POST") + bomb
    assert status(networked.run(raw(networked, data))) == 413


def test_a_client_that_sends_its_head_slowly_is_cut_off(
    make_live: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEAD_TIMEOUT", 0.2)
    live = make_live(host="127.0.0.1", port=0)

    async def trickle(data: bytes) -> bytes:
        reader, writer = await connect(live)
        reading = asyncio.create_task(reader.read())
        for at in range(len(data)):
            writer.write(data[at : at + 1])
            done, _ = await asyncio.wait({reading}, timeout=0.05)
            if done:
                break
        writer.close()
        return await reading

    assert live.run(trickle(b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n")) == b""
    # Nor is one waited for that says nothing at all.
    assert live.run(raw(live, b"")) == b""


def test_a_client_that_sends_its_body_slowly_is_cut_off(
    networked: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "BODY_TIMEOUT", 0.1)
    lines = ("Content-Type: application/json", "Content-Length: 100")
    answer = networked.run(raw(networked, head("/v1/jobs", *lines, method="POST") + b"{"))
    assert status(answer) == 408
    problem = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert problem["detail"] == "the document did not come in time; expected at most 0.1 s"


def test_connections_are_limited_while_others_are_answered(
    make_live: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 5)
    live = make_live(host="127.0.0.1", port=0)

    async def crowd() -> None:
        kept = []
        for _ in range(5):
            kept.append(await connect(live))
            # The server has it when it answers.
            kept[-1][1].write(head().replace(b"Connection: close\r\n", b""))
            await kept[-1][0].readuntil(b"\r\n\r\n")
        refused = await raw(live, b"")
        assert status(refused) == 503
        assert b"too many connections" in refused
        assert status(await raw(live, head(), network=False)) == 200
        kept[0][1].write(head("/v1/fleet"))
        assert b"200 OK" in await kept[0][0].read()
        # There is room again.
        while status(await raw(live, head())) != 200:
            pass
        for _, writer in kept:
            writer.close()

    live.run(crowd())


def test_a_watcher_that_never_reads_is_dropped_and_nobody_waits_for_it(
    make_live: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_routes, "PATIENCE", 0.3)
    live = make_live()
    big = live.submit(job(["sh", "-c", "head -c 8000000 /dev/zero"]))
    live.over(big)

    async def watch() -> None:
        before = len(os.listdir("/proc/self/fd"))
        deaf = [await connect(live, network=False) for _ in range(4)]
        for reader, writer in deaf:
            writer.transport.pause_reading()
            assert reader is not None
            writer.write(head(f"/v1/jobs/{big}/tasks/0/logs"))
        # Others are answered at once, and the server keeps little for those who do not read.
        for _ in range(20):
            assert (await live.ask("GET", "/v1/health")).status == 200
        connections = [each for each in live.server_connections() if each.transport is not None]
        for each in connections:
            assert each.transport.get_write_buffer_size() < 2 << 20
        while live.server.metrics.text().count(b'code="499"} 4') == 0:
            await live.ask("GET", "/v1/health")
        # The server's ends are gone, although the clients' still are there.
        while len(os.listdir("/proc/self/fd")) > before + len(deaf) + 1:
            await live.ask("GET", "/v1/health")
        for _, writer in deaf:
            writer.transport.abort()

    live.run(watch())


@pytest.mark.parametrize("data", [b"GARBAGE\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"\0" * 100])
def test_what_is_no_http_is_refused_and_not_logged(
    networked: LiveBench, capfd: pytest.CaptureFixture[str], data: bytes
) -> None:
    answer = networked.run(raw(networked, data))
    assert answer == b"" or status(answer) == 400
    assert capfd.readouterr() == ("", "")


def test_a_head_that_is_too_large_is_refused(networked: LiveBench) -> None:
    answer = networked.run(raw(networked, head("/v1/health", "X: " + "x" * 100_000)))
    assert status(answer) in (400, 431)


def test_an_unforeseen_error_is_a_problem_and_stands_in_the_log(
    networked: LiveBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*ignored: Any, **options: Any) -> Any:
        raise LookupError("secret detail")

    monkeypatch.setattr(networked.server.backend.reading, "jobs", broken)
    answer = networked.get("/v1/jobs")
    problem = answer.problem(500, "internal")
    assert problem["detail"] == "an internal error: LookupError; the server's log has the details"
    assert any("secret detail" in line for line in networked.log)
    assert networked.get("/v1/health").status == 200


def test_answers_do_not_tell_what_the_server_is_made_of(networked: LiveBench) -> None:
    answer = networked.get("/v1/health")
    assert answer.headers["Server"] == "argosy"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"
