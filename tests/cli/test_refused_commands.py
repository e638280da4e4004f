"""Options that do not go together, and values that commands refuse before they do anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import QUICKSTART, Call

QUICK = str(QUICKSTART)
ONE = "; expected one of them"
BOTH = "; expected both"

#: Command lines, and what is said of them.
REFUSED = {
    f"agent {QUICK} --machines 3": "both a scenario and --machines" + ONE,
    f"agent {QUICK} --mix edge": "both a scenario and --mix" + ONE,
    "agent --cluster north": "--cluster without a scenario" + BOTH,
    "agent --machines 2 --mix 4x": ("--mix '4x'; expected cloud, edge, or a size such as 4x8GiB"),
    "campaign x.toml --engine omega": "both scenarios and options for drawing them" + ONE,
    "campaign x.toml --runs 3": "both scenarios and options for drawing them" + ONE,
    "campaign x.toml --without gangs": "both scenarios and options for drawing them" + ONE,
    f"campaign --engine omega --fleet {QUICK}": "both --engine and --fleet" + ONE,
    f"compare {QUICK} --seeds 3 --seed 1": "both --seeds and --seed" + ONE,
    f"compare {QUICK} --metric jct --objective wait": "both --metric and --objective" + ONE,
    f"compare {QUICK} --seeds 10001": "--seeds 10001; expected at most 10,000",
    "constraints translate c.txt": "neither or both of --to and --from" + ONE,
    "constraints translate c.txt --to yarn --from yarn": "neither or both of --to and --from" + ONE,
    "constraints translate c.txt --to yarn --tag zk": (
        "--tag zk; expected TAG=COUNT, such as zk=3"
    ),
    "constraints translate c.txt --to yarn --tag zk=x": (
        "--tag zk=x; expected TAG=COUNT, such as zk=3"
    ),
    "fleet --dir d set --engine omega": (
        "options before the subcommand; expected them after `argosy fleet set`"
    ),
    "fleet set": "no fleet" + ONE,
    "fleet set fleet.toml --engine omega": "both a file and --engine" + ONE,
    "flow gen quincy --utilisation 0.5": (
        "the shape 'quincy' has no utilisation to choose; leave out --utilisation, or choose one of "
    ),
    "flow gen quincyy": "unknown shape 'quincyy'; expected one of ",
    "flow solve p.min --algorithm fast": "unknown algorithm 'fast'; expected one of ",
    "submit": "no job; expected a job file, or -- and a command",
    "submit job.toml --id a": "both a job file and --id; expected id in the file",
    "submit job.toml -- true": "both a job file and a command" + ONE,
    "submit --": "no command after --; expected -- COMMAND [ARGUMENTS...]",
    "submit job.toml --format toml": (
        "--format with a file; expected a name that ends in .toml, .yaml or .yml"
    ),
    "submit --env NEVER_SET_HERE -- true": (
        "--env 'NEVER_SET_HERE': it is not set here; expected NAME=VALUE"
    ),
    "submit --stdin none.txt -- true": "--stdin none.txt: No such file or directory",
    "kubernetes --fleet f.toml --engine omega": "both --fleet and --engine" + ONE,
    "kubernetes --lease-name x": "--lease-name without --leader-elect" + BOTH,
    "kubernetes --identity x": "--identity without --leader-elect" + BOTH,
    "kubernetes --lease-namespace x": "--lease-namespace without --leader-elect" + BOTH,
    "kubernetes --lease-namespace x --identity y": "--identity without --leader-elect" + BOTH,
    "kubernetes --for 3s": "--for without --shadow" + BOTH,
    "kubernetes guard --apply --remove": "both --apply and --remove" + ONE,
    "jobs --limit 0": "Invalid value for '--limit': 0 is not in the range x>=1.",
    "logs a/b": "task 'a/b'; expected JOB/INDEX, such as crawl/0",
    "logs /1": "task '/1'; expected JOB/INDEX, such as crawl/0",
    "logs a/0 -f --try 1": "both -f and --try" + ONE,
    "logs a/0 -f -o json": "both -f and -o json" + ONE,
    "why a/0 --run r --dir d": (
        "both --run and a live server; expected --run, or --server or --dir"
    ),
    "machines --dir d add m": (
        "options before the subcommand; expected them after `argosy machines add`"
    ),
    "machines --dir d resize m": (
        "options before the subcommand; expected them after `argosy machines resize`"
    ),
    "machines add m": "a machine without resources; expected --cpu, --memory or --capacity",
    "machines add m --capacity gpu": "--capacity gpu; expected NAME=N, such as gpu=1",
    "machines add m --capacity gpu=x": "--capacity gpu=x; expected NAME=N, such as gpu=1",
    "machines add m --capacity gpu=-1": "--capacity gpu=-1; expected NAME=N, such as gpu=1",
    "machines add m --cpu 1 --attribute x": "--attribute x; expected NAME=VALUE",
    "machines add m --cpu 1 --attribute =x": "--attribute =x; expected NAME=VALUE",
    "machines add m --cpu 1 --join rack": "--join rack; expected NAME=VALUE",
    "machines resize m": "nothing to change; expected --cpu, --memory or --capacity",
    "paper vela --trace .": (
        "vela has no recorded input; leave out --trace: its workloads are drawn"
    ),
    "record --kubeconfig k --journal j": (
        "a server of Argosy and a cluster of Kubernetes; "
        "expected --kubeconfig with -o, --context, --for and --pinned only"
    ),
    "record --context c --dir d": (
        "a server of Argosy and a cluster of Kubernetes; "
        "expected --kubeconfig with -o, --context, --for and --pinned only"
    ),
    "record --kubeconfig k": "nowhere to write to; expected -o DIR",
    "record --for 3s -o d": "--for without --kubeconfig" + BOTH,
    "record --pinned -o d": "--pinned without --kubeconfig" + BOTH,
    "record": "nothing to write; expected -o DIR, --journal FILE, or both",
    "record --life 1 -o d": "--life without --journal" + BOTH,
}


@pytest.mark.parametrize("line", REFUSED, ids=lambda line: line.replace(QUICK, "QUICK"))
def test_a_command_line_is_refused_in_one_line(line: str, argosy: Call, tmp_path: Path) -> None:
    for name in ("x.toml", "c.txt", "fleet.toml", "f.toml", "job.toml", "p.min", "k"):
        (tmp_path / name).write_text("")
    result = argosy(*line.split())
    assert result.code == 2
    prefix, _, told = result.complaint.partition("]: ")
    assert prefix.startswith("argosy: error[")
    assert told[: len(REFUSED[line])] == REFUSED[line]


def test_every_mistake_in_a_list_of_constraints_is_told(argosy: Call, tmp_path: Path) -> None:
    text = "a -> {b, 0, 0} in machine\nnonsense\nalso - nonsense\nthird ->\n"
    (tmp_path / "c.txt").write_text(text)
    result = argosy("constraints", "print", "c.txt")
    told = [line.partition("c.txt: ")[2].partition(":")[0] for line in result.err.splitlines()]
    assert result.code == 2
    assert sorted(told) == ["line 2", "line 3", "line 4"]
    # The first mistake is the error, below the others.
    assert told[-1] == "line 2"


MANIFEST = """\
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}}
    spec: {nodeSelector: {disk: ssd}, containers: [{name: web, image: nginx}]}
"""


def test_constraints_of_manifests_are_translated_or_located(argosy: Call, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(MANIFEST)
    result = argosy("constraints", "translate", "web.yaml", "--from", "kubernetes")
    assert (result.code, result.out) == (0, "app:web -> {disk:ssd, 1, inf} in machine hard\n")
    (tmp_path / "web.yaml").write_text("kind: [")
    complaint = argosy("constraints", "translate", "web.yaml", "--from", "kubernetes").complaint
    assert "web.yaml:1: not YAML: " in complaint
    assert "expected Kubernetes manifests" in complaint
