"""How much a pod is told of why it is where it is."""

from __future__ import annotations

import pytest
from test_changes_are_passed_on import SCORED, annotated

from argosy.host.records import PlacedRecord
from argosy.service.kubernetes import placements


@pytest.mark.parametrize("most", [1, 20])
def test_a_pod_is_told_only_so_much_of_why_it_is_there(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    choice = PlacedRecord(3_000_000, "j", [0], [0], "s", SCORED)
    whole = annotated(choice, 0, "n0")["argosy.dev/why"]
    assert placements._LONGEST == 1_000
    assert 20 < len(whole) < 1_000
    monkeypatch.setattr(placements, "_LONGEST", most)
    assert annotated(choice, 0, "n0")["argosy.dev/why"] == whole[:most]
