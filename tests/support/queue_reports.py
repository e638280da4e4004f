"""What queueing engines are told by machines, in tests of their single steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.registry import ENGINES
from argosy.host.scheduler import make_settings
from argosy.model.effects import AskQueues
from argosy.model.events import QueuesReported
from argosy.model.random import Random

PLENTY = 2**40


def an_engine(name: str, seed: int = 1, **settings: Any) -> Any:
    engine = ENGINES[name]
    return engine(make_settings(engine, settings), Context("s", (), Random(seed)))


def of(effects: Any, kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def report(engine: Any, cell: Cell, asked: AskQueues, now: int = 0, **columns: list[int]) -> Any:
    """Machines answer; what is not given is empty queues without a limit."""
    count = cell.machines
    usual = {"lengths": [0] * count, "waits": [0] * count, "room": [PLENTY] * count, **columns}
    told = (np.array(usual[name], np.int64) for name in ("lengths", "waits", "room"))
    return engine.handle(QueuesReported(asked.token, *told), cell, now)
