"""Every registered engine keeps the contract, in fair weather and under every kind of fault."""

import pytest

from argosy.engines.api import Engine
from argosy.engines.registry import ENGINES
from argosy.testing import conformance

WORLDS = {"simulated": conformance.SIMULATED, "scripted": conformance.SCRIPTED}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=lambda engine: engine.name)
@pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("world", WORLDS)
def test_every_engine_conforms_in_every_world(
    engine: type[Engine], check: conformance.Check, world: str
) -> None:
    check(engine, WORLDS[world])
