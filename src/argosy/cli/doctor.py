"""`argosy doctor`: what works here and what does not.

Every check is independent and catches all errors: a broken installation must not break the doctor.
"""

from __future__ import annotations

import importlib
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

import click

from argosy.cli.output import emit, output_option, speaks_unicode
from argosy.model.errors import SettingError
from argosy.report.tables import Column, Table
from argosy.version import __version__

RUNS: Final = Path("runs")
OLDEST_PYTHON: Final = (3, 11)
LIBRARIES: Final = ("click", "msgspec", "numpy", "rich")
#: Libraries of extras: which extra, and what does not work without it.
EXTRAS: Final = {
    "aiohttp": ("serve", "no live clusters, so no `argosy up`"),
    "ortools": ("ilp", "no integer programs, so no medea by default and no ilp-all"),
    "pyyaml": ("yaml", "no constraints from YAML files"),
}
#: The first number of stream 1: it must be the same on every platform, or runs cannot be repeated.
FIRST_BITS: Final = 16326800385650405095


class DoctorFinding(NamedTuple):
    #: "ok", "note" for something that works but not as well, or "problem".
    status: str
    what: str
    found: str
    hint: str = ""


@click.command(epilog="Example: argosy doctor -o json")
@output_option
def command(output: str) -> None:
    """Check Python, the native core, libraries, engines, tasks, Kubernetes tools, write access and the
    terminal."""
    findings = [finding for check in CHECKS for finding in _guarded(check)]
    table = Table(
        (
            Column("status", "status"),
            Column("what", "what"),
            Column("found", "found"),
            Column("hint", "hint"),
        ),
        tuple(findings),
    )
    problems = sum(finding.status == "problem" for finding in findings)
    verdict = f"{problems or 'no'} problem{'' if problems == 1 else 's'} found"

    def sections(width: int | None) -> list[list[str]]:
        return [[f"argosy {__version__}", *map(_line, findings)], [verdict]]

    emit(output, sections=sections, document=table.records, csv=table.csv)
    if problems:
        raise click.exceptions.Exit(1)


def _line(finding: DoctorFinding) -> str:
    line = f"{finding.status:<7}  {finding.what:<13}  {finding.found}"
    return f"{line}\n{'':<9}hint: {finding.hint}" if finding.hint else line


def _guarded(check: Callable[[], Iterator[DoctorFinding]]) -> list[DoctorFinding]:
    try:
        return list(check())
    except Exception as error:
        name = check.__name__.strip("_").replace("_", " ")
        found = " ".join(f"{type(error).__name__}: {error}".split())
        return [DoctorFinding("problem", name, found, HINTS.get(name, ""))]


def _python() -> Iterator[DoctorFinding]:
    fits = sys.version_info >= OLDEST_PYTHON
    needed = ".".join(map(str, OLDEST_PYTHON))
    yield DoctorFinding(
        "ok" if fits else "problem",
        "python",
        f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "" if fits else f"Argosy needs Python {needed} or newer",
    )


def _native_core() -> Iterator[DoctorFinding]:
    core = importlib.import_module("argosy._core")
    version = getattr(core, "__version__", None)
    if version is not None and version != __version__:
        raise RuntimeError(f"version {version} beside argosy {__version__}")
    first = importlib.import_module("argosy.model.random").Random(1).bits()
    if first != FIRST_BITS:
        raise RuntimeError(f"random stream 1 begins with {first}, not with {FIRST_BITS}")
    known = f"version {version}" if version else "loads"
    yield DoctorFinding("ok", "native core", f"{known}, random streams agree")


def _libraries() -> Iterator[DoctorFinding]:
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
            yield DoctorFinding("ok", name, metadata.version(name))
        except Exception as error:
            yield DoctorFinding("problem", name, str(error), f"install it: pip install {name}")


def _engines() -> Iterator[DoctorFinding]:
    registry = importlib.import_module("argosy.engines.registry")
    plugins = importlib.import_module("argosy.engines.plugins")
    for name, engine in registry.ENGINES.items():
        plugins.check(engine, name)
    yield DoctorFinding("ok", "engines", f"built in: {', '.join(registry.ENGINES)}")
    engines, broken = registry.survey()
    for name, entries in plugins.entry_points().items():
        if name in broken:
            hint = "fix or uninstall the package; until then this engine cannot be used"
            yield DoctorFinding("problem", "engine", str(broken[name]), hint)
        elif name in engines:
            yield DoctorFinding("ok", "engine", f"{name} from {entries[0].value}")


def _flow_policies() -> Iterator[DoctorFinding]:
    """Installed ones; there need not be any."""
    policies = importlib.import_module("argosy.engines.families.flow.policies")
    for entry in metadata.entry_points(group=policies.ENTRY_POINTS):
        try:
            policies.find_policy(entry.name)
            yield DoctorFinding("ok", "flow policy", f"{entry.name} from {entry.value}")
        except SettingError as error:
            hint = "fix or uninstall the package; until then this policy cannot be used"
            yield DoctorFinding("problem", "flow policy", str(error), hint)


def _extras() -> Iterator[DoctorFinding]:
    for library, (extra, purpose) in EXTRAS.items():
        try:
            yield DoctorFinding("ok", library, metadata.version(library))
        except metadata.PackageNotFoundError:
            hint = f"install it: pip install 'argosy[{extra}]'"
            yield DoctorFinding("note", library, f"not installed: {purpose}", hint)


def _tasks() -> Iterator[DoctorFinding]:
    local = importlib.import_module("argosy.worlds.local")
    isolation = local.detect_isolation()
    if isolation.platform == "linux":
        local.Launcher()
    full = len(isolation.controllers) == len(local.CONTROLLERS)
    yield DoctorFinding("ok" if full else "note", "tasks", isolation.sentence())


def _kubernetes() -> Iterator[DoctorFinding]:
    control_plane = importlib.import_module("argosy.kubernetes.control_plane")
    try:
        folder = control_plane.find_tools().directory
        yield DoctorFinding("ok", "kubernetes", f"programs of a control plane in {folder}")
    except control_plane.KubeToolsMissing as missing:
        found = f"no control plane to try Argosy on: {missing.problem}"
        yield DoctorFinding("note", "kubernetes", found, missing.hint)


def _write_access() -> Iterator[DoctorFinding]:
    place = RUNS if RUNS.is_dir() else Path()
    with tempfile.TemporaryDirectory(prefix=".argosy-", dir=place):
        pass
    yield DoctorFinding("ok", "write access", f"runs are saved in {RUNS.absolute()}")


def _terminal() -> Iterator[DoctorFinding]:
    encoding = getattr(sys.stdout, "encoding", None) or "unknown"
    if speaks_unicode():
        yield DoctorFinding("ok", "terminal", f"encoding {encoding}")
    else:
        yield DoctorFinding(
            "note",
            "terminal",
            f"encoding {encoding}: plots are drawn in ASCII",
            "a UTF-8 locale, or PYTHONUTF8=1, gives smoother plots",
        )


CHECKS: Final = (
    _python,
    _native_core,
    _libraries,
    _extras,
    _engines,
    _flow_policies,
    _tasks,
    _kubernetes,
    _write_access,
    _terminal,
)
HINTS: Final = {
    "native core": "install argosy again; the core is compiled for one version of Python",
    "tasks": "install argosy again; the task supervisor belongs to it",
    "engines": "fix the problems above first; then install argosy again",
    "write access": "change to a directory you can write to, or name one with --out",
}
