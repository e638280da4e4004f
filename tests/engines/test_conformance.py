"""Every registered engine keeps the contract, in fair weather and under every kind of fault."""

from collections.abc import Callable

import pytest

from argosy.engines.api import Engine
from argosy.engines.registry import ENGINES
from argosy.testing import conformance


@pytest.mark.parametrize("engine", ENGINES.values(), ids=lambda engine: engine.name)
@pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
def test_every_engine_conforms(engine: type[Engine], check: Callable[[type[Engine]], None]) -> None:
    check(engine)
