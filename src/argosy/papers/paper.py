"""A paper: its points at each scale, how to run one, and what they show together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from argosy.papers.charts import Figure
from argosy.papers.claims import Claim
from argosy.papers.experiment import ExperimentPoint, Findings, Parameter, Runner


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
    #: The points of the requested figures at a scale, without duplicates.
    plan: Callable[[str, Sequence[str]], list[ExperimentPoint]]
    runner: Runner
    #: What the points show: the requested figures as charts, claims, and notes on what is missing.
    draw: Callable[[Findings, Sequence[str]], list[Figure]]
    claims: Callable[[Findings, Sequence[str]], list[Claim]]
    #: Figures that are run only if they are asked for by name.
    on_request: tuple[str, ...] = ()
    #: Points that measure real time: run one after another in the calling process, and nothing beside
    #: them.
    alone: Callable[[ExperimentPoint], bool] = lambda point: False
    notes: Callable[[Sequence[str]], list[str]] = lambda figures: []
    #: Parameters that points have without naming them, with their values.
    usual: Mapping[str, Parameter] = {}
    #: The same point on recorded input from a directory; None if the paper has no such input.
    traced: Callable[[ExperimentPoint, Path], ExperimentPoint] | None = None


#: By figure: its charts, and the paper's claims about it that can be decided with the available points.
Makers: TypeAlias = dict[
    str, tuple[Callable[[Findings], Figure], Callable[[Findings], Iterator[Claim]]]
]


def drawn_by(makers: Makers) -> Callable[[Findings, Sequence[str]], list[Figure]]:
    return lambda found, figures: [makers[figure][0](found) for figure in figures]


def claimed_by(makers: Makers) -> Callable[[Findings, Sequence[str]], list[Claim]]:
    return lambda found, figures: [
        claim for figure in figures for claim in makers[figure][1](found)
    ]
