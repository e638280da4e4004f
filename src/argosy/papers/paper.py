"""A paper: its points at each scale, what runs one, and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from argosy.papers.charts import Figure
from argosy.papers.claims import Claim
from argosy.papers.experiment import ExperimentPoint, Findings, Runner


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    #: What is smaller than in the paper, in words.
    about: str


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    reference: str
    scales: dict[str, Scale]
    #: Figures in the paper's order.
    figures: tuple[str, ...]
    #: The points of the figures wanted, at a scale. None of them twice.
    plan: Callable[[str, Sequence[str]], list[ExperimentPoint]]
    runner: Runner
    #: What the points show: the figures wanted as charts, claims, and notes on what is missing.
    draw: Callable[[Findings, Sequence[str]], list[Figure]]
    claims: Callable[[Findings, Sequence[str]], list[Claim]]
    notes: Callable[[Sequence[str]], list[str]] = lambda figures: []
    #: The same point on recorded input in a directory; none where a paper has no such input.
    traced: Callable[[ExperimentPoint, Path], ExperimentPoint] | None = None


#: By figure: what draws it, and what the paper claims of it, as far as the points at hand can decide.
Makers: TypeAlias = dict[
    str, tuple[Callable[[Findings], Figure], Callable[[Findings], Iterator[Claim]]]
]


def drawn_by(makers: Makers) -> Callable[[Findings, Sequence[str]], list[Figure]]:
    return lambda found, figures: [makers[figure][0](found) for figure in figures]


def claimed_by(makers: Makers) -> Callable[[Findings, Sequence[str]], list[Claim]]:
    return lambda found, figures: [
        claim for figure in figures for claim in makers[figure][1](found)
    ]
