"""Constraints in files: one per line, a TOML or YAML list, or those of a scenario's jobs.

A mistake in one constraint does not stop reading: it becomes a finding with its line.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from argosy.model.constraints import Constraint
from argosy.model.constraints.lint import LintFinding, Surroundings, lint
from argosy.model.constraints.parts import container_names, container_tags, of_job, with_name
from argosy.model.constraints.tables import read_constraint
from argosy.model.errors import ArgosyError, CommandError, ModelError
from argosy.model.feasibility import UnmeetableDemand
from argosy.model.machines import static_tags
from argosy.model.scenario import Scenario
from argosy.scenarios.loader import load
from argosy.scenarios.toml_places import find_places, line_of
from argosy.scenarios.unmeetable_demands import unmeetable_demands


class Written(msgspec.Struct, frozen=True):
    """A constraint and its location: a line, or a job's id and its number there."""

    constraint: Constraint
    line: int | None = None
    where: str = ""

    @property
    def place(self) -> str:
        return self.where or (f"line {self.line}" if self.line is not None else "")


class Mistake(msgspec.Struct, frozen=True):
    place: str
    problem: str


class Linted(msgspec.Struct, frozen=True):
    constraints: tuple[Written, ...]
    mistakes: tuple[Mistake, ...]
    findings: tuple[LintFinding, ...]
    #: What jobs of a scenario ask for in vain, because of constraints or not.
    demands: tuple[UnmeetableDemand, ...] = ()

    @property
    def errors(self) -> int:
        found = sum(finding.severity == "error" for finding in self.findings)
        return len(self.mistakes) + found + len(self.demands)


def lint_file(path: Path) -> Linted:
    """Findings for the constraints in a file. In a scenario, all names are checked; in a plain list,
    only conflicts are found."""
    if path.suffix == ".toml":
        document = _toml(path)
        if "cell" in document or "clusters" in document:
            return _lint_scenario(load(path), document)
    written, mistakes = read_file(path)
    findings = lint([each.constraint for each in written])
    return Linted(tuple(written), tuple(mistakes), tuple(findings))


def _lint_scenario(scenario: Scenario, document: Mapping[str, Any]) -> Linted:
    written = [
        Written(constraint, where=f"job {job.id}, constraint {number}")
        for job in scenario.jobs
        for number, constraint in enumerate(of_job(job.id, job.job.constraints), 1)
    ]
    for number, constraint in enumerate(scenario.cell.constraints, 1):
        written.append(Written(constraint, where=f"cell, constraint {number}"))
    for entry in document.get("fleet", ()):
        for number, value in enumerate(entry.get("settings", {}).get("operator", ()), 1):
            where = f"fleet {entry.get('name', '')}, constraint {number}"
            written.append(Written(read_constraint(value), where=where))
    constraints = [each.constraint for each in written]
    findings = lint(constraints, surroundings(scenario, container_names(constraints)))
    return Linted(tuple(written), (), tuple(findings), tuple(unmeetable_demands(scenario)))


def surroundings(scenario: Scenario, names: frozenset[str]) -> Surroundings:
    """What constraints can name in a scenario's cell and workload; `names` are the single containers
    that they do name."""
    cell, kinds = scenario.cell, Counter[frozenset[str]]()
    for job in scenario.jobs:
        for start, group in zip(job.job.group_starts(), job.groups, strict=True):
            shared = frozenset(container_tags(job.job, group))
            if not names:
                kinds[shared] += group.count
                continue
            for index in range(start, start + group.count):
                kinds[with_name(shared, index, names)] += 1
    members: dict[str, dict[str, set[str]]] = {group.name: {} for group in cell.groups}
    overlapping = set()
    for machine in cell.machines:
        for name, sets in machine.joins.items():
            if len(sets) > 1:
                overlapping.add(name)
            for each in sets:
                members[name].setdefault(each, set()).add(machine.name)
    return Surroundings(
        groups={group.name: len(group.sets) for group in cell.groups},
        containers=tuple(kinds.items()),
        machines=tuple({static_tags(machine.attributes) for machine in cell.machines}),
        nested=frozenset(_nested(members)),
        overlapping=frozenset(overlapping),
    )


def _nested(members: Mapping[str, Mapping[str, set[str]]]) -> Iterable[tuple[str, str]]:
    for inner, small in members.items():
        for outer, large in members.items():
            if inner != outer and all(
                mine <= theirs or not mine & theirs
                for mine in small.values()
                for theirs in large.values()
            ):
                yield inner, outer


def read_file(path: Path) -> tuple[list[Written], list[Mistake]]:
    """The constraints of a plain list, and the lines that could not be read."""
    if path.suffix == ".toml":
        document = _toml(path)
        places = find_places(read_text(path))
        return _listed(
            document.get("constraints"), path, lambda at: line_of(places, ("constraints", at))
        )
    if path.suffix in (".yaml", ".yml"):
        document = _yaml(path)
        items = document.get("constraints") if isinstance(document, dict) else document
        return _listed(items, path, lambda at: None)
    written, mistakes = [], []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if (text := line.split("#")[0].rstrip()).strip():
            try:
                written.append(Written(read_constraint(text), line=number))
            except ArgosyError as error:
                mistakes.append(Mistake(f"line {number}", str(error)))
    return written, mistakes


def _listed(items: object, path: Path, line: Any) -> tuple[list[Written], list[Mistake]]:
    if not isinstance(items, list):
        raise ModelError("no list of constraints", file=str(path), expected="constraints = [...]")
    written, mistakes = [], []
    for index, item in enumerate(items):
        at = line(index)
        where = "" if at is not None else f"constraints[{index}]"
        try:
            written.append(Written(read_constraint(item), at, where))
        except ArgosyError as error:
            mistakes.append(Mistake(where or f"line {at}", str(error)))
    return written, mistakes


def read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ModelError(f"cannot be read: {what}", file=str(path)) from None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise ModelError(f"not TOML: {error}", file=str(path)) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"not TOML: {_beyond_bounds(error)}", file=str(path)) from None


def _beyond_bounds(error: ValueError | RecursionError) -> str:
    """Python's own bounds on the digits of a number, and on nesting."""
    too_long = isinstance(error, ValueError)
    return "a number has too many digits" if too_long else "nested too deeply"


def read_yaml(text: str, path: Path) -> Any:
    try:
        return msgspec.yaml.decode(text)
    except ImportError:
        raise CommandError(
            f"{path}: YAML needs PyYAML", hint="pip install 'argosy[yaml]', or use TOML"
        ) from None
    except msgspec.DecodeError as error:
        raise ModelError(f"not YAML: {error}", file=str(path)) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"not YAML: {_beyond_bounds(error)}", file=str(path)) from None


def _yaml(path: Path) -> Any:
    return read_yaml(read_text(path), path)
