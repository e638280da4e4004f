"""Which of very many names have come before."""

import tracemalloc
from pathlib import Path

import pytest

from argosy.model.errors import TraceError
from argosy.workloads.seen_names import SeenNames
from argosy.workloads.trace import read_trace


class Alike(str):
    """Text whose hash is that of all others."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 0


def test_a_name_is_new_once() -> None:
    seen, names = SeenNames(), [f"job-{number}" for number in range(5_000)]
    assert all(map(seen.add, names))
    assert not any(map(seen.add, names))
    assert seen.add("job-5000")


def test_names_that_share_a_hash_may_be_there() -> None:
    seen = SeenNames()
    assert seen.add(Alike("a"))
    assert not seen.add(Alike("b"))


def test_a_name_takes_few_bytes() -> None:
    tracemalloc.start()
    seen = SeenNames()
    for number in range(20_000):
        seen.add(f"job-{number}")
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < 20_000 * 30


def lines(*names: str) -> str:
    return "".join(f'{{"id": "{name}", "request": {{"cpu": 1}}}}\n\n' for name in names)


def test_jobs_of_a_trace_that_share_a_hash_are_no_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SeenNames, "add", lambda seen, name: False)
    path = tmp_path / "jobs.jsonl"
    path.write_text(lines("a", "b", "c"))
    assert [job.id for job in read_trace(path)] == ["a", "b", "c"]
    path.write_text(lines("a", "b", "c", "b", "a"))
    with pytest.raises(TraceError, match="job 'b' again") as caught:
        list(read_trace(path))
    assert caught.value.line == 7
