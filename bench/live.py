"""How fast a live cluster runs real tasks, and how quickly it answers meanwhile. Run by hand:

python bench/live.py [rate | latency | history] [--engine NAME] [--seconds N]

rate     `true` as 2,000 jobs of one task, and as one job of 2,000: submitted, scheduled, started, ended,
         every step on the disk. Peer in the same run: `xargs -P`, which stores nothing.
latency  1,000 short tasks a minute together with 200 requests a second, for a minute: percentiles of
         the answers, and memory.
history  how long `argosy up` takes until it answers, and a list of jobs, with 100,000 jobs that
             are over.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp

from startup import BARE, medians

ARGOSY = (sys.executable, "-m", "argosy.cli")
TASKS = 2_000
CONNECTIONS = 16
TICK = os.sysconf("SC_CLK_TCK")
JOB = {"request": {"cpu": "1m", "memory": "1MiB"}, "command": ["/bin/true"]}


class LiveServer:
    """A server of its own in a new directory."""

    def __init__(self, directory: Path, engine: str) -> None:
        self.directory = directory
        self._engine = engine

    async def start(self) -> float:
        """Returns the seconds until it answered."""
        is_new = not (self.directory / "argosy.db").exists()
        made = ["--machines", "4", "--engine", self._engine] if is_new else []
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "argosy.cli",
                "up",
                "--dir",
                self.directory,
                "--listen",
                "none",
                *made,
            ],
            stderr=subprocess.DEVNULL,
        )
        while True:
            with contextlib.suppress(aiohttp.ClientError, OSError):
                async with self.session() as session, session.get("http://x/v1/health") as answer:
                    if answer.status == 200:
                        return time.perf_counter() - began
            await asyncio.sleep(0.005)

    def session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(str(self.directory / "argosy.sock"), limit=CONNECTIONS)
        )

    def cpu(self) -> float:
        """Seconds of the server alone, without its tasks and their supervisors."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self) -> float:
        """MiB that are resident."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


@contextlib.asynccontextmanager
async def live_server(engine: str) -> AsyncIterator[LiveServer]:
    with tempfile.TemporaryDirectory() as folder:
        server = LiveServer(Path(folder), engine)
        await server.start()
        try:
            yield server
        finally:
            server.stop()


async def submit(
    session: aiohttp.ClientSession, turns: asyncio.Semaphore | None = None, **changes: object
) -> str:
    async with (
        turns or contextlib.nullcontext(),
        session.post("http://x/v1/jobs", json={**JOB, **changes}) as answer,
    ):
        document = await answer.json()
        assert answer.status == 201, document
        return str(document["id"])


async def ended(session: aiohttp.ClientSession, after: str, jobs: int) -> None:
    """Waits until so many jobs are over."""
    timeout = aiohttp.ClientTimeout(total=None)
    async with session.get(f"http://x/v1/events?after={after}", timeout=timeout) as stream:
        async for line in stream.content:
            if line.startswith(b"data: ") and b'"what":"job"' in line:
                jobs -= json.loads(line[6:])["state"] in ("finished", "failed")
                if jobs == 0:
                    return


async def rate(engine: str) -> None:
    rows = []
    for name, jobs, count in (
        (f"{TASKS:,} jobs of 1 task", TASKS, 1),
        (f"1 job of {TASKS:,} tasks", 1, TASKS),
    ):
        async with live_server(engine) as server, server.session() as session:
            cpu, began = server.cpu(), time.perf_counter()
            over = asyncio.create_task(ended(session, "0", jobs))
            # One connection is the watcher's.
            turns = asyncio.Semaphore(CONNECTIONS - 1)
            await asyncio.gather(*(submit(session, turns, count=count) for _ in range(jobs)))
            acknowledged = time.perf_counter() - began
            await over
            took = time.perf_counter() - began
            rows.append((name, TASKS / took, 1e3 * (server.cpu() - cpu) / TASKS, acknowledged))
    began = time.perf_counter()
    lines = "\n".join(["x"] * TASKS)
    subprocess.run(
        ["xargs", "-P", "16", "-n", "1", "/bin/true"], input=lines, text=True, check=True
    )
    peer = TASKS / (time.perf_counter() - began)
    for name, per_second, cpu, acknowledged in rows:
        print(
            f"{name:<22}{per_second:>8.0f} tasks/s  {cpu:.2f} ms CPU of the server a task  "
            f"all acknowledged after {acknowledged:.1f} s  {per_second / peer:.2f}x xargs"
        )
    print(f"{'xargs -P 16':<22}{peer:>8.0f} tasks/s  (stores nothing, keeps no output)")


async def latency(engine: str, seconds: float) -> None:
    async with live_server(engine) as server, server.session() as session:
        draw = random.Random(1)
        names: list[str] = [await submit(session)]
        took: dict[str, list[float]] = {"read": [], "submit": []}
        memory = []
        end = time.perf_counter() + seconds

        async def ask(kind: str, path: str) -> None:
            began = time.perf_counter()
            if kind == "submit":
                names.append(await submit(session, command=["sleep", f"{draw.random() / 5:.3f}"]))
            else:
                async with session.get(f"http://x{path}") as answer:
                    await answer.read()
                    assert answer.status == 200, path
            took[kind].append(time.perf_counter() - began)

        async def every(interval: float, kind: str) -> None:
            tasks, due = set(), time.perf_counter()
            while due < end:
                some = names[draw.randrange(len(names))]
                paths = (
                    "/v1/jobs",
                    f"/v1/jobs/{some}",
                    f"/v1/jobs/{some}/tasks/0/why",
                    "/v1/machines",
                )
                task = asyncio.create_task(ask(kind, draw.choice(paths)))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                due += interval
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await asyncio.gather(*tasks)

        async def weigh() -> None:
            while time.perf_counter() < end:
                memory.append(server.memory())
                await asyncio.sleep(seconds / 10)

        await asyncio.gather(every(1 / 200, "read"), every(60 / 1000, "submit"), weigh())
        for kind, times in took.items():
            cuts = statistics.quantiles(times, n=1000)
            print(
                f"{kind:<8}{len(times):>7,} requests  median {1e3 * cuts[499]:.1f} ms  "
                f"p99 {1e3 * cuts[989]:.1f} ms  max {1e3 * max(times):.1f} ms"
            )
        print(f"memory  {', '.join(f'{each:.0f}' for each in memory)} MiB")


async def history(engine: str, jobs: int = 100_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = LiveServer(Path(folder), engine)
        print(f"empty: answers after {await server.start():.2f} s")
        async with server.session() as session:
            await submit(session)
            await ended(session, "0", 1)
        server.stop()
        fill(Path(folder), jobs)
        print(f"with {jobs:,} jobs: answers after {await server.start():.2f} s")
        cases = {
            f"argosy {command}": [*ARGOSY[1:], *command.split(), "--dir", folder]
            for command in ("ps", "jobs", "jobs --state finished")
        }
        for name, (cpu, elapsed) in medians({BARE: ["-c", "pass"], **cases}, runs=9).items():
            print(f"{name}: {elapsed:.0f} ms, {cpu:.0f} ms of CPU time")
        async with server.session() as session:
            for path in (
                "/v1/jobs?open=true",
                "/v1/jobs",
                "/v1/jobs?state=failed",
                "/v1/jobs?owner=me",
                "/v1/jobs?match=nothing",
                "/v1/summary",
            ):
                began = time.perf_counter()
                async with session.get(f"http://x{path}") as answer:
                    await answer.read()
                print(f"GET {path}: {1e3 * (time.perf_counter() - began):.1f} ms")
        server.stop()


def fill(directory: Path, jobs: int) -> None:
    """Repeats the only job in the database so often that there are so many."""
    import sqlite3

    db = sqlite3.connect(directory / "argosy.db")
    columns = [row[1] for row in db.execute("PRAGMA table_info(jobs)")]
    copied = ", ".join({"seq": "n", "id": "'job-' || n"}.get(name, name) for name in columns)
    numbers = "WITH RECURSIVE r(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM r WHERE n < ?)"
    db.execute(f"INSERT INTO jobs {numbers} SELECT {copied} FROM jobs, r", (jobs,))
    tasks = "n, idx, state, machine, try, failures, exit_status, reason, started, ended"
    db.execute(f"INSERT INTO tasks {numbers} SELECT {tasks} FROM tasks, r", (jobs,))
    last = "WHERE turn = (SELECT max(turn) FROM turns)"
    turns = f"SELECT n + 100, life, at, lines, changes FROM turns, r {last}"
    db.execute(f"INSERT INTO turns {numbers} {turns}", (jobs,))
    db.execute(f"INSERT INTO job_turns {numbers} SELECT n, n + 100 FROM r", (jobs,))
    db.commit()
    db.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["rate", "latency", "history"])
    parser.add_argument("--engine", default="omega")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long `latency` takes")
    chosen = parser.parse_args()
    if shutil.which("xargs") is None:
        sys.exit("xargs is not installed")
    runs = {
        "rate": lambda: rate(chosen.engine),
        "latency": lambda: latency(chosen.engine, chosen.seconds),
        "history": lambda: history(chosen.engine),
    }
    for name, run in runs.items():
        if chosen.what in (None, name):
            print(f"-- {name}")
            asyncio.run(run())


if __name__ == "__main__":
    main()
