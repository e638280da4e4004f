"""What a supervisor is told to run, and the file that tells it.

The file `spec` holds records `key=value`, each ended by a NUL, which neither arguments nor
environment can contain. Keys at their default are left out.
"""

from __future__ import annotations

import os
from typing import Final

import msgspec

from argosy.model.errors import ArgosyError, excerpt

FORMAT: Final = "1"
MIB: Final = 1 << 20
SECOND: Final = 1_000_000


class SupervisorError(ArgosyError):
    """A try cannot be launched, or its directory cannot be read."""

    code = "supervisor"


class CaptureLimits(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How much of what a command writes is kept: per stream, the last `segments` files."""

    segment_bytes: int = 8 * MIB
    segments: int = 4
    #: Standard output and error in one stream, in the order of writing.
    merged: bool = False


class ProcessLimits(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a try may use; 0 means no limit. `CommandStart` says what enforces each."""

    #: Of the whole try with a cgroup; of the data of each process without.
    memory_bytes: int = 0
    #: Thousandths of a processor. Enforced by a cgroup only.
    cpu_milli: int = 0
    #: 1 to 10,000: the share of a contended processor. Enforced by a cgroup only.
    cpu_weight: int = 0
    #: Processes and threads. Enforced by a cgroup only: the kernel's other limit counts all of a user's.
    processes: int = 0
    #: Of each process.
    open_files: int = 0
    nice: int = 0
    #: Processors the try may run on; empty means all.
    cpus: tuple[int, ...] = ()


class TrySpec(msgspec.Struct, frozen=True, kw_only=True):
    #: What reports call this try.
    name: str
    #: Found along the PATH of `environment` if it has no slash.
    command: tuple[str, ...]
    #: All of it: nothing is inherited.
    environment: dict[str, str] = {}
    directory: str = "/"
    input: str = "/dev/null"
    capture: CaptureLimits = CaptureLimits()
    limits: ProcessLimits = ProcessLimits()
    #: Microseconds of running time, not counting time the computer sleeps; 0 means no limit.
    timeout: int = 0
    #: Microseconds between SIGTERM and SIGKILL.
    grace: int = 10 * SECOND
    #: The Unix datagram socket that reports go to; empty means none.
    reports: str = ""
    #: Whether the start is reported as well as the end.
    reports_start: bool = True
    #: A cgroup (v2) that the supervisor makes and removes; its parent exists. Empty means none.
    cgroup: str = ""
    umask: int = 0o022

    def __post_init__(self) -> None:
        if not self.command or not self.command[0]:
            raise SupervisorError("nothing to execute", field="command", expected="a program")
        if not self.name or "\n" in self.name:
            raise SupervisorError(
                f"name {excerpt(self.name)}", field="name", expected="one line of text"
            )
        for field in ("directory", "input"):
            path = getattr(self, field)
            if not path.startswith("/"):
                raise SupervisorError(
                    f"path {excerpt(path)}", field=field, expected="an absolute path"
                )
        for variable in self.environment:
            if not variable or "=" in variable:
                raise SupervisorError(
                    f"environment variable {excerpt(variable)}",
                    field="environment",
                    expected="non-empty names without =",
                )
        numbers = {
            "capture.segment_bytes": (self.capture.segment_bytes, 1),
            "capture.segments": (self.capture.segments, 1),
            "timeout": (self.timeout, 0),
            "grace": (self.grace, 0),
            "umask": (self.umask, 0),
            "limits.memory_bytes": (self.limits.memory_bytes, 0),
            "limits.cpu_milli": (self.limits.cpu_milli, 0),
            "limits.cpu_weight": (self.limits.cpu_weight, 0),
            "limits.processes": (self.limits.processes, 0),
            "limits.open_files": (self.limits.open_files, 0),
            "limits.cpus": (min(self.limits.cpus, default=0), 0),
        }
        for field, (number, least) in numbers.items():
            if number < least:
                raise SupervisorError(f"{number}", field=field, expected=f"at least {least}")
        if self.limits.cpu_weight > 10_000:
            raise SupervisorError(
                f"{self.limits.cpu_weight}", field="limits.cpu_weight", expected="at most 10000"
            )

    def encode(self) -> bytes:
        capture, limits = self.capture, self.limits
        records = [
            f"format={FORMAT}",
            f"name={self.name}",
            *(f"arg={argument}" for argument in self.command),
            *(f"env={name}={value}" for name, value in self.environment.items()),
            f"directory={self.directory}",
            f"input={self.input}",
            f"segment_bytes={capture.segment_bytes}",
            f"segments={capture.segments}",
            f"merged={capture.merged:d}",
            f"timeout={self.timeout}",
            f"grace={self.grace}",
            f"umask={self.umask}",
        ]
        if self.reports:
            records.append(f"reports={self.reports}")
        if not self.reports_start:
            records.append("reports_start=0")
        if self.cgroup:
            records.append(f"cgroup={self.cgroup}")
        if limits != NO_LIMITS:
            records += [
                f"{key}={getattr(limits, key)}" for key in LIMIT_KEYS if getattr(limits, key)
            ]
            records += [f"cpu={cpu}" for cpu in limits.cpus]
        text = "\0".join(records) + "\0"
        if text.count("\0") != len(records):
            raise SupervisorError(
                "a null character", field="command or environment", expected="no null characters"
            )
        try:
            return os.fsencode(text)
        except UnicodeEncodeError as error:
            raise SupervisorError(
                f"character {text[error.start]!a}",
                field="command or environment",
                expected="text that this system can encode",
            ) from error


NO_LIMITS: Final = ProcessLimits()
LIMIT_KEYS: Final = (
    "memory_bytes",
    "cpu_milli",
    "cpu_weight",
    "processes",
    "open_files",
    "nice",
)


def spec_values(data: bytes) -> dict[str, str]:
    """The records of a file `spec` that stand once, by their keys."""
    values = {}
    for record in os.fsdecode(data).split("\0")[:-1]:
        key, equals, value = record.partition("=")
        if not equals:
            raise SupervisorError(f"record {excerpt(record)}", expected="key=value")
        if key not in ("arg", "env", "cpu"):
            values[key] = value
    if values.get("format") != FORMAT or not values.get("name"):
        raise SupervisorError("not a specification", expected=f"format {FORMAT} and a name")
    return values
