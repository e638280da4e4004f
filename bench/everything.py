"""Runs every bench in turn, and prints at the end in one table what is met and what is not. By hand:

    python bench/everything.py
    python bench/everything.py demo memory omega
    python bench/everything.py --small cell memory flow_zones

With `--small`, benches that have a small setting use it: it shows that they run, not what is met.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
VERDICT: Final = re.compile(r" (met|MISSED)$|^(yes|NO) ")
MISSED: Final = re.compile(r" MISSED$|^NO ")
#: Benches that are run several times, each time with other arguments.
MODES: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    "kubernetes": (["decisions"], ["bound"], ["start"]),
}
SMALL: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    "api_fuzz": (["--requests", "200"],),
    "campaign": (["--runs", "20"],),
    "cell": (["--runs", "1"],),
    "conflicts": (["--seeds", "1"],),
    "demo": (["--engine", "omega"],),
    "firmament": (["--only", "short", "--machines", "500"],),
    "flow": (["--small", "--runs", "1"],),
    "flow_clusters": (["--machines", "200", "--runs", "1"],),
    "flow_shapes": (["--machines", "200", "--runs", "1"],),
    "flow_unseen": (["--machines", "200", "--runs", "1"],),
    "flow_zones": (["--machines", "200", "--runs", "1"],),
    "kills": (["--kills", "2"],),
    "kubernetes": (["decisions", "--nodes", "100", "--pods", "100", "--rounds", "1"],),
    "kubernetes_client": (["--pods", "100"],),
    "live": (["latency", "--seconds", "5"],),
    "medea": (["--quick"],),
    "memory": (["--jobs", "20000"],),
    "murmuration": (["--runs", "1"],),
    "omega": (["--days", "1", "--runs", "1"],),
    "startup": (["--runs", "1"],),
    "vela": (["--clusters", "2", "--machines", "200", "--jobs", "500"],),
    "vela_hostile": (["--requests", "200"],),
}
#: Benches that cannot run by themselves, and what they need.
LEFT_OUT: Final[Mapping[str, str]] = {"published": "--trace, the authors' files"}


class Outcome:
    """What was met, and which benches did not run to their ends."""

    def __init__(self) -> None:
        self.verdicts: list[tuple[str, str]] = []
        self.failed: list[str] = []

    def run(self, name: str, script: Path, arguments: Sequence[str]) -> None:
        print(f"== {' '.join([name, *arguments])}", flush=True)
        command = [sys.executable, "-u", str(script), *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bench:
            assert bench.stdout is not None
            for line in bench.stdout:
                print(line, end="", flush=True)
                if VERDICT.search(line.rstrip()):
                    self.verdicts.append((name, line.strip()))
        if bench.returncode and name not in self.failed:
            self.failed.append(name)

    def table(self, left_out: Iterable[str]) -> str:
        """What was missed comes first."""
        rows = sorted(self.verdicts, key=lambda verdict: not MISSED.search(verdict[1]))
        lines = [f"{name:<18}{line}" for name, line in rows]
        lines += [f"{name:<18}FAILED: it did not run to its end" for name in self.failed]
        lines += [f"{name:<18}left out: it needs {LEFT_OUT[name]}" for name in left_out]
        missed = sum(bool(MISSED.search(line)) for _, line in rows)
        lines.append(f"{len(rows) - missed} met, {missed} missed, {len(self.failed)} failed")
        return "\n".join(lines)


def main() -> None:
    names = sorted(path.stem for path in HERE.glob("[a-z]*.py") if path.stem != "everything")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", metavar="BENCH", help=", ".join(names))
    parser.add_argument("--small", action="store_true", help="small settings")
    asked = parser.parse_args()
    if unknown := sorted({*asked.names} - {*names}):
        sys.exit(f"no bench {unknown[0]!r}; expected one of {', '.join(names)}")
    outcome, chosen = Outcome(), asked.names or names
    for name in chosen:
        if name in LEFT_OUT:
            continue
        modes = SMALL.get(name) if asked.small else None
        for arguments in modes or MODES.get(name, ([],)):
            outcome.run(name, HERE / f"{name}.py", arguments)
    print("\n== what is met")
    print(outcome.table(name for name in chosen if name in LEFT_OUT))
    sys.exit(1 if outcome.failed else 0)


if __name__ == "__main__":
    main()
