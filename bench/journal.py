"""How fast journals are read, folded, summarised, searched for one task, and replayed.

python bench/journal.py [JOBS]
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from argosy.engines.registry import ENGINES
from argosy.host.journal import Journal
from argosy.measures.from_journal import summarise_state
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay
from argosy.records.state import RunState
from argosy.records.steps import read_steps
from argosy.testing.builders import cell, job, scenario
from argosy.worlds.sim import SimulatedWorld

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def recorded(engine: str, jobs: int) -> JournalFile:
    made = [job(f"j{i}", 5, cpu=500, seconds=60, submit=i * 0.05) for i in range(jobs)]
    spec = scenario(engine, made, cell=cell(1_000), replicas=4, audit=False)
    stream = io.BytesIO()
    journal = Journal(stream)
    SimulatedWorld(msgspec.structs.replace(spec, audit=False), ENGINES, journal).run()
    journal.flush()
    return JournalFile(stream.getvalue())


def folded(steps: object, until: int) -> RunState:
    state = RunState(steps, until)  # type: ignore[arg-type]
    for part in ("counts", "jobs", "finished", "running", "claims"):
        getattr(state, part)
    return state


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    for engine in ("omega", "murmuration"):
        journal = recorded(engine, jobs)
        size, lines = len(journal.data) / 1e6, journal.data.count(b"\n")
        read, steps = timed(lambda j=journal: read_steps(j))
        fold, state = timed(lambda s=steps, j=journal: folded(s, j.reached()))
        summary, _ = timed(lambda s=state: summarise_state(s))
        search, _ = timed(lambda j=journal, n=jobs // 2: list(j.about(f"j{n}", n, 2)))
        replay, _ = timed(lambda j=journal: Replay(j, ENGINES).run())
        print(
            f"{engine}: {size:.0f} MB, {lines:,} lines; read {size / read:.0f} MB/s, "
            f"{lines / read:,.0f} lines/s; fold {fold:.2f} s; summary {summary:.2f} s; "
            f"one task {search:.2f} s; replay {lines / replay:,.0f} lines/s"
        )


if __name__ == "__main__":
    main()
