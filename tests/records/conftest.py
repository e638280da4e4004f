"""Answers about a journal of a few records."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.host.journal import Journal
from argosy.host.setup import HostSetup
from argosy.records.answers import TaskAnswers
from argosy.records.journal_run import open_recording
from argosy.testing.builders import scenario


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., TaskAnswers]:
    def tell(*facts: Any, task: str = "a/1") -> TaskAnswers:
        stream = io.BytesIO()
        journal = Journal(stream)
        journal.begin(HostSetup.of(scenario("omega", [])))
        for fact in facts:
            journal.write(fact)
        journal.flush()
        (tmp_path / "journal.jsonl").write_bytes(stream.getvalue())
        return TaskAnswers(open_recording(tmp_path / "journal.jsonl"), task, whole=False)

    return tell
