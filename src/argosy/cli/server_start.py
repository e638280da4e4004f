"""Starting a server in the background."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from argosy.api.sockets import SOCKET, short_path
from argosy.cli.output import note, write
from argosy.model.errors import CommandError, MissingExtra

LOG: Final = "server.log"
#: Seconds that a server may take until it answers, with very many jobs to go on with.
_PATIENCE: Final = 60.0
_LOOK: Final = 0.02
#: How the line begins that says that the server is up: as text, as JSON.
_READY: Final = ("argosy: up:", '{"directory"')


def require_serve(command: str = "argosy up") -> None:
    if importlib.util.find_spec("aiohttp") is None:
        raise MissingExtra(command, "serve")


def detached(arguments: list[str], directory: Path | None, *, as_json: bool) -> None:
    """Starts `argosy` with these arguments, less the option that detaches it; prints what it says."""
    if directory is None:
        raise CommandError(
            "--detach without --dir", expected="both: the server's log is kept there"
        )
    kept = [each for each in arguments if each not in ("-d", "--detach")]
    said = start_server(kept, directory, ready=_READY[as_json])
    write(said) if as_json else note(said)


def start_server(arguments: list[str], directory: Path, ready: str = _READY[0]) -> str:
    """Starts `argosy` with these arguments, and waits until it answers. Returns how it says so."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = directory / LOG
    with log.open("ab") as output:
        began = output.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "argosy.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        code = process.poll()
        text = _tail(log, began)
        if code is not None:
            raise _refusal(text, code)
        found = next((line for line in text.splitlines() if line.startswith(ready)), None)
        if found is not None and _answers(directory):
            return found
        time.sleep(_LOOK)
    raise CommandError(f"the server does not answer; its log is {log}")


def _refusal(text: str, code: int) -> CommandError:
    last = text.strip().splitlines()[-1:] or [f"it ended with code {code}"]
    return CommandError(f"the server could not start: {last[0].removeprefix('argosy: ')}")


def _tail(log: Path, began: int) -> str:
    with log.open("rb") as file:
        file.seek(began)
        return file.read().decode("utf-8", "replace")


def _answers(directory: Path) -> bool:
    try:
        with (
            short_path(str(directory / SOCKET)) as path,
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe,
        ):
            probe.connect(path)
    except OSError:
        return False
    return True
