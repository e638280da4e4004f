"""Which jobs are forgotten, and which turns of the journal with them, told from the tables alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from store_tables import Database

from argosy.service import retention
from argosy.service.retention import (
    SHORTEST,
    KeptJobs,
    OldJob,
    Retention,
    forgotten_life,
    forgotten_turn,
    remove,
)

NOW = 10 * SHORTEST


@pytest.fixture
def database() -> Iterator[Database]:
    made = Database()
    yield made
    made.close()


def rules(database: Database, **kept: int) -> Retention:
    return Retention(
        database,  # type: ignore[arg-type]
        KeptJobs(**kept),
        lambda number: f"tries/{number}" if number != 13 else "",
    )


def ended(database: Database, **ages: int | None) -> None:
    """Jobs in the order of their numbers, each ended so long ago; None: not over."""
    for seq, (name, age) in enumerate(ages.items(), 1):
        state = "running" if age is None else "finished"
        database.add_job(seq, name, state, ended=None if age is None else NOW - age, finished=1)


def found(database: Database, **kept: int) -> list[str]:
    return [job.id for job in rules(database, **kept).superfluous(NOW)]


class TestWhichJobs:
    def test_nothing_is_superfluous_if_everything_is_kept(self, database: Database) -> None:
        ended(database, a=5 * SHORTEST, b=5 * SHORTEST, last=0)
        assert found(database) == []
        assert KeptJobs().is_everything
        assert not KeptJobs(jobs=1).is_everything
        assert not KeptJobs(age=1).is_everything

    @pytest.mark.parametrize(
        ("kept", "expected"),
        [
            ({"age": 3 * SHORTEST}, ["b", "d"]),
            ({"age": 1}, ["a", "b", "d"]),
            ({"jobs": 1}, ["a", "b", "d"]),
            ({"jobs": 2}, ["a", "b"]),
            ({"jobs": 3}, ["a", "b"]),
            ({"jobs": 4}, ["a"]),
            ({"jobs": 5}, []),
            ({"jobs": 4, "age": 4 * SHORTEST}, ["a", "d"]),
        ],
    )
    def test_old_ones_and_too_many_go_but_none_within_a_minute(
        self, database: Database, kept: dict[str, int], expected: list[str]
    ) -> None:
        times = {"a": 3, "b": 4, "open": None, "c": 1, "d": 5, "last": 9}
        ages = {name: each and each * SHORTEST for name, each in times.items()}
        ended(database, **ages)
        assert found(database, **kept) == expected

    def test_a_minute_and_an_age_must_be_over(self, database: Database) -> None:
        ended(database, even=SHORTEST, more=SHORTEST + 1, last=0)
        assert found(database, jobs=1) == ["more"]
        assert found(database, age=SHORTEST) == ["more"]
        assert found(database, age=SHORTEST + 1) == []

    def test_some_stay_so_that_no_number_is_given_twice_and_no_process_is_lost(
        self, database: Database
    ) -> None:
        names = ("plain", "open_try", "stopping", "newest_try", "newest")
        ended(database, **dict.fromkeys(names, 5 * SHORTEST))
        database.add_try(1, 1, 0, "m", 0, 5, 0, "finished")
        database.add_try(2, 2, 0, "m", 0, None, None, "")
        database.add_try(3, 3, 0, "m", 0, 5, 0, "finished")
        database.add_try(9, 4, 0, "m", 0, 5, 0, "finished")
        database.rows("INSERT INTO stops VALUES (3)")
        assert found(database, age=1) == ["plain"]

    def test_few_at_a_time_and_the_oldest_first(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retention, "BATCH", 2)
        ended(database, a=5 * SHORTEST, b=9 * SHORTEST, c=7 * SHORTEST, last=0)
        assert rules(database, age=1).superfluous(NOW) == [OldJob(1, "a"), OldJob(2, "b")]


class TestForgetting:
    @pytest.fixture
    def filled(self, database: Database) -> Database:
        """Jobs 1 to 3, of which the first two ended; five turns in three lives."""
        ended(database, a=5 * SHORTEST, b=5 * SHORTEST, c=None)
        for seq in (1, 2, 3):
            database.add_task(seq, 0, "finished")
            database.add_try(10 + seq, seq, 0, "m", 0, 5, 0, "finished")
        for key, name in (("ka", "a"), ("kb", "b"), ("kc", "c")):
            database.rows("INSERT INTO keys VALUES (?, ?, ?, 0)", [key, b"", name])
        for life in (1, 2, 3):
            database.rows("INSERT INTO lives VALUES (?, 0, ?)", [life, b"h"])
        database.add_turn(1, 1, 1)
        database.add_turn(2, 1)
        database.add_turn(3, 2, 1, 3)
        database.add_turn(4, 2, 1)
        database.add_turn(5, 2)
        database.add_turn(6, 3, 2)
        database.add_turn(7, 3)
        return database

    def test_everything_about_a_job_goes_and_nothing_about_others(self, filled: Database) -> None:
        kept = rules(filled, age=1)
        assert kept.directories([OldJob(1, "a"), OldJob(3, "c")]) == ["tries/11"]
        kept.forget([OldJob(1, "a")])
        assert filled.column("SELECT seq FROM jobs") == [2, 3]
        assert filled.column("SELECT job FROM tasks") == [2, 3]
        assert filled.column("SELECT job FROM tries") == [2, 3]
        assert filled.column("SELECT key FROM keys ORDER BY key") == ["kb", "kc"]
        assert filled.column("SELECT turn FROM job_turns ORDER BY turn") == [3, 6]

    def test_turns_that_no_other_job_needs_go_and_the_last_stays(self, filled: Database) -> None:
        kept = rules(filled, age=1)
        assert (forgotten_turn(filled), forgotten_life(filled)) == (0, 0)  # type: ignore[arg-type]
        kept.forget([OldJob(1, "a")])
        # Turn 2 is of no job and lies before the last that is forgotten; turn 5 lies after it.
        assert filled.column("SELECT turn FROM turns") == [3, 5, 6, 7]
        assert (forgotten_turn(filled), forgotten_life(filled)) == (4, 2)  # type: ignore[arg-type]
        # Of the first life nothing is left.
        assert filled.column("SELECT life FROM lives") == [2, 3]
        kept.forget([OldJob(2, "b")])
        assert filled.column("SELECT turn FROM turns") == [3, 7]
        assert (forgotten_turn(filled), forgotten_life(filled)) == (6, 3)  # type: ignore[arg-type]
        assert filled.column("SELECT life FROM lives") == [2, 3]

    def test_what_is_forgotten_later_but_happened_before_moves_no_mark(
        self, filled: Database
    ) -> None:
        kept = rules(filled, age=1)
        kept.forget([OldJob(2, "b")])
        assert (forgotten_turn(filled), forgotten_life(filled)) == (6, 3)  # type: ignore[arg-type]
        assert filled.column("SELECT turn FROM turns") == [1, 3, 4, 7]
        kept.forget([OldJob(1, "a")])
        assert (forgotten_turn(filled), forgotten_life(filled)) == (6, 3)  # type: ignore[arg-type]
        assert filled.column("SELECT turn FROM turns") == [3, 7]

    def test_the_last_turn_stays_even_if_it_is_of_a_forgotten_job(self, database: Database) -> None:
        ended(database, a=5 * SHORTEST, b=5 * SHORTEST)
        database.add_turn(1, 1, 1)
        database.add_turn(2, 1, 1)
        rules(database, age=1).forget([OldJob(1, "a")])
        assert database.column("SELECT turn FROM turns") == [2]

    def test_a_job_without_turns_changes_no_mark(self, filled: Database) -> None:
        rules(filled, age=1).forget([OldJob(9, "z")])
        assert filled.meta("forgotten_turn") is None
        assert len(filled.column("SELECT turn FROM turns")) == 7

    def test_indexes_are_made_if_something_is_to_be_forgotten(self, database: Database) -> None:
        def indexes() -> set[str]:
            names = database.column("SELECT name FROM sqlite_master WHERE type = 'index'")
            return {"jobs_by_end", "job_turns_by_turn", "keys_by_job"} & {*names}

        rules(database)
        assert indexes() == set()
        rules(database, jobs=1)
        rules(database, jobs=1)
        assert len(indexes()) == 3


def test_directories_are_removed_with_all_that_is_in_them(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "kept").mkdir()
    gone: Any = str(tmp_path / "none")
    remove([gone, str(tmp_path / "a")])
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]


def test_of_a_database_that_has_forgotten_nothing_nothing_is_missing() -> None:
    known: dict[str, str] = {}
    store: Any = SimpleNamespace(meta=known.get)
    assert (forgotten_turn(store), forgotten_life(store)) == (0, 0)
    known.update(forgotten_turn="7", forgotten_life="2")
    assert (forgotten_turn(store), forgotten_life(store)) == (7, 2)
