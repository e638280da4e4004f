"""What starting costs: CPU time of `import argosy` and of `argosy --help`. Run by hand:

    python bench/startup.py

The peer is the bare interpreter: what is above it is Argosy's own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

TARGET = 150
CASES = {
    "python -c pass": ["-c", "pass"],
    "import argosy": ["-c", "import argosy"],
    "argosy --help": ["-m", "argosy.cli", "--help"],
}


def cpu_milliseconds(arguments: list[str]) -> float:
    before = os.times()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    user = after.children_user - before.children_user
    return 1_000 * (user + after.children_system - before.children_system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=21)
    runs = parser.parse_args().runs
    medians = {
        name: statistics.median(cpu_milliseconds(arguments) for _ in range(runs))
        for name, arguments in CASES.items()
    }
    bare = medians["python -c pass"]
    for name, milliseconds in medians.items():
        verdict = "met" if milliseconds <= TARGET else "MISSED"
        print(
            f"{name:<16}{milliseconds:6.0f} ms CPU   {milliseconds / max(bare, 1):4.1f}x a bare "
            f"interpreter   target {TARGET} {verdict}"
        )


if __name__ == "__main__":
    main()
