"""When a pod in the queue of a node is told its place again, and in which words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from argosy.service.kubernetes import queue_notes
from argosy.service.kubernetes.queue_notes import NOTE_EVERY, QueueNotes, _sentence, _Told
from argosy.worlds.kubernetes.queue_waits import QueuePlace

SECOND = 1_000_000
BEFORE = QueuePlace(("n0",), 3, 100 * SECOND)


@pytest.mark.parametrize(
    ("place", "passed", "arrived", "is_due"),
    [
        # Not too often, whatever has changed.
        (QueuePlace(("n1",), 1, None), NOTE_EVERY - 1, False, False),
        (QueuePlace(("n1",), 3, 90 * SECOND), NOTE_EVERY, True, True),
        (QueuePlace(("n0",), 2, 90 * SECOND), NOTE_EVERY, True, True),
        # It did not arrive.
        (QueuePlace(("n0",), 3, 90 * SECOND), NOTE_EVERY, False, True),
        # That time passes is no news; a quarter more or less than expected is.
        (QueuePlace(("n0",), 3, 90 * SECOND), NOTE_EVERY, True, False),
        (QueuePlace(("n0",), 3, 115 * SECOND), NOTE_EVERY, True, False),
        (QueuePlace(("n0",), 3, 115 * SECOND + 1), NOTE_EVERY, True, True),
        (QueuePlace(("n0",), 3, 65 * SECOND), NOTE_EVERY, True, False),
        (QueuePlace(("n0",), 3, 65 * SECOND - 1), NOTE_EVERY, True, True),
        # Nor if it should be over by now.
        (QueuePlace(("n0",), 3, 25 * SECOND), 200 * SECOND, True, False),
        (QueuePlace(("n0",), 3, 25 * SECOND + 1), 200 * SECOND, True, True),
        (QueuePlace(("n0",), 3, None), NOTE_EVERY, True, True),
    ],
)
def test_a_place_is_told_again_if_it_is_news(
    monkeypatch: pytest.MonkeyPatch,
    place: QueuePlace,
    passed: int,
    arrived: bool,
    is_due: bool,
) -> None:
    monkeypatch.setattr(queue_notes, "has_place", lambda pod, before: arrived)
    pods: Any = SimpleNamespace(pods={"p": SimpleNamespace(pod="pod")})
    notes = QueueNotes(pods, lambda: None, None)  # type: ignore[arg-type,return-value]
    notes._told["p"] = _Told(BEFORE, 7)
    assert notes._is_out_of_date("p", place, 7 + passed) is is_due


def test_short_waits_are_news_by_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_notes, "has_place", lambda pod, before: True)
    pods: Any = SimpleNamespace(pods={"p": SimpleNamespace(pod="pod")})
    notes = QueueNotes(pods, lambda: None, None)  # type: ignore[arg-type,return-value]
    notes._told["p"] = _Told(QueuePlace(("n0",), 3, 12 * SECOND), 0)
    for wait, is_due in ((12 * SECOND, False), (12 * SECOND + 1, True)):
        place = QueuePlace(("n0",), 3, wait)
        assert notes._is_out_of_date("p", place, NOTE_EVERY) is is_due


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (QueuePlace(("n0",), 3, None), "waits in the queue of n0 as number 3"),
        (
            QueuePlace(("n0", "n1"), 1, 90 * SECOND),
            "waits in the queues of n0, n1 as number 1, for 1.5 min still",
        ),
    ],
)
def test_a_place_is_told_in_one_sentence(place: QueuePlace, text: str) -> None:
    assert _sentence(place) == text
