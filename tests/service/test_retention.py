"""Jobs that are over are forgotten, with everything about them, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_bench import LiveBench, job, shell

from argosy.records.journal_file import JournalFile
from argosy.service import retention, server
from argosy.service.retention import KeptJobs

HOUR = 3_600_000_000
Make = Callable[..., LiveBench]


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[Make]:
    made = []

    def make(**kept: int) -> LiveBench:
        made.append(LiveBench(tmp_path / "cluster", kept=KeptJobs(**kept)))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


def ran(bench: LiveBench, *names: str) -> None:
    for name in names:
        key = {"Idempotency-Key": f"key of {name}"}
        bench.submit(shell(f"echo {name}", id=name), headers=key)
        bench.over(name)


def forget(bench: LiveBench, later: int = HOUR) -> None:
    """Until there is nothing left to forget at that time."""
    kept = bench.server.retention
    while found := kept.forget(bench.server.cluster.world.now + later):
        retention.remove(found)


def known(bench: LiveBench) -> list[str]:
    return [each["id"] for each in bench.read("/v1/jobs")["items"]]


def rows(bench: LiveBench, query: str) -> list[Any]:
    return [row[0] for row in bench.server.store.rows(query)]


def outputs(bench: LiveBench) -> int:
    return len(list(bench.directory.glob("**/stdout.*")))


def test_only_the_newest_jobs_that_are_over_are_kept(make_bench: Make) -> None:
    bench = make_bench(jobs=2)
    bench.submit(job("sleep 600", id="service"))
    bench.running("service")
    ran(bench, "a", "b", "c", "d", "e")
    assert outputs(bench) == 5
    forget(bench)
    assert known(bench) == ["e", "d", "service"]
    assert outputs(bench) == 2
    bench.get("/v1/jobs/a").problem(404, "not-found")
    kept = rows(bench, "SELECT seq FROM jobs ORDER BY seq")
    for table, column in (("tasks", "job"), ("tries", "job"), ("job_turns", "job")):
        found = rows(bench, f"SELECT DISTINCT {column} FROM {table} WHERE {column} > 0")
        assert sorted(found) == kept, table
    assert rows(bench, "SELECT job FROM keys ORDER BY key") == ["d", "e"]
    unwanted = "SELECT turn FROM turns WHERE turn NOT IN (SELECT turn FROM job_turns)"
    last = retention.forgotten_turn(bench.server.store)
    assert last > 0
    assert all(turn > last for turn in rows(bench, unwanted))
    assert "placed" in str(bench.read("/v1/jobs/e/tasks/0/story"))
    assert bench.read("/v1/jobs/service/tasks/0/why")["text"]


def test_jobs_are_forgotten_some_time_after_their_end(make_bench: Make) -> None:
    bench = make_bench(age=HOUR)
    ran(bench, "a", "b")
    forget(bench, HOUR // 2)
    assert known(bench) == ["b", "a"]
    forget(bench, HOUR + 1)
    # The newest stays, so that its number is not used again.
    assert known(bench) == ["b"]


def test_a_job_is_kept_for_a_minute_whatever_is_asked_for(make_bench: Make) -> None:
    bench = make_bench(jobs=1, age=1)
    ran(bench, "a", "b", "c")
    forget(bench, retention.SHORTEST // 2)
    assert known(bench) == ["c", "b", "a"]


def test_without_a_limit_everything_is_kept(make_bench: Make) -> None:
    bench = make_bench()
    ran(bench, "a", "b")
    forget(bench, 1_000 * HOUR)
    assert known(bench) == ["b", "a"]
    assert not rows(bench, "SELECT name FROM sqlite_master WHERE name = 'jobs_by_end'")


def test_the_name_and_the_key_of_a_forgotten_job_can_be_used_again(make_bench: Make) -> None:
    bench = make_bench(jobs=1)
    ran(bench, "a", "b")
    forget(bench)
    ran(bench, "a")
    assert bench.get("/v1/jobs/a/tasks/0/logs").body == b"a\n"
    assert known(bench) == ["a", "b"]


def test_a_server_goes_on_after_it_has_forgotten(make_bench: Make) -> None:
    bench = make_bench(jobs=1)
    bench.submit(job("sleep 600", id="service"))
    bench.running("service")
    ran(bench, "a", "b", "c")
    forget(bench)
    bench.stop()
    bench.start()
    assert bench.running("service")["tasks"]["running"] == 1
    ran(bench, "d")
    forget(bench)
    assert known(bench) == ["d", "service"]


def test_a_journal_with_gaps_is_not_given_away_and_the_next_one_is_whole(make_bench: Make) -> None:
    bench = make_bench(jobs=1)
    ran(bench, "a", "b")
    assert JournalFile(bench.get("/v1/journal").body, "whole")
    forget(bench)
    problem = bench.get("/v1/journal").problem(404, "not-found")
    assert "not kept as a whole" in problem["detail"]
    bench.stop()
    bench.start()
    ran(bench, "c")
    assert JournalFile(bench.get("/v1/journal").body, "whole")


def test_a_watcher_that_was_away_for_too_long_is_told(make_bench: Make) -> None:
    bench = make_bench(jobs=1)
    ran(bench, "a")
    early = str(bench.server.events.now.turn - 1)
    ran(bench, "b")
    forget(bench)
    problem = bench.get("/v1/events", params={"after": early}).problem(400, "request")
    assert "is too old" in problem["detail"]
    assert bench.server.events.position("0")
    assert bench.server.events.position(str(bench.server.events.now))


def test_a_server_forgets_by_itself(make_bench: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "SHORTEST", 0)
    monkeypatch.setattr(server, "FORGET_EVERY", 0.01)
    bench = make_bench(jobs=1)
    ran(bench, "a", "b", "c")
    # Every job is a change after which it is looked again.
    for number in range(100):
        if "a" not in known(bench):
            break
        ran(bench, f"more-{number}")
    assert "a" not in known(bench)
