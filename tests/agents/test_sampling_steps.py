"""An agent's samples step by step: which machines are its own, what it knows of them, what it draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pytest
from agent_caches import a_cache, amounts
from serial_attempts import cell_of, take

from argosy.agents import registry
from argosy.agents.api import Nodes, Requirements
from argosy.agents.builtin import RoundRobinStrategy
from argosy.agents.cache import NodesCache
from argosy.agents.sampling import DrawnSample, Sampler
from argosy.cell import Cell
from argosy.model.effects import Sample, SamplingPipeline
from argosy.model.errors import EngineFault
from argosy.model.machines import CLUSTER_GROUP, Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    DrainMachine,
    Transaction,
)
from argosy.testing.builders import GIB


def clusters(*names: str) -> Cell:
    """One machine of 4 cores in each cluster named, in order."""
    cell = Cell(("cpu", "memory"), {CLUSTER_GROUP: tuple(sorted(set(names)))})
    for number, name in enumerate(names):
        machine = Machine(f"m{number}", Resources(4_000, 64 * GIB), joins={CLUSTER_GROUP: (name,)})
        cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    return cell


def sampled(
    cache: NodesCache,
    cell: Cell,
    *,
    cpu: int = 1_000,
    count: int = 1,
    random: int = 1,
    demands: Mapping[str, str] = MappingProxyType({}),
    most: int = 0,
    is_cut_off: bool = False,
    parts: int = 1,
    is_over: Callable[[], bool] = lambda: False,
    **pipeline: Any,
) -> DrawnSample:
    asked = Sample(Resources(cpu, GIB), count, 1, demands=dict(demands))
    return Sampler(cache, cell, Random(random)).sample(
        asked,
        SamplingPipeline(**pipeline),
        0,
        most=most,
        is_cut_off=is_cut_off,
        parts=parts,
        is_over=is_over,
    )


#: One that is computed natively, and one in terms of plug-ins.
BOTH_WAYS = pytest.mark.parametrize("strategy", ["Random", "RoundRobin"])


class TestMembers:
    NAMES = ("a", "b", "a", "b", "a", "a")

    @pytest.mark.parametrize(
        ("cluster", "shard", "expected"),
        [
            ("", (0, 1), [0, 1, 2, 3, 4, 5]),
            ("a", (0, 1), [0, 2, 4, 5]),
            ("b", (0, 1), [1, 3]),
            ("a", (0, 2), [0, 2, 4]),
            ("a", (1, 2), [5]),
            ("", (1, 3), [1, 4]),
        ],
    )
    def test_an_agent_has_the_machines_of_its_cluster_and_of_its_shard(
        self, cluster: str, shard: tuple[int, int], expected: list[int]
    ) -> None:
        cell = clusters(*self.NAMES)
        cache = a_cache(cell, cluster, shard=shard)
        assert cache.members().tolist() == expected
        assert cache.members().dtype == np.int32
        assert cache.members() is cache.members()

    @BOTH_WAYS
    def test_a_sample_is_of_the_cluster_alone_also_when_machines_join(self, strategy: str) -> None:
        cell = clusters(*self.NAMES)
        cache = a_cache(cell, "b")

        def drawn() -> list[int]:
            found = sampled(cache, cell, count=9, strategy=strategy)
            assert found.drawn == len(found.machines)
            return sorted(found.machines.tolist())

        assert drawn() == [1, 3]
        joins = Machine("m6", Resources(4_000, 64 * GIB), joins={CLUSTER_GROUP: ("b",)})
        cell.commit(Transaction(OPERATOR, machines=(AddMachine(joins),)))
        assert drawn() == [1, 3, 6]

    def test_machines_are_at_the_place_of_their_cluster(self) -> None:
        cell = clusters("a")
        seen = a_cache(cell, "a").sample(np.array([0], np.int32), 0, is_cut_off=False)
        assert seen.places == ("rome",)
        assert seen.dimensions == ("cpu", "memory")
        assert seen.capacity.tolist() == [[4_000, 64 * GIB]]


class TestWhichMachinesTakeClaims:
    def test_they_are_read_again_when_the_count_of_changes_says_so(self) -> None:
        cell, counted = cell_of(4, 4), [0]
        cache = a_cache(cell, changes=lambda: counted[0])
        both = np.array([0, 1], np.int32)

        def are_open() -> list[bool]:
            free = cache.sample(both, 0, is_cut_off=False).free
            return [cpu >= 0 for cpu in free[:, 0].tolist()]

        assert are_open() == [True, True]
        cell.commit(Transaction(OPERATOR, machines=(DrainMachine(0),)))
        assert are_open() == [True, True]
        counted[0] = 1
        assert are_open() == [False, True]
        cell.commit(Transaction(OPERATOR, machines=(DrainMachine(1),)))
        counted[0] = 2
        assert are_open() == [False, False]

    def test_without_a_count_every_time(self) -> None:
        cell = cell_of(4)
        cache, one = a_cache(cell), np.array([0], np.int32)
        assert cache.sample(one, 0, is_cut_off=False).free[0, 0] == 4_000
        cell.commit(Transaction(OPERATOR, machines=(DrainMachine(0),)))
        assert cache.sample(one, 0, is_cut_off=False).free.tolist() == [[-1, -1]]

    def test_an_old_picture_of_them_does_not_outlive_a_time_without_news(self) -> None:
        """The picture that a time without news leaves counts no changes."""
        cell = cell_of(4)
        cache, one = a_cache(cell, changes=lambda: 0), np.array([0], np.int32)
        assert cache.sample(one, 0, is_cut_off=False).free[0, 0] == 4_000
        assert cache.sample(one, 0, is_cut_off=True).free[0, 0] == 4_000
        cell.commit(Transaction(OPERATOR, machines=(DrainMachine(0),)))
        assert cache.sample(one, 0, is_cut_off=False).free[0, 0] == -1


def test_a_picture_is_as_old_as_when_it_was_last_read() -> None:
    cell = cell_of(4)
    cache, one = a_cache(cell, refresh=100), np.array([0], np.int32)

    def cores(now: int) -> int:
        return int(cache.sample(one, now, is_cut_off=False).free[0, 0]) // 1_000

    assert cores(1_000) == 4
    take(cell, 0, 1)
    assert cores(1_099) == 4
    assert cores(1_100) == 3
    take(cell, 0, 1, number=98)
    assert cores(1_199) == 3
    assert cores(1_200) == 2


@BOTH_WAYS
class TestWhatIsReserved:
    def test_it_is_gone_from_samples_while_it_lasts(self, strategy: str) -> None:
        cell = cell_of(4, 4, 4)
        cache = a_cache(cell)

        def free() -> dict[int, int]:
            found = sampled(cache, cell, count=9, strategy=strategy)
            return dict(zip(found.machines.tolist(), found.free[:, 0].tolist(), strict=True))

        last = cache.reserve(1, 2, amounts(1_000))
        first = cache.reserve(2, 0, amounts(500))
        assert free() == {0: 3_500, 1: 4_000, 2: 3_000}
        more = cache.reserve(3, 2, amounts(2_500))
        assert free() == {0: 3_500, 1: 4_000}
        cache.unreserve(more)
        assert free() == {0: 3_500, 1: 4_000, 2: 3_000}
        cache.unreserve(last)
        cache.unreserve(first)
        assert free() == dict.fromkeys(range(3), 4_000)

    def test_reservations_from_before_a_new_resource_have_none_of_it(self, strategy: str) -> None:
        cell = cell_of(4, 4)
        cache = a_cache(cell)
        cache.reserve(1, 0, amounts(1_000))
        assert len(sampled(cache, cell, count=2, cpu=3_500, strategy="Random").machines) == 1
        joins = Machine("gpu", Resources(4_000, 64 * GIB, {"gpu": 2}))
        cell.commit(Transaction(OPERATOR, machines=(AddMachine(joins),)))
        if strategy == "Random":
            found = sampled(cache, cell, count=3, strategy=strategy)
            rows = dict(zip(found.machines.tolist(), found.free.tolist(), strict=True))
            assert rows[0] == [3_000, 63 * GIB, 0]
            assert rows[2] == [4_000, 64 * GIB, 2]


def test_a_commit_leaves_the_picture_of_later_machines_alone() -> None:
    cell = cell_of(4)
    cache, one = a_cache(cell, refresh=100), np.array([0], np.int32)
    cache.sample(one, 0, is_cut_off=False)
    joins = AddMachine(Machine("m1", Resources(4_000, 64 * GIB)))
    cell.commit(Transaction(OPERATOR, machines=(joins,)))
    # Not in the picture yet.
    cache.commit(cache.reserve(1, 1, amounts(1_000)))
    assert cache.sample(one, 50, is_cut_off=False).free[0, 0] == 4_000
    assert cache.reservations == 0


class TestHowManyAreDrawn:
    @BOTH_WAYS
    @pytest.mark.parametrize(
        ("options", "drawn"),
        [
            ({"count": 3}, 3),
            ({"count": 3, "parts": 2}, 2),
            ({"count": 4, "parts": 2}, 2),
            ({"count": 5, "parts": 2}, 3),
            ({"count": 1, "share": 0.5}, 5),
            ({"count": 1, "share": 0.41}, 5),
            ({"count": 3, "most": 2}, 2),
            # Nothing fits, so it goes on: to the end, to the limit, or for so many rounds.
            ({"count": 4, "cpu": 9_000}, 10),
            ({"count": 4, "cpu": 9_000, "most": 6}, 6),
            ({"count": 4, "cpu": 9_000, "rounds": 1}, 4),
            ({"count": 4, "cpu": 9_000, "rounds": 2}, 8),
        ],
    )
    def test_it_is_what_the_request_and_the_pipeline_say(
        self, strategy: str, options: dict[str, Any], drawn: int
    ) -> None:
        cell = cell_of(*[4] * 10)
        found = sampled(a_cache(cell), cell, strategy=strategy, **options)
        assert found.drawn == drawn
        fitting = 0 if "cpu" in options else drawn
        assert len(found.machines) == fitting
        assert found.ruled_out == ({} if fitting else {"cpu": drawn})

    @BOTH_WAYS
    @pytest.mark.parametrize(("overshoot", "kept"), [("keep", 3), ("cut", 2)])
    def test_what_a_round_finds_beyond_the_size_is_kept_or_cut(
        self, strategy: str, overshoot: str, kept: int
    ) -> None:
        # The first round of two finds one machine, the second finds two.
        cell = cell_of(1, 4, 4, 4)
        sizes = set()
        for random in range(12):
            found = sampled(
                a_cache(cell),
                cell,
                cpu=2_000,
                count=2,
                random=random,
                strategy=strategy,
                overshoot=overshoot,
            )
            sizes.add(len(found.machines))
            columns = (found.free, found.versions, found.scores)
            assert {len(column) for column in columns} == {len(found.machines)}
        assert max(sizes) == kept

    def test_time_that_is_over_ends_it(self) -> None:
        cell = cell_of(*[4] * 10)
        rounds = iter([False, False, True])
        found = sampled(
            a_cache(cell),
            cell,
            cpu=9_000,
            count=2,
            strategy="RoundRobin",
            is_over=lambda: next(rounds),
        )
        assert (found.drawn, found.ruled_out) == (4, {"cpu": 4})
        at_once = sampled(a_cache(cell), cell, strategy="RoundRobin", is_over=lambda: True)
        assert (at_once.drawn, len(at_once.machines)) == (0, 0)
        assert at_once.scores.shape == (0, 1)

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, [1, 2]),
            ({"repeats": "keep"}, [1, 2, 1, 2]),
            ({"repeats": "keep", "overshoot": "cut"}, [1, 2, 1]),
        ],
    )
    def test_what_independent_rounds_draw_twice_counts_once_unless_it_is_kept(
        self, options: dict[str, Any], expected: list[int]
    ) -> None:
        # Each round draws all three, of which two fit: the second round makes it enough.
        cell = cell_of(1, 4, 4)
        found = sampled(
            a_cache(cell), cell, cpu=2_000, count=3, strategy="RoundRobin", rounds=3, **options
        )
        assert found.drawn == 6
        assert found.machines.tolist() == expected
        assert found.ruled_out == {"cpu": 2}
        assert found.scores.shape == (len(expected), 1)

    def test_a_strategy_that_draws_nothing_ends_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Idle(RoundRobinStrategy):
            name: ClassVar[str] = "Idle"

            def draw(self, task: Requirements, machines: Any, count: int, random: Random) -> Any:
                return machines[:0]

        monkeypatch.setitem(registry.PLUGINS, "Idle", Idle)
        cell, asked = cell_of(4), []

        def is_over() -> bool:
            asked.append(True)
            return len(asked) > 5

        for rounds in (0, 2):
            found = sampled(a_cache(cell), cell, strategy="Idle", rounds=rounds, is_over=is_over)
            assert found.drawn == 0
        assert len(asked) == 2


class Even:
    """Keeps and prefers machines with even numbers; `odd` tasks do not care."""

    name: ClassVar[str] = "Even"

    def concerns(self, task: Requirements, role: str) -> bool:
        return task.demands.get("odd") != role

    def keeps(self, task: Requirements, nodes: Nodes) -> Any:
        return nodes.machines % 2 == 0

    def score(self, task: Requirements, nodes: Nodes) -> Any:
        return 10 - nodes.machines


class Beyond(Even):
    """Scores whatever the task asks for."""

    name: ClassVar[str] = "Beyond"

    def score(self, task: Requirements, nodes: Nodes) -> Any:
        return np.array([int(each) for each in task.demands["scores"].split(",")])


@pytest.fixture
def more_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    for plugin in (Even, Beyond):
        monkeypatch.setitem(registry.PLUGINS, plugin.name, plugin)


@pytest.mark.usefixtures("more_plugins")
class TestPlugins:
    def test_a_filter_that_does_not_concern_a_task_is_not_asked(self) -> None:
        cell = cell_of(*[4] * 4)

        def kept(**demands: str) -> tuple[list[int], dict[str, int]]:
            found = sampled(
                a_cache(cell), cell, count=4, demands=demands, filters=("ResourcesFit", "Even")
            )
            return sorted(found.machines.tolist()), found.ruled_out

        assert kept() == ([0, 2], {"by Even": 2})
        assert kept(odd="score") == ([0, 2], {"by Even": 2})
        assert kept(odd="filter") == ([0, 1, 2, 3], {})

    def test_whom_a_filter_concerns_is_asked_for_each_task_anew(self) -> None:
        cell = cell_of(*[4] * 4)
        sampler = Sampler(a_cache(cell), cell, Random(1))
        pipeline = SamplingPipeline(filters=("ResourcesFit", "Even"))

        def kept(**demands: str) -> list[int]:
            asked = Sample(Resources(1, 1), 4, 1, demands=demands)
            found = sampler.sample(asked, pipeline, 0, most=0, is_cut_off=False)
            return sorted(found.machines.tolist())

        assert kept(odd="filter") == [0, 1, 2, 3]
        assert kept() == [0, 2]
        assert kept(odd="filter") == [0, 1, 2, 3]

    @BOTH_WAYS
    def test_a_score_that_does_not_concern_a_task_is_the_highest(self, strategy: str) -> None:
        cell = cell_of(4, 4)

        def scores(**demands: str) -> list[list[int]]:
            found = sampled(
                a_cache(cell),
                cell,
                count=2,
                demands=demands,
                strategy=strategy,
                scores=("Even", "ResourcesFit", "Even"),
            )
            return [found.scores[found.machines == number][0].tolist() for number in (0, 1)]

        assert scores() == [[10, 86, 10], [9, 86, 9]]
        assert scores(odd="filter") == [[10, 86, 10], [9, 86, 9]]
        assert scores(odd="score") == [[100, 86, 100], [100, 86, 100]]

    @pytest.mark.parametrize(
        ("told", "expected"),
        [
            ("0,100", None),
            ("-1,0", "plug-in 'Beyond' scored [-1, 0]"),
            ("0,101", "plug-in 'Beyond' scored [0, 101]"),
            ("1", "plug-in 'Beyond' scored [1]"),
            ("1,2,3,4,5,6,7,8,9", "plug-in 'Beyond' scored [1, 2, 3, 4, 5, 6, 7, 8]"),
        ],
    )
    @BOTH_WAYS
    def test_scores_out_of_range_or_number_are_the_fault_of_the_plug_in(
        self, strategy: str, told: str, expected: str | None
    ) -> None:
        cell = cell_of(4, 4)
        asked: dict[str, Any] = {"count": 2, "demands": {"scores": told}, "scores": ("Beyond",)}
        if expected is None:
            found = sampled(a_cache(cell), cell, strategy=strategy, **asked)
            assert found.scores.tolist() == [[0], [100]]
            return
        with pytest.raises(EngineFault) as caught:
            sampled(a_cache(cell), cell, strategy=strategy, **asked)
        assert caught.value.problem == expected
        assert caught.value.expected == "one number from 0 to 100 for each of 2 machines"

    def test_plug_ins_are_made_once_for_an_agent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made = []

        class Counted(Even):
            name: ClassVar[str] = "Counted"

            def __init__(self) -> None:
                made.append(self)

        monkeypatch.setitem(registry.PLUGINS, "Counted", Counted)
        cell = cell_of(4)
        sampler = Sampler(a_cache(cell), cell, Random(1))
        pipeline = SamplingPipeline(filters=("Counted",), scores=("Counted",))
        for _ in range(3):
            sampler.sample(Sample(Resources(1, 1), 1, 1), pipeline, 0, most=0, is_cut_off=False)
        assert len(made) == 2


@BOTH_WAYS
def test_a_score_that_says_nothing_of_whom_it_concerns_is_asked_about_every_task(
    monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    class Plain:
        name: ClassVar[str] = "Plain"

        def score(self, task: Requirements, nodes: Nodes) -> Any:
            return np.full(len(nodes), 42)

    monkeypatch.setitem(registry.PLUGINS, "Plain", Plain)
    cell = cell_of(4)
    found = sampled(a_cache(cell), cell, strategy=strategy, scores=("Plain",))
    assert found.scores.tolist() == [[42]]


@BOTH_WAYS
def test_a_time_without_news_begins_with_what_was_known_last(strategy: str) -> None:
    cell = cell_of(4)
    cache = a_cache(cell)

    def cores(*, is_cut_off: bool) -> int:
        found = sampled(cache, cell, strategy=strategy, is_cut_off=is_cut_off)
        return int(found.free[0, 0]) // 1_000

    assert cores(is_cut_off=True) == 4
    take(cell, 0, 1)
    assert (cores(is_cut_off=True), cores(is_cut_off=False)) == (4, 3)
    take(cell, 0, 1, number=98)
    assert cores(is_cut_off=True) == 2


def test_turns_go_on_from_one_request_of_an_agent_to_the_next() -> None:
    cell = cell_of(*[4] * 5)
    sampler = Sampler(a_cache(cell), cell, Random(1))
    pipeline = SamplingPipeline(strategy="RoundRobin")
    asked = Sample(Resources(1, 1), 2, 1)
    turns = [
        sampler.sample(asked, pipeline, 0, most=0, is_cut_off=False).machines.tolist()
        for _ in range(3)
    ]
    assert turns == [[0, 1], [2, 3], [4, 0]]


def test_turns_begin_with_the_first_machine_and_leave_none_out() -> None:
    strategy, machines = RoundRobinStrategy(), np.arange(3, dtype=np.int32)
    task = Requirements(Resources(1, 1))
    drawn = [strategy.draw(task, machines, 1, Random(1)).tolist() for _ in range(4)]
    assert drawn == [[0], [1], [2], [0]]


def test_an_agent_that_is_cut_off_or_that_reads_now_and_then_draws_from_its_picture() -> None:
    for refresh, is_cut_off, cores in ((0, False, 3), (0, True, 4), (100, False, 4)):
        cell = cell_of(4)
        cache = a_cache(cell, refresh=refresh)
        assert cache.is_live(is_cut_off=is_cut_off) is (cores == 3)
        assert sampled(cache, cell, is_cut_off=is_cut_off).free[0, 0] == 4_000
        take(cell, 0, 1)
        assert sampled(cache, cell, is_cut_off=is_cut_off).free[0, 0] == cores * 1_000
