"""Commands on files that are made here, sound and broken: constraints, journals, run directories, flow
problems, job files; and commands called wrongly. All that comes of them is kept as digests: see
`pinned_digests`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from broken_documents import broken_document, broken_journal, broken_lines
from pinned_commands import Folder
from pinned_digests import require_digests
from rich_jobs import Document, Stream, job_table
from rich_workloads import pod_document

from argosy.campaign.draw import ScenarioSource
from argosy.cli.app import COMMANDS
from argosy.cli.fleet import read_entries
from argosy.engines.registry import ENGINES, survey
from argosy.model.errors import ArgosyError
from argosy.scenarios.job_files import read_job_file
from argosy.scenarios.toml_text import to_toml
from argosy.workloads.live_jobs import live_job_table

PINNED: Final = Path(__file__).parent / "pinned"
OUTPUTS: Final = ("table", "json", "csv")
LARGEST: Final = 60_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    for name in ("ARGOSY_DEBUG", "ARGOSY_URL", "ARGOSY_TOKEN", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ARGOSY_DIR", str(tmp_path / "cluster"))
    monkeypatch.setenv("COLUMNS", "80")
    return Folder(tmp_path)


# Constraints.


def bound(stream: Stream) -> str:
    least = stream.pick((0, 0, 1, 2, 5))
    return f"{least}, {stream.pick(('inf', least, least + 2, 0))}"


def expression(stream: Stream, depth: int = 0) -> str:
    form = stream.below(6 if depth < 2 else 2)
    if form < 3:
        tags = stream.pick(("web", "db", "hb & mem", "appID:self", "kind:service", "ssd"))
        return f"{{{tags}, {bound(stream)}}}"
    if form == 3:
        return f"not {expression(stream, depth + 1)}"
    joined = stream.pick(("and", "or"))
    return f"({expression(stream, depth + 1)} {joined} {expression(stream, depth + 1)})"


def rule(stream: Stream) -> str:
    subject = stream.pick(("web", "db", "web & hb", "appID:self"))
    group = stream.pick(("machine", "rack", "zone", "upgrade-domain"))
    if stream.has(0.15):
        return f"{subject} -> spread {{{bound(stream)}}} over {group}"
    return f"{subject} -> {expression(stream)} in {group}"


def constraint(stream: Stream) -> str:
    text = rule(stream)
    if stream.has(0.15):
        text = f"({text} {stream.pick(('and', 'or'))} {rule(stream)})"
    if stream.has(0.2):
        text += f" weight {stream.pick(('2', '0.5', '100', '1e3'))}"
    return text + (" hard" if stream.has(0.4) else "")


def constraint_calls(folder: Folder, stream: Stream) -> Iterator[tuple[str, ...]]:
    lines = [constraint(stream) for _ in range(stream.among(1, 3))]
    if stream.has(0.25):
        _, text = broken_lines("\n".join(lines), stream)
        lines = text.split("\n")
    text = "\n".join(stream.pick((lines, ["# a comment", "", *lines]))) + "\n"
    name = stream.pick(("rules.txt", "rules.toml", "rules.yaml"))
    if name == "rules.toml":
        text = to_toml({"constraints": lines})
    elif name == "rules.yaml":
        text = json.dumps({"constraints": lines})
    folder.write({name: text})
    form = stream.pick(OUTPUTS)
    yield ("constraints", "lint", name, "-o", form)
    yield ("constraints", "print", name, "-o", form)
    tags = tuple(word for tag in ("web", "db", "hb") if stream.has(0.5) for word in ("--tag", tag))
    counts = tuple(f"{word}=3" if word != "--tag" else word for word in tags)
    static = ("--static", "ssd") if stream.has(0.5) else ()
    yield ("constraints", "translate", name, "--to", "kubernetes", *tags, *static, "-o", form)
    yield ("constraints", "translate", name, "--to", "yarn", *counts, *static)


def test_constraints_in_files(folder: Folder, pytestconfig: pytest.Config) -> None:
    outcomes = {}
    for number in range(120):
        stream = Stream(f"constraints {number}")
        outcomes[str(number)] = folder.calls(constraint_calls(folder, stream))
        folder.remove("rules.txt", "rules.toml", "rules.yaml")
    require_digests(PINNED / "constraint_files.txt", outcomes, pytestconfig)


YARN: Final = (
    "zk=3,NOTIN,NODE,zk",
    "hb=5,IN,RACK,hb:zk=3,CARDINALITY,NODE,hb,0,2",
    "hb=10,AND(NOTIN,NODE,hb:IN,RACK,zk)",
    "a=1,OR(IN,NODE,b:CARDINALITY,RACK,c,1,3)",
    "a=2,IN,NODE,b,c",
    "web=4,CARDINALITY,RACK,web,0,1:web=1",
)


def test_constraints_from_other_systems(folder: Folder, pytestconfig: pytest.Config) -> None:
    outcomes = {}
    for number in range(60):
        stream = Stream(f"manifests {number}")
        pods: list[Document] = [pod_document(stream, at) for at in range(stream.among(1, 3))]
        document: Document = pods[0] if len(pods) == 1 else {"kind": "List", "items": pods}
        if stream.has(0.3):
            document = {
                "labels": pods[0]["metadata"]["labels"],
                "affinity": pods[0]["spec"].get("affinity", {}),
            }
        what = "sound"
        if stream.has(0.5):
            what, document = broken_document(document, stream)
        spec = stream.pick(YARN)
        if stream.has(0.6):
            _, spec = broken_lines(spec, stream)
        folder.write({"pods.yaml": json.dumps(document, default=str), "rules.yarn": spec})
        form = stream.pick(OUTPUTS)
        calls = [
            ("constraints", "translate", "pods.yaml", "--from", "kubernetes", "-o", form),
            ("constraints", "translate", "rules.yarn", "--from", "yarn", "-o", form),
        ]
        outcomes[str(number)] = f"{what} {spec}\n{folder.calls(calls)}"
    require_digests(PINNED / "other_constraints.txt", outcomes, pytestconfig)


# Journals and run directories that are damaged.


def test_damaged_journals(folder: Folder, pytestconfig: pytest.Config) -> None:
    engines, _ = survey()
    source = ScenarioSource(31, engines)
    outcomes = {}
    for number in range(20):
        folder.write({"drawn.toml": to_toml(source.draw(number).document)})
        folder.call("run", "drawn.toml", "--out", "run")
        text = (folder.path / "run" / "journal.jsonl").read_text("utf-8")
        folder.remove("run")
        if len(text) > LARGEST:
            continue
        lines = text.splitlines(keepends=True)
        stream = Stream(f"damaged {number}")
        for way in range(6):
            what, broken = broken_journal(lines, stream)
            folder.write({"damaged.jsonl": "".join(broken)})
            form, task = stream.pick(OUTPUTS), stream.pick(("j0/0", "j1/1", "j0", "j3/0"))
            calls: list[tuple[str, ...]] = [("replay", "damaged.jsonl", "-o", form)]
            calls += [("summary", "damaged.jsonl", "-o", form)]
            calls += [("audit", "--run", "damaged.jsonl", "-o", form)] if way % 2 else []
            calls += [(w, task, "--run", "damaged.jsonl", "-o", form) for w in ("why", "story")]
            outcomes[f"{number}: way {way}"] = f"{what}\n{folder.calls(calls)}"
    require_digests(PINNED / "damaged_journals.txt", outcomes, pytestconfig)


def test_damaged_run_directories(folder: Folder, pytestconfig: pytest.Config) -> None:
    engines, _ = survey()
    folder.write({"drawn.toml": to_toml(ScenarioSource(5, engines).draw(9).document)})
    folder.call("run", "drawn.toml", "--out", "sound")
    names = sorted(path.name for path in (folder.path / "sound").iterdir())
    outcomes = {}
    for name in names:
        for how in ("gone", "longer", "changed", "gone and unlisted", "garbage and unlisted"):
            folder.remove("run")
            shutil.copytree(folder.path / "sound", folder.path / "run")
            file = folder.path / "run" / name
            data = file.read_bytes()
            if how.startswith("gone"):
                file.unlink()
            elif how == "longer":
                file.write_bytes(data + b"x")
            else:
                file.write_bytes(b"{" + data[1:-1] + b" ")
            manifest = folder.path / "run" / "manifest.json"
            if how.endswith("unlisted") and manifest.exists():
                entries = json.loads(manifest.read_bytes()) if name != manifest.name else {}
                entries.pop(name, None)
                manifest.write_text(json.dumps(entries))
            folder.seen()
            # Of what says how long it took, the length differs too.
            if name == "provenance.json" or (name == "manifest.json" and how == "longer"):
                continue
            calls: list[tuple[str, ...]] = [
                ("summary", "run"),
                ("summary", "run", "--recount"),
                ("why", "j0/0", "--run", "run"),
                ("replay", "run"),
            ]
            outcomes[f"{name} {how}"] = folder.calls(calls)
    require_digests(PINNED / "damaged_directories.txt", outcomes, pytestconfig)


# Flow problems.


def flow_calls(stream: Stream) -> Iterator[tuple[str, ...]]:
    shapes = ("quincy", "oversubscribed", "load-spreading", "random", "adversarial", "ties")
    size, seed = str(stream.among(2, 12)), str(stream.below(50))
    share = ("--utilisation", stream.pick(("0.5", "1.2"))) if stream.has(0.3) else ()
    yield ("flow", "gen", stream.pick((*shapes, "quinzy")), "--size", size, "--seed", seed, *share)


def test_flow_problems(folder: Folder, pytestconfig: pytest.Config) -> None:
    outcomes = {}
    for number in range(40):
        stream = Stream(f"flow {number}")
        [call] = flow_calls(stream)
        made = folder.call(*call)
        problem = made.partition("stdout:\n")[2].partition("\nstderr:")[0] + "\n"
        form = stream.pick(OUTPUTS)
        algorithm = stream.pick(("relaxation", "cost-scaling", "shortest-paths", "local", "slow"))
        if number % 2:
            _, problem = broken_lines(problem, stream)
        folder.write({"flow.min": problem})
        options = ("--algorithm", algorithm, "--solution", "flow.sol", "-o", "json")
        parts = [
            made,
            folder.call(*call, "-o", "json"),
            folder.call("flow", "solve", "flow.min", *options),
        ]
        solution = folder.path / "flow.sol"
        if solution.exists():
            parts.append(folder.call("flow", "check", "flow.min", "flow.sol", "-o", form))
            _, other = broken_lines(solution.read_text(), stream)
            folder.write({"flow.sol": other})
            parts.append(folder.call("flow", "check", "flow.min", "flow.sol", "-o", form))
        outcomes[str(number)] = "\n\n".join(parts)
        folder.remove("flow.min", "flow.sol")
    require_digests(PINNED / "flows.txt", outcomes, pytestconfig)


# Job files, as they are given to a live cluster.


def job_file(stream: Stream) -> Document:
    jobs = []
    for at in range(stream.among(1, 4)):
        job = job_table(stream, f"j{at}")
        for table in (job, *job.get("groups", ())):
            for key in ("duration", "durations", "phases", "submit", "image"):
                if stream.has(0.97):
                    table.pop(key, None)
            if "groups" not in table and stream.has(0.97):
                table["command"] = stream.pick(("sleep 1", ["a", "b c"]))
            table |= stream.maybe(0.2, endless=stream.has(0.5)) if "groups" not in table else {}
        jobs.append(job)
    return jobs[0] if len(jobs) == 1 else {"jobs": jobs}


def test_job_files(folder: Folder, pytestconfig: pytest.Config) -> None:
    outcomes = {}
    for number in range(50):
        stream = Stream(f"jobs {number}")
        told = []
        document = job_file(stream)
        for way in range(6):
            what, broken = ("sound", document) if way == 0 else broken_document(document, stream)
            name = stream.pick(("job.toml", "job.yaml", "job.yml"))
            text = to_toml(broken) if name == "job.toml" else json.dumps(broken, indent=1)
            if name == "job.yml":
                text = f"---\n{text}\n---\n{json.dumps([broken])}\n"
            folder.write({name: text})
            try:
                file = read_job_file(Path(name))
                read = json.dumps([live_job_table(job.job) for job in file.jobs])
            except ArgosyError as error:
                read = f"{error.code}: {error}"
            told.append(f"{what}\n{read}")
            if way == 1:
                told.append(folder.call("submit", name))
                told.append(folder.call("plan", name, "-o", "json"))
        outcomes[str(number)] = folder.steady("\n\n".join(told))
    require_digests(PINNED / "job_files.txt", outcomes, pytestconfig)


# Commands called rightly and wrongly.

#: A call on each line.
CALLS: Final = """\
run
run missing.toml
run . --no-save
run drawn.toml --no-save --out x
run drawn.toml --seed -1
run drawn.toml --seed x
run drawn.toml --engine omgea
run drawn.toml --out done
run drawn.toml --engine no.such:Class --no-save
run drawn.toml --engine json:Nothing --no-save
run drawn.toml --no-save --html nowhere/x.html
run drawn.toml --no-save -o xml
run drawn.toml --no-save -o csv
run drawn.toml --no-save --as-published
run drawn.toml --out a/b --html b.html --strict
run drawn.toml
summary
summary -o json
summary nothing
summary drawn.toml
summary done -o csv
why j0/0
why j0/99 --run done
why j99/0 --run done
why j0 --run done
why j0/x --run done
why
story j0/0 -o csv
story j9 --run .
audit
audit --run nothing
audit --run done -o csv
replay done --engine omgea
replay nothing
replay done --metric jct
replay done --engine kube --metric jtc
replay done --engine kube --metric end
compare
compare drawn.toml --seeds 0
compare drawn.toml --seeds 2 --seed 3
compare x.toml
compare drawn.toml --seeds 999999999
compare drawn.toml --metric jtc
compare drawn.toml --engine omgea
compare drawn.toml --engine omega --engine kube --seed 4 --jobs 1 --threshold 2000
compare drawn.toml --engine omega --seed 4 --jobs 1 --time-limit soon
compare drawn.toml --seed 4 --jobs 1
compare drawn.toml --seed 4 --jobs 1 --all -o csv
compare drawn.toml --seed 4 --seed 9 --jobs 1 --rank-all --metric wait --markdown c.md
compare drawn.toml --seed 4 --jobs 1 --objective violations --objective jct -o json
compare drawn.toml --engine omega --metric jct --objective end
compare drawn.toml --jobs 0
compare drawn.toml --as-published --engine omega --jobs 1 --seeds 1
sweep
sweep drawn.toml
sweep drawn.toml --vary seed
sweep drawn.toml --vary seed=
sweep drawn.toml --vary sede=1,2
sweep drawn.toml --vary seed=1,1 --jobs 1 --seeds 1
sweep drawn.toml --vary seed=1 --vary horizon=1s
sweep drawn.toml --vary workload.jobs.j99.count=1
sweep drawn.toml --vary fleet.0.name=a,b --jobs 1 --seeds 1
sweep drawn.toml --vary horizon=soon
sweep drawn.toml --vary cell.machines.t0.count=1,2,4 --jobs 1 --seeds 2 --engine sparrow --engine kube
sweep drawn.toml --vary cell.machines.t0.count=1,2 --jobs 1 --seeds 1 --metric jtc
sweep drawn.toml --vary cell.machines.0.capacity.cpu=1000,4000 --jobs 1 --seeds 1 --rank-all -o json
engines
engines -o json
engines omgea
engines json:Nothing
engines no.such:Class
paper
paper omgea
constraints
constraints lint nothing.txt
constraints translate drawn.toml
constraints print drawn.toml
campaign --runs 0
campaign --world mars --runs 1
campaign --time-limit 0
flow
flow gen
flow solve
flow solve nothing
flow check a b
ps
jobs
machines
logs j0/0
cancel j0
scale j0 3
drain m0
fleet
fleet set
fleet set drawn.toml
fleet set nothing.toml
fleet set drawn.toml --engine omega
record
record -o there
record --journal x --life 0
down
submit
submit nothing.toml
submit -- sleep 1
plan -- sleep 1
plan nothing.yaml
top --once
kubernetes
kubernetes nothing
nothing
--nothing
-o json
ps --server ftp://x
ps --server unix:nowhere
ps --token-file nowhere
why j0/0 --server http://x --run done
"""


def test_commands_called_rightly_and_wrongly(folder: Folder, pytestconfig: pytest.Config) -> None:
    engines, _ = survey()
    folder.write({"drawn.toml": to_toml(ScenarioSource(5, engines).draw(9).document)})
    folder.call("run", "drawn.toml", "--out", "done")
    outcomes = {words: folder.call(*words.split()) for words in CALLS.splitlines()}
    require_digests(PINNED / "called.txt", outcomes, pytestconfig)


def test_engines_and_fleets(folder: Folder, pytestconfig: pytest.Config) -> None:
    outcomes = {}
    for engine in ENGINES:
        calls = [("engines", engine, "-o", form) for form in OUTPUTS]
        outcomes[engine] = folder.calls(calls)
    for command in COMMANDS:
        outcomes[f"{command} without anything"] = folder.call(command, "--help")
    stream = Stream("fleets")
    engines, _ = survey()
    for number in range(40):
        fleet = {"fleet": ScenarioSource(number, engines).draw(number).document["fleet"]}
        what, broken = broken_document(fleet, stream)
        folder.write({"fleet.toml": to_toml(broken)})
        try:
            told = json.dumps(read_entries(Path("fleet.toml")))
        except ArgosyError as error:
            told = f"{error.code}: {error}"
        outcomes[f"fleet {number}"] = f"{what}\n{told}"
    require_digests(PINNED / "engines.txt", outcomes, pytestconfig)
