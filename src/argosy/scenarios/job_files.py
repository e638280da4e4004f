"""Job files: one job or several for a live cluster, in TOML or YAML.

The keys are those of `[[workload.jobs]]`, as `argosy.workloads.live_jobs` reads them. A file is checked
as a whole before anything is submitted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from argosy.model.errors import JobError, ServerError, excerpt
from argosy.model.jobs import Job
from argosy.model.units import shown
from argosy.scenarios.toml_files import decode_utf8, parse_toml, read_utf8
from argosy.scenarios.toml_places import find_places, line_of
from argosy.workloads.live_jobs import IN_FILES, read_live_job
from argosy.workloads.tables import Misfit, TablePath, path_text

TOML: Final = "toml"
YAML: Final = "yaml"
FORMATS: Final = {".toml": TOML, ".yaml": YAML, ".yml": YAML}
_EXPECTED: Final = "a job file in TOML or YAML"
#: Keys of scenario files that job files do not have.
_OF_SCENARIOS: Final = frozenset({"workload", "cell", "fleet", "clusters"})
_STEP: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


class FileJob(msgspec.Struct, frozen=True):
    """A job of a file: as it is written, and as it was understood."""

    document: dict[str, Any]
    job: Job
    path: TablePath


class JobFile(msgspec.Struct, frozen=True):
    name: str
    jobs: tuple[FileJob, ...]
    places: dict[TablePath, int]

    def located(self, error: ServerError, at: int | None = None) -> ServerError:
        """A server's refusal of the job with this number, or of all jobs together, with its line."""
        path = _path_of(error.field or "")
        if at is None and path[:1] == ("jobs",) and len(path) > 1 and isinstance(path[1], int):
            at, path = path[1], path[2:]
        if at is not None and at < len(self.jobs):
            error.located(file=self.name, line=line_of(self.places, self.jobs[at].path + path))
        else:
            error.located(file=self.name)
        return error


def read_job_file(path: Path) -> JobFile:
    text = read_utf8(path, JobError, _EXPECTED)
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise JobError(
            f"{excerpt(path.suffix) if path.suffix else 'a name'} does not say what the file is",
            file=str(path),
            expected="a name that ends in .toml, .yaml or .yml",
        )
    return parse_jobs(text, str(path), form)


def read_job_stream(data: bytes, form: str) -> JobFile:
    """The jobs in what was read from standard input."""
    return parse_jobs(decode_utf8(data, "-", JobError, _EXPECTED), "-", form)


def parse_jobs(text: str, file: str, form: str) -> JobFile:
    """The jobs in a file with this text; raises `JobError` or another `ArgosyError` with its place."""
    places: dict[TablePath, int] = {}
    try:
        if form == YAML:
            from argosy.scenarios.yaml_files import parse_yaml

            documents, places = parse_yaml(text, file, JobError, _EXPECTED)
            found = [
                each for number, table in enumerate(documents) for each in _in_yaml(table, number)
            ]
        else:
            document = parse_toml(text, file, JobError, _EXPECTED)
            places = find_places(text)
            found = _in_table(document, ())
        if not found:
            raise Misfit(JobError("no jobs", expected="at least one"), ())
        return JobFile(file, _read_all(found), places)
    except RecursionError:
        raise JobError("nested too deeply", file=file, expected=_EXPECTED) from None
    except Misfit as misfit:
        # The number of a YAML document is no part of what its author sees.
        shown_path = misfit.path[1:] if form == YAML else misfit.path
        raise misfit.error.located(
            file=file,
            line=line_of(places, misfit.path),
            field=path_text(shown_path) or None,
        ) from None


def _read_all(tables: list[tuple[Any, TablePath]]) -> tuple[FileJob, ...]:
    jobs: list[FileJob] = []
    seen: set[str] = set()
    for number, (table, path) in enumerate(tables):
        if not isinstance(table, Mapping):
            raise Misfit(
                JobError(f"{shown(table)} is not a job", expected="a table with its keys"), path
            )
        if not _OF_SCENARIOS.isdisjoint(table):
            key = next(iter(_OF_SCENARIOS & set(table)))
            raise Misfit(
                JobError(
                    f"{key} is a key of scenarios, not of jobs",
                    expected=_EXPECTED,
                    hint="`argosy run` simulates a scenario",
                ),
                (*path, key),
            )
        job = read_live_job(table, default_id=f"job-{number + 1}", converter=IN_FILES, path=path)
        if "id" in table:
            if job.id in seen:
                raise Misfit(
                    JobError(f"job {excerpt(job.id)} again", expected="each job id once"),
                    (*path, "id"),
                )
            seen.add(job.id)
        jobs.append(FileJob(dict(table), job, path))
    return tuple(jobs)


def _in_table(document: Mapping[str, Any], path: TablePath) -> list[tuple[Any, TablePath]]:
    """The job that a table is, or those that it lists."""
    if "jobs" not in document:
        return [(document, path)] if document else []
    others = [key for key in document if key != "jobs"]
    if others:
        raise Misfit(
            JobError(
                f"both jobs and {others[0]}", expected="either a list of jobs or the keys of one"
            ),
            (*path, others[0]),
        )
    listed = document["jobs"]
    if not isinstance(listed, list):
        raise Misfit(
            JobError(f"{shown(listed)} is not a list", expected="[[jobs]]"), (*path, "jobs")
        )
    return [(table, (*path, "jobs", number)) for number, table in enumerate(listed)]


def _in_yaml(document: Any, number: int) -> list[tuple[Any, TablePath]]:
    if document is None:
        return []
    if isinstance(document, list):
        return [(table, (number, at)) for at, table in enumerate(document)]
    if isinstance(document, Mapping):
        return _in_table(document, (number,))
    return [(document, (number,))]


def _path_of(text: str) -> TablePath:
    """The path that `path_text` has written."""
    return tuple(
        int(match[1]) if match[1] is not None else match[2] for match in _STEP.finditer(text)
    )
