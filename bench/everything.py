"""Runs every bench in turn, and prints at the end in one table what is met and what is not. By hand:

python bench/everything.py
python bench/everything.py demo memory omega
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
VERDICT = re.compile(r" (met|MISSED)$|^(yes|NO) ")
MISSED = re.compile(r" MISSED$|^NO ")


def main() -> None:
    asked = sys.argv[1:]
    names = sorted(path.stem for path in HERE.glob("[a-z]*.py") if path.stem != "everything")
    if unknown := sorted({*asked} - {*names}):
        sys.exit(f"no bench {unknown[0]!r}; expected one of {', '.join(names)}")
    verdicts: list[tuple[str, str]] = []
    failed: list[str] = []
    for name in asked or names:
        print(f"== {name}", flush=True)
        command = [sys.executable, "-u", str(HERE / f"{name}.py")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bench:
            assert bench.stdout is not None
            for line in bench.stdout:
                print(line, end="", flush=True)
                if VERDICT.search(line.rstrip()):
                    verdicts.append((name, line.strip()))
        if bench.returncode:
            failed.append(name)
    print("\n== what is met")
    for name, line in sorted(verdicts, key=lambda verdict: not MISSED.search(verdict[1])):
        print(f"{name:<14}{line}")
    for name in failed:
        print(f"{name:<14}FAILED: it did not run to its end")
    missed = sum(bool(MISSED.search(line)) for _, line in verdicts)
    print(f"{len(verdicts) - missed} met, {missed} missed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
