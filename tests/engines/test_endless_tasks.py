"""Tasks that run until stopped, in engines that queue at machines: claims that are refused while others
wait."""

from __future__ import annotations

import pytest

from argosy.engines.registry import ENGINES
from argosy.host.records import PlacedRecord, RefusedRecord
from argosy.model.scenario import ConstantLatency, FleetEntry, Network, Takes
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun, World


@pytest.mark.parametrize("engine", ["sparrow", "hawk", "eagle", "yaq-c", "yaq-d"])
def test_a_refused_claim_keeps_its_turn_though_others_were_tried_again_meanwhile(
    engine: str,
) -> None:
    """A job that fits nowhere is tried again at 1 s, while the claim of `second` is on its way. That is
    refused for `first`, which another scheduler had placed; `third`, which came before the refusal
    did, is behind `second` when `first` is cancelled."""
    jobs = [
        job("big", cpu=64_000, seconds=None, kind="a"),
        job("first", cpu=4_000, seconds=None, submit=0.85, kind="b"),
        job("second", cpu=4_000, seconds=None, submit=0.9, kind="a"),
        job("third", cpu=4_000, seconds=None, submit=1.15, kind="a"),
    ]
    fleet = tuple(
        FleetEntry(name=name, engine=engine, takes=Takes(kinds=(kind,)))
        for name, kind in (("s", "a"), ("t", "b"))
    )
    spec = scenario(
        engine,
        jobs,
        cell=cell(1),
        fleet=fleet,
        horizon=20 * SECOND,
        network=Network(latency=ConstantLatency(delay=200_000)),
    )

    def script(world: World) -> None:
        def cancel() -> None:
            world.host.cancel(1)

        world.inject(5 * SECOND, cancel)

    trial = ConformanceRun(ENGINES[engine], spec, script=script)
    assert [record.job for record in trial.of(RefusedRecord)] == ["second", "third"]
    assert [record.job for record in trial.of(PlacedRecord)] == ["first", "second"]
