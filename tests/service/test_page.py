"""The files of the page, as a server sends them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from live_bench import LiveBench

FOLDER = Path(__file__).parents[2] / "src" / "argosy" / "service" / "web"
PATHS = sorted(
    "/" if file.name == "index.html" else f"/page/{file.name}" for file in FOLDER.iterdir()
)
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@pytest.fixture(scope="module")
def tokened(tmp_path_factory: pytest.TempPathFactory) -> Any:
    token = tmp_path_factory.mktemp("secret") / "token"
    token.write_text("sixteen-characters")
    bench = LiveBench(tmp_path_factory.mktemp("token"), host="127.0.0.1", port=0, token_file=token)
    yield bench
    bench.close()


@pytest.mark.parametrize("path", PATHS)
def test_every_file_is_sent_as_what_it_is(live: LiveBench, path: str) -> None:
    answer = live.get(path)
    assert answer.status == 200
    expected = TYPES.get(path.rpartition(".")[2], "text/html")
    assert answer.headers["Content-Type"].partition(";")[0] == expected
    assert (
        answer.body
        == (FOLDER / (path.removeprefix("/page/").strip("/") or "index.html")).read_bytes()
    )


@pytest.mark.parametrize("path", PATHS)
def test_a_browser_keeps_a_file_until_it_changes(live: LiveBench, path: str) -> None:
    first = live.get(path)
    assert first.headers["Cache-Control"] == "no-cache"
    again = live.get(path, headers={"If-None-Match": first.etag})
    assert (again.status, again.body, again.etag) == (304, b"", first.etag)
    assert again.headers["Content-Security-Policy"] == first.headers["Content-Security-Policy"]
    assert live.get(path, headers={"If-None-Match": '"other"'}).status == 200


@pytest.mark.parametrize("path", PATHS)
def test_the_page_runs_its_own_files_only_and_in_no_frame(live: LiveBench, path: str) -> None:
    headers = live.get(path).headers
    rules = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
    assert rules["default-src"] == "'none'"
    assert {rules[f"{kind}-src"] for kind in ("script", "style", "img", "connect")} == {"'self'"}
    assert rules["require-trusted-types-for"] == "'script'"
    for kind in ("trusted-types", "frame-ancestors", "base-uri", "form-action"):
        assert rules[kind] == "'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Server"] == "argosy"


@pytest.mark.parametrize("path", PATHS)
def test_the_files_need_no_token_and_what_they_ask_for_does(tokened: LiveBench, path: str) -> None:
    async def statuses(*paths: str) -> list[int]:
        async with aiohttp.ClientSession(base_url=tokened.server.url) as client:
            return [(await client.get(each)).status for each in paths]

    asked = tokened.run(statuses(path, "/v1/summary", "/v1/events", "/v1/jobs"))
    assert asked == [200, 401, 401, 401]


def test_a_link_of_another_site_may_lead_to_the_page(live: LiveBench) -> None:
    assert live.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status == 200
    live.get("/v1/summary", headers={"Sec-Fetch-Site": "cross-site"}).problem(403, "forbidden")


@pytest.mark.parametrize(
    "path",
    ["/page", "/page/", "/page/index.html", "/page/..%2Fserver.py", "/index.html", "/page/x.js"],
)
def test_nothing_else_is_sent(live: LiveBench, path: str) -> None:
    live.get(path).problem(404, "not-found")


def test_the_page_is_only_read(live: LiveBench) -> None:
    assert live.post("/", {}).problem(405, "method")


def test_files_name_each_other_and_nothing_elsewhere() -> None:
    for file in FOLDER.iterdir():
        text = file.read_text()
        named = re.findall(r'(?:from |import |src=|href=)"([^"#]+)"', text)
        for name in named:
            assert (FOLDER / name.removeprefix("./").removeprefix("page/")).exists(), name
        addresses = set(re.findall(r"https?://[^\s\"'<]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not addresses, file


def test_no_text_of_a_cluster_can_become_markup() -> None:
    for file in FOLDER.glob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", file.read_text()
        )


def test_a_server_without_a_network_has_the_page_on_its_socket(
    make_live: Callable[..., LiveBench],
) -> None:
    assert b"<title>Argosy</title>" in make_live().get("/").body
