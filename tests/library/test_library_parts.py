"""Parts of the library by themselves: comparisons of made-up runs, columns, seeds, arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import runs_of, summary
from msgspec.structs import replace

import argosy
from argosy.engines.registry import ENGINES
from argosy.library import comparisons, results, sources
from argosy.library.arguments import LARGEST_SEED, check_seed, is_whole, unusable
from argosy.library.comparisons import MOST_SEEDS, Comparison, _seeds, _source
from argosy.library.frames import columns_of
from argosy.library.results import _matched, _since
from argosy.library.sources import LoadedScenario, named, plain, several, under, with_seed
from argosy.model.errors import CommandError
from argosy.model.scenario import Scenario
from argosy.scenarios.ignored_demands import IgnoredDemand
from argosy.testing.builders import SECOND, job, scenario

SPEC = scenario("omega", [job("a", 2), job("b", 1, submit=3)], replicas=1, seed=4)
QUICKSTART = Path(__file__).parents[2] / "scenarios" / "quickstart.toml"


class Own(ENGINES["omega"]):  # type: ignore[misc, valid-type]
    """An engine of somebody's own."""


class Other(ENGINES["omega"]):  # type: ignore[misc, valid-type]
    name = "other"


def comparison(**fields: Any) -> Comparison:
    ran = {
        name: tuple(each)
        for name, each in runs_of(a=[10e6, 10e6], b=[10.4e6, 10.4e6], c=[5e6, 5e6]).items()
    }
    return Comparison(scenario="s", seeds=(0, 1), **{"runs": ran, **fields})


class TestComparisons:
    def test_medians_closer_than_the_threshold_are_a_tie(self) -> None:
        def places(**options: Any) -> dict[str, int | None]:
            return {rank.engine: rank.place for rank in made.ranking(**options).standings}

        made = comparison()
        assert places(threshold=0.05) == {"c": 1, "a": 2, "b": 2}
        assert places(threshold=0.01) == {"c": 1, "a": 2, "b": 3}
        assert made.best() == "c"

    def test_engines_that_ignore_demands_are_ranked_only_on_request(self) -> None:
        ignored = IgnoredDemand("c", "gangs", "1 job asks for one")
        made = comparison(ignores={"c": (ignored,)})
        assert made.best() == "a"
        assert made.ranking(everyone=True).best == "c"

    def test_engines_that_failed_are_told(self) -> None:
        made = comparison(failures={"d": "with seed 0: broken"})
        assert made.ranking().failures == {"d": "with seed 0: broken"}

    def test_another_metric_may_have_another_winner(self) -> None:
        quick = (summary("a", jct=9e6, wait=9e6),)
        calm = (summary("b", jct=10e6, wait=1e6),)
        made = comparison(runs={"a": quick, "b": calm})
        assert (made.best(), made.best("wait")) == ("a", "b")
        assert made.ranking("wait").metric == "wait"

    def test_columns_have_a_row_a_run_with_its_engine_and_seed(self) -> None:
        columns = comparison().columns()
        assert columns["engine"].tolist() == ["a", "a", "b", "b", "c", "c"]
        assert columns["seed"].tolist() == [0, 1] * 3

    def test_progress_of_other_engines_is_the_share_of_all(self) -> None:
        told: list[float] = []
        # Recorded runs end at a horizon, and progress is told at submissions.
        kept = argosy.run(scenario("omega", [job("a"), job("b", submit=5)], horizon=20 * SECOND))
        found = argosy.replay_with(kept, ["sparrow", "omega"], progress=told.append)
        assert list(found.runs) == list(found.ignores) == ["recorded", "sparrow", "omega"]
        # Each run is done when it has ended, however early.
        first = told[:2]
        assert max(first) < 0.5
        assert told[2:] == [0.5, *(share + 0.5 for share in first), 1.0]
        assert found.seeds == (1,)


class TestSeeds:
    @pytest.mark.parametrize(
        ("given", "found"),
        [(3, [4, 5, 6]), (1, [4]), ([9, 2, 9], [9, 2]), (range(2), [0, 1]), ((7,), [7])],
    )
    def test_they_count_up_from_the_scenarios_own_or_are_listed(
        self, given: Any, found: list[int]
    ) -> None:
        assert _seeds(SPEC, given) == found

    def test_there_are_bounds(self) -> None:
        assert len(_seeds(SPEC, MOST_SEEDS)) == MOST_SEEDS
        with pytest.raises(CommandError, match="expected at most 10,000"):
            _seeds(SPEC, MOST_SEEDS + 1)
        for nothing in (0, -1, []):
            with pytest.raises(CommandError, match="no seeds to compare with"):
                _seeds(SPEC, nothing)  # type: ignore[arg-type]
        last = scenario("omega", [], seed=LARGEST_SEED)
        assert _seeds(last, 1) == [LARGEST_SEED]
        with pytest.raises(CommandError, match="seed 9223372036854775808"):
            _seeds(last, 2)

    @pytest.mark.parametrize("seed", [0, 1, LARGEST_SEED])
    def test_a_seed_reaches_its_bounds(self, seed: int) -> None:
        check_seed(seed)

    @pytest.mark.parametrize("seed", [-1, LARGEST_SEED + 1, 1.0, None, False])
    def test_anything_else_is_no_seed(self, seed: Any) -> None:
        with pytest.raises(CommandError, match=r"a whole number from 0 to 2\^63 - 1"):
            check_seed(seed)

    def test_a_file_is_drawn_again_only_for_other_seeds(self) -> None:
        loaded = argosy.load(QUICKSTART)
        path, published = _source(loaded, [loaded.seed, loaded.seed + 1])
        assert (path, published) == (QUICKSTART, False)
        same, _ = _source(loaded, [loaded.seed])
        assert type(same) is Scenario
        assert _source(SPEC, [1, 2]) == (SPEC, False)
        as_published = argosy.load(QUICKSTART, published=True)
        assert _source(as_published, [loaded.seed + 1]) == (QUICKSTART, True)

    def test_a_scenario_keeps_its_own_seed_unless_another_is_asked_for(self) -> None:
        assert with_seed(SPEC, None) is SPEC
        assert with_seed(SPEC, 4) is SPEC
        changed = with_seed(SPEC, 5)
        assert (changed.seed, changed.jobs) == (5, SPEC.jobs)
        loaded = argosy.load(QUICKSTART, published=True)
        other = with_seed(loaded, loaded.seed + 1)
        assert isinstance(other, LoadedScenario)
        assert (other.published, other.seed) == (True, loaded.seed + 1)
        assert other.path == str(QUICKSTART)


class TestEngines:
    def test_a_class_is_named_after_its_place_unless_it_is_built_in(self) -> None:
        own = f"{__name__}:Own"
        assert named("omega") == ("omega", {})
        assert named(ENGINES["omega"]) == ("omega", {})
        assert named(Own) == (own, {own: Own})
        assert several([Own, "omega", Own, "omega"]) == ([own, "omega"], {own: Own})
        assert several(Own) == ([own], {own: Own})
        with pytest.raises(CommandError, match="no engines to compare"):
            several([])

    def test_an_engine_replaces_the_fleet(self) -> None:
        assert under(SPEC, None) == (SPEC, {})
        changed, also = under(SPEC, "sparrow")
        assert (changed.engine_names(), also) == (["sparrow"], {})
        assert plain(SPEC) is SPEC
        loaded = argosy.load(QUICKSTART)
        assert type(plain(loaded)) is Scenario
        assert plain(loaded).jobs == loaded.jobs

    @pytest.mark.parametrize(
        ("names", "classes", "found"),
        [
            ({f"{__name__}:Own", "omega"}, [Own], {f"{__name__}:Own": Own}),
            ({"moved.away:Own"}, [Own], {"moved.away:Own": Own}),
            ({"other", "omega"}, Other, {"other": Other}),
            ({"a"}, [], {}),
        ],
    )
    def test_classes_are_matched_by_reference_or_name(
        self, names: set[str], classes: Any, found: dict[str, type]
    ) -> None:
        assert _matched(names, classes) == found

    def test_a_class_that_is_not_in_the_run_is_named_with_those_that_are(self) -> None:
        with pytest.raises(
            CommandError, match="class Own; expected an engine of the run: a, omega"
        ):
            _matched({"omega", "a"}, [Own])


class TestColumns:
    def test_what_a_row_lacks_is_nan_or_empty(self) -> None:
        columns = columns_of([{"n": 1, "text": "x"}, {"n": None, "more": 2.5}, {"text": None}])
        assert list(columns) == ["n", "text", "more"]
        assert np.isnan(columns["n"]).tolist() == [False, True, True]
        assert columns["text"].tolist() == ["x", "", ""]
        assert np.isnan(columns["more"]).tolist() == [True, False, True]
        whole = columns_of([{"n": 1}, {"n": 2}])["n"]
        assert (whole.dtype.kind, whole.tolist()) == ("i", [1, 2])
        assert columns_of([]) == {}

    def test_times_since_submission_are_minus_one_if_it_did_not_happen(self) -> None:
        since = _since(np.array([0, 5, -1]), np.array([0, 3, 3]))
        assert since.tolist() == [0, 2, -1]


class TestRuns:
    def test_arguments_go_where_they_belong(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        given: list[Any] = []

        def execute(spec: Scenario, directory: Path, **options: Any) -> None:
            given.append((spec.engine_names(), spec.seed, directory, options))

        monkeypatch.setattr(results, "execute", execute)
        monkeypatch.setattr(results, "open_recording", lambda path: ("record", path))

        def progress(share: float) -> None:
            raise AssertionError

        kept = argosy.run(SPEC, "sparrow", seed=9, keep=str(tmp_path / "r"), progress=progress)
        options = {"command": ["argosy.run"], "progress": progress, "also": {}}
        assert given == [(["sparrow"], 9, tmp_path / "r", options)]
        assert kept.directory == tmp_path / "r"
        assert kept._record == ("record", tmp_path / "r")

    def test_a_replay_checks_its_listener(self) -> None:
        kept = argosy.run(SPEC)
        assert (kept.directory, kept.scenario) == (None, SPEC)
        with pytest.raises(CommandError, match="progress 5; expected a function"):
            kept.replay(5)  # type: ignore[arg-type]
        assert argosy.replay(kept) == kept.replay()

    def test_a_comparison_passes_its_arguments_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given: dict[str, Any] = {}

        def hold(source: Any, ignores: Any, seeds: Any, **options: Any) -> Any:
            given.update(options, source=source, ignores=ignores, seeds=seeds)
            raise KeyboardInterrupt

        monkeypatch.setattr(comparisons, "hold_contest", hold)
        listener = given.get
        with pytest.raises(KeyboardInterrupt):
            argosy.compare(SPEC, [Own, "sparrow"], [3, 1], processes=2, progress=listener)
        own = f"{__name__}:Own"
        assert given == {
            "source": SPEC,
            "ignores": {own: (), "sparrow": ()},
            "seeds": [3, 1],
            "published": False,
            "also": {own: Own},
            "processes": 2,
            "tell": listener,
        }


def test_a_long_value_is_cut_in_its_error() -> None:
    error = unusable("thing", "x" * 1_000, "less", "try less")
    assert len(error.problem) < 200
    assert error.problem.endswith("...")
    assert (error.expected, error.hint) == ("less", "try less")
    assert unusable("engine", Own, "x").problem == "engine Own"


@pytest.mark.parametrize(("value", "whole"), [(1, True), (True, False), (1.0, False), ("1", False)])
def test_only_integers_are_whole(value: object, whole: bool) -> None:
    assert is_whole(value) is whole


def test_a_scenario_that_was_changed_is_not_drawn_again() -> None:
    loaded = argosy.load(QUICKSTART)
    assert isinstance(loaded, LoadedScenario)
    sources.check_unchanged(loaded, 99)
    with pytest.raises(argosy.ScenarioError, match="cannot be drawn for seed 99"):
        sources.check_unchanged(replace(loaded, name="changed"), 99)


def test_a_loaded_scenario_is_drawn_anew_from_wherever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(QUICKSTART.parent)
    loaded = argosy.load(QUICKSTART.name)
    monkeypatch.chdir(tmp_path)
    assert with_seed(loaded, 77).seed == 77
