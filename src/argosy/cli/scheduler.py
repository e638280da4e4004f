"""`argosy scheduler`: a scheduler over the agents of other clusters."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from argosy.cli.output import note
from argosy.cli.serving import (
    Listening,
    checked_place,
    duration_of,
    listen_options,
    readiness_option,
    retention_options,
)
from argosy.model.errors import CommandError, excerpt

if TYPE_CHECKING:
    from argosy.service.retention import KeptJobs

DEFAULT_LISTEN: Final = "127.0.0.1:0"
_NAME: Final = re.compile(r"[\w-]{1,60}")


@click.command(
    epilog="Example: argosy scheduler --agent http://127.0.0.1:7464 --agent http://127.0.0.1:7465"
)
@click.option(
    "--agent",
    "agents",
    multiple=True,
    required=True,
    metavar="[NAME=]URL",
    help="An agent: http://HOST:PORT, https://HOST:PORT or unix:PATH; repeatable.",
)
@click.option("--engine", default="vela", show_default=True, metavar="NAME", help="The engine.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the engine, as in TOML; repeatable.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="What agents know it by; each scheduler over the same agents has its own.  "
    "[default: made up, and kept in DIR]",
)
@click.option(
    "--place",
    default="",
    metavar="NAME",
    help="Where it is, for tasks that demand to be near there.",
)
@click.option(
    "--distance",
    "distances",
    multiple=True,
    metavar="ONE<>OTHER=TIME",
    help="How long a message takes between two places, if the scheduler cannot measure it, such as "
    "vienna<>rome=9ms; repeatable.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.001, 3600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a request to an agent may take.",
)
@click.option(
    "--agent-token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The token for the agents.  [default: $ARGOSY_TOKEN]",
)
@click.option(
    "--agent-ca",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Authorities that sign the agents' certificates.  [default: those of this computer]",
)
@click.option(
    "--agent-cert",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A certificate and its key, for agents that ask for one.",
)
@click.option(
    "--jobs",
    metavar="FILE",
    help="Submit the jobs of a job file, or of standard input (-), one JSON document a line.",
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where jobs are kept.  [default: a directory that is removed at the end]",
)
@retention_options
@listen_options(DEFAULT_LISTEN)
@click.option(
    "-d", "--detach", is_flag=True, help="Return as soon as the server answers; needs --dir."
)
@readiness_option
def command(
    agents: tuple[str, ...],
    engine: str,
    settings: tuple[str, ...],
    name: str | None,
    place: str,
    distances: tuple[str, ...],
    timeout: float,
    agent_token_file: Path | None,
    agent_ca: Path | None,
    agent_cert: Path | None,
    jobs: str | None,
    directory: Path | None,
    kept: KeptJobs,
    listening: Listening,
    detach: bool,
    output: str,
) -> None:
    """Schedule jobs over the agents of other clusters until stopped.

    An agent is a server of Argosy: `argosy up` over real processes, `argosy kubernetes --agent` over a
    Kubernetes cluster, or `argosy agent` over a simulated one. Jobs come over the same API as those of
    `argosy up`, so that `argosy submit`, `jobs`, `why` and `story` work with --server or --dir.
    """
    from tempfile import TemporaryDirectory

    from argosy.cli.server_start import detached, require_serve
    from argosy.cli.up import announce, announce_json
    from argosy.client.endpoints import find_token
    from argosy.service.scheduling import AgentAddress, SchedulerOptions, serve_scheduler
    from argosy.service.server import ServerOptions

    require_serve("argosy scheduler")
    if name is not None and not _NAME.fullmatch(name):
        raise CommandError(f"--name {name!r}", expected="letters, digits, - and _")
    if detach:
        detached(sys.argv[1:], directory, as_json=output == "json")
        return
    with TemporaryDirectory(prefix="argosy-scheduler-") as scratch:
        home = directory or Path(scratch)
        options = SchedulerOptions(
            server=ServerOptions(
                directory=home, is_lasting=directory is not None, kept=kept, **listening._asdict()
            ),
            name=name or _kept_name(home),
            engine=engine,
            settings=_settings(settings),
            agents=tuple(AgentAddress.parse(each) for each in agents),
            timeout=timeout,
            place=checked_place(place),
            distances=dict(map(_distance, distances)),
            token=find_token(file=agent_token_file),
            ca=agent_ca,
            certificate=agent_cert,
            jobs=None if jobs is None else _jobs(jobs),
        )
        say = announce_json if output == "json" else announce
        serve_scheduler(options, say, lambda line: note(f"argosy: {line}"))
    note("argosy: down")


def _kept_name(directory: Path) -> str:
    """A scheduler that starts again must find what it has left with the agents."""
    import secrets

    path = directory / "name"
    try:
        if not path.exists():
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.write_text(f"scheduler-{secrets.token_hex(4)}\n", "ascii")
        return path.read_text("ascii").strip()
    except OSError as error:
        raise CommandError(f"cannot write to {directory}: {error.strerror}") from None


def _distance(text: str) -> tuple[str, int]:
    from argosy.model.scenario import BOTH_WAYS

    pair, _, duration = text.partition("=")
    one, _, other = pair.partition(BOTH_WAYS)
    if not (one.strip() and other.strip() and duration):
        raise CommandError(f"--distance {excerpt(text)}", expected="such as vienna<>rome=9ms")
    took = duration_of(duration.strip(), "--distance")
    return f"{checked_place(one.strip())}{BOTH_WAYS}{checked_place(other.strip())}", took


def _settings(given: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise CommandError(f"--set {text!r}", expected="KEY=VALUE")
        try:
            found[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            # Words need no quotes.
            found[key.strip()] = value.strip()
    return found


def _jobs(source: str) -> Iterator[dict[str, Any]]:
    if source != "-":
        from argosy.scenarios.job_files import read_job_file

        return iter([each.document for each in read_job_file(Path(source)).jobs])
    return _lines()


def _lines() -> Iterator[dict[str, Any]]:
    for number, line in enumerate(sys.stdin, 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except ValueError as error:
            note(f"argosy: line {number} of standard input is not JSON: {error}")
            continue
        if isinstance(document, dict):
            yield document
        else:
            note(f"argosy: line {number} of standard input is no job document")
