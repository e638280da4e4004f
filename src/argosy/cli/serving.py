"""Options of commands that run a server: where it listens, who may ask, and how it reports."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from argosy.model.errors import ArgosyError, CommandError, excerpt

Command = TypeVar("Command", bound=Callable[..., Any])

LONGEST_PLACE: Final = 200


class Listening(NamedTuple):
    """What `ServerOptions` has of the same names."""

    host: str | None
    port: int
    token_file: Path | None
    tokens: Path | None
    certificate: Path | None
    key: Path | None
    client_ca: Path | None


def place_options(command: Command) -> Command:
    """Adds where a cluster is; the command gets `place` and `location`, which are empty if not given."""

    @functools.wraps(command)
    def called(*arguments: Any, place: str, location: str, **options: Any) -> Any:
        return command(
            *arguments, place=checked_place(place), location=_location(location), **options
        )

    named = click.option(
        "--place",
        default="",
        metavar="NAME",
        help="Where the cluster is, for tasks that demand to be near a place.  "
        "[default: the cluster's name]",
    )
    located = click.option(
        "--location",
        default="",
        metavar="LAT,LON",
        help="The same in degrees, for tasks that demand a location, and machines that state none.",
    )
    return named(located(called))  # type: ignore[return-value]


def retention_options(command: Command) -> Command:
    """Adds which jobs are kept; the command gets them as `kept`, for `ServerOptions`."""

    @functools.wraps(command)
    def called(*arguments: Any, keep_jobs: int | None, keep_for: str | None, **options: Any) -> Any:
        from argosy.service.retention import KeptJobs

        age = 0 if keep_for is None else duration_of(keep_for, "--keep-for")
        kept = KeptJobs(jobs=keep_jobs or 0, age=age)
        return command(*arguments, kept=kept, **options)

    count = click.option(
        "--keep-jobs",
        type=click.IntRange(1),
        metavar="N",
        help="Forget jobs that are over, with their output, except the newest N.  [default: keep all]",
    )
    age = click.option(
        "--keep-for",
        metavar="TIME",
        help="Forget jobs, with their output, so long after their end, such as 30d.  "
        "[default: keep all]",
    )
    return count(age(called))  # type: ignore[return-value]


def checked_place(name: str) -> str:
    from argosy.model.scenario import BOTH_WAYS

    if len(name) > LONGEST_PLACE or not name.isprintable() or BOTH_WAYS in name or "=" in name:
        raise CommandError(f"--place {excerpt(name)}", expected="a name such as vienna")
    return name


def _location(text: str) -> str:
    if text:
        from argosy.agents.globe import position

        if position(text) is None:
            raise CommandError(
                f"--location {excerpt(text)}",
                expected="latitude and longitude in degrees, such as 48.2,16.4",
            )
    return text


def readiness_option(command: Command) -> Command:
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="How to say that the server is up: a line on stderr, or a JSON document on stdout.",
    )(command)


def listen_options(default: str) -> Callable[[Command], Command]:
    """Adds the options; the command gets them as `listening`."""

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def called(
            *arguments: Any,
            listen: str,
            token_file: Path | None,
            tokens: Path | None,
            tls_cert: Path | None,
            tls_key: Path | None,
            tls_client_ca: Path | None,
            **options: Any,
        ) -> Any:
            if tls_cert is None and (tls_key or tls_client_ca):
                given = "--tls-key" if tls_key else "--tls-client-ca"
                raise CommandError(f"{given} without --tls-cert", expected="both")
            host, port = address(listen, default)
            listening = Listening(host, port, token_file, tokens, tls_cert, tls_key, tls_client_ca)
            return command(*arguments, listening=listening, **options)

        for option in reversed(_options(default)):
            called = option(called)
        return called  # type: ignore[return-value]

    return add


def _options(default: str) -> tuple[Callable[[Any], Any], ...]:
    file = click.Path(path_type=Path, dir_okay=False)
    return (
        click.option(
            "--listen",
            default=default,
            show_default=True,
            metavar="ADDRESS",
            help="HOST:PORT; `none` for the socket in DIR alone. Addresses other than this computer's "
            "own need a token.",
        ),
        click.option(
            "--token-file",
            type=file,
            metavar="FILE",
            help="The token that clients need.  [default: DIR/token, made if needed]",
        ),
        click.option(
            "--tokens",
            type=file,
            metavar="FILE",
            help="Tokens of schedulers elsewhere, each with a scope and limits (TOML).",
        ),
        click.option(
            "--tls-cert", type=file, metavar="FILE", help="A certificate, to speak HTTPS."
        ),
        click.option(
            "--tls-key",
            type=file,
            metavar="FILE",
            help="The key of the certificate, unless it is in the same file.",
        ),
        click.option(
            "--tls-client-ca",
            type=file,
            metavar="FILE",
            help="Clients need a certificate, too, signed by one of these authorities.",
        ),
    )


def duration_of(text: str, option: str) -> int:
    """Microseconds; 0 needs no unit."""
    from argosy.model.units import parse_duration

    try:
        return 0 if text == "0" else int(parse_duration(text))
    except ArgosyError as error:
        raise CommandError(f"{option} {text!r}", expected=error.expected, hint=error.hint) from None


def address(listen: str, default: str) -> tuple[str | None, int]:
    if listen == "none":
        return None, 0
    host, _, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdecimal() and int(port) < 65_536):
        raise CommandError(f"--listen {listen!r}", expected=f"HOST:PORT such as {default}, or none")
    return host, int(port)
