"""Run directories: what one is made of, how it is written whole, and how it is read again.

A directory is built beside its final place and renamed when it is complete. `manifest.json` holds each
file's size and digest, so that a directory that lost or changed something says so instead of answering
wrongly.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import numpy as np

from argosy.model.errors import CommandError, RunDirectoryError
from argosy.model.scenario import Scenario
from argosy.records.record import JOB_COLUMNS, TASK_COLUMNS, Columns, RunRecord
from argosy.records.summary import Provenance, Summary

LOG: Final = "decisions.jsonl"
TASKS: Final = "tasks.npz"
JOBS: Final = "jobs.npz"
SCENARIO: Final = "scenario.json"
SUMMARY: Final = "summary.json"
PROVENANCE: Final = "provenance.json"
MANIFEST: Final = "manifest.json"
#: Where runs go when the user names no directory.
DEFAULT_PARENT: Final = Path("runs")
T = TypeVar("T")
_HINT: Final = "run the scenario again to get a whole directory"


class FileEntry(msgspec.Struct, frozen=True):
    bytes: int
    digest: str


def _entry(path: Path) -> FileEntry:
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16))
    return FileEntry(path.stat().st_size, digest.hexdigest())


def default_directory(scenario_name: str, label: str = "") -> Path:
    """``runs/<name>-<n>`` with the first number that is free."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{scenario_name}-{label}" if label else scenario_name)
    number = 1
    while (DEFAULT_PARENT / f"{stem}-{number}").exists():
        number += 1
    return DEFAULT_PARENT / f"{stem}-{number}"


def latest_directory() -> Path:
    """The run under ``runs/`` that was finished last."""
    manifests = sorted(
        DEFAULT_PARENT.glob(f"*/{MANIFEST}"), key=lambda path: path.stat().st_mtime_ns
    )
    if not manifests:
        raise RunDirectoryError(
            "no run found",
            file=str(DEFAULT_PARENT),
            hint="run a scenario first, or name one with --run",
        )
    return manifests[-1].parent


def begin(directory: Path) -> Path:
    """Takes the final name with an empty directory, so that no other run can, and returns another
    empty directory beside it, to be filled and then renamed."""
    try:
        directory.mkdir(parents=True)
        return Path(tempfile.mkdtemp(".partial", f".{directory.name}.", directory.parent))
    except FileExistsError:
        raise CommandError(
            f"{directory} exists already", hint="name another directory with --out"
        ) from None
    except OSError as error:
        raise CommandError(
            f"cannot write to {directory.parent}: {error.strerror}", hint="name another directory"
        ) from None


def abandon(partial: Path, directory: Path) -> None:
    """Leaves nothing of a run that did not end."""
    shutil.rmtree(partial, ignore_errors=True)
    with contextlib.suppress(OSError):
        directory.rmdir()


def finish(
    partial: Path, directory: Path, scenario: Scenario, summary: Summary, provenance: Provenance
) -> None:
    (partial / SCENARIO).write_bytes(msgspec.json.encode(scenario))
    for name, value in ((SUMMARY, summary), (PROVENANCE, provenance)):
        (partial / name).write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2))
    entries = {path.name: _entry(path) for path in sorted(partial.iterdir())}
    (partial / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(entries), indent=2))
    # A temporary directory is private; a run is as readable as anything else one makes.
    partial.chmod(directory.stat().st_mode)
    partial.rename(directory)


def open_run(path: Path) -> RunDirectory:
    """A run that is all there, or an error that says what is missing."""
    if not path.is_dir():
        raise RunDirectoryError("no such run directory", file=str(path))
    try:
        entries = msgspec.json.decode((path / MANIFEST).read_bytes(), type=dict[str, FileEntry])
    except FileNotFoundError:
        raise RunDirectoryError(
            "not a run directory", file=str(path), expected=f"a {MANIFEST} in it", hint=_HINT
        ) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise RunDirectoryError(str(error), file=str(path / MANIFEST), hint=_HINT) from None
    for name, entry in entries.items():
        file = path / name
        if not file.is_file():
            raise RunDirectoryError("missing", file=str(file), hint=_HINT)
        found = _entry(file)
        if found.bytes != entry.bytes:
            raise RunDirectoryError(
                f"{found.bytes} bytes long",
                file=str(file),
                expected=f"{entry.bytes} bytes",
                hint=_HINT,
            )
        if found.digest != entry.digest:
            raise RunDirectoryError("changed since the run was kept", file=str(file), hint=_HINT)
    return RunDirectory(path, frozenset(entries))


class RunDirectory(RunRecord):
    """A finished run, read from its files."""

    def __init__(self, path: Path, files: frozenset[str]) -> None:
        self.path = path
        self._files = files

    def summary(self) -> Summary:
        return self._decode(SUMMARY, Summary)

    def provenance(self) -> Provenance:
        return self._decode(PROVENANCE, Provenance)

    def scenario(self) -> Scenario:
        return self._decode(SCENARIO, Scenario)

    def log_lines(self) -> Iterator[dict[str, Any]]:
        if LOG not in self._files:
            raise RunDirectoryError(
                "this run kept no decision log",
                file=str(self.path),
                hint='run it with output.log = "decisions"',
            )
        decoder = msgspec.json.Decoder(dict[str, Any])
        with open(self.path / LOG, "rb") as stream:
            for number, line in enumerate(stream, 1):
                try:
                    yield decoder.decode(line)
                except msgspec.MsgspecError as error:
                    raise RunDirectoryError(
                        str(error), file=str(self.path / LOG), line=number, hint=_HINT
                    ) from None

    def task_rows(self) -> Columns:
        return self._columns(TASKS, TASK_COLUMNS)

    def job_rows(self) -> Columns:
        return self._columns(JOBS, JOB_COLUMNS)

    def _columns(self, file: str, names: tuple[str, ...]) -> Columns:
        try:
            with np.load(self.path / file) as columns:
                return {name: columns[name] for name in names}
        except (OSError, ValueError, KeyError) as error:
            raise RunDirectoryError(str(error), file=str(self.path / file), hint=_HINT) from None

    def _decode(self, name: str, kind: type[T]) -> T:
        try:
            return msgspec.json.decode((self.path / name).read_bytes(), type=kind)
        except (OSError, msgspec.MsgspecError) as error:
            raise RunDirectoryError(str(error), file=str(self.path / name), hint=_HINT) from None
