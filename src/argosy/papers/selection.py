"""A part of a paper's points, or the same points with other parameters: for runs that take too long as
they are planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import structs

from argosy.model.errors import CommandError, UnknownName
from argosy.papers.experiment import ExperimentPoint, Parameter


def selected(
    points: Sequence[ExperimentPoint],
    where: Mapping[str, Sequence[str]],
    changed: Mapping[str, str],
    usual: Mapping[str, Parameter] | None = None,
) -> list[ExperimentPoint]:
    """The points that have one of the given values for each parameter of `where`, with the values of
    `changed` in place of their own. A parameter that no point has, or a value that none has, is a
    mistake; but what is `usual` can be changed though no point names it."""
    named = {name for point in points for name in point.parameters}
    unnamed = {name: value for name, value in (usual or {}).items() if name not in named}
    for names, known in ((where, named), (changed, named | unnamed.keys())):
        for name in names:
            if name not in known:
                raise UnknownName("parameter of these points:", name, known)
    kept = list(points)
    for name, texts in where.items():
        values = {str(point.parameters[name]) for point in kept if name in point.parameters}
        for text in texts:
            if not any(_is(point, name, text) for point in kept):
                raise UnknownName(f"value of {name} here:", text, values)
        kept = [point for point in kept if any(_is(point, name, text) for text in texts)]
    kept = [_changed(point, changed, unnamed) for point in kept]
    return distinct(kept)


def distinct(points: Sequence[ExperimentPoint]) -> list[ExperimentPoint]:
    """Each point once, in the order of their first places."""
    return [point for number, point in enumerate(points) if point not in points[:number]]


def _is(point: ExperimentPoint, name: str, text: str) -> bool:
    old = point.parameters.get(name)
    try:
        return old is not None and _like(old, text) == old
    except ValueError:
        return False


def _changed(
    point: ExperimentPoint, changed: Mapping[str, str], unnamed: Mapping[str, Parameter]
) -> ExperimentPoint:
    parameters = dict(point.parameters)
    for name, text in changed.items():
        old = parameters.get(name, unnamed.get(name))
        if old is not None:
            try:
                parameters[name] = _like(old, text)
            except ValueError:
                raise CommandError(f"{name}={text}", expected=f"a number such as {old}") from None
    return structs.replace(point, parameters=parameters)


def _like(old: Parameter, text: str) -> Parameter:
    """The value of a text, as a number of the same kind: points with 5 and 5.0 are different ones."""
    return type(old)(text)
