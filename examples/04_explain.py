"""Keeps a run and asks it about one task: its story, and why a task has no machine.

Output:

    report/0 in a cell of two machines:
           0 µs  submitted with 3 tasks, goes to scheduler
           0 µs  scheduler starts to decide, which takes 115 ms
         116 ms  placed on m-0 by scheduler
         116 ms  starts on m-0
         10.1 s  finished after running for 10 s
    giant/0 cannot run: giant has tasks that ask for 9 cores; the largest machine has 4 cores.
    What would help: ask for 5 cores less, or add a machine with 9 cores
"""

import tempfile
from pathlib import Path

import argosy
from argosy.model.units import format_duration

SCENARIO = """
name = "two-machines"
horizon = "1min"

[[cell.machines]]
name = "m"
count = 2
capacity = { cpu = 4000, memory = "16GiB" }

[[workload.jobs]]
id = "report"
count = 3
request = { cpu = 1000, memory = "1GiB" }
duration = "10s"

[[workload.jobs]]
id = "giant"
submit = "1s"
request = { cpu = 9000, memory = "1GiB" }
duration = "10s"

[[fleet]]
name = "scheduler"
engine = "omega"
"""


def main(directory: Path) -> None:
    file = directory / "scenario.toml"
    file.write_text(SCENARIO, "utf-8")
    run = argosy.run(file, keep=directory / "run")

    print("report/0 in a cell of two machines:")
    for line in argosy.story(run, "report/0"):
        print(f"  {format_duration(line.at):>9}  {line.text}")

    answer = argosy.why(run, "giant/0")
    print(answer.sentence)
    print(f"What would help: {answer.remedy}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(scratch))
