"""Loads a scenario, runs it under two engines and prints what came of it.

Output:

    omega x3: 3 of 4 jobs finished, 6 tasks still running
      median JCT 1 min, largest 2 min
      conflicts per successful transaction: 0
    murmuration x3: 3 of 4 jobs finished, 6 tasks still running
      median JCT 1 min, largest 2 min
      conflicts per successful transaction: 0
"""

from pathlib import Path

import argosy
from argosy.model.units import format_duration

QUICKSTART = Path(__file__).parents[1] / "scenarios" / "quickstart.toml"


def main() -> None:
    scenario = argosy.load(QUICKSTART, seed=1)
    for engine in ("omega", "murmuration"):
        summary = argosy.run(scenario, engine).summary
        counts, jct = summary.counts, summary.jct
        print(
            f"{summary.fleet}: {counts.jobs_finished} of {counts.jobs} jobs finished, "
            f"{counts.tasks_running} tasks still running"
        )
        print(f"  median JCT {format_duration(jct.p50)}, largest {format_duration(jct.largest)}")
        print(f"  conflicts per successful transaction: {summary.conflict_fraction:.3g}")


if __name__ == "__main__":
    main()
