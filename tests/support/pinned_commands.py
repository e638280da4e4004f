"""Commands called in this process, and everything that comes of them as one text: what they print, their
exit codes, and what is in every file that they wrote."""

from __future__ import annotations

import io
import json
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final

import numpy as np

from argosy.cli import app
from argosy.version import __version__

#: What differs between computers, moments and processes.
_UNSTEADY: Final = (
    (re.compile(r"(replayed in )[\d.]+"), r"\1..."),
    (re.compile(r"(\.jsonl,True,\d+,\d+,\d+,)[\d.]+"), r"\1..."),
    (re.compile(r"note: about .* left; .*\n"), ""),
    (
        re.compile(r'("(?:seconds|started|process|python|platform|numpy)": )("[^"]*"|[\d.e+-]+)'),
        r"\1...",
    ),
    (re.compile(rf"(Argosy |\"argosy\": \"){re.escape(__version__)}"), r"\1..."),
    (re.compile(rf"Python {re.escape(platform.python_version())}"), "Python ..."),
)
#: Where the source is, or is installed.
_SOURCE: Final = re.compile(r"/[^\s'\":]*/(?:site-packages/(?=argosy)|(?=tests/|src/))")
#: Its digests are of files that say how long they took.
_MANIFEST: Final = "manifest.json"


class Folder:
    """A directory in which commands are called; it must be the current one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[Path, tuple[int, int]] = {}

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            data = (
                content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
            )
            file.write_bytes(data)
        self.seen()

    def remove(self, *names: str) -> None:
        for name in names:
            path = self.path / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def seen(self) -> list[Path]:
        """The files that are new or were written since the last call."""
        found = []
        for file in sorted(self.path.rglob("*")):
            if not file.is_file():
                continue
            stat = file.stat()
            mark = (stat.st_mtime_ns, stat.st_ino)
            if self._known.get(file) != mark:
                self._known[file] = mark
                found.append(file)
        return found

    def call(self, *arguments: str | Path, given: str = "") -> str:
        """The command, what it printed, its exit code, and the files that it wrote."""
        words = [str(argument) for argument in arguments]
        code, out, err = called(words, given)
        parts = [f"$ argosy {' '.join(words)}", f"exit {code}", "stdout:", out, "stderr:", err]
        for file in self.seen():
            parts += [f"file {file.relative_to(self.path)}:", content_of(file)]
        return self.steady("\n".join(parts))

    def calls(self, commands: Iterable[Iterable[str]]) -> str:
        return "\n\n".join(self.call(*command) for command in commands)

    def steady(self, text: str) -> str:
        text = _SOURCE.sub("", text.replace(str(self.path), "FOLDER"))
        for pattern, instead in _UNSTEADY:
            text = pattern.sub(instead, text)
        return text


def called(words: list[str], given: str = "") -> tuple[int, str, str]:
    out, err = _stream(), _stream()
    arguments, entered = sys.argv, sys.stdin
    sys.argv = ["argosy", *words]
    sys.stdin = _stream(given)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = app.run(words)
            out.flush()
            err.flush()
    finally:
        sys.argv, sys.stdin = arguments, entered
    return code, _text(out), _text(err)


def _stream(text: str = "") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8", errors="surrogatepass")


def _text(stream: io.TextIOWrapper) -> str:
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode("utf-8", "surrogatepass")


def content_of(file: Path) -> str:
    if file.name == _MANIFEST:
        return "\n".join(json.loads(file.read_bytes()))
    if file.suffix == ".npz":
        with np.load(file) as columns:
            return "\n".join(
                f"{name} {columns[name].dtype} {columns[name].shape} {columns[name].tolist()}"
                for name in columns.files
            )
    return file.read_bytes().decode("utf-8", "backslashreplace")


def plain(value: Any) -> str:
    """A value as text that is the same in every process: no addresses, no order of a set."""
    import msgspec

    def other(each: Any) -> Any:
        if isinstance(each, np.ndarray):
            return [str(each.dtype), each.tolist()]
        if isinstance(each, np.generic):
            return each.item()
        if isinstance(each, frozenset | set):
            return sorted(each)
        return str(each)

    return json.dumps(msgspec.to_builtins(value, enc_hook=other), indent=1)
