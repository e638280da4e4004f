"""Drawn calls of both clients to a server in virtual time, over connections that may break."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from drawn_documents import GIB, Documents
from memory_loop import MemoryLoop
from memory_sockets import EnoughHeard, Weather
from played_server import ServerBench

from argosy.api.agent_values import CommitOrder, ReservationRequest, SampleRequest
from argosy.api.values import MachinePatch
from argosy.campaign.dice import Dice
from argosy.client import Client
from argosy.client.asynchronous import AsyncClient
from argosy.model.errors import ArgosyError
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry
from argosy.version import __version__
from argosy.worlds.local.turn import LocalCluster

#: Items of a list or stream that has no end, and seconds for which it is listened to.
MOST = 12
LISTENS = 70


def bench_for_clients(loop: MemoryLoop, folder: Path, seed: int, **options: Any) -> ServerBench:
    machines = tuple(
        Machine(f"m{at}", Resources.of({"cpu": 2_000, "memory": 4 * GIB})) for at in range(4)
    )
    fleet = (FleetEntry(name="omega", engine="omega"),)
    cluster = LocalCluster(cell=CellSpec(machines=machines), fleet=fleet, audit=True)
    return ServerBench(loop, folder, seed, cluster=cluster, **options)


class ClientSession:
    """`is_beside`: with the asynchronous client."""

    def __init__(
        self, bench: ServerBench, seed: int, weather: Weather, *, is_beside: bool, over: str
    ) -> None:
        self.dice = dice = Dice(Random(seed).child("client"))
        self.bench, self.weather = bench, weather
        capacity = {"cpu": 2_000, "memory": 4 * GIB}
        self.documents = Documents(dice.part("documents"), [capacity], {}, ["machine"])
        self.lines = bench.lines
        where: dict[str, Any] = {"directory": bench.directory}
        if over == "tcp":
            where = {"server": bench.server.url}
        kind: Any = AsyncClient if is_beside else Client
        self.client = kind(timeout=5.0, patience=4.0, **where)
        self._names: list[str] = []

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """What comes back, or is raised; of what is iterated over, the first items."""
        self.lines.append(f"> {name} {_text(arguments)} {_text(options)}")
        self.weather.deadline = self.bench.loop.micros + LISTENS * 1_000_000
        try:
            found = getattr(self.client, name)(*arguments, **options)
            if isinstance(found, AsyncIterator):
                found = self.bench.loop.run_until_complete(_first_beside(found))
            elif inspect.iscoroutine(found):
                found = self.bench.loop.run_until_complete(found)
            elif isinstance(found, Iterator):
                found = _first(found)
        except ArgosyError as error:
            fields = (error.code, error.field, error.expected, error.hint)
            more = {key: value for key, value in vars(error).items() if key != "notes"}
            text = f"{type(error).__name__}: {error} {fields} {more}"
            self.lines.append(text.replace(self.bench.hidden, "DIRECTORY"))
            return None
        text = _text(found).replace(__version__, "VERSION")
        self.lines.append(text.replace(self.bench.hidden, "DIRECTORY"))
        return found

    def _job(self) -> str:
        """Mostly one of the last."""
        return self.dice.one_of((*self._names[-4:], *self._names[-4:], "nobody", "ü/x"))

    def submit(self, **options: Any) -> None:
        found = self.call("submit", self.documents.job(), **options)
        if found is not None:
            self._names.append(found.id)

    def step(self) -> None:
        dice = self.dice
        job, index = self._job(), dice.among(0, 2)
        machine = dice.one_of(("m0", "m1", "m2", "extra-1", "nowhere", "a b/ü"))
        key = f"k{dice.among(1, 4)}"
        documents = self.documents
        order = msgspec.convert(documents.order(["m0", "m1", "m2"]), CommitOrder)
        sample = msgspec.convert(documents.sample(), SampleRequest)
        reservation = ReservationRequest(machine=machine, request=documents.amounts())
        version = dice.one_of((None, None, 1, 2))
        calls: tuple[Callable[[], Any], ...] = (
            self.submit,
            self.submit,
            self.submit,
            lambda: self.submit(key=key),
            lambda: self.call("submit", {"command": "x", "count": 0}),
            lambda: self.call(
                "jobs", limit=dice.one_of((None, 1, 3, 0)), state=_maybe(dice, "running")
            ),
            lambda: self.call(
                "jobs", is_open=dice.chance(0.5), match="j", kind=_maybe(dice, "batch")
            ),
            lambda: self.call("job", job),
            lambda: self.call("wait", job, timeout=dice.one_of((0.0, 1.0, 30.0))),
            lambda: self.call("watch", job, timeout=10.0),
            lambda: self.call("scale", job, dice.among(0, 4), version=version),
            lambda: self.call("cancel", job, dice.one_of((None, [0], [7], [])), version=version),
            lambda: self.call("plan", [documents.job()]),
            lambda: self.call(
                "tasks", job, limit=dice.one_of((None, 2)), state=_maybe(dice, "failed")
            ),
            lambda: self.call("open_tasks", machine=_maybe(dice, machine), limit=5),
            lambda: self.call("task", job, index),
            lambda: self.call("why", job, index),
            lambda: self.call("story", job, index),
            lambda: self.call("logs", job, index, tail=dice.one_of((None, 5)), stream="stderr"),
            lambda: self.call("logs", job, index, offset=3, try_number=dice.one_of((None, 1))),
            lambda: self.call("follow_logs", job, index, tail=dice.one_of((None, 4))),
            lambda: self.call("machines"),
            lambda: self.call("machine", machine),
            lambda: self.call("add_machine", documents.machine()),
            lambda: self.call("change_machine", machine, MachinePatch(capacity={"cpu": 3})),
            lambda: self.call("drain", machine, undo=dice.chance(0.7)),
            lambda: self.call("remove_machine", "extra-1"),
            lambda: self.call("fleet"),
            lambda: self.call("set_fleet", [{"name": "s", "engine": "spread"}], version=version),
            lambda: self.call("events", after="0", job_id=_maybe(dice, job)),
            lambda: self.call("journal", dice.one_of((None, 1, 99))),
            lambda: self.call("recording"),
            lambda: self.call("summary"),
            lambda: self.call("health"),
            lambda: self.call("place"),
            lambda: self.call("sample", sample),
            lambda: self.call("commit", order, key=dice.one_of((None, key))),
            lambda: self.call("commits"),
            lambda: self.call("commit_info", key),
            lambda: self.call("release", key),
            lambda: self.call("reserve", reservation),
            lambda: self.call("reservations"),
            lambda: self.call("unreserve", dice.one_of(("r1", "r2"))),
            self.change_weather,
            self.change_weather,
            self.restart,
            lambda: self.bench.wait(dice.one_of((0.5, 3.0, 40.0))),
        )
        self.lines.append(f"-- at {self.bench.loop.micros}")
        dice.one_of(calls)()
        self.lines += self.weather.said
        self.weather.said.clear()

    def change_weather(self) -> None:
        """What the next connections meet. Only blocking ones know the weather."""
        dice = self.dice
        errors = (
            ConnectionRefusedError(111, "Connection refused"),
            FileNotFoundError(2, "No such file or directory"),
            PermissionError(13, "Permission denied"),
            TimeoutError("timed out"),
            OSError(113, "No route to host"),
        )
        self.weather.refused = [dice.one_of(errors) for _ in range(dice.one_of((0, 1, 9)))]
        cuts = (0, 5, 17, 150, 400, 2_000, -1)
        self.weather.cut_after = [dice.one_of(cuts) for _ in range(dice.one_of((0, 1, 3)))]
        self.lines.append(f"-- {self.weather.refused} {self.weather.cut_after}")

    def restart(self) -> None:
        """The server is gone for a while, and perhaps longer than a client waits."""
        how = self.dice.one_of(("stop", "kill", "shutdown"))
        self.lines.append(f"-- {how}")
        if how == "shutdown":
            self.call("shutdown", stop_tasks=self.dice.chance(0.5))
            self.bench.gone()
        elif how == "stop":
            self.bench.stop()
        else:
            self.bench.kill()
        self.call(self.dice.one_of(("health", "summary", "machines")))
        self.bench.start()

    def close(self) -> None:
        found = self.client.close()
        if inspect.iscoroutine(found):
            self.bench.loop.run_until_complete(found)


def run_client(session: ClientSession, steps: int) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        # Keys that nobody else has.
        numbers = iter(range(1, 1_000_000))
        patch.setattr(os, "urandom", lambda size: next(numbers).to_bytes(size, "big"))
        for _ in range(steps):
            session.step()
        session.close()
    session.bench.close()
    return session.lines


def _maybe(dice: Dice, text: str) -> str | None:
    return text if dice.chance(0.4) else None


def _first(items: Iterator[Any]) -> list[Any]:
    found = []
    with contextlib.suppress(EnoughHeard):
        for item in items:
            found.append(item)
            if len(found) >= MOST:
                break
    close = getattr(items, "close", None)
    if close is not None:
        close()
    return found


async def _first_beside(items: Any) -> list[Any]:
    """An iterator that is left is closed."""
    found = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LISTENS):
            async for item in items:
                found.append(item)
                if len(found) >= MOST:
                    break
    await items.aclose()
    return found


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    try:
        return msgspec.json.encode(value).decode("utf-8", "replace")
    except (TypeError, UnicodeEncodeError):
        return repr(value)
