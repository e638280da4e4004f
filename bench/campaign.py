"""A campaign over all engines: 10,000 random scenarios, each run twice, replayed and judged.

    python bench/campaign.py [--runs 10000] [--seed 1] [--chunk 200] [--keep FILE] [--workers N]

It takes long, so results are kept in FILE after every chunk; started again with the same FILE, it goes
on where it stopped. At the end it prints the table of engines and checks, shrinks the first scenario of
each kind of failure, and writes it to `--out`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import msgspec

from argosy.campaign.campaign import Campaign, CampaignResult, merged
from argosy.campaign.draw import ScenarioSource
from argosy.campaign.worlds import find_world
from argosy.engines.registry import ENGINES
from argosy.report import campaigns


class KeptChunk(msgspec.Struct, frozen=True):
    seed: int
    first: int
    runs: int
    result: CampaignResult


def kept_chunks(file: Path, seed: int) -> list[KeptChunk]:
    """The chunks of this seed that follow one another from the first scenario on."""
    if not file.exists():
        return []
    lines = file.read_bytes().splitlines()
    found, at = [], 0
    for chunk in (msgspec.json.decode(line, type=KeptChunk) for line in lines):
        if chunk.seed == seed and chunk.first == at:
            found.append(chunk)
            at += chunk.runs
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chunk", type=int, default=200)
    parser.add_argument("--keep", type=Path, default=Path("campaign.jsonl"))
    parser.add_argument("--out", type=Path, default=Path("campaign"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--world", default="simulated")
    options = parser.parse_args()
    source = ScenarioSource(options.seed, ENGINES, without=find_world(options.world).lacks)
    chunks = kept_chunks(options.keep, options.seed)
    began, before = time.monotonic(), sum(chunk.runs for chunk in chunks)
    done = before
    with Campaign(world=options.world, workers=options.workers) as campaign:
        while done < options.runs:
            runs = min(options.chunk, options.runs - done)
            result = campaign.run(source.draw(number) for number in range(done, done + runs))
            chunks.append(KeptChunk(options.seed, done, runs, result))
            with open(options.keep, "ab") as file:
                file.write(msgspec.json.encode(chunks[-1]) + b"\n")
            done += runs
            rate = (done - before) / (time.monotonic() - began)
            failed = sum(row.failed for chunk in chunks for row in chunk.result.rows)
            print(
                f"{done:,} of {options.runs:,}, {failed:,} failed, {rate:.1f} a second,"
                f" {(options.runs - done) / rate / 60:.0f} min to go",
                file=sys.stderr,
            )
        result = merged([chunk.result for chunk in chunks])
        shrunk = [
            campaign.run([source.draw(failure.number)], folder=options.out)
            for failure in result.failures
        ]
    print("\n".join(campaigns.table(result).lines()))
    print(f"\n{campaigns.verdict(result)}")
    for part in shrunk:
        for section in campaigns.sections(part, None)[1:]:
            print("\n" + "\n".join(section))
    return 1 if result.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
