"""The scenarios as a table of the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pod_scenarios.table import PodScenario

BEGIN = "<!-- scenarios: begin -->"
END = "<!-- scenarios: end -->"


def table(scenarios: Sequence[PodScenario]) -> str:
    lines = [BEGIN, ""]
    for topic, group in groupby(scenarios, lambda each: each.topic):
        lines += [
            f"### {topic.capitalize()}",
            "",
            "| scenario | nodes | kube-scheduler | Argosy |",
            "|---|---|---|---|",
            *map(_row, group),
            "",
        ]
    return "\n".join([*lines, END])


def _row(scenario: PodScenario) -> str:
    theirs = _outcome(*scenario.expected(is_argosy=False))
    ours = _outcome(*scenario.expected(is_argosy=True))
    told = f"**{ours}**: {scenario.why}" if ours != theirs else "the same"
    return f"| {scenario.name} | {' '.join(scenario.nodes)} | {theirs} | {told} |"


def _outcome(on: set[str], victims: set[str]) -> str:
    told = " ".join(sorted(on)) or "pending"
    return f"{told}; {' '.join(sorted(victims))} has to go" if victims else told
