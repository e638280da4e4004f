"""`argosy constraints`: check, print and translate placement constraints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from argosy.cli.output import emit, note, output_option, write
from argosy.model.errors import ArgosyError, CommandError


@click.command(epilog="Example: argosy constraints lint scenarios/medea.toml")
@click.argument("action", type=click.Choice(["lint", "print", "translate"]))
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--to", type=click.Choice(["kubernetes", "yarn"]), help="Translate constraints to this."
)
@click.option(
    "--from",
    "source",
    type=click.Choice(["kubernetes", "yarn"]),
    help="Translate this to constraints.",
)
@click.option("--tag", "tags", multiple=True, help="A tag of the pod, or TAG=COUNT for YARN.")
@click.option("--static", multiple=True, help="A tag that is a label of machines.")
@output_option
def command(
    action: str,
    file: Path,
    to: str | None,
    source: str | None,
    tags: tuple[str, ...],
    static: tuple[str, ...],
    output: str,
) -> None:
    """Check, print or translate placement constraints.

    FILE has one constraint per line, or is TOML or YAML with a list `constraints`. `lint` also takes a
    scenario; it finds conflicts, unknown groups, unused tags and demands that can never be met, and
    exits with 1 on errors. `print` writes the normal form. `translate` converts to another system's
    language, or says why it cannot. With --from kubernetes, FILE has manifests in YAML or JSON, or a
    pod's labels, affinity and topologySpreadConstraints alone; with --from yarn, it is one placement
    specification.
    """
    if action == "lint":
        _lint(file, output)
    elif action == "print":
        _print(_read(file), output)
    elif (to is None) == (source is None):
        raise CommandError("neither or both of --to and --from", expected="one of them")
    elif to is None:
        _print(_from(str(source), file), output)
    else:
        text, document = _to(to, file, tags, static)
        emit(
            output,
            sections=lambda width: [text.splitlines() or [text]],
            document=lambda: document,
            csv=lambda: text,
        )


def _lint(file: Path, output: str) -> None:
    from argosy.model.units import format_count
    from argosy.report.tables import Column, Table
    from argosy.scenarios.constraint_files import lint_file

    linted = lint_file(file)
    rows = [("error", "syntax", mistake.place, mistake.problem) for mistake in linted.mistakes]
    rows += [
        (
            finding.severity,
            finding.code,
            linted.constraints[finding.constraint].place,
            finding.problem,
        )
        for finding in linted.findings
    ]
    rows += [
        ("error", demand.code, f"job {demand.job}", f"{demand}; what would help: {demand.remedy}")
        for demand in linted.demands
    ]
    columns = ("severity", "code", "place", "problem")
    table = Table(tuple(Column(name, name) for name in columns), tuple(rows))
    emit(
        output,
        sections=lambda width: [
            [
                f"{format_count(len(linted.constraints), 'constraint')},"
                f" {format_count(len(rows), 'finding')}"
            ],
            *([table.lines(width)] if rows else []),
        ],
        document=lambda: {
            "constraints": len(linted.constraints),
            "errors": linted.errors,
            "findings": [dict(zip(columns, row, strict=True)) for row in rows],
        },
        csv=table.csv,
    )
    if linted.errors:
        raise click.exceptions.Exit(1)


def _print(constraints: list[Any], output: str) -> None:
    """The text of each constraint, or their tables."""
    from argosy.model.constraints.tables import write_constraint
    from argosy.model.constraints.text import format_constraint
    from argosy.report.tables import Column, Table

    texts = [format_constraint(constraint) for constraint in constraints]
    table = Table((Column("constraint", "constraint"),), tuple((text,) for text in texts))
    if output == "table":
        # The lines can be read back, so there is no heading.
        write("\n".join(texts))
        return
    emit(
        output,
        sections=lambda width: [texts],
        document=lambda: {"constraints": [write_constraint(each) for each in constraints]},
        csv=table.csv,
    )


def _to(system: str, file: Path, tags: tuple[str, ...], static: tuple[str, ...]) -> tuple[str, Any]:
    """The translation as text and as a document."""
    import json

    constraints = _read(file)
    if system == "kubernetes":
        from argosy.model.constraints.kubernetes import to_kubernetes

        spec = to_kubernetes(constraints, tags, static)
        return json.dumps(spec, indent=2), spec
    from argosy.model.constraints.yarn import to_yarn

    counts = {}
    for tag in tags:
        name, _, count = tag.partition("=")
        if not (count.isascii() and count.isdecimal() and len(count) < 16):
            raise CommandError(f"--tag {tag}", expected="TAG=COUNT, such as zk=3")
        counts[name] = int(count)
    text = to_yarn(constraints, counts)
    return text, {"specification": text}


def _from(system: str, file: Path) -> list[Any]:
    from argosy.scenarios.constraint_files import read_text

    text = read_text(file)
    if system == "yarn":
        from argosy.model.constraints.yarn import from_yarn

        try:
            return [part.constraint for part in from_yarn(text.strip())]
        except ArgosyError as error:
            raise error.located(file=str(file)) from None
    from argosy.model.constraints.kubernetes_manifests import from_manifests
    from argosy.model.errors import ModelError
    from argosy.scenarios.yaml_files import parse_yaml

    documents, _ = parse_yaml(text, str(file), ModelError, "Kubernetes manifests")
    try:
        return list(from_manifests(documents))
    except ArgosyError as error:
        raise error.located(file=str(file)) from None


def _read(file: Path) -> list[Any]:
    from argosy.scenarios.constraint_files import read_file

    written, mistakes = read_file(file)
    if mistakes:
        for mistake in mistakes[1:]:
            note(f"{file}: {mistake.place}: {mistake.problem}")
        raise CommandError(f"{file}: {mistakes[0].place}: {mistakes[0].problem}")
    return [each.constraint for each in written]
