"""`argosy machines`: the machines of a live cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from argosy.cli.live import ServerChoice, complete_machine, live_options
from argosy.cli.output import emit, note, output_option
from argosy.model.errors import CommandError

if TYPE_CHECKING:
    from argosy.api.values import MachineInfo


@click.group(invoke_without_command=True, epilog="Example: argosy machines")
@live_options
@output_option
@click.pass_context
def command(context: click.Context, where: ServerChoice, output: str) -> None:
    """List the machines: what they have, what is used, and how many tasks run or wait there.

    Machines of a cluster on one computer are shares of it. Subcommands add, resize and remove them;
    options about the server go after the subcommand.
    """
    if context.invoked_subcommand is not None:
        if where.is_given or where.token_file is not None:
            name = context.invoked_subcommand
            raise CommandError(
                "options before the subcommand", expected=f"them after `argosy machines {name}`"
            )
        return
    with where.client() as client:
        show(list(client.machines()), output)


def show(machines: Sequence[MachineInfo], output: str) -> None:
    import msgspec

    from argosy.model.units import format_amount
    from argosy.report.tables import Column, Table, Unit

    names = list(dict.fromkeys(name for each in machines for name in each.capacity))

    def share(machine: MachineInfo, name: str) -> str:
        has = machine.capacity.get(name, 0)
        return f"{format_amount(name, machine.used.get(name, 0))} of {format_amount(name, has)}"

    text = Table(
        (
            Column("name", "machine"),
            Column("state", "state"),
            Column("running", "running", Unit.COUNT),
            Column("queued", "queued", Unit.COUNT),
            *(Column(name, name) for name in names),
            Column("attributes", "attributes"),
        ),
        tuple(
            (
                each.name,
                "draining" if each.draining else "up",
                each.running,
                each.queued,
                *(share(each, name) for name in names),
                ", ".join(f"{key}={value}" for key, value in each.attributes.items()),
            )
            for each in machines
        ),
    )
    plain = Table(
        (
            *(Column(name, name) for name in ("name", "draining", "running", "queued")),
            *(Column(name, name) for name in names),
            *(Column(f"{name}_used", name) for name in names),
        ),
        tuple(
            (
                each.name,
                str(each.draining).lower(),
                each.running,
                each.queued,
                *(each.capacity.get(name, 0) for name in names),
                *(each.used.get(name, 0) for name in names),
            )
            for each in machines
        ),
    )
    dull = [] if any(each.attributes for each in machines) else ["attributes"]
    emit(
        output,
        sections=lambda width: [text.without(dull).lines(width)],
        document=lambda: msgspec.to_builtins(list(machines)),
        csv=plain.csv,
    )


def _resources(cpu: str | None, memory: str | None, others: Sequence[str]) -> dict[str, Any]:
    from argosy.model.resources import Resources

    given: dict[str, Any] = {"cpu": cpu, "memory": memory}
    for text in others:
        name, sign, amount = text.partition("=")
        if not sign or not (amount.isascii() and amount.isdecimal()):
            raise CommandError(f"--capacity {text}", expected="NAME=N, such as gpu=1")
        given[name] = int(amount)
    given = {name: value for name, value in given.items() if value is not None}
    Resources.parse(given)
    return given


_CPU = click.option("--cpu", metavar="CORES", help="Such as 2 or 500m.")
_MEMORY = click.option("--memory", metavar="BYTES", help="Such as 8GiB.")
_CAPACITY = click.option(
    "--capacity", multiple=True, metavar="NAME=N", help="Another resource, such as gpu=1."
)


@command.command(epilog="Example: argosy machines add small --cpu 1 --memory 1GiB")
@click.argument("name")
@_CPU
@_MEMORY
@_CAPACITY
@click.option("--attribute", multiple=True, metavar="KEY=VALUE", help="An attribute.")
@click.option("--join", multiple=True, metavar="GROUP=SET", help="A set of a node group, to be in.")
@live_options
@output_option
def add(
    name: str,
    cpu: str | None,
    memory: str | None,
    capacity: tuple[str, ...],
    attribute: tuple[str, ...],
    join: tuple[str, ...],
    where: ServerChoice,
    output: str,
) -> None:
    """Add a machine. Nothing checks that this computer really has what it claims."""
    document: dict[str, Any] = {"name": name, "capacity": _resources(cpu, memory, capacity)}
    if not document["capacity"]:
        raise CommandError("a machine without resources", expected="--cpu, --memory or --capacity")
    for option, key, texts in (("--attribute", "attributes", attribute), ("--join", "joins", join)):
        pairs: dict[str, Any] = {}
        for text in texts:
            left, sign, right = text.partition("=")
            if not sign or not left:
                raise CommandError(f"{option} {text}", expected="NAME=VALUE")
            if key == "joins":
                pairs.setdefault(left, []).append(right)
            else:
                pairs[left] = right
        if pairs:
            document[key] = pairs
    with where.client() as client:
        show([client.add_machine(document)], output)


@command.command(epilog="Example: argosy machines resize small --memory 2GiB")
@click.argument("name", shell_complete=complete_machine)
@_CPU
@_MEMORY
@_CAPACITY
@live_options
@output_option
def resize(
    name: str,
    cpu: str | None,
    memory: str | None,
    capacity: tuple[str, ...],
    where: ServerChoice,
    output: str,
) -> None:
    """Change what a machine has; what is not named stays. Running tasks are not stopped."""
    from argosy.api.values import MachinePatch

    wanted = _resources(cpu, memory, capacity)
    if not wanted:
        raise CommandError("nothing to change", expected="--cpu, --memory or --capacity")
    with where.client() as client:
        patch = MachinePatch(capacity={**client.machine(name).capacity, **wanted})
        show([client.change_machine(name, patch)], output)


@command.command(epilog="Example: argosy machines remove small")
@click.argument("name", shell_complete=complete_machine)
@live_options
@output_option
def remove(name: str, where: ServerChoice, output: str) -> None:
    """Remove a machine. Its tasks are stopped, and placed elsewhere."""
    with where.client() as client:
        client.remove_machine(name)
        note(f"machine {name} is removed")
        if output != "table":
            show(list(client.machines()), output)
