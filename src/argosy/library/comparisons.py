"""Engines x seeds on one scenario: which engine is best, by how much, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from argosy.engines.api import Engine
from argosy.engines.registry import find_engines
from argosy.experiments.sweep import SweepPoint, run_all
from argosy.library.frames import columns_of, frame
from argosy.library.sources import (
    EngineChoice,
    LoadedScenario,
    PathLike,
    check_seed,
    check_unchanged,
    named,
    plain,
    resolve,
)
from argosy.model.errors import CommandError
from argosy.model.scenario import Scenario
from argosy.records.record import Columns
from argosy.records.summary import Summary
from argosy.report.comparison import Ranking
from argosy.report.comparison import compare as rank
from argosy.report.metrics import find_metric
from argosy.report.summaries import flat
from argosy.report.verdicts import reasons, verdict
from argosy.scenarios.loader import with_engine
from argosy.scenarios.missing_extras import missing, unmet


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Every engine's runs under the same seeds."""

    scenario: str
    seeds: tuple[int, ...]
    #: By engine, one summary per seed, in the order of `seeds`.
    runs: dict[str, tuple[Summary, ...]]
    #: Demands of the scenario that an engine ignores, one sentence each.
    notes: dict[str, tuple[str, ...]] = {}

    def ranking(self, metric: str = "jct") -> Ranking:
        """The engines by a metric, best first, with intervals and ratios. Metrics are those of ``argosy
        compare --metric``; less is better."""
        return rank(self.runs, find_metric(metric), self.notes)

    def best(self, metric: str = "jct") -> str | None:
        """The engine with the lowest value of a metric; None if no engine finished anything."""
        return self.ranking(metric).best

    def verdict(self, metric: str = "jct") -> list[str]:
        """Which engine is best and why, in sentences."""
        ranking = self.ranking(metric)
        return [*verdict(ranking, find_metric(metric)), *reasons(ranking)]

    def columns(self) -> Columns:
        """One row per run: the engine, the seed and the numbers of its summary."""
        return columns_of(
            [{"engine": name, **flat(each)} for name, ran in self.runs.items() for each in ran]
        )

    def frame(self) -> Any:
        """`columns` as a data frame, of pandas if installed, otherwise of polars."""
        return frame(self.columns())


def compare(
    scenario: Scenario | PathLike,
    engines: Iterable[EngineChoice],
    seeds: int | Iterable[int] = 5,
    *,
    processes: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Comparison:
    """Run a scenario with each engine and the same seeds.

    `engines` are names, ``package.module:Class`` or classes. `seeds` is a list of seeds, or how many to
    use, counting up from the scenario's own; if the scenario comes from a file, each seed draws its jobs
    again. With several `processes`, guard the calling code with ``if __name__ == "__main__"``, because
    Python imports it again in each process.
    """
    loaded = resolve(scenario)
    chosen, also = _engines(engines)
    numbers = _seeds(loaded, seeds)
    source, published = _source(loaded, numbers)
    notes = {}
    for name in chosen:
        changed = with_engine(plain(loaded), name, also)
        known = find_engines(changed.engine_names(), also)
        if (lack := missing(changed, known)) is not None:
            raise lack
        notes[name] = tuple(unmet(changed, known))
    classes = tuple(also.values())
    points = [SweepPoint(source, e, s, published, classes) for e in chosen for s in numbers]
    summaries = run_all(points, processes, progress or (lambda share: None))
    count = len(numbers)
    return Comparison(
        scenario=loaded.name,
        seeds=tuple(numbers),
        runs={
            name: tuple(summaries[at * count : (at + 1) * count]) for at, name in enumerate(chosen)
        },
        notes=notes,
    )


def _engines(engines: Iterable[EngineChoice]) -> tuple[list[str], dict[str, type[Engine]]]:
    pairs = [named(engine) for engine in ([engines] if isinstance(engines, str) else engines)]
    if not pairs:
        raise CommandError("no engines to compare", expected="at least one")
    also = {name: engine for _, given in pairs for name, engine in given.items()}
    return list(dict.fromkeys(name for name, _ in pairs)), also


def _seeds(scenario: Scenario, seeds: int | Iterable[int]) -> list[int]:
    numbers: Sequence[int]
    if isinstance(seeds, int):
        numbers = range(scenario.seed, scenario.seed + seeds)
    else:
        numbers = list(dict.fromkeys(seeds))
    if not numbers:
        raise CommandError("no seeds to compare with", expected="at least one")
    for seed in (numbers[0], numbers[-1]) if isinstance(numbers, range) else numbers:
        check_seed(seed)
    return list(numbers)


def _source(scenario: Scenario, seeds: Sequence[int]) -> tuple[Path | Scenario, bool]:
    """What processes run: the file, unless the scenario was built or changed in Python."""
    others = [seed for seed in seeds if seed != scenario.seed]
    if not isinstance(scenario, LoadedScenario) or not others:
        return plain(scenario), scenario.as_published
    check_unchanged(scenario, others[0])
    return Path(scenario.path), scenario.published
