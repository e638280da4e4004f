"""What supervisors write into the directory of a try, read strictly.

Each record is a file of lines `key=value` that appears whole or not at all. A record with a
missing, unknown or malformed key is an error, not a guess.
"""

from __future__ import annotations

import enum
import os
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from argosy.worlds.local.spec import FORMAT, SupervisorError

SPEC: Final = "spec"
SUPERVISOR: Final = "supervisor"
STARTED: Final = "started"
END: Final = "end"


class TryOutcome(enum.StrEnum):
    EXITED = "exited"
    SIGNALLED = "signalled"
    NOT_STARTED = "not-started"


class EndCause(enum.StrEnum):
    """What made the command end, if not itself."""

    NONE = "none"
    STOP = "stop"
    KILL = "kill"
    TIMEOUT = "timeout"


class StartFailure(enum.StrEnum):
    """Why a command could not be started."""

    NONE = "none"
    BAD_SPEC = "bad-spec"
    NO_PIPES = "no-pipes"
    NO_PROCESS = "no-process"
    BAD_CGROUP = "bad-cgroup"
    BAD_LIMITS = "bad-limits"
    BAD_DIRECTORY = "bad-directory"
    BAD_INPUT = "bad-input"
    NOT_FOUND = "not-found"
    NOT_EXECUTABLE = "not-executable"


class Enforcement(enum.StrEnum):
    NONE = "none"
    CGROUP = "cgroup"
    #: Per process.
    RLIMIT = "rlimit"


class SupervisorIdentity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who supervises. The pid alone may be somebody else's by now; all three name one process for
    good."""

    #: 0: nobody, because the try was withdrawn before its supervisor began. The command never runs.
    pid: int
    #: When it started, in clock ticks since the computer did.
    start_ticks: int
    #: The kernel's id of this run of the computer.
    boot: str
    #: Microseconds since the epoch, as all points in time here.
    at: int


class CommandStart(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    pid: int
    start_ticks: int
    at: int
    memory_by: Enforcement
    cpu_by: Enforcement
    processes_by: Enforcement


class StreamEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of a stream."""

    #: Bytes the command wrote.
    written: int
    #: Position of the first byte kept; what was before it was dropped.
    first: int
    #: Bytes the disk did not take.
    lost: int


class TryEnd(msgspec.Struct, frozen=True, kw_only=True):
    outcome: TryOutcome
    #: The exit code, if it exited.
    code: int
    #: The signal, if it was killed by one.
    signal: int
    cause: EndCause
    failure: StartFailure
    #: The system's error number that belongs to `failure`.
    errno: int
    #: None: unknown, because only a cgroup tells.
    out_of_memory: bool | None
    #: 0 if it was not started.
    started_at: int
    ended_at: int
    #: Microseconds by a clock that never jumps.
    ran: int
    #: Microseconds of processor time of the command and everything it started.
    user_cpu: int
    system_cpu: int
    #: Bytes, of the largest process.
    max_rss: int
    #: Processes that outlived the command, and were ended.
    left_behind: int
    #: By name: `stdout` and `stderr`, or `output` if they are merged.
    streams: dict[str, StreamEnd]

    def sentence(self) -> str:
        """How it ended, in a few words."""
        if self.outcome is TryOutcome.NOT_STARTED:
            if self.failure is StartFailure.NONE:
                return "stopped before it started"
            detail = f" ({os.strerror(self.errno)})" if self.errno else ""
            return f"could not start: {FAILURES[self.failure]}{detail}"
        if self.outcome is TryOutcome.EXITED:
            end = f"exited with code {self.code}"
        else:
            end = f"killed by signal {self.signal}"
        if self.out_of_memory:
            end += ", out of memory"
        return end + CAUSES[self.cause]


CAUSES: Final = {
    EndCause.NONE: "",
    EndCause.STOP: " after it was asked to stop",
    EndCause.KILL: " because it was to be killed",
    EndCause.TIMEOUT: " after its time was up",
}
FAILURES: Final = {
    StartFailure.BAD_SPEC: "its specification cannot be read",
    StartFailure.NO_PIPES: "no pipes for its output",
    StartFailure.NO_PROCESS: "no process",
    StartFailure.BAD_CGROUP: "its cgroup cannot be set up",
    StartFailure.BAD_LIMITS: "its limits cannot be set",
    StartFailure.BAD_DIRECTORY: "its working directory cannot be entered",
    StartFailure.BAD_INPUT: "its standard input cannot be opened",
    StartFailure.NOT_FOUND: "the command was not found",
    StartFailure.NOT_EXECUTABLE: "the command cannot be executed",
}
OUT_OF_MEMORY: Final = {"yes": True, "no": False, "unknown": None}
STREAM_SETS: Final = (("stdout", "stderr"), ("output",))
STREAM_KEYS: Final = {"written": "bytes", "first": "first", "lost": "lost"}

S = TypeVar("S", bound=msgspec.Struct)


def read_identity(directory: str) -> SupervisorIdentity | None:
    return _read(directory, SUPERVISOR, SupervisorIdentity)


def read_start(directory: str) -> CommandStart | None:
    return _read(directory, STARTED, CommandStart)


def read_end(directory: str) -> TryEnd | None:
    data = _bytes_of(directory, END)
    if data is None:
        return None
    path = f"{directory}/{END}"
    values: dict[str, object] = dict(parse_lines(data, path))
    for names in STREAM_SETS:
        if f"{names[0]}_bytes" in values:
            values["streams"] = {
                name: {
                    field: values.pop(f"{name}_{key}", None) for field, key in STREAM_KEYS.items()
                }
                for name in names
            }
    known = values.get("out_of_memory")
    if known not in OUT_OF_MEMORY:
        raise SupervisorError(f"out_of_memory {known}", file=path, expected="yes, no or unknown")
    values["out_of_memory"] = OUT_OF_MEMORY[str(known)]
    return _convert(values, TryEnd, path)


def write_claim(directory: str, identity: SupervisorIdentity) -> bool:
    """Puts the identity in place unless there is one already."""
    temporary = f"{directory}/.{SUPERVISOR}.{os.getpid()}.claim"
    fields = msgspec.structs.asdict(identity)
    text = "".join(f"{key}={value}\n" for key, value in {"format": FORMAT, **fields}.items())
    Path(temporary).write_text(text, "ascii")
    try:
        os.link(temporary, f"{directory}/{SUPERVISOR}")
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
    return True


def parse_lines(data: bytes, path: str) -> dict[str, str]:
    """Lines `key=value`, the first being `format`, every key once."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SupervisorError("not text", file=path, expected="lines key=value") from error
    values: dict[str, str] = {}
    if not text.endswith("\n"):
        raise SupervisorError("the record is cut short", file=path, expected="whole lines")
    for number, line in enumerate(text[:-1].split("\n"), 1):
        key, equals, value = line.partition("=")
        if not equals or not key or key in values:
            raise SupervisorError(
                f"line {line!r}", file=path, line=number, expected="key=value, every key once"
            )
        values[key] = value
    if values.pop("format", None) != FORMAT:
        raise SupervisorError("unknown format", file=path, expected=f"format {FORMAT}")
    return values


def _bytes_of(directory: str, name: str) -> bytes | None:
    try:
        descriptor = os.open(f"{directory}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # A record is far smaller.
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)


def _read(directory: str, name: str, kind: type[S]) -> S | None:
    data = _bytes_of(directory, name)
    if data is None:
        return None
    path = f"{directory}/{name}"
    return _convert(parse_lines(data, path), kind, path)


def _convert(values: object, kind: type[S], path: str) -> S:
    assert isinstance(values, dict)
    if unknown := values.keys() - set(kind.__struct_fields__):
        raise SupervisorError(f"unknown key {min(unknown)}", file=path)
    try:
        # Not strict: numbers are text in these files.
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise SupervisorError(f"{error}", file=path) from error
