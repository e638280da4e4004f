"""What starting costs: CPU and elapsed time of `import argosy` and of commands. Run by hand:

    python bench/startup.py

The peer is the bare interpreter, in the same rounds: what is above it is Argosy's own. Modules are
compiled before the first round, as they are in an installation.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

#: Milliseconds of CPU time.
TARGET = 100
ARGOSY = ["-m", "argosy.cli"]
BARE = "python -c pass"
CASES = {
    BARE: ["-c", "pass"],
    "import argosy": ["-c", "import argosy"],
    "argosy --help": [*ARGOSY, "--help"],
    "argosy submit": [*ARGOSY, "submit", "--", "true"],
    "argosy ps": [*ARGOSY, "ps"],
}


def compiled(cache: str) -> dict[str, str]:
    """An environment in which compiled modules are kept, whatever this one says."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": cache}


def milliseconds(arguments: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """CPU and elapsed time of one process."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, env=environment, capture_output=True)
    elapsed = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1_000 * cpu, 1_000 * elapsed


def medians(cases: dict[str, list[str]], runs: int) -> dict[str, tuple[float, float]]:
    """CPU and elapsed milliseconds of each case, in rounds of all of them."""
    with tempfile.TemporaryDirectory() as cache:
        environment = compiled(cache)
        for arguments in cases.values():
            milliseconds(arguments, environment)
        rounds = [
            {name: milliseconds(arguments, environment) for name, arguments in cases.items()}
            for _ in range(runs)
        ]
    return {
        name: (
            statistics.median(each[name][0] for each in rounds),
            statistics.median(each[name][1] for each in rounds),
        )
        for name in cases
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ARGOSY_DIR"] = folder
        command = [sys.executable, *ARGOSY]
        subprocess.run([*command, "up", "--detach", "--listen", "none"], check=True)
        try:
            found = medians(CASES, runs)
        finally:
            subprocess.run([*command, "down", "--stop-tasks"], stdout=subprocess.DEVNULL)
    bare = found[BARE][0]
    for name, (cpu, elapsed) in found.items():
        verdict = "met" if cpu <= TARGET else "MISSED"
        print(
            f"{name:<16}{cpu:6.0f} ms CPU  {elapsed:6.0f} ms elapsed   {cpu / bare:4.1f}x a bare "
            f"interpreter   target {TARGET} {verdict}"
        )
    print("load averages", *(f"{each:.1f}" for each in os.getloadavg()))


if __name__ == "__main__":
    main()
