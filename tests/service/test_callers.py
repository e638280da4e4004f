"""Tokens of schedulers: scopes, limits and expiry; certificates; and hostile requests."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hostile_scheduler import TOKENS, attack
from live_bench import LiveBench, job

from argosy.client.agent_connection import AgentLink, AgentUnreached
from argosy.client.endpoints import parse_endpoint
from argosy.model.errors import CommandError
from argosy.service.callers import Caller, TokenTable, read_tokens
from argosy.service.problems import TooMany

Make = Callable[..., LiveBench]

FILE = """
[[tokens]]
name = "looks"
token = "looks-looks-looks-looks"
scope = "sample"

[[tokens]]
name = "places"
token = "places-places-places"
reservations = 1

[[tokens]]
name = "other"
token = "other-other-other-other"

[[tokens]]
name = "runs"
token = "runs-runs-runs-runs-runs"
scope = "operate"

[[tokens]]
name = "late"
token = "late-late-late-late"
expires = 2020-01-01T00:00:00Z
"""
ASKED = {"request": {"cpu": 100}}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("tokens")
    (directory / "tokens.toml").write_text(FILE)
    bench = LiveBench(
        directory / "cluster", host="127.0.0.1", port=0, tokens=directory / "tokens.toml"
    )
    yield bench
    bench.close()


def ask(live: LiveBench, who: str, method: str, path: str, document: Any = None) -> Any:
    tokens = {line.split('"')[1] for line in FILE.splitlines() if line.startswith("token")}
    token = next((each for each in tokens if each.startswith(who)), "")

    async def send() -> Any:
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": f"{who}-key"}
        async with aiohttp.ClientSession() as session:
            url = f"{live.server.url}{path}"
            async with session.request(method, url, json=document, headers=headers) as answer:
                return answer.status, await answer.json() if answer.status != 204 else None

    return live.run(send())


@pytest.mark.parametrize(
    ("who", "method", "path", "document", "status"),
    [
        ("looks", "POST", "/v1/sample", ASKED, 200),
        ("looks", "GET", "/v1/machines", None, 200),
        ("looks", "GET", "/v1/commits", None, 403),
        ("looks", "POST", "/v1/reservations", {"machine": "m0", **ASKED}, 403),
        ("looks", "GET", "/v1/jobs", None, 403),
        ("places", "POST", "/v1/sample", ASKED, 200),
        ("places", "GET", "/v1/commits", None, 200),
        ("places", "GET", "/v1/jobs", None, 403),
        ("places", "POST", "/v1/shutdown", None, 403),
        ("runs", "GET", "/v1/jobs", None, 200),
        ("late", "POST", "/v1/sample", ASKED, 401),
        ("nobody", "POST", "/v1/sample", ASKED, 401),
    ],
)
def test_a_token_is_for_its_scope(
    guarded: LiveBench, who: str, method: str, path: str, document: Any, status: int
) -> None:
    found, answer = ask(guarded, who, method, path, document)
    assert found == status, answer
    if status == 403:
        assert f"the token of {who} is for the scope" in answer["detail"]


#: All others are for operators alone.
FOR_SCHEDULERS = (
    ("commit", "DELETE", "/v1/commits/{key}"),
    ("commit", "DELETE", "/v1/reservations/{reservation}"),
    ("commit", "GET", "/v1/commits"),
    ("commit", "GET", "/v1/commits/{key}"),
    ("commit", "GET", "/v1/events"),
    ("commit", "GET", "/v1/reservations"),
    ("commit", "POST", "/v1/commits"),
    ("commit", "POST", "/v1/reservations"),
    ("sample", "GET", "/healthz"),
    ("sample", "GET", "/livez"),
    ("sample", "GET", "/metrics"),
    ("sample", "GET", "/readyz"),
    ("sample", "GET", "/v1/health"),
    ("sample", "GET", "/v1/machines"),
    ("sample", "GET", "/v1/machines/{machine}"),
    ("sample", "GET", "/v1/openapi.json"),
    ("sample", "GET", "/v1/place"),
    ("sample", "POST", "/v1/sample"),
)


def test_what_schedulers_may_ask_is_this_and_no_more(guarded: LiveBench) -> None:
    found = {
        (route.scope, route.method, route.path)
        for route in guarded.server.routes
        if route.scope != "operate"
    }
    assert sorted(found) == list(FOR_SCHEDULERS)


def test_the_socket_needs_no_token(guarded: LiveBench) -> None:
    assert guarded.get("/v1/jobs").status == 200


def test_jobs_belong_to_whoever_committed_them(guarded: LiveBench) -> None:
    order = {"job": job("sleep 1000", id="mine"), "machines": ["m3"]}
    assert ask(guarded, "places", "POST", "/v1/commits", order)[0] == 201
    assert guarded.read("/v1/jobs/mine")["scheduler"] == "places"
    assert ask(guarded, "other", "GET", "/v1/commits/places-key")[0] == 404
    assert ask(guarded, "other", "DELETE", "/v1/commits/places-key")[1]["job"] is None
    assert guarded.read("/v1/jobs/mine")["state"] == "running"
    assert ask(guarded, "places", "DELETE", "/v1/commits/places-key")[1]["job"] == "mine"


def test_reservations_belong_to_whoever_made_them_and_are_limited(guarded: LiveBench) -> None:
    asked = {"machine": "m0", "request": {"cpu": 1}}
    status, made = ask(guarded, "places", "POST", "/v1/reservations", asked)
    assert status == 201
    status, problem = ask(guarded, "places", "POST", "/v1/reservations", asked)
    assert (status, problem["code"]) == (429, "too-many")
    assert ask(guarded, "other", "DELETE", f"/v1/reservations/{made['id']}")[0] == 403
    order = {"job": job(id="thief"), "machines": ["m0"], "reservation": made["id"]}
    assert ask(guarded, "other", "POST", "/v1/commits", order)[0] == 403
    assert ask(guarded, "places", "DELETE", f"/v1/reservations/{made['id']}")[0] == 204


def test_requests_at_once_and_their_rate_are_limited() -> None:
    now = 0.0
    table = TokenTable(name="a", token="-" * 16, requests=2, rate=10)
    caller = Caller(table, lambda: now)
    with caller.request(), caller.request(), pytest.raises(TooMany, match="2 requests under way"):
        caller.request().__enter__()
    for _ in range(8):
        with caller.request():
            pass
    with pytest.raises(TooMany, match="asks too often"):
        caller.request().__enter__()
    now = 0.1
    with caller.request():
        pass
    with pytest.raises(TooMany):
        caller.request().__enter__()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no tokens"),
        ('[[tokens]]\nname = "a"\ntoken = "short"\n', "unfit tokens"),
        ('[[tokens]]\nname = "a/b"\ntoken = "1234567890123456"\n', "unfit tokens"),
        ('[[tokens]]\nname = "a"\ntoken = "1234567890123456"\nscope = "all"\n', "unfit tokens"),
        ('[[tokens]]\nname = "a"\ntoken = "1234567890123456"\nrank = 1\n', "unfit tokens"),
        ('[[tokens]]\nname = "a"\ntoken = "1234567890123456"\n' * 2, "the same name"),
        (
            '[[tokens]]\nname = "a"\ntoken = "1234567890123456"\nexpires = 2030-01-01T00:00:00\n',
            "without a zone",
        ),
        ("[[tokens", "cannot read the tokens"),
    ],
)
def test_a_file_of_tokens_that_cannot_be_used_is_refused(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(CommandError, match=problem) as error:
        read_tokens(path)
    assert "1234567890123456" not in str(error.value)


def test_clients_need_a_certificate_if_the_server_says_so(make_live: Make, tmp_path: Path) -> None:
    for name in ("server", "client", "stranger"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
             "-keyout", tmp_path / f"{name}.key", "-out", tmp_path / f"{name}.crt"],
            check=True, capture_output=True,
        )  # fmt: skip
    live = make_live(
        directory=tmp_path / "cluster",
        host="127.0.0.1",
        port=0,
        certificate=tmp_path / "server.crt",
        key=tmp_path / "server.key",
        client_ca=tmp_path / "client.crt",
    )

    def link(name: str | None) -> AgentLink:
        context = ssl.create_default_context(cafile=tmp_path / "server.crt")
        if name is not None:
            context.load_cert_chain(tmp_path / f"{name}.crt", tmp_path / f"{name}.key")
        return AgentLink(parse_endpoint(live.server.url, "agent"), tls=context)

    async def health(name: str | None) -> int:
        made = link(name)
        try:
            return (await made.ask("GET", "/v1/health")).status
        finally:
            made.close()

    assert live.run(health("client")) == 200
    for name in (None, "stranger"):
        with pytest.raises(AgentUnreached):
            live.run(health(name))


def test_a_slow_client_does_not_stall_others(guarded: LiveBench) -> None:
    endpoint = parse_endpoint(guarded.server.url, "agent")

    async def beside() -> list[int]:
        slow = []
        for _ in range(50):
            _, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
            writer.write(
                b"POST /v1/sample HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                b"Authorization: Bearer places-places-places\r\nContent-Length: 1000\r\n\r\n{"
            )
            slow.append(writer)
        link = AgentLink(endpoint, "looks-looks-looks-looks", timeout=20)
        body = b'{"request": {"cpu": 100}}'
        found = [(await link.ask("POST", "/v1/sample", body)).status for _ in range(20)]
        link.close()
        for writer in slow:
            writer.transport.abort()
        return found

    assert guarded.run(beside()) == [200] * 20


def test_hostile_requests_are_refused_with_a_reason_and_leave_nothing(
    make_live: Make, tmp_path: Path
) -> None:
    (tmp_path / "tokens.toml").write_text(TOKENS)
    live = make_live(
        directory=tmp_path / "cluster",
        host="127.0.0.1",
        port=0,
        tokens=tmp_path / "tokens.toml",
        tasks="simulated",
    )
    hostile = live.run(attack(live.server.url, 400, 7))
    assert hostile.wrong == []
    assert sum(hostile.statuses.values()) == 400
    live.server.cluster.world.host.cell.require_sound()
