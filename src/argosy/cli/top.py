"""`argosy top`: a live cluster on a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from argosy.cli.live import ServerChoice, elapsed, live_options
from argosy.cli.output import emit, output_option, speaks_unicode
from argosy.model.errors import ArgosyError
from argosy.model.units import format_amount, format_count, format_duration
from argosy.report.tables import format_share, plain

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable

    from argosy.api.values import FleetInfo, Health, JobSummary, MachineInfo
    from argosy.client import Client

#: Seconds over which rates are measured.
_WINDOW: Final = 10.0
_MOST_JOBS: Final = 200
_BAR: Final = 12
_FULL, _EMPTY = "█", "░"


@click.command(epilog="Example: argosy top --once")
@click.option("--once", is_flag=True, help="Print one picture and end; so does a pipe.")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 60),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look.",
)
@live_options
@output_option
def command(once: bool, interval: float, where: ServerChoice, output: str) -> None:
    """Watch a live cluster: machines and what is used of them, jobs, rates and schedulers.

    Ends with q or Ctrl-C.
    """
    with where.client() as client:
        if output != "table":
            _document(Picture(client), output)
        elif once or not sys.stdout.isatty():
            _console().print(Picture(client).drawn(None))
        else:
            _watch(client, interval)


class Picture:
    """The cluster at one moment."""

    def __init__(self, client: Client) -> None:
        self.server = str(client.endpoint)
        self.health: Health = client.health()
        self.machines: list[MachineInfo] = list(client.machines())
        self.fleet: FleetInfo = client.fleet()
        self.jobs: list[JobSummary] = list(client.jobs(is_open=True, limit=_MOST_JOBS))

    def drawn(self, rates: Rates | None, height: int | None = None) -> RenderableType:
        """`height` is that of the terminal; what does not fit is left out and counted."""
        from rich.console import Group
        from rich.text import Text

        room = None if height is None else max(4, (height - 12 - len(self.fleet.schedulers)) // 2)
        parts: list[RenderableType] = [Text(_safe(self._heading()), style="bold")]
        if rates is not None:
            parts.append(Text(_safe(rates.text())))
        parts += [self._machines(room), self._jobs(room), self._schedulers()]
        return Group(*parts)

    def _heading(self) -> str:
        health = self.health
        up = elapsed(health.started)
        state = "" if health.status == "ok" else f", {health.status}: {health.detail}"
        return (
            f"{health.cluster} at {self.server}, up {format_duration(up or 0)}{state}; "
            f"{format_count(health.open_jobs, 'open job')}, "
            f"{format_count(health.running_tasks, 'running task')}"
        )

    def _machines(self, room: int | None) -> RenderableType:
        names = list(dict.fromkeys(name for each in self.machines for name in each.capacity))
        table = _table("machine", "running>", "queued>", *names)
        # The busiest are of most interest.
        busiest = sorted(self.machines, key=lambda each: (-_load(each), each.name))
        for each in busiest[:room]:
            name = f"{each.name} (draining)" if each.draining else each.name
            bars = [_bar(n, each.used.get(n, 0), each.capacity.get(n, 0)) for n in names]
            table.add_row(*map(_safe, (name, f"{each.running:,}", f"{each.queued:,}", *bars)))
        return _with_rest(table, len(busiest), room, "machine")

    def _jobs(self, room: int | None) -> RenderableType:
        states = ("running", "queued", "pending", "finished", "failed")
        table = _table("job", "state", *(f"{state}>" for state in states), "scheduler", "since>")
        for job in self.jobs[:room]:
            counts = (f"{getattr(job.tasks, state):,}" for state in states)
            since = format_duration(elapsed(job.submitted) or 0)
            title = f"{job.id} {job.name}".strip()
            table.add_row(*map(_safe, (title, job.state, *counts, job.scheduler, since)))
        return _with_rest(table, self.health.open_jobs, room, "open job")

    def _schedulers(self) -> RenderableType:
        table = _table("scheduler", "engine", "jobs>", "busy>")
        for each in self.fleet.schedulers:
            busy = format_share(each.busyness) if each.is_alive else "down"
            table.add_row(*map(_safe, (each.name, each.engine, f"{each.jobs:,}", busy)))
        return table


def _document(picture: Picture, output: str) -> None:
    import msgspec

    from argosy.report.tables import csv_text

    def document() -> dict[str, Any]:
        return {
            "server": picture.server,
            "health": msgspec.to_builtins(picture.health),
            "machines": msgspec.to_builtins(picture.machines),
            "jobs": msgspec.to_builtins(picture.jobs),
            "fleet": msgspec.to_builtins(picture.fleet),
        }

    def csv() -> str:
        health: dict[str, Any] = msgspec.to_builtins(picture.health)
        return csv_text([health], list(health))

    emit(output, sections=lambda _: [], document=document, csv=csv)


class Rates:
    """How many tasks started and ended in the last seconds; events are counted as they arrive."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, str]] = deque()
        self._since = time.monotonic()

    def count(self, state: str) -> None:
        self._seen.append((time.monotonic(), state))

    def text(self) -> str:
        now = time.monotonic()
        while self._seen and self._seen[0][0] < now - _WINDOW:
            self._seen.popleft()
        seconds = max(1.0, min(_WINDOW, now - self._since))
        counts = Counter(state for _, state in list(self._seen))
        parts = ("running", "started"), ("finished", "finished"), ("failed", "failed")
        return "tasks a second: " + ", ".join(
            f"{counts[state] / seconds:.3g} {word}" for state, word in parts
        )


def _watch(client: Client, interval: float) -> None:
    from rich.live import Live

    rates = Rates()
    threading.Thread(target=_listen, args=(client, rates), daemon=True).start()
    console = _console()
    with _keys() as key, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(Picture(client).drawn(rates, console.height), refresh=True)
            if key(interval) in ("q", "Q"):
                return


def _listen(client: Client, rates: Rates) -> None:
    from argosy.api.values import TaskEvent

    try:
        for streamed in client.events():
            if isinstance(streamed.event, TaskEvent):
                rates.count(streamed.event.state)
    except ArgosyError:
        # The pictures fail for the same reason, and say so.
        return


@contextmanager
def _keys() -> Iterator[Any]:
    """A function that waits for a key for so many seconds; the terminal does not show it."""
    if not sys.stdin.isatty():
        yield lambda seconds: time.sleep(seconds)
        return
    import select
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)

    def key(seconds: float) -> str:
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        return sys.stdin.read(1) if ready else ""

    try:
        tty.setcbreak(sys.stdin)
        yield key
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _console() -> Any:
    from rich.console import Console

    # What is not a terminal gets whole lines.
    width = None if sys.stdout.isatty() else 120
    return Console(width=width, highlight=False, markup=False)


def _table(*titles: str) -> RichTable:
    """Titles that end in > are those of numbers."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for title in titles:
        is_number = title.endswith(">")
        table.add_column(
            _safe(title.rstrip(">")), justify="right" if is_number else "left", no_wrap=True
        )
    return table


def _with_rest(table: RichTable, total: int, room: int | None, what: str) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text(""), table]
    if total > table.row_count:
        parts.append(
            Text(f"and {format_count(total - table.row_count, f'more {what}')}", style="dim")
        )
    if what == "open job":
        parts.append(Text(""))
    return Group(*parts)


def _load(machine: MachineInfo) -> float:
    shares = [machine.used.get(n, 0) / has for n, has in machine.capacity.items() if has]
    return max(shares, default=0.0)


def _bar(name: str, used: int, has: int) -> str:
    if not has:
        return ""
    full = min(_BAR, round(_BAR * used / has))
    return f"{_FULL * full}{_EMPTY * (_BAR - full)} {format_amount(name, used)}"


def _safe(text: str) -> str:
    return text if speaks_unicode() else plain(text)
