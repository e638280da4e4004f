"""Kills a server under load, again and again, and checks what it did. Run by hand:

    python bench/kills.py [--kills N] [--seed N] [--engine NAME ...] [--keep]

`--kills` is for all engines together (330 by default). Each engine has a cluster of its own; in one
more, `changing`, the client replaces the engine by another now and then. The table has a row for each.
What a check found wrong is listed below, and the exit code is 1. `--keep` keeps the directories of
clusters with which something was wrong.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import msgspec
from kill_campaign import KillCampaign
from kill_checks import KillChecks, KillResult

from argosy.engines.registry import ENGINES

COLUMNS = (
    "engine",
    "kills",
    "jobs",
    "tasks",
    "tries",
    "adopted",
    "ended meanwhile",
    "cut off",
    "wrong",
)
#: Not an engine, but all of them, one after the other.
CHANGING = "changing"


def measured(engine: str, kills: int, seed: int, *, keep: bool) -> KillResult:
    root = Path(tempfile.mkdtemp(prefix=f"kills-{engine}-"))
    if engine == CHANGING:
        campaign = KillCampaign(root, next(iter(ENGINES)), kills, seed, others=list(ENGINES))
    else:
        campaign = KillCampaign(root, engine, kills, seed)
    is_wrong = True
    try:
        campaign.run()
        result = msgspec.structs.replace(KillChecks(campaign).run(), engine=engine)
        is_wrong = any(result.failures.values())
        return result
    finally:
        campaign.server.close()
        if is_wrong and keep:
            print(f"kept: {root}", file=sys.stderr)
        else:
            shutil.rmtree(root)


def row(name: str, results: list[KillResult]) -> str:
    numbers = [
        sum(getattr(result, field) for result in results)
        for field in ("kills", "jobs", "tasks", "tries", "adopted", "ended_meanwhile", "cut_off")
    ]
    wrong = sum(len(found) for result in results for found in result.failures.values())
    return f"| {name} | " + " | ".join(f"{number:,}" for number in (*numbers, wrong)) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = [*ENGINES, CHANGING]
    parser.add_argument("--kills", type=int, default=15 * len(every))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", action="append", choices=every)
    parser.add_argument("--keep", action="store_true")
    asked = parser.parse_args()
    engines = asked.engine or every
    began, results = time.monotonic(), []
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for number, engine in enumerate(engines):
        share = asked.kills // len(engines) + (number < asked.kills % len(engines))
        results.append(measured(engine, share, asked.seed, keep=asked.keep))
        print(row(engine, results[-1:]), flush=True)
    print(row("all", results))
    wrong = [
        f"{result.engine}: {check}: {text}"
        for result in results
        for check, found in result.failures.items()
        for text in found
    ]
    checks = ", ".join(results[0].failures)
    print(f"\nChecks: {checks}; {len(wrong)} found something wrong.")
    print(f"{time.monotonic() - began:,.0f} s")
    for line in wrong:
        print(line)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
