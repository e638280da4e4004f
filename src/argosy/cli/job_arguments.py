"""A job given by arguments: a file, or a command line with options."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from argosy.model.errors import ArgosyError, CommandError, excerpt

if TYPE_CHECKING:
    from argosy.scenarios.job_files import JobFile

Command = TypeVar("Command", bound=Callable[..., Any])

_COMMAND: Final = "argosy.command"
#: The option for each part of a job's document.
_OPTIONS: Final = {
    "request.cpu": "--cpu",
    "request.memory": "--memory",
    "request": "--request",
    "environment": "--env",
    "working_directory": "--cwd",
    "constraints": "--constraint",
    "tags": "--tag",
    "endless": "--service",
}
CPU: Final = "1"
MEMORY: Final = "512MiB"


class CommandAfterDashes(click.Command):
    """Everything after `--` is a command with its own arguments, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS] FILE", "|", "[OPTIONS] -- COMMAND [ARGUMENTS...]"]


class GivenJobs(NamedTuple):
    """Jobs to be submitted: their documents, and the file they are from, if any."""

    documents: tuple[dict[str, Any], ...]
    file: JobFile | None

    def located(self, error: ArgosyError, at: int | None = None) -> ArgosyError:
        from argosy.model.errors import ServerError

        if self.file is not None and isinstance(error, ServerError):
            return self.file.located(error, at)
        return error


def job_arguments(command: Command) -> Command:
    """Adds FILE and the options of a job; the command gets them as `given`, read and checked."""

    @functools.wraps(command)
    def called(*arguments: Any, file: str | None, form: str | None, **options: Any) -> Any:
        kept = {name: options.pop(name) for name in list(options) if name in _NAMES}
        words = click.get_current_context().meta.get(_COMMAND)
        return command(*arguments, given=_given(file, form, words, kept), **options)

    for option in reversed((click.argument("file", required=False), _FORM, *_JOB_OPTIONS)):
        called = option(called)
    return called  # type: ignore[return-value]


_FORM: Final = click.option(
    "--format",
    "form",
    type=click.Choice(["toml", "yaml"]),
    help="What standard input is, if FILE is -.  [default: toml]",
)
_JOB_OPTIONS: Final = (
    click.option("--id", metavar="ID", help="The job's id.  [default: chosen by the server]"),
    click.option("--name", metavar="TEXT", help="A name for people; need not be unique."),
    click.option("--kind", metavar="KIND", help="Which schedulers take it.  [default: batch]"),
    click.option("--owner", metavar="NAME", help="Whose job it is."),
    click.option("--count", type=int, metavar="N", help="An array of N tasks.  [default: 1]"),
    click.option(
        "--cpu", metavar="CORES", help=f"For each task, such as 2 or 500m.  [default: {CPU}]"
    ),
    click.option(
        "--memory", metavar="BYTES", help=f"For each task, such as 2GiB.  [default: {MEMORY}]"
    ),
    click.option(
        "--request", multiple=True, metavar="NAME=N", help="Another resource, such as gpu=1."
    ),
    click.option("--precedence", type=int, metavar="N", help="Higher goes first.  [default: 0]"),
    click.option("--estimate", metavar="TIME", help="How long a task will run, such as 10min."),
    click.option("--timeout", metavar="TIME", help="Stop a task that runs longer."),
    click.option("--retries", type=int, metavar="N", help="How often to retry a failed task."),
    click.option("--backoff", metavar="TIME", help="How long after its first failure."),
    click.option("--tag", multiple=True, metavar="TAG", help="A name that constraints can use."),
    click.option("--constraint", multiple=True, metavar="TEXT", help="See docs/constraints.md."),
    click.option(
        "--requires",
        multiple=True,
        metavar="KEY=VALUE",
        help="An attribute that machines must have.",
    ),
    click.option(
        "--env",
        multiple=True,
        metavar="NAME[=VALUE]",
        help="A variable of the tasks' environment; without a value, as it is here.",
    ),
    click.option(
        "--cwd", type=click.Path(), metavar="DIR", help="Where tasks run.  [default: here]"
    ),
    click.option(
        "--stdin", type=click.Path(), metavar="FILE", help="The tasks' standard input; - for mine."
    ),
    click.option("--gang", is_flag=True, help="Start all tasks together or none."),
    click.option("--service", is_flag=True, help="Run until stopped, and again after a failure."),
)
_NAMES: Final = frozenset(
    parameter.name
    for option in _JOB_OPTIONS
    for parameter in getattr(option(lambda: None), "__click_params__", ())
)


def _given(
    file: str | None, form: str | None, words: Sequence[str] | None, options: Mapping[str, Any]
) -> GivenJobs:
    if words is None:
        if file is None:
            raise CommandError("no job", expected="a job file, or -- and a command")
        named = next((name for name, value in options.items() if _is_given(value)), "")
        if named:
            raise CommandError(f"both a job file and --{named}", expected=f"{named} in the file")
        return _from_file(file, form)
    if file is not None:
        raise CommandError("both a job file and a command", expected="one of them")
    if not words:
        raise CommandError("no command after --", expected="-- COMMAND [ARGUMENTS...]")
    return GivenJobs((_checked(_document(words, options)),), None)


def _is_given(value: object) -> bool:
    """Zero is given too, although it equals False."""
    return value is not None and value is not False and value != ()


def _from_file(file: str, form: str | None) -> GivenJobs:
    from argosy.scenarios.job_files import TOML, read_job_file, read_job_stream

    if file == "-":
        read = read_job_stream(sys.stdin.buffer.read(), form or TOML)
    elif form is not None:
        raise CommandError(
            "--format with a file", expected="a name that ends in .toml, .yaml or .yml"
        )
    else:
        from pathlib import Path

        read = read_job_file(Path(file))
    return GivenJobs(tuple(each.document for each in read.jobs), read)


def _document(words: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    request: dict[str, Any] = {
        "cpu": CPU if options["cpu"] is None else options["cpu"],
        "memory": MEMORY if options["memory"] is None else options["memory"],
    }
    for name, text in _pairs(options["request"], "--request", "gpu=1").items():
        request[name] = int(text) if text.isascii() and text.isdecimal() else text
    document: dict[str, Any] = {
        "command": list(words),
        "request": request,
        "working_directory": os.path.abspath(options["cwd"] or "."),
        "environment": _environment(options["env"]),
        "requires": _pairs(options["requires"], "--requires", "disk=ssd"),
        "constraints": list(options["constraint"]),
        "tags": list(options["tag"]),
    }
    for name in ("id", "name", "kind", "owner", "count", "precedence", "estimate", "timeout"):
        document[name] = options[name]
    document |= {"retries": options["retries"], "backoff": options["backoff"]}
    document["gang"] = options["gang"] or None
    if options["service"]:
        document["endless"] = True
        document["kind"] = document["kind"] or "service"
    if options["stdin"] is not None:
        document["stdin"] = _input(options["stdin"])
    return {name: value for name, value in document.items() if value not in (None, {}, [])}


def _checked(document: dict[str, Any]) -> dict[str, Any]:
    from argosy.workloads.live_jobs import IN_FILES, read_live_job
    from argosy.workloads.tables import Misfit, path_text

    try:
        read_live_job(document, default_id="job", converter=IN_FILES)
    except Misfit as misfit:
        text = path_text(misfit.path)
        first = str(misfit.path[0]) if misfit.path else ""
        option = _OPTIONS.get(text) or _OPTIONS.get(first) or (f"--{first}" if first else None)
        raise misfit.error.located(field=option) from None
    return document


def _pairs(texts: Sequence[str], option: str, example: str) -> dict[str, str]:
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise CommandError(
                f"{option} {excerpt(text)}", expected=f"NAME=VALUE such as {example}"
            )
        found[name] = value
    return found


def _environment(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            if name not in os.environ:
                raise CommandError(
                    f"--env {excerpt(text)}: it is not set here", expected="NAME=VALUE"
                )
            value = os.environ[name]
        found[name] = value
    return found


def _input(name: str) -> str:
    """The text of standard input; jobs are documents, so it must be text."""
    try:
        if name == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        with open(name, encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError:
        raise CommandError(
            f"--stdin {name}: not UTF-8", hint="let the command read the file itself"
        ) from None
    except OSError as error:
        raise CommandError(f"--stdin {name}: {error.strerror}") from None
