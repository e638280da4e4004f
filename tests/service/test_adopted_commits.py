"""Which commits of an earlier server a scheduler finds in its store, and which of several counts."""

from __future__ import annotations

import sqlite3
from types import SimpleNamespace
from typing import Any

from test_remote_parts import AgentsBench, Link

from argosy.model.jobs import task_number


class Store:
    """The tables that are asked, in memory."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute(
            "CREATE TABLE keys (key TEXT PRIMARY KEY, digest BLOB, job TEXT, at INTEGER)"
        )
        self.db.execute("CREATE TABLE jobs (id TEXT, ended INTEGER)")

    def rows(self, query: str) -> list[Any]:
        return self.db.execute(query).fetchall()

    def job(self, name: str, ended: int | None = None) -> None:
        self.db.execute("INSERT INTO jobs VALUES (?, ?)", (name, ended))

    def key(self, key: str, place: str, at: int, job: str = "a") -> None:
        self.db.execute("INSERT INTO keys VALUES (?, ?, ?, ?)", (key, place.encode(), job, at))


def adopted(store: Store, *indices: int) -> tuple[dict[int, str | None], list[int]]:
    """By the index of each task the key that its try was given, and the tasks that were lost."""
    bench = AgentsBench(Link())
    bench.world.store = store
    bench.world.tries = {
        100 + index: SimpleNamespace(task=task_number(0, index), incarnation=index)
        for index in indices
    }
    runner = bench.tries.runner
    bench.agents._adopt()
    keys = [key for cluster in ("c", "d") for key in runner.keys_in(cluster)]
    found: dict[int, str | None] = dict.fromkeys(indices)
    found |= {runner.number_of(key) - 100: key for key in keys}  # type: ignore[operator]
    return found, [told[1].tolist()[0] for told in bench.told]


def test_the_last_commit_of_a_task_counts_whatever_its_key() -> None:
    store = Store()
    store.job("a")
    store.key("placed/z", "0/c", 10)
    store.key("placed/b", "0/d", 30)
    store.key("placed/c", "0/c", 20)
    store.key("placed/y", "1/d", 5)
    assert adopted(store, 0, 1) == ({0: "b", 1: "y"}, [])


def test_keys_of_other_kinds_and_of_jobs_that_have_ended_do_not_count() -> None:
    store = Store()
    store.job("a", ended=50)
    store.key("placed/b", "0/d", 30)
    assert adopted(store, 0) == ({0: None}, [task_number(0, 0)])
    store = Store()
    store.job("a")
    for at, key in enumerate(("place/b", "placed", "placed/", "placed0", "placed1", "submitted/b")):
        store.key(key, "0/c", at)
    assert adopted(store, 0) == ({0: None}, [task_number(0, 0)])


def test_a_commit_in_a_cluster_that_is_not_there_any_more_is_lost() -> None:
    store = Store()
    store.job("a")
    store.key("placed/k", "0/c", 10)
    store.key("placed/l", "0/gone", 20)
    store.key("placed/m", "12/d", 20)
    assert adopted(store, 0, 12, 2) == (
        {0: None, 12: "m", 2: None},
        [task_number(0, 0), task_number(0, 2)],
    )
