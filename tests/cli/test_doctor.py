"""`argosy doctor` names each thing that is wrong, and what to do about it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from argosy.cli import doctor
from argosy.cli.app import run
from argosy.engines.omega import Omega
from argosy.version import __version__

Breaks = Callable[[pytest.MonkeyPatch], None]


def examined(capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, str]]]:
    code = run(["doctor", "-o", "json"])
    return code, json.loads(capsys.readouterr().out)


def missing_library(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(doctor, "LIBRARIES", ("msgspec", "no_such_library"))


def missing_extra(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(doctor, "EXTRAS", {"no-such-extra": ("spare", "no spare parts")})


def old_python(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(doctor, "OLDEST_PYTHON", (9, 9))


def other_core(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("argosy._core.__version__", "0.0.1", raising=False)


def ascii_terminal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(doctor, "speaks_unicode", lambda: False)


def no_kube_tools(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("KUBEBUILDER_ASSETS", "/nowhere")


def no_place(patch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> None:
        raise PermissionError("Permission\ndenied")

    patch.setattr("tempfile.TemporaryDirectory", refuse)


@pytest.mark.parametrize(
    ("breaks", "status", "what", "found", "hint"),
    [
        (
            missing_library,
            "problem",
            "no_such_library",
            "No module named 'no_such_library'",
            "install it: pip install no_such_library",
        ),
        (
            missing_extra,
            "note",
            "no-such-extra",
            "not installed: no spare parts",
            "install it: pip install 'argosy[spare]'",
        ),
        (old_python, "problem", "python", "", "Argosy needs Python 9.9 or newer"),
        (
            other_core,
            "problem",
            "native core",
            f"RuntimeError: version 0.0.1 beside argosy {__version__}",
            "install argosy again; the core is compiled for one version of Python",
        ),
        (
            ascii_terminal,
            "note",
            "terminal",
            "plots are drawn in ASCII",
            "a UTF-8 locale, or PYTHONUTF8=1, gives smoother plots",
        ),
        (
            no_kube_tools,
            "note",
            "kubernetes",
            "no control plane to try Argosy on: no etcd, kube-apiserver, ",
            "run `make kube-tools`, or set KUBEBUILDER_ASSETS to a folder that has them",
        ),
        (
            no_place,
            "problem",
            "write access",
            "PermissionError: Permission denied",
            "change to a directory you can write to, or name one with --out",
        ),
    ],
)
def test_what_is_wrong_is_named_with_a_remedy(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    breaks: Breaks,
    status: str,
    what: str,
    found: str,
    hint: str,
) -> None:
    healthy, before = examined(capsys)
    assert healthy == 0
    breaks(monkeypatch)
    code, after = examined(capsys)
    assert code == (status == "problem")
    (finding,) = [each for each in after if each["hint"] and each not in before]
    assert (finding["status"], finding["what"], finding["hint"]) == (status, what, hint)
    assert found in finding["found"]


def test_what_works_is_named_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    entry = metadata.EntryPoint("extra", "argosy.engines.omega:Omega", "argosy.engines")
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry][: group == entry.group])
    _, findings = examined(capsys)
    found = {each["what"]: each["found"] for each in findings}
    assert list(found) == [
        "python",
        "native core",
        *doctor.LIBRARIES,
        *doctor.EXTRAS,
        "engines",
        "engine",
        "tasks",
        "kubernetes",
        "write access",
        "terminal",
    ]
    assert found["msgspec"] == metadata.version("msgspec")
    assert found["native core"].endswith("random streams agree")
    assert found["engines"].startswith("built in: omega, mapreduce, ")
    assert found["write access"] == f"runs are saved in {tmp_path / 'runs'}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("broken", "verdict"), [(1, "1 problem found"), (2, "2 problems found")])
def test_the_last_line_counts_the_problems(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, broken: int, verdict: str
) -> None:
    names = tuple(f"no_such_{number}" for number in range(broken))
    monkeypatch.setattr(doctor, "LIBRARIES", names)
    assert run(["doctor"]) == 1
    heading, *lines, _, last = capsys.readouterr().out.splitlines()
    assert (heading, last) == (f"argosy {__version__}", verdict)
    at = next(at for at, line in enumerate(lines) if line.startswith("problem  no_such_0"))
    assert lines[at] == "problem  no_such_0      No module named 'no_such_0'"
    assert lines[at + 1] == "         hint: install it: pip install no_such_0"


def findings_of(check: Callable[[], Any]) -> list[tuple[str, str, str]]:
    return [(each.status, each.what, each.found) for each in doctor._guarded(check)]


@pytest.mark.parametrize(("missing", "status"), [(0, "ok"), (1, "note")])
def test_tasks_without_all_controllers_are_worth_a_note(
    monkeypatch: pytest.MonkeyPatch, missing: int, status: str
) -> None:
    from argosy.worlds import local

    made: list[bool] = []
    controllers = tuple(local.CONTROLLERS)[missing:]
    for platform in ("linux", "darwin"):
        isolation = SimpleNamespace(
            platform=platform, controllers=controllers, sentence=lambda: "as told"
        )
        monkeypatch.setattr(local, "detect_isolation", lambda found=isolation: found)
        monkeypatch.setattr(local, "Launcher", lambda: made.append(True))
        assert findings_of(doctor._tasks) == [(status, "tasks", "as told")]
    # Elsewhere there is no supervisor to be looked for.
    assert made == [True]


def test_a_supervisor_that_is_missing_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    from argosy.worlds import local

    def fail() -> None:
        raise OSError("no supervisor")

    isolation = SimpleNamespace(platform="linux", controllers=(), sentence=str)
    monkeypatch.setattr(local, "detect_isolation", lambda: isolation)
    monkeypatch.setattr(local, "Launcher", fail)
    [finding] = doctor._guarded(doctor._tasks)
    assert finding == (
        "problem",
        "tasks",
        "OSError: no supervisor",
        "install argosy again; the task supervisor belongs to it",
    )


def test_runs_are_written_where_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    places: list[Path] = []

    @contextmanager
    def temporary(*, prefix: str, dir: Path) -> Any:
        places.append(dir)
        yield

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.TemporaryDirectory", temporary)
    doctor._guarded(doctor._write_access)
    (tmp_path / "runs").mkdir()
    doctor._guarded(doctor._write_access)
    assert places == [Path(), Path("runs")]


def test_an_encoding_may_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding, expected in (
        (None, ("note", "terminal", "encoding unknown: plots are drawn in ASCII")),
        ("ascii", ("note", "terminal", "encoding ascii: plots are drawn in ASCII")),
        ("UTF-8", ("ok", "terminal", "encoding UTF-8")),
    ):
        monkeypatch.setattr("sys.stdout", SimpleNamespace(encoding=encoding))
        assert findings_of(doctor._terminal) == [expected]


def test_a_core_without_a_version_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    for version, known in ((None, "loads"), (__version__, f"version {__version__}")):
        monkeypatch.setattr("argosy._core.__version__", version, raising=False)
        told = ("ok", "native core", f"{known}, random streams agree")
        assert findings_of(doctor._native_core) == [told]


def test_engines_and_policies_from_elsewhere_are_told_with_where_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Mine(Omega):
        name = "mine"

    monkeypatch.setitem(sys.modules, "made_up_engines", SimpleNamespace(Mine=Mine))
    entries = [
        metadata.EntryPoint("mine", "made_up_engines:Mine", "argosy.engines"),
        metadata.EntryPoint("other", "argosy.engines.omega:Omega", "argosy.engines"),
        metadata.EntryPoint("lost", "lost_package:Lost", "argosy.engines"),
        metadata.EntryPoint("gone", "gone_package:Gone", "argosy.flow_policies"),
    ]
    monkeypatch.setattr(
        metadata, "entry_points", lambda group: [each for each in entries if each.group == group]
    )
    built_in, *others = findings_of(doctor._engines)
    assert built_in[:2] == ("ok", "engines")
    assert others[0] == ("ok", "engine", "mine from made_up_engines:Mine")
    assert [each[:2] for each in others[1:]] == [("problem", "engine"), ("problem", "engine")]
    assert "lost_package" in others[2][2]
    [policy] = doctor._guarded(doctor._flow_policies)
    assert (policy.status, policy.what) == ("problem", "flow policy")
    assert policy.hint == "fix or uninstall the package; until then this policy cannot be used"
