"""What becomes of the jobs of a scheduler over agents, and all that it and its agents answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from federated_sessions import FederatedSession, run_federation
from memory_loop import memory_loop
from pinned_digests import require_digests

PINNED = Path(__file__).parent / "pinned"
STEPS = 40


@pytest.mark.parametrize("seed", range(5))
def test_federations_are_as_they_were(
    seed: int, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    with memory_loop() as loop:
        session = FederatedSession(loop, tmp_path, seed + 1, 1 + seed % 3)
        found = run_federation(session, STEPS)
    require_digests(PINNED / f"federation-{seed}.txt", found, pytestconfig)
