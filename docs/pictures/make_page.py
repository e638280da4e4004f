"""Draws page-light.png, page-dark.png and page-narrow.png: the page of a live cluster.

    python docs/pictures/make_page.py

Starts a cluster of its own with a few jobs, and needs Chromium.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "support"))

from browser import browser, find_browser  # noqa: E402
from live_server import LiveServer, live_server  # noqa: E402

SCENARIO: Final = """\
name = "harbour"
[cell]
[[cell.machines]]
name = "berth"
count = 36
capacity = { cpu = 4000, memory = "16GiB" }
[[fleet]]
name = "batch"
engine = "omega"
takes = { kinds = ["batch"] }
[[fleet]]
name = "services"
engine = "medea"
settings = { interval = "1s" }
takes = { kinds = ["service"] }
"""
READY: Final = """document.querySelector('#status').dataset.state === 'live'
  && document.querySelectorAll('.cell').length === 36
  && document.querySelectorAll('#jobs tbody tr').length === 9
  && document.querySelector('#events li')"""


def submit(server: LiveServer, **keys: Any) -> str:
    with server.client() as client:
        return client.submit({"command": "sleep 1000", **keys}).id


def fill(server: LiveServer) -> str:
    """Returns the id of a job that waits."""
    cores = [("1", 30), ("500m", 24), ("2", 12), ("1500m", 8), ("250m", 16)]
    for number, (cpu, count) in enumerate(cores):
        request = {"cpu": cpu, "memory": f"{1 + number}GiB"}
        submit(
            server,
            id=f"crawl-{number}",
            name="nightly crawl",
            owner="search",
            count=count,
            request=request,
        )
    for name, count in (("web", 6), ("queue", 3)):
        submit(
            server,
            id=name,
            kind="service",
            owner="shop",
            count=count,
            request={"cpu": "1", "memory": "2GiB"},
        )
    done = submit(
        server, id="broken", owner="shop", command="false", request={"cpu": "1", "memory": "1GiB"}
    )
    with server.client() as client:
        client.wait(done)
        for name in ("web", "queue"):
            next(job for job in client.watch(name) if not job.tasks.pending)
    return submit(server, id="train", owner="lab", request={"cpu": "6", "memory": "12GiB"})


def main() -> None:
    program = find_browser()
    if program is None:
        sys.exit("Chromium is not installed")
    with TemporaryDirectory() as folder, browser(program) as started:
        scenario = Path(folder) / "harbour.toml"
        scenario.write_text(SCENARIO)
        with live_server(Path(folder) / "cluster", str(scenario)) as server:
            waiting = fill(server)
            for name, width, height, scheme, where in (
                ("page-light", 1280, 1000, "light", ""),
                ("page-dark", 1280, 760, "dark", f"#/task/{waiting}/0"),
                ("page-narrow", 400, 1000, "light", ""),
            ):
                tab = started.tab()
                tab.look_like(width, height, prefers_color_scheme=scheme)
                tab.open(f"{server.url}/{where}")
                tab.until(READY)
                if where:
                    tab.until("document.querySelector('#detail').open")
                (HERE / f"{name}.png").write_bytes(tab.screenshot())


if __name__ == "__main__":
    main()
