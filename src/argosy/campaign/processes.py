"""Worker processes for trials. One that hangs or dies takes nothing with it but its trial.

A `TrialLane` has two processes whose hash tables are ordered differently, so that a run that depends on
such an order is found out. The limit is of CPU time, so that a busy computer makes no trial fail; a
process that waits for ever instead of computing is ended by the clock, much later.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import msgspec

from argosy.campaign.findings import Finding
from argosy.experiments.pool import uninterrupted
from argosy.model.errors import ArgosyError
from argosy.scenarios.toml_text import to_toml

_HASH_SEEDS: Final = ("1", "2")
#: By how much a process may outlast its CPU time, on a busy computer, before it is ended if it computes
#: less than `_LEAST_WORK` seconds all that time.
_WALL_FACTOR: Final = 20
_START_SECONDS: Final = 60.0
_LEAST_WORK: Final = 0.1
#: The environment belongs to all threads.
_ENVIRONMENT: Final = threading.Lock()


class TrialRequest(msgspec.Struct, frozen=True):
    #: The scenario's file, as text.
    text: str
    world: str
    is_judged: bool
    #: Of CPU time.
    seconds: float


class TrialAnswer(msgspec.Struct, frozen=True):
    findings: list[Finding] = []
    digest: str = ""
    #: Why the scenario cannot be run at all.
    refusal: str = ""


def _serve(connection: Connection, stacks: str) -> None:
    """The loop of a worker process."""
    from argosy.campaign.trial import run_trial
    from argosy.campaign.worlds import find_world

    with open(stacks, "w") as hung, tempfile.TemporaryDirectory() as folder:
        # When the time is up: say where, then die of the signal.
        faulthandler.register(signal.SIGPROF, file=hung, all_threads=False, chain=True)
        file = Path(folder) / "scenario.toml"
        while True:
            try:
                request = msgspec.json.decode(connection.recv_bytes(), type=TrialRequest)
            except (EOFError, OSError):
                return
            file.write_text(request.text, "utf-8")
            signal.setitimer(signal.ITIMER_PROF, request.seconds)
            try:
                result = run_trial(file, find_world(request.world), is_judged=request.is_judged)
                answer = TrialAnswer(result.findings, result.digest)
            except ArgosyError as error:
                error.file = None
                answer = TrialAnswer(refusal=str(error))
            signal.setitimer(signal.ITIMER_PROF, 0)
            connection.send_bytes(msgspec.json.encode(answer))


@contextmanager
def _hash_seed(seed: str) -> Iterator[None]:
    before = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = seed
    try:
        yield
    finally:
        del os.environ["PYTHONHASHSEED"]
        if before is not None:
            os.environ["PYTHONHASHSEED"] = before


class TrialProcess:
    """A process that is started when it is first needed, and again when it has died."""

    def __init__(self, hash_seed: str) -> None:
        self._hash_seed = hash_seed
        self._process: Any = None
        self._connection: Connection | None = None
        self._stacks = ""
        self._is_closed = False

    def run(self, request: TrialRequest) -> TrialAnswer:
        if self._is_closed:
            return _failed("crash", "ended", "the campaign was ended")
        connection = self._started()
        connection.send_bytes(msgspec.json.encode(request))
        patience = request.seconds * _WALL_FACTOR + _START_SECONDS
        try:
            if not self._answers(connection, patience):
                self._kill()
                return _failed("time-limit", "", f"it neither ended nor computed in {patience:g} s")
            return msgspec.json.decode(connection.recv_bytes(), type=TrialAnswer)
        except (EOFError, OSError):
            return self._died(request.seconds)

    def _answers(self, connection: Connection, patience: float) -> bool:
        """Waits while the process computes, however slowly: its own limit is of CPU time."""
        before = cpu_seconds(self._process.pid)
        while not connection.poll(patience):
            spent = cpu_seconds(self._process.pid)
            if before is None or spent is None or spent - before < _LEAST_WORK:
                return False
            before = spent
        return True

    def close(self) -> None:
        """Ends the process, for whoever waits for it in another thread as well."""
        self._is_closed = True
        self._kill()

    def _started(self) -> Connection:
        if self._connection is not None:
            return self._connection
        context = multiprocessing.get_context("spawn")
        descriptor, self._stacks = tempfile.mkstemp(prefix="argosy-campaign-")
        os.close(descriptor)
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there, self._stacks), daemon=True)
        with _ENVIRONMENT, _hash_seed(self._hash_seed), uninterrupted():
            process.start()
        there.close()
        self._process, self._connection = process, here
        return here

    def _died(self, seconds: float) -> TrialAnswer:
        process = self._process
        if process is None:
            return _failed("crash", "ended", "the campaign was ended")
        process.join()
        code = process.exitcode
        stack = Path(self._stacks).read_text("utf-8", "replace")
        self._kill()
        if code == -signal.SIGPROF:
            place = _innermost(stack)
            told = f"the run had not ended after {seconds:g} s of CPU time{place}"
            return _failed("time-limit", "", told)
        what = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return _failed("crash", what, f"the process died: {what}")

    def _kill(self) -> None:
        """Ends only the process that was started here."""
        process, self._process = self._process, None
        connection, self._connection = self._connection, None
        if process is None:
            return
        process.kill()
        process.join()
        if connection is not None and not self._is_closed:
            connection.close()
        with suppress(OSError):
            os.unlink(self._stacks)


def cpu_seconds(process: int) -> float | None:
    """What a process has computed so far; None where the system does not tell, or it is gone."""
    try:
        told = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # After the name, which may contain anything: the state, ten numbers, and ticks as user and system.
    user, system = told.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _failed(check: str, kind: str, detail: str) -> TrialAnswer:
    return TrialAnswer([Finding(check, kind, detail)])


def _innermost(stack: str) -> str:
    lines = [line.strip() for line in stack.splitlines() if line.lstrip().startswith("File ")]
    return f", in {lines[0].removeprefix('File ')}" if lines else ""


class TrialLane:
    """Runs one trial at a time."""

    def __init__(self, world: str, seconds: float) -> None:
        self.world = world
        self.seconds = seconds
        self._first, self._second = (TrialProcess(seed) for seed in _HASH_SEEDS)

    def run(
        self, document: dict[str, Any], *, repeats: bool = True, seconds: float | None = None
    ) -> TrialAnswer:
        """The scenario, run and judged; with `repeats`, run by the other process too, which must record
        the same."""
        limit = self.seconds if seconds is None else seconds
        request = TrialRequest(to_toml(document), self.world, True, limit)
        answer = self._first.run(request)
        if not answer.digest or not repeats:
            return answer
        again = self._second.run(msgspec.structs.replace(request, is_judged=False))
        if again.digest == answer.digest:
            return answer
        told = "another process recorded another journal for the same scenario"
        if again.findings:
            told = f"another process failed on the same scenario: {again.findings[0].detail}"
        differs = Finding("nondeterministic", "", told)
        return msgspec.structs.replace(answer, findings=[*answer.findings, differs])

    def close(self) -> None:
        self._first.close()
        self._second.close()
