"""The page in a real browser, on a real cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from browser import Browser, Tab, browser, skip_without_browser
from live_server import LiveServer, live_server

TOKEN = "a-token-of-some-length"
HOSTILE = '</td><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\'"&lt;'
SMALL = {"cpu": "10m", "memory": "16MiB"}
#: Everything that is loaded once is there.
LOADED = """document.querySelector('#status').dataset.state === 'live'
  && document.querySelector('.tile') && document.querySelector('.cell')
  && document.querySelector('#page-number').textContent && document.querySelector('#heat-by option')
  && (document.querySelector('#jobs tbody tr') || !document.querySelector('#jobs-empty').hidden)"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser(skip_without_browser()) as started:
        yield started


@pytest.fixture(scope="module")
def cluster(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with live_server(tmp_path_factory.mktemp("page") / "cluster", "--machines", "2") as server:
        yield server


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Tab]:
    """A tab in which nothing may go wrong, and which asks nobody but its server."""
    made = chromium.tab()
    yield made
    assert made.errors == []
    hosts = {urlsplit(each).hostname for each in made.requests}
    assert hosts <= {"127.0.0.1"}


def submit(server: LiveServer, command: str = "sleep 1000", **keys: Any) -> str:
    with server.client() as client:
        return client.submit({"command": command, "request": SMALL, **keys}).id


def cancel(server: LiveServer, job: str) -> None:
    with server.client() as client:
        client.cancel(job)
        client.wait(job)


def open_page(tab: Tab, server: LiveServer, where: str = "") -> None:
    tab.open(f"{server.url}/{where}")
    tab.until(LOADED)


def without_clock(tab: Tab) -> None:
    """The page asks for nothing by the clock: an event has to tell it."""
    tab.call("Page.addScriptToEvaluateOnNewDocument", source="window.setInterval = () => 0")


def tile(name: str) -> str:
    return f"[data-tile={name}] .value"


def test_a_job_is_shown_with_its_task_its_why_and_its_story(tab: Tab, cluster: LiveServer) -> None:
    job = submit(cluster, name="too large", request={"cpu": "5000"})
    with cluster.client() as client:
        why, story = client.why(job, 0).text, client.story(job, 0).lines
    open_page(tab, cluster)
    tab.until_text("#jobs tbody", "too large")
    tab.click(f"#jobs a[href='#/task/{job}/0']")
    tab.until("document.querySelector('#detail').open")
    assert tab.text("#detail-title") == f"Task {job}/0"
    told = tab.evaluate("[...document.querySelectorAll('#why p')].map((each) => each.textContent)")
    assert told == list(why)
    lines = tab.evaluate(
        "[...document.querySelectorAll('#story li span')].map((each) => each.textContent)"
    )
    assert lines[0] == story[0].text
    assert "pending" in tab.text("#detail-body dl")
    tab.press("Escape")
    tab.until("!document.querySelector('#detail').open && location.hash === ''")
    cancel(cluster, job)


def test_what_happens_is_shown_without_loading_the_page_again(
    tab: Tab, cluster: LiveServer
) -> None:
    without_clock(tab)
    open_page(tab, cluster)
    tab.evaluate("window.same = true")
    before = int(tab.text(tile("running")))
    job = submit(cluster, name="now", count=3)
    row = f"#jobs tr:has(a[href='#/job/{job}'])"
    tab.until_text(row, "3 running")
    tab.until_text("#events", f"{job}/2 running on local-")
    tab.until_text(tile("running"), str(before + 3))
    idle = "/ 0 running/.test(each.getAttribute('aria-label'))"
    tab.until(f"[...document.querySelectorAll('.cell')].some((each) => !{idle})")
    cancel(cluster, job)
    tab.until_text(row, "3 cancelled")
    tab.until_text(tile("running"), str(before))
    assert tab.evaluate("window.same") is True


def test_an_open_task_follows_its_events(tab: Tab, cluster: LiveServer) -> None:
    without_clock(tab)
    job = submit(cluster)
    open_page(tab, cluster, f"#/task/{job}/0")
    tab.until_text("#detail-body dl", "running")
    # Once another event has been shown, nothing is left to be asked from when the page was opened.
    other = submit(cluster, "true")
    tab.until_text("#jobs tbody", other)
    tab.until_text("#events", f"{other}/0 finished")
    cancel(cluster, job)
    tab.until_text("#detail-body dl", "cancelled")
    tab.until_text("#story", "cancelled")


def test_a_machine_shows_what_runs_there_and_keys_are_enough(tab: Tab, cluster: LiveServer) -> None:
    job = submit(cluster, count=8)
    open_page(tab, cluster)
    tab.until_text("#jobs tbody", "8 running")
    tab.evaluate("document.querySelector('.cell').focus()")
    tab.press("ArrowRight")
    name = tab.evaluate("document.activeElement.dataset.machine")
    assert name == "local-1"
    assert tab.text("#readout").startswith("local-1: CPU cores")
    tab.press("Enter")
    tab.until_text("#detail-title", "Machine local-1")
    with cluster.client() as client:
        here = [each.index for each in client.tasks(job) if each.machine == name]
    shown = tab.evaluate(
        "[...document.querySelectorAll('.list-of-tasks a')].map((each) => each.textContent)"
    )
    assert set(shown) >= {f"{job}/{index}" for index in here}
    tab.press("Escape")
    tab.until("!document.querySelector('#detail').open")
    assert tab.evaluate("document.activeElement.dataset.machine") == name
    cancel(cluster, job)


def test_what_a_job_is_called_is_shown_and_never_run(tab: Tab, cluster: LiveServer) -> None:
    job = submit(cluster, name=HOSTILE, owner=HOSTILE[:60], kind="<b>kind</b>", count=2)
    open_page(tab, cluster)
    tab.until_text("#jobs tbody", HOSTILE)
    assert HOSTILE[:60] in tab.text("#jobs tbody")
    tab.evaluate(f"location.hash = '#/job/{job}'")
    tab.until_text("#detail-title", HOSTILE)
    tab.until_text("#detail-body", "<b>kind</b>")
    tab.evaluate(
        "location.hash = '#/machine/' + encodeURIComponent('<img src=x onerror=alert(1)>')"
    )
    tab.until_text("#detail-title", "Not found")
    assert tab.evaluate("typeof window.hacked") == "undefined"
    assert (
        tab.evaluate("document.querySelectorAll('main img, dialog img, main script').length") == 0
    )
    tab.errors[:] = [each for each in tab.errors if "404" not in each]
    cancel(cluster, job)


def test_jobs_are_asked_for_page_by_page(tab: Tab, cluster: LiveServer) -> None:
    jobs = [submit(cluster, "true", name=f"many {number}") for number in range(60)]
    open_page(tab, cluster)
    count = "document.querySelectorAll('#jobs tbody tr').length"
    tab.until(f"{count} === 25 && !document.querySelector('#older').disabled")
    tab.until_text("#jobs tbody", "many 59")
    tab.click("#older")
    tab.until_text("#page-number", "Page 2")
    tab.until_text("#jobs tbody", "many 34")
    tab.click("#newer")
    tab.until_text("#page-number", "Page 1")
    tab.evaluate("document.querySelector('#match').focus()")
    tab.type("many 17")
    tab.until(f"{count} === 1")
    assert jobs[17] in tab.text("#jobs tbody")
    tab.type(" and nothing else")
    tab.until_text("#jobs-empty", "Nothing matches.")
    asked = [urlsplit(each).query for each in tab.requests if urlsplit(each).path == "/v1/jobs"]
    assert asked
    assert all("limit=25" in each for each in asked)


def test_tasks_that_run_or_wait_can_be_listed_by_state(tab: Tab, cluster: LiveServer) -> None:
    job = submit(cluster, count=2)
    open_page(tab, cluster)
    tab.click("input[value=tasks]")
    tab.until_text("#jobs tbody", f"{job}/1")
    choose = "const at = document.querySelector('#state'); at.value = 'pending';"
    tab.evaluate(f"{choose} at.dispatchEvent(new Event('change'))")
    tab.until_text("#jobs-empty", "Nothing matches.")
    cancel(cluster, job)


@pytest.mark.parametrize("width", [400, 800, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_keeps_to_the_colours_that_are_wanted(
    tab: Tab, cluster: LiveServer, width: int, scheme: str
) -> None:
    tab.look_like(width, 800, prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
    open_page(tab, cluster)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    level = int(ground.partition("(")[2].partition(",")[0])
    assert (level > 128) == (scheme == "light")
    style = "getComputedStyle(document.querySelector('.cell')).transitionDuration"
    assert tab.evaluate(style) == "0s"


def test_on_paper_there_is_nothing_to_press(tab: Tab, cluster: LiveServer) -> None:
    open_page(tab, cluster)
    tab.call("Emulation.setEmulatedMedia", media="print")
    seen = (
        "[...document.querySelectorAll('button, select, input')].filter((e) => e.checkVisibility())"
    )
    assert tab.evaluate(f"{seen}.length") == 0
    assert tab.evaluate("document.querySelector('.cell').checkVisibility()")


def test_everything_that_can_be_pressed_has_a_name(tab: Tab, cluster: LiveServer) -> None:
    open_page(tab, cluster)
    tab.call("Accessibility.enable")
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "link", "combobox", "searchbox", "radio", "table", "heading"}
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in roles
    ]
    assert {role for role, _ in named} >= roles - {"link"}
    assert [role for role, name in named if not name.strip()] == []


def test_the_token_is_asked_for_once_and_kept_out_of_the_address(
    chromium: Browser, tmp_path: Path
) -> None:
    secret = tmp_path / "token"
    secret.write_text(TOKEN)
    tab = chromium.tab()
    with live_server(tmp_path / "cluster", "--token-file", str(secret)) as server:
        tab.open(server.url)
        tab.until("document.querySelector('#token').open")
        assert tab.evaluate("document.activeElement.id") == "token-field"
        tab.type("some-other-token")
        tab.press("Enter")
        tab.until_text("#token-problem", "wrong token")
        tab.until("document.querySelector('#token').open")
        tab.type(TOKEN)
        tab.press("Enter")
        tab.until(LOADED)
        job = submit(server)
        tab.until_text("#jobs tbody", job)
        tab.open(f"{server.url}/?again")
        tab.until(LOADED)
        assert not tab.evaluate("document.querySelector('#token').open")
        assert all(TOKEN not in each for each in tab.requests)
        assert tab.evaluate("localStorage.length + document.cookie.length") == 0
        other = chromium.tab()
        other.open(server.url)
        other.until("document.querySelector('#token').open")
        cancel(server, job)
    # A browser logs every refused request by itself; there is nothing else.
    assert [each for each in tab.errors if "401" not in each and "ERR_" not in each] == []


def test_a_server_that_goes_is_missed_and_found_again(chromium: Browser, tmp_path: Path) -> None:
    tab = chromium.tab()
    directory = tmp_path / "cluster"
    with live_server(directory) as server:
        open_page(tab, server)
        port = urlsplit(server.url).port
        server.stop()
        tab.until_text("#banner", "does not answer")
        assert tab.text("#status") == "Not connected"
        with live_server(directory, "--listen", f"127.0.0.1:{port}") as again:
            tab.click("#banner-retry")
            tab.until("document.querySelector('#banner').hidden")
            tab.until(LOADED)
            job = submit(again, name="afterwards")
            tab.until_text("#jobs tbody", "afterwards")
            cancel(again, job)
    exceptions = [each for each in tab.errors if "ERR_" not in each]
    assert exceptions == []


def test_a_token_for_less_is_told_so(chromium: Browser, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[[tokens]]\nname = "looker"\ntoken = "{TOKEN}"\nscope = "sample"\n')
    tab = chromium.tab()
    with live_server(tmp_path / "cluster", "--tokens", str(tokens)) as server:
        tab.open(server.url)
        tab.until("document.querySelector('#token').open")
        tab.type(TOKEN)
        tab.press("Enter")
        tab.until_text("#banner", "the token of looker is for the scope sample")


def test_no_script_but_its_own_is_run(tab: Tab, cluster: LiveServer) -> None:
    open_page(tab, cluster)
    script = json.dumps("window.hacked = 1")
    tab.evaluate(
        "try { const made = document.createElement('script'); "
        f"made.textContent = {script}; document.head.append(made); }} catch {{}}"
    )
    assert tab.evaluate("typeof window.hacked") == "undefined"
    assert tab.errors
    tab.errors.clear()
