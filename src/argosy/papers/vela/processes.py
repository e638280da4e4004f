"""Agents and a scheduler as processes of their own, on this computer's loopback address.

They are started by the command line and asked over HTTP, because papers are below both. Whatever happens
to this process, they end with it; short of SIGKILL, what they wrote is removed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from argosy.model.errors import CommandError

#: Seconds for one request, and for a process to end once it was told to.
_REQUEST_SECONDS: Final = 60.0
_END_SECONDS: Final = 20.0
#: Runs the command line, and tells it to stop when its standard input ends: whoever holds the other end
#: is gone then.
_STARTER: Final = """
import os, signal, threading
from argosy.cli import process

def watch():
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=watch, daemon=True).start()
process()
"""


class AgentPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster of `machines` by Table II; `mix` is `cloud` or `edge`."""

    name: str
    mix: str
    machines: int
    #: How much later it answers, in milliseconds.
    delay: float = 0.0


class LiveProcess:
    """`argosy` with these arguments. `folder` takes what it writes."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.url = ""
        self._what = f"argosy {arguments[0]}"
        self._log = folder / f"log-{os.urandom(4).hex()}"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _STARTER, *arguments, "-o", "json"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "TMPDIR": str(folder)},
                # Ctrl-C in a terminal reaches only this process, which then stops them in order.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ready(self) -> None:
        """Waits until it answers requests."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise CommandError(f"{self._what} did not start: {self._last_words()}")
        self.url = json.loads(line)["url"]

    def get(self, path: str) -> bytes:
        return self._ask("GET", path)

    def post(self, path: str, document: Mapping[str, Any]) -> bytes:
        return self._ask("POST", path, json.dumps(document))

    def _ask(self, method: str, path: str, body: str | None = None) -> bytes:
        """Over a connection of its own, so that several threads can ask at once."""
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=_REQUEST_SECONDS)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            answer = reply.read()
        except (OSError, HTTPException) as error:
            raise CommandError(
                f"{self._what} does not answer ({type(error).__name__}: {error}); "
                f"its last words: {self._last_words()}"
            ) from None
        finally:
            connection.close()
        if reply.status not in (200, 201):
            raise CommandError(f"{self._what} answers {method} {path} with {reply.status}")
        return answer

    def listed(self, path: str) -> Iterator[dict[str, Any]]:
        """All items of a list that comes in pages."""
        after = ""
        while True:
            page = json.loads(self.get(path + (f"?after={quote(after, safe='')}" if after else "")))
            yield from page["items"]
            if page["next"] is None:
                return
            after = page["next"]

    def metrics(self) -> dict[str, float]:
        """By name and labels; what the engine counts, by its own name alone."""
        found = {}
        for line in self.get("/metrics").decode().splitlines():
            name, _, value = line.rpartition(" ")
            if line.startswith("argosy_scheduler_figure{"):
                name = name.partition('figure="')[2].partition('"')[0]
            if not line.startswith("#"):
                found[name] = float(value)
        return found

    def tell_to_stop(self) -> None:
        self._process.terminate()

    def wait(self) -> None:
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


class LiveFederation:
    def __init__(self, agents: Sequence[LiveProcess], scheduler: LiveProcess) -> None:
        self.agents = tuple(agents)
        self.scheduler = scheduler


@contextmanager
def started(plans: Sequence[AgentPlan], *arguments: str) -> Iterator[LiveFederation]:
    """These agents, and a scheduler over them with further arguments, while the context lasts."""
    processes: list[LiveProcess] = []
    with TemporaryDirectory(prefix="argosy-live-", ignore_cleanup_errors=True) as folder:
        try:
            for plan in plans:
                told = ["--name", plan.name, "--mix", plan.mix, "--machines", str(plan.machines)]
                delay = f"{plan.delay:g}ms" if plan.delay else "0"
                processes.append(LiveProcess(Path(folder), "agent", *told, "--delay", delay))
            for process in processes:
                process.ready()
            urls = [part for process in processes for part in ("--agent", process.url)]
            scheduler = LiveProcess(Path(folder), "scheduler", *urls, *arguments)
            processes.append(scheduler)
            scheduler.ready()
            yield LiveFederation(processes[:-1], scheduler)
        finally:
            # The scheduler first, so that it does not miss its agents.
            for process in reversed(processes):
                process.tell_to_stop()
            for process in processes:
                process.wait()
