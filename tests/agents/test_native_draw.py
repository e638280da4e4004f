"""The native sampling pipeline against the same pipeline in terms of its plug-ins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.agents.cache import NodesCache
from argosy.agents.facts import CellFacts
from argosy.agents.sampling import DrawnSample, Sampler
from argosy.cell import Cell, MachineDraw
from argosy.model.effects import Sample, SamplingPipeline
from argosy.model.machines import Cluster, Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, DrainMachine, Transaction

DEFAULT = SamplingPipeline(scores=("ResourcesFit", "GeoLocation"))
#: The same, but in terms of plug-ins: only a pipeline with a single filter is native.
IN_PLUGINS = SamplingPipeline(
    filters=("ResourcesFit", "BatchShare"), scores=("ResourcesFit", "GeoLocation")
)


def cell_with(capacities: list[tuple[int, int]], draining: int = -1) -> Cell:
    cell = Cell(("cpu", "memory"))
    added = tuple(AddMachine(Machine(f"m{n}", Resources(*c))) for n, c in enumerate(capacities))
    cell.commit(Transaction(OPERATOR, machines=added))
    if draining >= 0:
        cell.commit(Transaction(OPERATOR, machines=(DrainMachine(draining),)))
    return cell


def drawn(cell: Cell, pipeline: SamplingPipeline, asked: Sample, **reserved: int) -> DrawnSample:
    cache = NodesCache(Cluster("", ""), cell.view(), CellFacts(cell.view()), 0)
    for number, (machine, cpu) in enumerate(reserved.items()):
        cache.reserve(number, int(machine[1:]), np.array([cpu, 0], np.int64))
    sampler = Sampler(cache, cell.view(), Random(1))
    return sampler.sample(asked, pipeline, 0, most=0, is_cut_off=False)


def as_rows(sample: DrawnSample) -> list[tuple[object, ...]]:
    columns = (sample.machines, sample.free, sample.versions, sample.scores)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return sorted(rows, key=str)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=12),
    st.tuples(st.integers(0, 5), st.integers(0, 5)),
    st.integers(0, 4),
)
def test_a_sample_of_all_machines_is_the_same_natively(
    capacities: list[tuple[int, int]], request: tuple[int, int], reserved: int
) -> None:
    cell = cell_with(capacities, draining=0)
    last = {f"m{len(capacities) - 1}": reserved}
    native, plain = (
        drawn(
            cell,
            pipeline,
            Sample(Resources(*request), len(capacities), 1, demands=demands),
            **last,
        )
        # A share of 1 rules nothing out, but makes the second filter count.
        for pipeline, demands in ((DEFAULT, {}), (IN_PLUGINS, {"batch_share": "1"}))
    )
    assert as_rows(native) == as_rows(plain)
    assert native.drawn == plain.drawn == len(capacities)
    assert native.ruled_out == plain.ruled_out


def test_samples_go_on_in_whole_rounds_until_there_are_enough() -> None:
    # Two of three machines are too small, so one round of three is rarely enough.
    cell = cell_with([(1, 9) if n % 3 else (4, 9) for n in range(30)])
    found = drawn(cell, DEFAULT, Sample(Resources(2, 1), 3, 1))
    assert found.drawn % 3 == 0
    assert 3 <= len(found.machines) < 6
    assert set(found.machines.tolist()) <= set(range(0, 30, 3))
    assert len(set(found.machines.tolist())) == len(found.machines)
    assert found.ruled_out == {"cpu": found.drawn - len(found.machines)}


def test_each_machine_is_drawn_about_equally_often() -> None:
    view = cell_with([(4, 4)] * 20).view()
    order, random = MachineDraw(np.arange(20, dtype=np.int32)), Random(3)
    counts = np.zeros(20, np.int64)
    for _ in range(400):
        found = view.draw(order, [1, 1], 5, random)
        assert len(set(found.machines.tolist())) == 5
        counts[found.machines] += 1
    # 100 each on average.
    assert 60 < counts.min() <= counts.max() < 145


def test_limits_end_a_draw_and_a_cut_keeps_its_size() -> None:
    view = cell_with([(4, 4)] * 4 + [(1, 4)] * 6).view()
    order = MachineDraw(np.arange(10, dtype=np.int32))
    assert view.draw(order, [5, 1], 3, Random(1), most=4).drawn == 4
    assert view.draw(order, [5, 1], 3, Random(1), rounds=2).drawn == 6
    assert view.draw(order, [5, 1], 3, Random(1)).drawn == 10
    sizes = {
        is_cut: {len(view.draw(order, [2, 1], 3, Random(n), is_cut=is_cut).machines)
                 for n in range(40)}
        for is_cut in (False, True)
    }  # fmt: skip
    assert sizes[True] == {3}
    assert sizes[False] > {3}


@pytest.mark.parametrize(
    ("members", "request_", "reserved"),
    [([0, 9], [1, 1], None), ([0], [1], None), ([0], [1, -1], None), ([0, 1], [1, 1], [1, 0])],
)
def test_numbers_that_make_no_sense_are_refused(
    members: list[int], request_: list[int], reserved: list[int] | None
) -> None:
    view = cell_with([(4, 4)] * 2).view()
    rows = None
    if reserved is not None:
        rows = np.array(reserved, np.int32), np.zeros((len(reserved), 2), np.int64)
    order = MachineDraw(np.array(members, np.int32))
    with pytest.raises(ValueError, match=r"members|request|amounts|ascending"):
        view.draw(order, request_, 1, Random(1), reserved=rows)


def test_a_task_that_a_plug_in_does_not_concern_is_not_asked_about() -> None:
    cell = cell_with([(4, 4)] * 2)
    found = drawn(cell, DEFAULT, Sample(Resources(1, 1), 2, 1))
    assert found.scores[:, 1].tolist() == [100, 100]
    # No machine states a location, so with the demand none passes.
    asked = Sample(Resources(1, 1), 2, 1, demands={"location": "48,16"})
    pipeline = SamplingPipeline(filters=("ResourcesFit", "GeoLocation"))
    assert not len(drawn(cell, pipeline, asked).machines)
