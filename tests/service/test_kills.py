"""A short kill campaign; `bench/kills.py` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_campaign import KillCampaign
from kill_checks import KillChecks


@pytest.mark.parametrize("engine", ["omega", "murmuration", "firmament"])
def test_a_server_that_is_killed_again_and_again_loses_and_repeats_nothing(
    tmp_path: Path, engine: str
) -> None:
    campaign = KillCampaign(tmp_path, engine, kills=2, seed=7)
    try:
        campaign.run()
        result = KillChecks(campaign).run()
    finally:
        campaign.server.close()
    assert {check: found for check, found in result.failures.items() if found} == {}
    assert result.kills == 2
    assert result.jobs > 0
    assert result.tries > 0
