"""Every registered engine keeps the contract, in fair weather and under every kind of fault."""

from collections.abc import Sequence

import pytest
from msgspec import structs

from argosy.cell import View
from argosy.engines.api import Engine
from argosy.engines.registry import ENGINES
from argosy.model.effects import Effect
from argosy.model.events import Event, JobSubmitted
from argosy.testing import conformance

WORLDS = {"simulated": conformance.SIMULATED, "scripted": conformance.SCRIPTED}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=lambda engine: engine.name)
@pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("world", WORLDS)
def test_every_engine_conforms_in_every_world(
    engine: type[Engine], check: conformance.Check, world: str
) -> None:
    check(engine, WORLDS[world])


def careless(engine: type[Engine]) -> type[Engine]:
    """The engine, to which no job seems to require anything."""

    class Careless(engine):  # type: ignore[misc, valid-type]
        def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
            if isinstance(event, JobSubmitted):
                groups = tuple(structs.replace(group, requires={}) for group in event.job.groups)
                event = structs.replace(event, job=structs.replace(event.job, groups=groups))
            effects: Sequence[Effect] = super().handle(event, view, now)
            return effects

    return Careless


@pytest.mark.parametrize("name", ["sparrow", "hawk", "eagle", "yaq-d", "omega"])
def test_an_engine_that_ignores_required_attributes_does_not_conform(name: str) -> None:
    with pytest.raises(AssertionError, match="required attributes ignored"):
        conformance.required_attributes_are_obeyed(careless(ENGINES[name]))
