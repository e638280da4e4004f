"""The command group, and the one place where errors become lines and exit codes."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from argosy.cli import ended_by
from argosy.cli.output import OutputError, flush
from argosy.model.errors import ArgosyError, UnknownName
from argosy.version import __version__

#: Every command and its line in `argosy --help`; the module of the same name has its `command`.
COMMANDS: Final = {
    "up": "Run a live cluster on this computer.",
    "agent": "Run the agent of a simulated cluster, for schedulers elsewhere.",
    "scheduler": "Schedule jobs over the agents of other clusters.",
    "kubernetes": "Schedule the pods of a Kubernetes cluster.",
    "run": "Simulate a scenario and save the run.",
    "compare": "Run several engines with the same seeds; say which is best, and why.",
    "sweep": "Vary one value of a scenario, and say which engine is best where.",
    "summary": "Print the summary of a run, finished or not.",
    "replay": "Check that a run's decisions repeat, or try other engines on its jobs.",
    "engines": "List engines, or the settings of one.",
    "submit": "Give jobs, or a command, to a live cluster.",
    "plan": "Say what would happen to jobs in a live cluster, and why.",
    "ps": "List the tasks of a live cluster that run or wait.",
    "jobs": "List the jobs of a live cluster.",
    "machines": "List, add, resize and remove the machines of a live cluster.",
    "logs": "Print what a task of a live cluster wrote.",
    "top": "Watch a live cluster.",
    "cancel": "Cancel jobs or tasks of a live cluster.",
    "scale": "Change how many tasks a job of a live cluster has.",
    "drain": "Give machines of a live cluster no more tasks.",
    "fleet": "Show or replace the schedulers of a live cluster.",
    "record": "Turn a live cluster's run into a workload, or save its journal.",
    "down": "Stop the server of a live cluster.",
    "story": "Show what happened to a task, line by line.",
    "audit": "Show which scheduler used what, and which got in another's way.",
    "why": "Explain why a task is where it is, or why it has no machine.",
    "constraints": "Check, print and translate placement constraints.",
    "campaign": "Test engines on random scenarios with faults.",
    "paper": "Rerun a paper's experiments and check its claims.",
    "flow": "Solve, generate and check min-cost flow problems.",
    "demo": "Compare engines in simulation, then run the best one for real.",
    "doctor": "Check this installation.",
}
MISTAKE: Final = 2
READER_GONE: Final = 141


class GlobalOptions:
    """Global options; `run` can read them even after the command has failed."""

    def __init__(self, debug: bool = False) -> None:
        self.debug = debug


class LazyGroup(click.Group):
    """Imports a command's module when the command is called, not for listing it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"argosy.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UnknownName("command", args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: argosy run scenarios/quickstart.toml",
)
@click.version_option(__version__, "-V", "--version", message="argosy %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.make_pass_decorator(GlobalOptions, ensure=True)
def app(options: GlobalOptions, debug: bool) -> None:
    """A cluster scheduler with many engines: simulate a workload with each, and see which is best and
    why."""
    options.debug = options.debug or debug


def run(arguments: Sequence[str] | None = None, *, is_plugin: bool = False) -> int:
    """Calls the command and returns the exit code."""
    options = GlobalOptions(debug=bool(os.environ.get("ARGOSY_DEBUG")))
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        return _complain("output", "the output is closed", options)
    try:
        code = _called(arguments, options, is_plugin=is_plugin)
        # The reader may leave while the last lines are still buffered.
        flush()
        return code
    except OutputError as error:
        _forget_output()
        return _complain(error.code, str(error), options)
    except ArgosyError as error:
        return _complain(error.code, str(error), options)
    except click.ClickException as error:
        return _complain("usage", error.format_message(), options)
    except (click.Abort, KeyboardInterrupt) as stop:
        return ended_by(stop)
    except BrokenPipeError:
        _forget_output()
        return READER_GONE
    except OSError as error:
        what = error.strerror or str(error)
        told = f"{error.filename}: {what}" if error.filename else what
        return _complain("system", told, options)
    except Exception as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        hint = "" if options.debug else "; argosy --debug shows where"
        _complain("bug", f"{what}; this is a bug in Argosy{hint}", options)
        return 1


def _forget_output() -> None:
    """Python flushes once more at exit; discards that output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _called(arguments: Sequence[str] | None, options: GlobalOptions, *, is_plugin: bool) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    color = False if os.environ.get("NO_COLOR") else None
    if os.environ.get("_ARGOSY_COMPLETE"):
        app.main(given, prog_name="argosy")
    try:
        group, name = (_plugin(), "kubectl argosy") if is_plugin else (app, "argosy")
        with group.make_context(name, given, color=color, obj=options) as context:
            group.invoke(context)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return MISTAKE
    except click.exceptions.Exit as stop:
        return stop.exit_code
    return 0


def _plugin() -> click.Command:
    from argosy.cli.kubectl import plugin

    return plugin


def _complain(code: str, text: str, options: GlobalOptions) -> int:
    """Prints the error being handled."""
    if options.debug:
        import traceback

        click.echo(traceback.format_exc(), err=True, nl=False)
    line = " ".join(text.split())
    click.echo(f"argosy: error[{code}]: {line}", err=True)
    return MISTAKE
