"""Hostile requests to an agent: all must be refused with a reason, and none may leave room reserved.

python bench/vela_hostile.py [--requests N] [--seed N]

Bad JSON, wrong types, huge numbers, huge bodies, unknown machines, plug-ins and reservations, replayed
commits, keys used twice, wrong, expired and insufficient tokens, and commits with another scheduler's
reservation, in random order over many connections. Every answer must be a problem document with a status
from 400 to 499; replayed commits must get the answer that they had. In the end the agent must hold what
was committed, nothing more, and no reservation.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from hostile_scheduler import TOKENS, attack


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tokens = Path(scratch) / "tokens.toml"
        tokens.write_text(TOKENS)
        command = [sys.executable, "-m", "argosy.cli", "agent", "--machines", "20", "-o", "json"]
        agent = subprocess.Popen(
            [*command, "--tokens", str(tokens)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert agent.stdout is not None
            url = json.loads(agent.stdout.readline())["url"]
            hostile = asyncio.run(attack(url, arguments.requests, arguments.seed))
        finally:
            agent.terminate()
            agent.wait()
    answers = ", ".join(f"{status}: {count}" for status, count in sorted(hostile.statuses.items()))
    print(f"{sum(hostile.statuses.values())} requests: {answers}")
    for line in hostile.wrong[:20]:
        print(line)
    print("no leaks, nothing but refusals" if not hostile.wrong else f"{len(hostile.wrong)} wrong")
    sys.exit(bool(hostile.wrong))


if __name__ == "__main__":
    main()
