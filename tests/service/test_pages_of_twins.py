"""Pages of jobs and tasks, beside what a list in Python has."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
from store_tables import STATES, Database

from argosy.service import reading
from argosy.service.reading import OPEN, StoreReader

OVER = ("finished", "failed", "cancelled", "abandoned")
NAMES = ("a", "ab", 'b"a', "b\\a", "ü%", "x_")

#: Most are open, as those are that tasks are listed of.
states_drawn = st.lists(st.sampled_from([*OPEN, *OPEN, *STATES]), min_size=1, max_size=5)
jobs_drawn = st.lists(st.tuples(st.sampled_from(NAMES), states_drawn), max_size=6)


def filled(drawn: list[tuple[str, list[str]]]) -> tuple[Database, list[dict[str, Any]]]:
    """A database with these jobs, and what a reader should know of them, newest first."""
    database, known = Database(), list[dict[str, Any]]()
    for seq, (name, states) in enumerate(drawn, 1):
        counts = {state: states.count(state) for state in STATES if state in states}
        is_over = not any(state in OPEN for state in states)
        state = states[-1] if is_over else "running" if "running" in states else "pending"
        id_ = f"{seq}-{name}"
        database.add_job(seq, id_, state, ended=seq if is_over else None, **counts)
        tasks = []
        for index, each in enumerate(states):
            machine = f"m{(seq + index) % 2}" if each in ("running", "queued") else ""
            # What was never anything but pending has no row; what is pending again has one.
            if each != "pending" or index % 2:
                database.add_task(seq, index, each, machine=machine)
            tasks.append((id_, index, each, machine))
        known.append(
            {"id": id_, "state": state, "open": not is_over, "seq": seq, "tasks": tasks}
            | {"owner": f"o{seq}", "kind": f"k{seq % 2}", "counts": counts}
        )
    return database, known[::-1]


def all_pages(page: Callable[[str | None], Any]) -> tuple[list[Any], list[int]]:
    """The items of all pages, and how many each had."""
    items, sizes = list[Any](), list[int]()
    after = None
    while True:
        found = page(after)
        items += found.items
        sizes.append(len(found.items))
        assert len(sizes) < 50, "the pages have no end"
        after = found.next
        if after is None:
            return items, sizes


def has_whole_pages(sizes: list[int], total: int, limit: int) -> bool:
    """Every page but the last is full, and the last is not empty unless it is the only one."""
    full, rest = divmod(total, limit)
    return sizes == [limit] * full + [rest] * (rest > 0 or not total)


#: Few at a time, so that something is left.
filters_drawn = st.lists(
    st.one_of(
        st.tuples(st.just("state"), st.sampled_from(STATES)),
        st.tuples(st.just("kind"), st.sampled_from(["k0", "k1"])),
        st.tuples(st.just("owner"), st.sampled_from(["o1", "o2"])),
        st.tuples(
            st.just("match"),
            st.sampled_from(["", "a", 'b"', "\\", "%", "_", "the ", "2-", "the 2", '"']),
        ),
        st.tuples(st.just("is_open"), st.booleans()),
    ),
    max_size=2,
).map(dict)


@settings(max_examples=80)
@given(jobs_drawn, filters_drawn, st.integers(1, 4))
def test_jobs_are_filtered_and_paged(
    drawn: list[tuple[str, list[str]]], filters: dict[str, Any], limit: int
) -> None:
    database, known = filled(drawn)
    asked = dict.fromkeys(("state", "kind", "owner", "match", "is_open")) | filters
    expected = [
        each
        for each in known
        if all(asked[name] in (None, each[name]) for name in ("state", "kind", "owner"))
        and asked["is_open"] in (None, each["open"])
        and (not asked["match"] or asked["match"] in f"the {each['id']}")
    ]
    with closing(database):
        reader = StoreReader(database)  # type: ignore[arg-type]
        items, sizes = all_pages(lambda after: reader.jobs(**asked, limit=limit, after=after))
    assert [each.id for each in items] == [each["id"] for each in expected]
    assert has_whole_pages(sizes, len(expected), limit)
    for item, wanted in zip(items, expected, strict=True):
        assert item.name == f"the {wanted['id']}"
        assert (item.ended is None) is wanted["open"]
        counts = {name: getattr(item.tasks, name) for name in STATES}
        assert counts == dict.fromkeys(STATES, 0) | wanted["counts"]
        if wanted["open"]:
            assert item.exit_code is None
        else:
            assert item.exit_code == (0 if wanted["state"] == "finished" else 1)


@settings(max_examples=60)
@given(
    jobs_drawn,
    st.sampled_from([None, *OPEN]),
    st.sampled_from([None, "m0", "m1"]),
    st.integers(1, 4),
)
def test_open_tasks_are_filtered_and_paged(
    drawn: list[tuple[str, list[str]]], state: str | None, machine: str | None, limit: int
) -> None:
    database, known = filled(drawn)
    expected = [
        task
        for each in known
        if each["open"]
        for task in each["tasks"]
        if task[2] in (OPEN if state is None else (state,)) and machine in (None, task[3])
    ]
    with closing(database), patch.object(reading, "_STRETCH", 2):
        reader = StoreReader(database)  # type: ignore[arg-type]
        items, sizes = all_pages(
            lambda after: reader.open_tasks(state=state, machine=machine, limit=limit, after=after)
        )
    assert [(each.job, each.index, each.state, each.machine) for each in items] == expected
    assert has_whole_pages(sizes, len(expected), limit)


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(STATES), min_size=1, max_size=7),
    st.sampled_from([None, *STATES]),
    st.integers(1, 4),
)
def test_tasks_of_a_job_are_filtered_and_paged(
    states: list[str], state: str | None, limit: int
) -> None:
    database, [known] = filled([("a", states)])
    expected = [task for task in known["tasks"] if state in (None, task[2])]
    with closing(database), patch.object(reading, "_STRETCH", 3):
        reader = StoreReader(database)  # type: ignore[arg-type]
        items, sizes = all_pages(
            lambda after: reader.tasks("1-a", state=state, limit=limit, after=after)
        )
    assert [(each.job, each.index, each.state, each.machine) for each in items] == expected
    assert has_whole_pages(sizes, len(expected), limit)
