"""Engines x seeds on one scenario: which engine is best, by how much, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from argosy.engines.registry import find_engines
from argosy.experiments.contest import demands_ignored, hold_contest
from argosy.experiments.on_recorded import RECORDED, recorded_ignores, try_engine
from argosy.library.arguments import (
    PathLike,
    Progress,
    check_processes,
    check_progress,
    check_seed,
    check_text,
    is_whole,
    unusable,
)
from argosy.library.frames import columns_of, frame
from argosy.library.results import Result, as_result
from argosy.library.sources import (
    EngineChoice,
    LoadedScenario,
    check_unchanged,
    plain,
    resolve,
    several,
)
from argosy.model.errors import CommandError
from argosy.model.scenario import Scenario
from argosy.records.record import Columns
from argosy.records.summary import Summary
from argosy.report.comparison import DEFAULT_THRESHOLD, Ranking, RankingRule
from argosy.report.comparison import compare as rank
from argosy.report.metrics import find_metric
from argosy.report.summaries import flat
from argosy.report.verdicts import reasons, verdict
from argosy.scenarios.ignored_demands import IgnoredDemand

#: Every run's summary is kept until the end.
MOST_SEEDS: Final = 10_000


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Every engine's runs under the same seeds; from `replay_with`, the recorded run is among them."""

    scenario: str
    seeds: tuple[int, ...]
    #: By engine, one summary per seed, in the order of `seeds`.
    runs: dict[str, tuple[Summary, ...]]
    #: Demands of the scenario that an engine ignores.
    ignores: dict[str, tuple[IgnoredDemand, ...]] = {}
    #: The errors of engines that failed; they have no runs.
    failures: dict[str, str] = {}
    #: What the scenario cannot express of its trace, or of the recorded run, one sentence each.
    left_out: tuple[str, ...] = ()

    def ranking(
        self, metric: str = "jct", *, threshold: float = DEFAULT_THRESHOLD, everyone: bool = False
    ) -> Ranking:
        """The engines by a metric, best first, with intervals and ratios. Metrics are those of ``argosy
        compare --metric``; less is better. Medians closer than `threshold` are a tie. Engines that
        ignore demands of the scenario are not ranked, unless `everyone` is."""
        check_text("metric", metric, "the name of a metric")
        rule = RankingRule(threshold=threshold, everyone=everyone)
        found = find_metric(metric)
        return rank(self.runs, found, self.ignores, failures=self.failures, rule=rule)

    def best(self, metric: str = "jct") -> str | None:
        """The engine with the lowest value of a metric, of those that meet all demands of the scenario;
        None if no engine finished anything. `ranking` tells which others tie with it."""
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
    engines: Iterable[EngineChoice] | EngineChoice,
    seeds: int | Iterable[int] = 5,
    *,
    processes: int = 1,
    progress: Progress | None = None,
) -> Comparison:
    """Run a scenario with each engine and the same seeds.

    `engines` are names, ``package.module:Class`` or classes. `seeds` is a list of seeds, or how many to
    use, counting up from the scenario's own; if the scenario comes from a file, each seed draws its jobs
    again. With several `processes`, guard the calling code with ``if __name__ == "__main__"``, because
    Python imports it again in each process.
    """
    check_processes(processes)
    check_progress(progress)
    loaded = resolve(scenario)
    chosen, also = several(engines)
    if processes > 1:
        _check_importable(also.values())
    numbers = _seeds(loaded, seeds)
    source, published = _source(loaded, numbers)
    contest = hold_contest(
        source,
        demands_ignored(plain(loaded), chosen, also),
        numbers,
        published=published,
        also=also,
        processes=processes,
        tell=progress or (lambda share: None),
    )
    return Comparison(
        scenario=loaded.name,
        seeds=tuple(numbers),
        runs=contest.runs,
        ignores=contest.ignores,
        failures=contest.failures,
        left_out=loaded.left_out,
    )


def replay_with(
    run: Result | PathLike,
    engines: Iterable[EngineChoice] | EngineChoice,
    *,
    progress: Progress | None = None,
) -> Comparison:
    """Run other engines on the jobs of a recorded run, and compare them with it.

    Jobs are submitted, and machines and schedulers fail, when they did; each task runs as long as it was
    observed to run. The recorded run is called ``recorded`` in the comparison. `run` is a `Result`, or
    the path of a run directory or a journal file.
    """
    check_progress(progress)
    result = as_result(run)
    chosen, also = several(engines)
    find_engines(chosen, also)
    scenario = result.observed()
    runs: dict[str, tuple[Summary, ...]] = {RECORDED: (result.summary,)}
    ignores = {RECORDED: recorded_ignores(scenario)}
    for number, name in enumerate(chosen):

        def tell(share: float, number: int = number) -> None:
            if progress is not None:
                progress((number + share) / len(chosen))

        tried = try_engine(scenario, name, progress=tell, also=also)
        # Its progress is in virtual time, and the run may end long before its horizon.
        tell(1)
        runs[name], ignores[name] = (tried.summary,), tried.ignores
    return Comparison(
        scenario=scenario.name,
        seeds=(scenario.seed,),
        runs=runs,
        ignores=ignores,
        left_out=scenario.left_out,
    )


def _check_importable(classes: Iterable[type]) -> None:
    for engine in classes:
        if "<locals>" in engine.__qualname__:
            raise unusable(
                "several processes with class",
                engine,
                "a class at the top of a module, because each process imports it",
                "move it out of the function, or use one process",
            )


def _seeds(scenario: Scenario, seeds: int | Iterable[int]) -> list[int]:
    numbers: Sequence[int]
    if isinstance(seeds, int) and is_whole(seeds):
        if seeds > MOST_SEEDS:
            raise unusable("seeds", seeds, f"at most {MOST_SEEDS:,}")
        numbers = range(scenario.seed, scenario.seed + seeds)
    elif isinstance(seeds, Iterable) and not isinstance(seeds, str):
        numbers = list(seeds)
        for seed in numbers:
            check_seed(seed)
        numbers = list(dict.fromkeys(numbers))
    else:
        raise unusable("seeds", seeds, "how many, or a list of seeds")
    if not numbers:
        raise CommandError("no seeds to compare with", expected="at least one")
    check_seed(numbers[-1])
    return list(numbers)


def _source(scenario: Scenario, seeds: Sequence[int]) -> tuple[Path | Scenario, bool]:
    """What processes run: the file, unless the scenario was built or changed in Python."""
    others = [seed for seed in seeds if seed != scenario.seed]
    if not isinstance(scenario, LoadedScenario) or not others:
        return plain(scenario), scenario.as_published
    check_unchanged(scenario, others[0])
    return Path(scenario.path), scenario.published
