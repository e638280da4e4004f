"""A whole server in virtual time, with processes that are played, and all that it answers.

What a task does, its command says: `play 2.5:0` runs for two and a half seconds and exits with 0;
`play 1:3,0.2:-9` fails twice in these ways; `-` never ends, and `1:?` is lost without a trace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from memory_loop import MemoryLoop

from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.service.server import Server, ServerOptions
from argosy.version import __version__
from argosy.worlds.local.turn import ServedRunner, TryResult

#: Headers that tell the time, or how the answer came.
DULL = ("Date", "Content-Length", "Transfer-Encoding")
_LINE = b"%d: what task %b says, again and again\n"


class PlayedTry(msgspec.Struct):
    job: str
    index: int
    machine: str
    end: TryResult | None = None
    #: Nothing is known of it any more.
    is_lost: bool = False
    is_stopping: bool = False


class PlayedComputer:
    """Processes that outlive servers. `ended` hears of ends if there is a server."""

    def __init__(self, loop: MemoryLoop, directory: Path, seed: int = 1) -> None:
        self._loop = loop
        self._directory = directory
        self._random = Random(seed).child("computer")
        self.tries: dict[int, PlayedTry] = {}
        self._tried: dict[tuple[str, int], int] = {}
        self.ended: Callable[[int, TryResult | None], None] | None = None
        self.said: list[str] = []

    def launch(self, number: int, job: Job, index: int, machine: Machine) -> None:
        assert number not in self.tries, f"try {number} is launched twice"
        played = self.tries[number] = PlayedTry(job.id, index, machine.name)
        execution = job.group_at(index).execution
        self.said.append(f"launch {number}: {job.id}/{index} on {machine.name}: {execution}")
        at = self._tried.get((job.id, index), 0)
        self._tried[job.id, index] = at + 1
        self._write(number, played)
        words = () if execution is None else execution.command
        fates = words[1].split(",") if len(words) > 1 else ["1:0"]
        seconds, _, status = fates[min(at, len(fates) - 1)].partition(":")
        if seconds != "-":
            self._loop.call_later(float(seconds), self._end, number, status)

    def _write(self, number: int, played: PlayedTry) -> None:
        """In segments, the first of which is dropped if there are several."""
        directory = Path(self.directory_of(number))
        directory.mkdir(parents=True, exist_ok=True)
        name = f"{played.job}/{played.index}".encode()
        for stream, lines in (("stdout", number % 4), ("stderr", played.index % 3)):
            text = b"".join(_LINE % (at, name) for at in range(lines))
            begin = 1_000 * (number % 3)
            (directory / f"{stream}.{begin}").write_bytes(text)
            (directory / f"{stream}.{begin + len(text)}").write_bytes(b"on " + name + b"\n")

    def _end(self, number: int, status: str) -> None:
        played = self.tries[number]
        if played.end is not None or played.is_lost:
            return
        if status == "?":
            played.is_lost = True
            self._tell(number, None)
            return
        played.end = TryResult(int(status), "killed" if int(status) < 0 else "")
        self._tell(number, played.end)

    def _tell(self, number: int, end: TryResult | None) -> None:
        self.said.append(f"end {number}: {end}")
        if self.ended is not None:
            self.ended(number, end)

    def stop(self, number: int) -> None:
        self.said.append(f"stop {number}")
        played = self.tries.get(number)
        if played is not None:
            played.is_stopping = True
        self._loop.call_later(self._random.below(50) / 1e3, self._stopped, number)

    def _stopped(self, number: int) -> None:
        played = self.tries.get(number)
        if played is None or played.is_lost:
            self._tell(number, None)
            return
        if played.end is None:
            played.end = TryResult(-15, "stopped", was_stopped=True)
        self._tell(number, played.end)

    def directory_of(self, number: int) -> str:
        return str(self._directory / f"try-{number}")


class PlayedRunner:
    """A `ServedRunner` for one server on a played computer."""

    has_stillborn = False
    report_fd = None

    def __init__(self, computer: PlayedComputer) -> None:
        self._computer = computer
        self.launch = computer.launch
        self.stop = computer.stop
        self.directory_of = computer.directory_of

    @property
    def is_idle(self) -> bool:
        return not any(map(self.is_running, self._computer.tries))

    def is_running(self, number: int) -> bool:
        played = self._computer.tries.get(number)
        return played is not None and played.end is None and not played.is_lost

    def adopt(self, number: int) -> TryResult | bool:
        played = self._computer.tries.get(number)
        if played is None or played.is_lost:
            return False
        return True if played.end is None else played.end

    def discard_after(self, number: int) -> int:
        return max([number, *self._computer.tries])

    def hear(self) -> None:
        """All is told at once."""

    def sweep(self) -> None:
        """Nothing can be missed."""

    def limits(self) -> str:
        return "played: no process is started"

    def close(self) -> None:
        """Processes go on."""


class PlayedServer(Server):
    """The real one, but for what runs its tasks."""

    def __init__(
        self,
        options: ServerOptions,
        log: Callable[[str], None],
        computer: PlayedComputer | None,
    ) -> None:
        self._computer = computer
        super().__init__(options, log)

    def _make_runner(self) -> ServedRunner:
        if self._computer is None:
            return super()._make_runner()
        return PlayedRunner(self._computer)


class Answered(asyncio.Protocol):
    """What comes back over one connection."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.is_over = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, error: Exception | None) -> None:
        if not self.is_over.done():
            self.is_over.set_result(None)


class ServerBench:
    """A directory, and its servers one after the other; whatever is asked and answered is kept."""

    def __init__(
        self,
        loop: MemoryLoop,
        directory: Path,
        seed: int = 1,
        *,
        is_played: bool = True,
        **options: Any,
    ) -> None:
        self.loop = loop
        self.directory = directory
        #: The path that differs from run to run.
        self.hidden = str(directory)
        self.computer = PlayedComputer(loop, directory / "tries", seed) if is_played else None
        self.options = ServerOptions(
            directory=directory, is_lasting=False, **{"port": 0, **options}
        )
        self.server: Server
        self._running: asyncio.Task[None] | None = None
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        """Of a traceback, only the last line: what it says of the code may change."""
        if "Traceback" in line:
            line = line.splitlines()[-1]
        self.lines.append(f"LOG {line}".replace(self.hidden, "DIRECTORY"))

    def start(self) -> ServerBench:
        self.loop.run_until_complete(self._start())
        return self

    async def _start(self) -> None:
        ready = asyncio.Event()
        self._running = self.loop.create_task(self._serve(ready.set))
        waiting = self.loop.create_task(ready.wait())
        await asyncio.wait({self._running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._running.done():
            self._running.result()

    async def _serve(self, ready: Callable[[], None]) -> None:
        server = self.server = PlayedServer(self.options, self.say, self.computer)
        if self.computer is not None:
            self.computer.ended = server._ended
        await server.run(ready)

    def kill(self, after: str = "") -> None:
        """At once, or after the turn is written and perhaps acted on."""
        world = self.server.cluster.world
        if after:
            world.write()
        if after == "act":
            world.act()
        mine = self.server.cluster
        for task in asyncio.all_tasks(self.loop):
            work: Any = task.get_coro()
            name, frame = work.__qualname__, work.cr_frame
            if name == "LiveCluster.run" and frame and frame.f_locals.get("self") is mine:
                task.cancel()
        self.gone()

    def stop(self) -> None:
        self.server.stop()
        self.gone()

    def gone(self) -> None:
        """Waits until the server has ended."""
        if self.computer is not None:
            self.computer.ended = None
        running, self._running = self._running, None
        if running is None:
            return

        async def gone() -> None:
            found = await asyncio.gather(running, return_exceptions=True)
            if found[0] is not None:
                self.lines.append(f"GONE {type(found[0]).__name__}: {found[0]}")

        self.loop.run_until_complete(gone())

    def wait(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def close(self) -> None:
        if self._running is not None and not self._running.done():
            self.stop()
        self._running = None

    # Questions.

    def ask(
        self,
        method: str,
        target: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        over: str = "unix",
        seconds: float | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """One request on a connection of its own. With `seconds`, it is broken off after that time."""
        request = self.request(method, target, body, headers)
        raw = self.loop.run_until_complete(self.exchange(request, over, seconds))
        shown = "" if body is None else f" {_shown(body)}"
        more = "" if not headers else f" {dict(headers)}"
        self.lines.append(f"> {method} {target}{shown}{more}")
        self.lines.append(self.readable(raw))
        return parsed(raw)

    def request(
        self, method: str, target: str, body: Any, headers: Mapping[str, str] | None
    ) -> bytes:
        given = {"Host": "localhost", "Connection": "close", **(headers or {})}
        data = b""
        if body is not None:
            data = body if isinstance(body, bytes) else msgspec.json.encode(body)
            given = {"Content-Type": "application/json", "Content-Length": str(len(data))} | given
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        return f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + data

    async def exchange(self, request: bytes, over: str, seconds: float | None) -> bytes:
        try:
            if over == "unix" or self.options.host is None:
                path = str(self.directory / "argosy.sock")
                transport, answered = await self.loop.create_unix_connection(Answered, path)
            else:
                address = self.server._sockets[1].sockets[0].getsockname()
                transport, answered = await self.loop.create_connection(Answered, *address)
        except OSError as error:
            return type(error).__name__.encode()
        assert isinstance(answered, Answered)
        transport.write(request)
        # Longer than anything takes that comes to an end.
        await asyncio.wait({answered.is_over}, timeout=500.0 if seconds is None else seconds)
        if not answered.is_over.done():
            answered.data += b"\n(and so on)"
        transport.close()
        return bytes(answered.data)

    def readable(self, raw: bytes) -> str:
        """An answer without what differs from day to day, or place to place."""
        status, headers, body = parsed(raw)
        lines = [str(status)]
        lines += sorted(
            f"{name}: {value}"
            for name, value in headers.items()
            if name not in DULL and not (name == "ETag" and "Content-Security-Policy" in headers)
        )
        if "Content-Security-Policy" not in headers:
            lines.append(body.decode("utf-8", "replace"))
        text = "\n".join(lines).replace(__version__, "VERSION")
        return text.replace(self.hidden, "DIRECTORY")

    def tables(self) -> str:
        """All rows of the database."""
        store = self.server.store
        lines = []
        for table, order in (
            ("meta", "key"),
            ("lives", "life"),
            ("turns", "turn"),
            ("jobs", "seq"),
            ("tasks", "job, idx"),
            ("tries", "try"),
            ("stops", "try"),
            ("job_turns", "job, turn"),
            ("machines", "number"),
            ("keys", "key"),
        ):
            lines.append(f"== {table}")
            lines += map(repr, store.rows(f"SELECT * FROM {table} ORDER BY {order}"))
        return "\n".join(lines).replace(__version__, "VERSION")


def parsed(raw: bytes) -> tuple[int, dict[str, str], bytes]:
    if not raw.startswith(b"HTTP/"):
        return 0, {}, raw
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines if ": " in line)
    if headers.get("Transfer-Encoding") == "chunked":
        body = _unchunked(body)
    words = first.split(" ", 2)
    return int(words[1]), headers, body


def _unchunked(body: bytes) -> bytes:
    pieces = bytearray()
    while body:
        size, _, body = body.partition(b"\r\n")
        try:
            length = int(size, 16)
        except ValueError:
            break
        pieces += body[:length]
        body = body[length + 2 :]
    return bytes(pieces)


def _shown(body: Any) -> str:
    if isinstance(body, bytes):
        return f"{body[:200]!r} ({len(body)} bytes)"
    return msgspec.json.encode(body).decode()
