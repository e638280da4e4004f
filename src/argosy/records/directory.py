"""Run directories: their files, how they are written, and how they are read, also during the run.

The directory is written during the run. `running.json` is there from the start, locked by the writing
process; the journal grows beside it. The other files follow at the end, and `manifest.json`, with the
size and digest of each, is written last. A directory with a manifest is a finished run; if a file is
missing or changed, reading it is an error. A directory without a manifest is a run in progress as long
as `running.json` is locked. If it is not locked, the process was killed; the journal so far can still be
read. A run that fails leaves nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import re
import shutil
import zipfile
from pathlib import Path
from typing import IO, Final, TypeVar

import msgspec
import numpy as np

from argosy.model.errors import CommandError, RunDirectoryError
from argosy.model.scenario import Scenario
from argosy.records.files import write_whole
from argosy.records.journal_file import JournalFile
from argosy.records.record import (
    JOB_COLUMNS,
    KEEP_THEM,
    TASK_COLUMNS,
    Columns,
    RunRecord,
    RunStatus,
)
from argosy.records.summary import Provenance, Summary
from argosy.scenarios.scenario_json import write_scenario

JOURNAL: Final = "journal.jsonl"
TASKS: Final = "tasks.npz"
JOBS: Final = "jobs.npz"
SCENARIO: Final = "scenario.json"
SUMMARY: Final = "summary.json"
PROVENANCE: Final = "provenance.json"
MANIFEST: Final = "manifest.json"
RUNNING: Final = "running.json"
#: The journal's name from before it contained inputs.
_OLD_LOG: Final = "decisions.jsonl"
#: The directory for runs if the user names none.
DEFAULT_PARENT: Final = Path("runs")
T = TypeVar("T")
_HINT: Final = "run the scenario again to get a whole directory"


class FileEntry(msgspec.Struct, frozen=True):
    bytes: int
    digest: str


class RunMark(msgspec.Struct, frozen=True, kw_only=True):
    """`running.json`: which process writes the run."""

    command: list[str]
    started: str
    process: int


def _entry(path: Path) -> FileEntry:
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16))
    return FileEntry(path.stat().st_size, digest.hexdigest())


def default_directory(scenario_name: str, label: str = "") -> Path:
    """``runs/<name>-<n>`` with the first free number."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{scenario_name}-{label}" if label else scenario_name)
    number = 1
    while (DEFAULT_PARENT / f"{stem}-{number}").exists():
        number += 1
    return DEFAULT_PARENT / f"{stem}-{number}"


def latest_directory() -> Path:
    """The run under ``runs/`` that was finished or started last."""
    found = []
    for name in (MANIFEST, RUNNING):
        for path in DEFAULT_PARENT.glob(f"*/{name}"):
            # It may have disappeared because a run has just ended.
            with contextlib.suppress(FileNotFoundError):
                found.append((path.stat().st_mtime_ns, path.parent))
    if not found:
        raise RunDirectoryError(
            "no run found",
            file=str(DEFAULT_PARENT),
            hint="run a scenario first, or name one with --run",
        )
    return max(found)[1]


class RunWriter:
    """Fills the directory of one run. Must be ended with `finish` or `abandon`."""

    def __init__(self, path: Path, mark: RunMark, scenario: Scenario) -> None:
        """Creates the directory, which must not exist, so that no other run can use it."""
        self.path = path
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            raise CommandError(
                f"{path} already exists", hint="name another directory with --out"
            ) from None
        except OSError as error:
            raise CommandError(
                f"cannot write to {path.parent}: {error.strerror}", hint="name another directory"
            ) from None
        try:
            self._mark: IO[bytes] = open(path / RUNNING, "wb")  # noqa: SIM115
            # The lock lasts as long as this process lives.
            fcntl.flock(self._mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._mark.write(msgspec.json.format(msgspec.json.encode(mark), indent=2))
            self._mark.flush()
            with open(path / SCENARIO, "wb") as file:
                self.scenario_digest = write_scenario(scenario, file)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise

    def finish(self, summary: Summary, provenance: Provenance) -> None:
        for name, value in ((SUMMARY, summary), (PROVENANCE, provenance)):
            encoded = msgspec.json.format(msgspec.json.encode(value), indent=2)
            (self.path / name).write_bytes(encoded)
        files = (path for path in sorted(self.path.iterdir()) if path.name != RUNNING)
        entries = {path.name: _entry(path) for path in files}
        manifest = msgspec.json.format(msgspec.json.encode(entries), indent=2)
        write_whole(self.path / MANIFEST, manifest)
        (self.path / RUNNING).unlink()
        self._mark.close()

    def abandon(self) -> None:
        """Removes everything of a run that did not end."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._mark.close()


def open_run(path: Path) -> RunDirectory:
    """A complete finished run or a run in progress; otherwise an error that says what is missing."""
    if not path.is_dir():
        raise RunDirectoryError("no such run directory", file=str(path))
    # The mark is removed after the manifest is written: if neither is seen, check for the manifest
    # again.
    for _ in range(2):
        if (path / MANIFEST).exists():
            return _open_finished(path)
        status = _unfinished(path / RUNNING)
        if status is not None:
            return RunDirectory(path, frozenset(file.name for file in path.iterdir()), status)
    raise RunDirectoryError(
        "not a run directory", file=str(path), expected=f"a {MANIFEST} in it", hint=_HINT
    )


def _unfinished(mark: Path) -> RunStatus | None:
    try:
        with open(mark, "rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        return RunStatus.RUNNING
    except OSError as error:
        raise RunDirectoryError(str(error.strerror), file=str(mark)) from None
    return RunStatus.CUT_SHORT


def _open_finished(path: Path) -> RunDirectory:
    try:
        entries = msgspec.json.decode((path / MANIFEST).read_bytes(), type=dict[str, FileEntry])
    except (OSError, msgspec.MsgspecError) as error:
        raise RunDirectoryError(str(error), file=str(path / MANIFEST), hint=_HINT) from None
    if _OLD_LOG in entries and JOURNAL not in entries:
        raise RunDirectoryError(
            f"a run of an older version, with a {_OLD_LOG}",
            file=str(path),
            expected=f"a {JOURNAL}",
            hint="run the scenario again, or read it with the version of Argosy that wrote it",
        )
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
            raise RunDirectoryError("changed since the run was saved", file=str(file), hint=_HINT)
    return RunDirectory(path, frozenset(entries), RunStatus.FINISHED)


class RunDirectory(RunRecord):
    """A run, read from its files."""

    def __init__(self, path: Path, files: frozenset[str], status: RunStatus) -> None:
        self.path = path
        self.status = status
        self._files = files

    def scenario(self) -> Scenario:
        return self._decode(SCENARIO, Scenario)

    def summary(self) -> Summary:
        return self._decode(SUMMARY, Summary)

    def provenance(self) -> Provenance:
        """Only for a finished run."""
        return self._decode(PROVENANCE, Provenance)

    def read_journal(self) -> JournalFile:
        if JOURNAL not in self._files:
            raise RunDirectoryError("this run has no journal", file=str(self.path), hint=KEEP_THEM)
        return JournalFile.read(self.path / JOURNAL)

    def kept_tasks(self) -> Columns:
        return self._columns(TASKS, TASK_COLUMNS)

    def kept_jobs(self) -> Columns:
        return self._columns(JOBS, JOB_COLUMNS)

    def _columns(self, file: str, names: tuple[str, ...]) -> Columns:
        try:
            with open(self.path / file, "rb") as stream, np.load(stream) as columns:
                return {name: columns[name] for name in names}
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise RunDirectoryError(str(error), file=str(self.path / file), hint=_HINT) from None

    def _decode(self, name: str, kind: type[T]) -> T:
        try:
            return msgspec.json.decode((self.path / name).read_bytes(), type=kind)
        except (OSError, msgspec.MsgspecError) as error:
            raise RunDirectoryError(str(error), file=str(self.path / name), hint=_HINT) from None
