"""How much processor time `argosy run scenarios/demo.toml --engine NAME` takes. Run by hand:

    python bench/demo.py
    python bench/demo.py --engine kube --engine firmament --runs 3

A thousand machines and 170,000 tasks, saved with a journal that can be replayed, as the command does.
Every run is a process of its own; the median of the runs counts. On a busy computer, processor time
grows too: `reference` is the time of a fixed loop of Python in the same process, to compare days and
computers.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from argosy.experiments.execute import execute
from argosy.scenarios.loader import load, with_engine

SCENARIO = Path(__file__).parents[1] / "scenarios" / "demo.toml"
#: Seconds of processor time.
TARGETS = {"omega": 20, "firmament": 20, "kube": 20, "ilp-all": 20, "spread": 20, "quincy": 60}


def reference() -> float:
    begin, total = time.process_time(), 0
    for number in range(5_000_000):
        total += number * number % 7
    return time.process_time() - begin


def run(engine: str) -> dict[str, float]:
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as parent:
        execute(with_engine(load(SCENARIO), engine), Path(parent) / "run")
    seconds = time.process_time() - begin
    return {
        "seconds": seconds,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024,
        "reference": reference(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--engine", choices=sorted(TARGETS), action="append")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--once", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.once:
        print(json.dumps(run(asked.once)))
        return
    print(f"{'engine':<12}{'CPU s':>8}{'MiB':>7}{'reference':>11}   target")
    for engine in asked.engine or TARGETS:
        command = [sys.executable, __file__, "--once", engine]
        results = [
            json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            for _ in range(asked.runs)
        ]
        middle = {key: statistics.median(each[key] for each in results) for key in results[0]}
        met = "met" if middle["seconds"] <= TARGETS[engine] else "MISSED"
        print(
            f"{engine:<12}{middle['seconds']:>8.1f}{middle['megabytes']:>7,.0f}"
            f"{middle['reference']:>11.2f}   {TARGETS[engine]} s {met}"
        )


if __name__ == "__main__":
    main()
