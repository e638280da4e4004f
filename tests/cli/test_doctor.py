"""`argosy doctor` names each thing that is wrong, and what to do about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from argosy.cli import doctor
from argosy.cli.app import run
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
