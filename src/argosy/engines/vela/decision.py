"""The decision pipeline: filter, accumulate scores, and take the best machines of all samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from argosy.agents.api import MOST, Nodes, Requirements
from argosy.agents.facts import CellFacts
from argosy.agents.registry import make_filters, make_scores
from argosy.agents.sampling import concern_of, score_column
from argosy.cell import View
from argosy.engines.vela.settings import VelaSettings
from argosy.engines.vela.work import RankedMachine
from argosy.model.events import SampleReturned
from argosy.model.explanations import EXCLUDED_BY, Explanation
from argosy.model.random import Random


class DecisionPipeline:
    def __init__(self, settings: VelaSettings, places: dict[str, str], random: Random) -> None:
        self._settings = settings
        self._places = places
        self._random = random
        self._filters = [
            (each, concern_of(each)) for each in make_filters(settings.decision_filters)
        ]
        self._scores = [(each, concern_of(each)) for each in make_scores(settings.decision_scores)]
        self._weights = np.array(
            [*settings.scores.values(), *settings.decision_scores.values()], np.float64
        )
        self._facts: CellFacts | None = None

    def decide(
        self, task: Requirements, samples: Sequence[SampleReturned], view: View
    ) -> tuple[list[RankedMachine], Explanation]:
        """The best candidates, best first, and what was seen."""
        answers = [sample for sample in samples if len(sample.machines)]
        seen = sampled(samples)
        if not answers:
            return [], seen
        machines = np.concatenate([sample.machines for sample in answers])
        versions = np.concatenate([sample.versions for sample in answers])
        scores = np.concatenate([sample.scores for sample in answers])
        clusters = np.repeat(np.arange(len(answers)), [len(sample.machines) for sample in answers])
        if self._filters or self._scores:
            nodes = self._nodes(answers, view)
            kept = np.ones(len(machines), np.bool_)
            ruled_out = dict(seen.ruled_out)
            for plugin, concerns in self._filters:
                if concerns is not None and not concerns(task, "filter"):
                    continue
                before = int(kept.sum())
                kept &= plugin.keeps(task, nodes)
                if dropped := before - int(kept.sum()):
                    reason = f"{EXCLUDED_BY}{plugin.name}"
                    ruled_out[reason] = ruled_out.get(reason, 0) + dropped
            nodes = nodes.only(kept)
            own = [
                score_column(plugin, task, nodes)
                if concerns is None or concerns(task, "score")
                else np.full(len(nodes), MOST, np.int64)
                for plugin, concerns in self._scores
            ]
            machines, versions, clusters = machines[kept], versions[kept], clusters[kept]
            scores = np.column_stack([scores[kept], *own])
            seen = Explanation(
                looked_at=seen.looked_at,
                feasible=len(machines),
                ruled_out=ruled_out,
                remedy="" if len(machines) else "relax what the scheduler's own filters ask for",
            )
        order, totals = self._ranked(scores)
        ranked = [
            RankedMachine(
                int(machines[row]), answers[int(clusters[row])].cluster, int(versions[row])
            )
            for row in order.tolist()
        ]
        return ranked, self._told(seen, ranked, totals, scores[order[:2]])

    def _ranked(self, scores: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[int]]:
        """The rows of the best m machines, best first, and their weighted sums; ties at random."""
        sums = scores @ self._weights[: scores.shape[1]]
        keys = -sums if self._settings.prefer == "highest" else sums
        most = min(self._settings.candidates, len(keys))
        if most < len(keys):
            worst = np.partition(keys, most - 1)[most - 1]
            rows = np.flatnonzero(keys <= worst)
        else:
            rows = np.arange(len(keys))
        ties = self._random.integers(len(rows), 2**62)
        order = rows[np.lexsort((ties, keys[rows]))[:most]]
        return order, [int(each) for each in sums[order]]

    def _told(
        self,
        seen: Explanation,
        ranked: list[RankedMachine],
        totals: list[int],
        scores: NDArray[np.int64],
    ) -> Explanation:
        if not ranked:
            return seen
        has_second = len(ranked) > 1
        points = [self._points(row) for row in scores]
        return Explanation(
            looked_at=seen.looked_at,
            feasible=seen.feasible,
            ruled_out=seen.ruled_out,
            rule=f"{self._settings.prefer} score",
            score=totals[0],
            second=ranked[1].machine if has_second else None,
            second_score=totals[1] if has_second else None,
            measure="points",
            points=points[0],
            second_points=points[1] if has_second else {},
        )

    def _points(self, row: NDArray[np.int64]) -> dict[str, int]:
        """Weighted scores by plug-in; nothing if there is only one."""
        names = (*self._settings.scores, *self._settings.decision_scores)
        if len(row) < 2:
            return {}
        weighted = (row * self._weights[: len(row)]).tolist()
        return {name: int(each) for name, each in zip(names, weighted, strict=False)}

    def _nodes(self, answers: Sequence[SampleReturned], view: View) -> Nodes:
        if self._facts is None:
            self._facts = CellFacts(view)
        parts = [
            Nodes(
                sample.machines,
                view.capacity(sample.machines),
                sample.free,
                view.dimensions,
                self._facts,
                (self._places.get(sample.cluster, ""),),
            )
            for sample in answers
        ]
        return Nodes.joined(parts)


def sampled(samples: Sequence[SampleReturned]) -> Explanation:
    """What the agents saw, together."""
    ruled_out: dict[str, int] = {}
    for sample in samples:
        for reason, count in sample.ruled_out.items():
            ruled_out[reason] = ruled_out.get(reason, 0) + count
    return Explanation(
        looked_at=sum(sample.drawn for sample in samples),
        feasible=sum(len(sample.machines) for sample in samples),
        ruled_out=ruled_out,
    )
