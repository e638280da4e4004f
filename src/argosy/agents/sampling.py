"""The sampling pipeline of an agent: the second step of Vela's 2-Smart Sampling (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.agents.api import (
    LEAST,
    MOST,
    Conditional,
    Filter,
    NamesReasons,
    Nodes,
    PluginUse,
    Requirements,
    Score,
    Strategy,
    amounts_in,
)
from argosy.agents.builtin import RandomStrategy, ResourcesFit
from argosy.agents.cache import NodesCache
from argosy.agents.registry import make_filters, make_scores, make_strategy
from argosy.cell import View, to_mask
from argosy.cell.search import DOWN, FILTERED
from argosy.model.effects import Sample, SamplingPipeline
from argosy.model.errors import EngineFault
from argosy.model.explanations import EXCLUDED_BY
from argosy.model.random import Random
from argosy.model.transactions import MachineArray, VersionArray

Concern: TypeAlias = Callable[[Requirements, PluginUse], bool]


class DrawnSample(msgspec.Struct, frozen=True, gc=False):
    """Eligible machines with a row of scores each, and what became of the others."""

    machines: MachineArray
    free: NDArray[np.int64]
    versions: VersionArray
    scores: NDArray[np.int64]
    drawn: int
    ruled_out: dict[str, int]


NOTHING_DRAWN: Final = DrawnSample(
    np.empty(0, np.int32),
    np.empty((0, 0), np.int64),
    np.empty(0, np.uint32),
    np.empty((0, 0), np.int64),
    0,
    {},
)


def merged(parts: Sequence[DrawnSample]) -> DrawnSample:
    """What the shards of an agent have drawn, together."""
    if len(parts) == 1:
        return parts[0]
    # A resource may have come while they drew.
    width = max(part.free.shape[1] for part in parts)
    ruled_out: dict[str, int] = {}
    for part in parts:
        for reason, count in part.ruled_out.items():
            _count(ruled_out, reason, count)
    return DrawnSample(
        np.concatenate([part.machines for part in parts]),
        np.concatenate(
            [np.pad(part.free, ((0, 0), (0, width - part.free.shape[1]))) for part in parts]
        ),
        np.concatenate([part.versions for part in parts]),
        np.concatenate([part.scores for part in parts]),
        sum(part.drawn for part in parts),
        ruled_out,
    )


def sample_size(share: float, machines: int) -> int:
    """`share` of the machines, rounded up; at least one."""
    # Without the subtraction, 7 % of 100 would be 8: as binary numbers, 0.07 x 100 is more than 7.
    return max(1, ceil(share * machines - 1e-9))


class Sampler:
    """The plug-ins of one agent's sampling pipelines, made when a request first names them."""

    def __init__(self, cache: NodesCache, view: View, random: Random) -> None:
        self._cache = cache
        self._view = view
        self._random = random
        self._strategies: dict[str, Strategy] = {}
        self._filters: dict[tuple[str, ...], list[tuple[Filter, NamesReasons, Concern | None]]] = {}
        self._scores: dict[tuple[str, ...], list[tuple[Score, Concern | None]]] = {}

    def sample(
        self,
        asked: Sample,
        pipeline: SamplingPipeline,
        now: int,
        *,
        most: int,
        is_cut_off: bool,
        is_over: Callable[[], bool] = lambda: False,
        parts: int = 1,
    ) -> DrawnSample:
        """Draws until there are enough machines, or `most` were drawn (0: no limit), or its time
        `is_over`. A number of machines is divided among `parts` shards, rounded up."""
        size = -(-asked.count // parts)
        if pipeline.share:
            size = sample_size(pipeline.share, len(self._cache.members()))
        task = Requirements(asked.request, asked.requires, asked.demands)
        filters = self._filters_for(task, pipeline.filters)
        if (
            pipeline.strategy == RandomStrategy.name
            and pipeline.rounds <= 1
            and not asked.requires
            and len(filters) == 1
            and type(filters[0][0]) is ResourcesFit
            and self._cache.is_live(is_cut_off=is_cut_off)
            and (amounts := amounts_in(asked.request, self._view.dimensions)) is not None
        ):
            return self._draw_natively(task, amounts, size, pipeline, most)
        return self._draw(
            task,
            filters,
            size,
            pipeline,
            now,
            most=most,
            is_cut_off=is_cut_off,
            is_over=is_over,
        )

    def _draw_natively(
        self,
        task: Requirements,
        amounts: Sequence[int],
        size: int,
        pipeline: SamplingPipeline,
        most: int,
    ) -> DrawnSample:
        """The same as `_draw`, for the default plug-ins."""
        found = self._cache.draw(
            amounts,
            size,
            self._random,
            most=most,
            rounds=pipeline.rounds,
            is_cut=pipeline.overshoot == "cut",
        )
        reasons = (*self._view.dimensions, DOWN)
        ruled_out = {
            reason: count for reason, count in zip(reasons, found.ruled_out, strict=True) if count
        }
        plugins = self._scores_named(pipeline.scores)
        table = np.full((len(found.machines), len(plugins)), MOST, np.int64)
        for column, (plugin, concerns) in enumerate(plugins):
            if type(plugin) is ResourcesFit:
                table[:, column] = found.scores
            elif concerns is None or concerns(task, "score"):
                nodes = self._cache.nodes(found.machines, found.free)
                table[:, column] = score_column(plugin, task, nodes)
        return DrawnSample(
            found.machines, found.free, found.versions, table, found.drawn, ruled_out
        )

    def _draw(
        self,
        task: Requirements,
        filters: list[tuple[Filter, NamesReasons]],
        size: int,
        pipeline: SamplingPipeline,
        now: int,
        *,
        most: int,
        is_cut_off: bool,
        is_over: Callable[[], bool],
    ) -> DrawnSample:
        members = self._cache.members()
        strategy = self._strategy(pipeline.strategy)
        having = None
        if task.requires:
            having = to_mask(self._view.where(task.requires), self._view.machines)
        eligible: list[Nodes] = []
        ruled_out: dict[str, int] = {}
        is_seen = np.zeros(len(members), np.bool_)
        left, count, drawn, rounds = members, 0, 0, 0
        while count < size and len(left) and not (most and drawn >= most) and not is_over():
            batch = strategy.draw(task, left, size, self._random)
            if not len(batch):
                break
            if most:
                batch = batch[: most - drawn]
            drawn += len(batch)
            nodes = self._cache.sample(batch, now, is_cut_off=is_cut_off)
            fits = self._passes(task, nodes, filters, having, ruled_out)
            strategy.learn(task, batch, fits)
            eligible.append(nodes.only(fits))
            count += len(eligible[-1])
            rounds += 1
            if not pipeline.rounds:
                is_seen[np.searchsorted(members, batch)] = True
                left = members[~is_seen]
            elif rounds >= pipeline.rounds:
                break
        if not eligible:
            eligible.append(self._cache.sample(members[:0], now, is_cut_off=is_cut_off))
        nodes = eligible[0] if len(eligible) == 1 else Nodes.joined(eligible)
        if pipeline.rounds > 1 and pipeline.repeats == "drop":
            nodes = _each_once(nodes)
        if pipeline.overshoot == "cut" and len(nodes) > size:
            nodes = nodes.only(np.arange(len(nodes)) < size)
        scores = self._scored(task, nodes, pipeline.scores)
        versions = self._cache.versions(nodes.machines)
        return DrawnSample(nodes.machines, nodes.free, versions, scores, drawn, ruled_out)

    def _passes(
        self,
        task: Requirements,
        nodes: Nodes,
        filters: list[tuple[Filter, NamesReasons]],
        having: NDArray[np.bool_] | None,
        ruled_out: dict[str, int],
    ) -> NDArray[np.bool_]:
        fits = np.asarray((nodes.free >= 0).any(axis=1), np.bool_)
        _count(ruled_out, DOWN, len(fits) - int(fits.sum()))
        if having is not None:
            kept = fits & having[nodes.machines]
            _count(ruled_out, FILTERED, int(fits.sum()) - int(kept.sum()))
            fits = kept
        for plugin, naming in filters:
            kept = fits & plugin.keeps(task, nodes)
            is_dropped = fits & ~kept
            if is_dropped.any():
                for reason, count in naming.reasons(task, nodes.only(is_dropped)).items():
                    _count(ruled_out, reason, count)
            fits = kept
        return fits

    def _scored(
        self, task: Requirements, nodes: Nodes, names: tuple[str, ...]
    ) -> NDArray[np.int64]:
        plugins = self._scores_named(names)
        table = np.full((len(nodes), len(plugins)), MOST, np.int64)
        for column, (plugin, concerns) in enumerate(plugins):
            if concerns is None or concerns(task, "score"):
                table[:, column] = score_column(plugin, task, nodes)
        return table

    def _scores_named(self, names: tuple[str, ...]) -> list[tuple[Score, Concern | None]]:
        if (plugins := self._scores.get(names)) is None:
            made = make_scores(names)
            plugins = self._scores[names] = [(plugin, concern_of(plugin)) for plugin in made]
        return plugins

    def _strategy(self, name: str) -> Strategy:
        if (strategy := self._strategies.get(name)) is None:
            strategy = self._strategies[name] = make_strategy(name)
        return strategy

    def _filters_for(
        self, task: Requirements, names: tuple[str, ...]
    ) -> list[tuple[Filter, NamesReasons]]:
        if (filters := self._filters.get(names)) is None:
            made = make_filters(names)
            filters = self._filters[names] = [
                (
                    plugin,
                    plugin if isinstance(plugin, NamesReasons) else _OwnName(plugin.name),
                    concern_of(plugin),
                )
                for plugin in made
            ]
        return [
            (plugin, naming)
            for plugin, naming, concerns in filters
            if concerns is None or concerns(task, "filter")
        ]


def concern_of(plugin: Filter | Score) -> Concern | None:
    """Tells whether the plug-in concerns a task; None if it always does."""
    return plugin.concerns if isinstance(plugin, Conditional) else None


def _count(ruled_out: dict[str, int], reason: str, count: int) -> None:
    if count:
        ruled_out[reason] = ruled_out.get(reason, 0) + count


class _OwnName:
    """The reason of a filter that names none."""

    def __init__(self, name: str) -> None:
        self._reason = f"{EXCLUDED_BY}{name}"

    def reasons(self, task: Requirements, dropped: Nodes) -> dict[str, int]:
        return {self._reason: len(dropped)}


def _each_once(nodes: Nodes) -> Nodes:
    """Independent rounds may have drawn a machine twice."""
    kept = np.zeros(len(nodes), np.bool_)
    kept[np.unique(nodes.machines, return_index=True)[1]] = True
    return nodes.only(kept)


def score_column(plugin: Score, task: Requirements, nodes: Nodes) -> NDArray[np.int64]:
    """The plug-in's scores, which must be in range."""
    scores = np.asarray(plugin.score(task, nodes), np.int64)
    if scores.shape != (len(nodes),) or (
        len(scores) and not (scores.min() >= LEAST and scores.max() <= MOST)
    ):
        raise EngineFault(
            f"plug-in {plugin.name!r} scored {scores.tolist()[:8]}",
            expected=f"one number from {LEAST} to {MOST} for each of {len(nodes)} machines",
        )
    return scores
