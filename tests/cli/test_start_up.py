"""What commands import: start-up time depends on the computer, imports do not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from live_server import LiveServer, live_server

#: Libraries that every command may use; the others are those of some.
TERMINAL = ("click", "gc", "importlib.util", "locale", "signal")
HELP = (*TERMINAL, "click._textwrap", "shutil")
SERVER = ("msgspec", "msgspec.json", "socket")
#: The command line itself, whatever the command.
FRAME = {
    "argosy",
    "argosy.cli",
    "argosy.cli.app",
    "argosy.cli.output",
    "argosy.model",
    "argosy.model.errors",
    "argosy.version",
}
CLIENT = {
    "argosy.api",
    "argosy.api.agent_values",
    "argosy.api.sockets",
    "argosy.api.values",
    "argosy.cli.live",
    "argosy.client",
    "argosy.client.agent_calls",
    "argosy.client.calls",
    "argosy.client.connections",
    "argosy.client.endpoints",
    "argosy.client.flows",
    "argosy.client.server_sent",
    "argosy.client.synchronous",
    "argosy.client.unreachable",
    "argosy.model.answers",
    "argosy.model.prices",
    "argosy.model.units",
}
#: What checks a job before it is sent.
JOBS = {
    "argosy.model.constraints",
    "argosy.model.constraints.constraint",
    "argosy.model.constraints.tables",
    "argosy.model.constraints.text",
    "argosy.model.jobs",
    "argosy.model.resources",
    "argosy.model.truth",
    "argosy.workloads",
    "argosy.workloads.job_tables",
    "argosy.workloads.live_jobs",
    "argosy.workloads.tables",
    "shlex",
}
TABLES = {"argosy.cli.job_tables", "argosy.report", "argosy.report.tables"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with live_server(tmp_path_factory.mktemp("state"), "--machines", "1") as started:
        yield started


def imported(server: LiveServer | None, script: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{script}\nprint(*sys.modules, file=sys.stderr)"],
        env=None if server is None else server.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split())


def needed(server: LiveServer | None, *arguments: str, libraries: tuple[str, ...]) -> set[str]:
    """The modules that a command imports besides these libraries and what they import."""
    called = f"from argosy.cli import main\ntry: main({list(arguments)!r})\nexcept SystemExit: pass"
    return imported(server, called) - imported(server, f"import {', '.join(libraries)}")


def test_help_imports_no_command() -> None:
    assert needed(None, "--help", libraries=HELP) <= FRAME


def test_help_of_submit_imports_no_client() -> None:
    parts = {"argosy.cli.submit", "argosy.cli.live", "argosy.cli.job_arguments"}
    assert needed(None, "submit", "--help", libraries=HELP) <= FRAME | parts


def test_ps_imports_its_client_and_its_table(server: LiveServer) -> None:
    found = needed(server, "ps", libraries=TERMINAL + SERVER)
    assert found <= FRAME | CLIENT | TABLES | {"argosy.cli.ps"}


def test_a_command_is_submitted_without_what_reads_job_files(server: LiveServer) -> None:
    found = needed(server, "submit", "--", "true", libraries=(*TERMINAL, *SERVER, "fractions"))
    parts = {"argosy.cli.submit", "argosy.cli.job_arguments"}
    assert found <= FRAME | CLIENT | JOBS | parts
