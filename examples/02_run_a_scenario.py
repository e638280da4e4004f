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

from argosy.experiments.execute import execute
from argosy.model.units import format_duration
from argosy.scenarios.loader import load, with_engine

QUICKSTART = Path(__file__).parents[1] / "scenarios" / "quickstart.toml"


def main() -> None:
    scenario = load(QUICKSTART, seed=1)
    for engine in ("omega", "murmuration"):
        # Without a directory nothing is kept: the summary is all there is.
        summary = execute(with_engine(scenario, engine), None)
        counts, jct = summary.counts, summary.jct
        print(
            f"{summary.fleet}: {counts.jobs_finished} of {counts.jobs} jobs finished, "
            f"{counts.tasks_running} tasks still running"
        )
        print(f"  median JCT {format_duration(jct.p50)}, largest {format_duration(jct.largest)}")
        print(f"  conflicts per successful transaction: {summary.conflict_fraction:.3g}")


if __name__ == "__main__":
    main()
