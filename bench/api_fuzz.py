"""Random requests made from the OpenAPI description of a live cluster's API. Run by hand:

    python bench/api_fuzz.py [--requests 10000]

Every answer must be as described, none may be a failure of the server's, and nothing may be left
afterwards: memory, descriptors and processes are what they were after the first tenth.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from api_fuzzing import FuzzedServer, Fuzzer, fuzzed_server, leftovers

#: What is kept of jobs that are over grows by a little: caches, and pages of the database.
MOST_GROWTH = 64 << 20
MOST_DESCRIPTORS = 5


def settled(server: FuzzedServer) -> tuple[int, int]:
    """Memory and descriptors, when nothing runs."""
    server.clean_up()
    assert leftovers(server) == [], "processes are left"
    return server.resident(), server.descriptors()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory, fuzzed_server(Path(directory)) as server:
        fuzzer = Fuzzer(server, options.seed)
        fuzzer.run(options.requests // 10)
        memory, descriptors = settled(server)
        fuzzer.run(options.requests)
        grown = server.resident() - memory
        memory_after, descriptors_after = settled(server)
        assert "internal error" not in server.log(), server.log()
        health = server.ask("GET", "/v1/health").json()
        assert health["status"] == "ok", health
    took = time.monotonic() - began
    routes: Counter[str] = Counter()
    statuses: Counter[int] = Counter()
    for (route, status), count in fuzzer.answers.items():
        routes[route] += count
        statuses[status] += count
    for route, total in sorted(routes.items()):
        by_status = ", ".join(
            f"{status}: {count}"
            for (each, status), count in sorted(fuzzer.answers.items())
            if each == route
        )
        print(f"{route:45} {total:6}   {by_status}")
    print(f"{fuzzer.answers.total():,} requests in {took:.0f} s:", dict(sorted(statuses.items())))
    print(
        f"memory {memory / 2**20:.0f} -> {memory_after / 2**20:.0f} MiB, "
        f"descriptors {descriptors} -> {descriptors_after}"
    )
    assert not any(status >= 500 for status in statuses), statuses
    assert max(grown, memory_after - memory) < MOST_GROWTH, "memory grows"
    assert descriptors_after - descriptors <= MOST_DESCRIPTORS, "descriptors are left"


if __name__ == "__main__":
    main()
