"""A bench of tries for each test, of which nothing is left afterwards."""

import sys
import uuid

import pytest
from supervised import Bench, processes_with


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.close()


@pytest.fixture
def marker():
    """A text to put into a command's environment; no process that has it may be left."""
    text = f"MARKER-{uuid.uuid4().hex}"
    yield text
    assert processes_with(text) == []


collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]
