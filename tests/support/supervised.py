"""Launching tries in tests, and waiting for them without sleeping: for a descriptor, with a deadline."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from argosy.worlds.local import (
    Launcher,
    ReportSocket,
    SupervisedTry,
    TryEnd,
    TryReport,
    TrySpec,
    TryState,
    TryStatus,
)

#: Seconds. Far more than anything here takes; reached only if something is broken.
PATIENCE = 30.0


class Bench:
    """A directory for tries, a launcher, and a socket for their reports."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.launcher = Launcher()
        self.socket = ReportSocket(root / "reports")
        self.tries: dict[str, SupervisedTry] = {}
        self.heard: list[TryReport] = []

    def launch(self, *command: str, name: str = "", **fields: object) -> SupervisedTry:
        name = name or f"try-{len(self.tries)}"
        directory = self.root / name
        directory.mkdir(mode=0o700)
        fields.setdefault("environment", {"PATH": os.environ["PATH"]})
        fields.setdefault("reports", self.socket.path)
        spec = TrySpec(name=name, command=command, **fields)  # type: ignore[arg-type]
        self.tries[name] = self.launcher.launch(directory, spec)
        return self.tries[name]

    def shell(self, script: str, **fields: object) -> SupervisedTry:
        return self.launch("sh", "-c", script, **fields)  # type: ignore[arg-type]

    def python(self, script: str, *arguments: str, **fields: object) -> SupervisedTry:
        return self.launch(sys.executable, "-c", script, *arguments, **fields)  # type: ignore[arg-type]

    def await_report(self, each: SupervisedTry, state: TryState) -> None:
        deadline = time.monotonic() + PATIENCE
        wanted = TryReport(each.name, state)
        while wanted not in self.heard:
            ready, _, _ = select.select([self.socket], [], [], deadline - time.monotonic())
            assert ready, f"no report that {each.name} is {state}: {each.status()}"
            self.heard += self.socket.pending()

    def running(self, each: SupervisedTry) -> SupervisedTry:
        self.await_report(each, TryState.RUNNING)
        return each

    def ended(self, each: SupervisedTry) -> TryEnd:
        self.await_report(each, TryState.ENDED)
        end = each.status().end
        assert end is not None
        return end

    def all_over(self, tries: list[SupervisedTry]) -> dict[str, TryStatus]:
        """As a server does it: hears reports, and sweeps for those that were lost."""
        over: dict[str, TryStatus] = {}
        deadline = time.monotonic() + PATIENCE
        while len(over) < len(tries):
            assert time.monotonic() < deadline, f"{len(over)} of {len(tries)} are over"
            select.select([self.socket], [], [], 0.05)
            named = {report.name for report in self.socket.pending()}
            left = [each for each in tries if each.name not in over]
            heard = [each for each in left if each.name in named]
            over |= {each.name: status for each, status in sweep(heard or left)}
        return over

    def close(self) -> None:
        for each in self.tries.values():
            each.kill()
            await_exit(each)
            each.clear_leftovers()
        self.reap_all()
        self.socket.close()

    def reap_all(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.launcher.reap():
            assert time.monotonic() < deadline
            os.sched_yield()


def sweep(tries: Iterable[SupervisedTry]) -> Iterator[tuple[SupervisedTry, TryStatus]]:
    """Those of the tries that are over, whether or not a report said so."""
    for each in tries:
        status = each.status()
        if status.state.is_over:
            yield each, status


def await_exit(each: SupervisedTry) -> TryStatus:
    """Waits until the supervisor is gone."""
    pidfd = each.open_supervisor()
    if pidfd is not None:
        await_readable(pidfd)
        os.close(pidfd)
    return each.status()


def await_readable(descriptor: int) -> None:
    ready, _, _ = select.select([descriptor], [], [], PATIENCE)
    assert ready, "nothing happened"


def await_gone(pid: int) -> None:
    """Waits until a process that is nobody's child of ours is dead."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await_readable(pidfd)
    finally:
        os.close(pidfd)


def processes_with(marker: str) -> list[int]:
    """Living processes whose arguments or environment contain the marker."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            text = Path(f"/proc/{entry}/cmdline").read_bytes()
            text += Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:
            continue
        if marker.encode() in text:
            found.append(int(entry))
    return found
