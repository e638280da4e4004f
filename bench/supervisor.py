"""What it costs to run a task under supervision, beside running it without. Run by hand:

    python bench/supervisor.py [TASKS]

A task is `/bin/true`. The peers give less: `subprocess.Popen` and `xargs -P` keep no output,
record no end, clean up nothing, and do not outlive their process; they show what starting a
process costs here at all.
"""

from __future__ import annotations

import os
import re
import resource
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from argosy.worlds.local import (
    Launcher,
    ReportSocket,
    SupervisedTry,
    TrySpec,
    TryState,
    sweep,
)

AT_ONCE = 16
COMMAND = "/bin/true"


class Cost:
    """Wall time, and CPU time of this process and of what it waited for."""

    def __init__(self, work: Callable[[], object]) -> None:
        wall, own, others = time.perf_counter(), time.process_time(), children_seconds()
        work()
        self.wall = time.perf_counter() - wall
        self.own = time.process_time() - own
        self.others = children_seconds() - others

    def row(self, name: str, tasks: int) -> str:
        return (
            f"{name:<24}{tasks / self.wall:>8,.0f} tasks/s{1e6 * self.own / tasks:>9,.0f} µs CPU a task"
            f" in the launcher{1e6 * self.others / tasks:>9,.0f} µs CPU a task in its children"
        )


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Tries:
    """A folder of tries, as a server would keep them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.launcher = Launcher()
        self.socket = ReportSocket(root / "reports")
        self.launched_at: dict[str, int] = {}
        self.launch_cpu: list[float] = []
        self.started_after: list[int] = []
        self.ended_after: list[int] = []

    def launch(self, name: str, *command: str) -> SupervisedTry:
        directory = self.root / name
        began = time.process_time()
        os.mkdir(directory, 0o700)
        self.launched_at[name] = time.time_ns() // 1_000
        launched = self.launcher.launch(
            directory, TrySpec(name=name, command=command, reports=self.socket.path)
        )
        self.launch_cpu.append(time.process_time() - began)
        return launched

    def run(self, names: Iterator[str], at_once: int) -> None:
        """Runs all, some at a time."""
        running: dict[str, SupervisedTry] = {}
        for name in names:
            running[name] = self.launch(name, COMMAND)
            while len(running) >= at_once:
                self.take_ended(running)
        while running:
            self.take_ended(running)
        while self.launcher.reap():
            os.sched_yield()

    def take_ended(self, running: dict[str, SupervisedTry]) -> None:
        ready, _, _ = select.select([self.socket], [], [], 0.5)
        reports = self.socket.pending()
        named = [x.name for x in reports if x.state is TryState.ENDED]
        # Nothing for so long: a report may be lost.
        asked = [running[name] for name in named if name in running] if ready else running.values()
        over = list(sweep(list(asked)))
        for each, status in over:
            assert status.end is not None
            assert status.end.code == 0
            launched = self.launched_at[each.name]
            self.started_after.append(status.end.started_at - launched)
            self.ended_after.append(status.end.ended_at - launched)
            del running[each.name]
        self.launcher.reap(each for each, _ in over)


def with_popen(tasks: int) -> None:
    running: list[subprocess.Popen[bytes]] = []
    for _ in range(tasks):
        running.append(subprocess.Popen([COMMAND]))
        if len(running) >= AT_ONCE:
            running.pop(0).wait()
    for process in running:
        process.wait()


def with_xargs(tasks: int) -> None:
    numbers = "\n".join(map(str, range(tasks)))
    command = ["xargs", "-P", str(AT_ONCE), "-n", "1", COMMAND]
    subprocess.run(command, input=numbers, text=True, check=True)


def memory_of(pid: int) -> str:
    """Resident, and the part that is this process's alone."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    sizes = {key: int(value) for key, value in re.findall(r"^(\w+): +(\d+) kB", text, re.MULTILINE)}
    private = sizes["Private_Clean"] + sizes["Private_Dirty"]
    return f"{sizes['Rss']:,} KiB resident, {private:,} KiB of it private"


def milliseconds(micros: list[int]) -> str:
    ordered = sorted(micros)
    high = ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)]
    return f"median {statistics.median(ordered) / 1e3:.1f} ms, 99% {high / 1e3:.1f} ms"


def main() -> None:
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    root = Path(tempfile.mkdtemp(prefix="argosy-bench-"))
    try:
        supervised = Tries(root)
        print(
            Cost(lambda: supervised.run((f"m{n}" for n in range(tasks)), AT_ONCE)).row(
                "supervised", tasks
            )
        )
        print(Cost(lambda: with_popen(tasks)).row("subprocess.Popen", tasks))
        print(Cost(lambda: with_xargs(tasks)).row(f"xargs -P {AT_ONCE}", tasks))
        alone = Tries(root / ".")
        alone.run((f"a{n}" for n in range(tasks // 3)), 1)
        cpu = 1e6 * statistics.median(supervised.launch_cpu)
        print(f"a launch: {cpu:.0f} µs CPU in the launcher")
        print(
            f"from launch to the command's start, one at a time: {milliseconds(alone.started_after)}"
        )
        print(f"from launch to the recorded end, one at a time: {milliseconds(alone.ended_after)}")
        sleeper = alone.launch("sleeper", "/bin/sleep", "600")
        while sleeper.status().state is not TryState.RUNNING:
            select.select([alone.socket], [], [], 1)
        identity = sleeper.identity()
        assert identity is not None
        print(f"a supervisor: {memory_of(identity.pid)}")
        sleeper.kill()
        while alone.launcher.reap():
            select.select([alone.socket], [], [], 0.1)
        alone.socket.close()
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
