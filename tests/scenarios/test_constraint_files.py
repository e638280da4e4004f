"""Constraints in files and in scenarios, as `argosy constraints` finds, checks and prints them."""

import json
from collections import Counter

import pytest
from test_cluster_tables import FEDERATION

from argosy.cli.app import run as main
from argosy.scenarios.constraint_files import lint_file, surroundings
from argosy.scenarios.loader import load

#: Rooms are made of whole racks; rows cut through them, and one machine is in two.
SCENARIO = """\
name = "constrained"
horizon = "1h"
[[cell.machines]]
name = "a"
capacity = { cpu = 8000 }
joins = { rack = ["r1"], room = ["x"], row = ["1"] }
attributes = { disk = "ssd" }
[[cell.machines]]
name = "b"
capacity = { cpu = 8000 }
joins = { rack = ["r1"], room = ["x"], row = ["1", "2"] }
[[cell.machines]]
name = "c"
capacity = { cpu = 8000 }
joins = { rack = ["r2"], room = ["x"], row = ["2"] }
[[cell.machines]]
name = "d"
capacity = { cpu = 8000 }
joins = { rack = ["r3"], room = ["y"], row = ["1"] }
[cell]
constraints = ["web -> {db, 0, 3} in room"]
groups.rack = { sets = ["r1", "r2", "r3"] }
groups.room = { sets = ["x", "y"] }
groups.row = { sets = ["1", "2"] }
[[workload.jobs]]
id = "one"
count = 2
request = { cpu = 500 }
tags = ["web"]
constraints = ["web -> {disk:ssd, 1, inf} in rack", "web -> {db, 4, inf} in rack"]
[[workload.jobs]]
id = "two"
groups = [
    { request = { cpu = 500 }, count = 3, tags = ["db"] },
    { request = { cpu = 500 }, tags = ["db"] },
]
constraints = ["db -> spread {5, inf} over machine", "db -> {dbb, 0, 0} in row"]
[[fleet]]
name = "s"
engine = "medea"
settings = { operator = ["web -> {db, 0, 1} in row", "cache -> {web, 0, 0} in rack"] }
"""


@pytest.fixture
def written(tmp_path):
    def write(text, name="rules.txt"):
        path = tmp_path / name
        path.write_text(text) if isinstance(text, str) else path.write_bytes(text)
        return path

    return write


def failure(capsys, *arguments):
    """The one line that is printed with exit code 2."""
    assert main(["constraints", *map(str, arguments)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_a_scenario_is_checked_against_its_groups_and_containers(written, capsys):
    path = written(SCENARIO, "constrained.toml")
    assert main(["constraints", "lint", str(path), "-o", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["constraints"], told["errors"]) == (7, 1)
    assert [tuple(finding.values()) for finding in told["findings"]] == [
        (
            "warning",
            "spread",
            "job two, constraint 1",
            "spread over 5 sets, but there are 4 such containers",
        ),
        (
            "warning",
            "nobody",
            "job two, constraint 2",
            "nobody carries the tag 'dbb'; did you mean 'db'?",
        ),
        (
            "error",
            "conflict",
            "cell, constraint 1",
            "at least 4 db in a rack, but at most 3 db in a room"
            " (against 'web -> {db, 4, inf} in rack')",
        ),
        ("warning", "nobody", "fleet s, constraint 2", "no container carries cache"),
        ("warning", "nobody", "fleet s, constraint 2", "nobody carries the tag 'cache'"),
    ]


def test_a_group_is_within_another_if_each_of_its_sets_is(written):
    around = surroundings(load(written(SCENARIO, "constrained.toml")), frozenset())
    assert around.groups == {"rack": 3, "room": 2, "row": 2}
    assert around.nested == {("rack", "room")}
    assert around.overlapping == {"row"}
    assert sorted(around.machines, key=len) == [frozenset(), frozenset({"disk:ssd"})]


def test_containers_are_counted_by_their_tags(written):
    scenario = load(written(SCENARIO, "constrained.toml"))
    around = surroundings(scenario, frozenset({"containerID:two/1", "containerID:two/9"}))
    assert around.containers is not None
    counts = {tuple(sorted(tags)): count for tags, count in around.containers}
    assert counts == {
        ("appID:one", "kind:batch", "web"): 2,
        ("appID:two", "db", "kind:batch"): 2,
        ("appID:two", "containerID:two/1", "db", "kind:batch"): 1,
        ("appID:two", "containerID:two/3", "db", "kind:batch"): 1,
    }


def test_containers_of_later_groups_are_numbered_on(written):
    group = "{ request = { cpu = 500 }, tags"
    text = SCENARIO.replace(group, group.replace("{ request", "{ count = 2, request"))
    scenario = load(written(text, "constrained.toml"))
    around = surroundings(scenario, frozenset({"containerID:two/0", "containerID:two/4"}))
    assert around.containers is not None
    named = Counter(tag for tags, count in around.containers for tag in tags for _ in range(count))
    assert (named["containerID:two/0"], named["containerID:two/4"]) == (1, 1)


def test_a_scenario_with_clusters_is_checked_like_any_other(written, capsys):
    rule = 'constraints = ["a -> {b, 1, inf} in rack"]\n'
    text = FEDERATION.replace('"patient"', '"omega"').replace('id = "a"\n', f'id = "a"\n{rule}')
    assert main(["constraints", "lint", str(written(text, "clusters.toml"))]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "1 constraint, 3 findings"
    assert "job a, constraint 1" in out


def test_lint_of_a_plain_list_reads_on_after_mistakes(written, capsys):
    linted = lint_file(
        written("# a comment\n\na -> {b, 1\n  a -> {b, 1, inf} in rack # near\n-> x\n")
    )
    assert [each.place for each in linted.constraints] == ["line 4"]
    assert [mistake.place for mistake in linted.mistakes] == ["line 3", "line 5"]
    assert linted.errors == 2


@pytest.mark.parametrize("name", ["rules.toml", "rules.yaml", "rules.yml"])
def test_lists_name_the_place_of_each_mistake(written, name):
    good, bad = "a -> {b, 1, inf} in rack", "a -> {b"
    if name.endswith("toml"):
        text, places = f'constraints = [\n"{good}",\n"{bad}",\n7]', ("line 2", ["line 3", "line 4"])
    else:
        text = f"- '{good}'\n- '{bad}'\n- 7\n"
        places = ("constraints[0]", ["constraints[1]", "constraints[2]"])
    linted = lint_file(written(text, name))
    (found,) = linted.constraints
    assert (found.place, [mistake.place for mistake in linted.mistakes]) == places


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("x.toml", "other = 1", "no list of constraints; expected constraints = [...]"),
        ("x.yaml", "other: 1", "no list of constraints; expected constraints = [...]"),
        ("x.yaml", "just text", "no list of constraints; expected constraints = [...]"),
        ("x.toml", "a = = 1", "not TOML: Invalid value (at line 1, column 5)"),
        ("x.yaml", "a: [", "not YAML: "),
        ("x.txt", b"a -> \xff", "cannot be read: not UTF-8"),
        ("x.toml", f"constraints = 1{'0' * 5_000}", "not TOML: a number has too many digits"),
        ("x.yaml", f"constraints: 1{'0' * 5_000}", "not YAML: a number has too many digits"),
        ("x.toml", "constraints = " + "[" * 5_000, "not TOML: nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(written, capsys, name, text, told):
    path = written(text, name)
    for action in ("lint", "print"):
        assert failure(capsys, action, path).startswith(f"argosy: error[model]: {path}: {told}")


def test_a_missing_file_is_named(tmp_path, capsys):
    told = failure(capsys, "lint", tmp_path / "none.txt")
    assert (
        told
        == f"argosy: error[model]: {tmp_path}/none.txt: cannot be read: No such file or directory"
    )


def test_printing_tells_every_mistake(written, capsys):
    path = written("a -> {b\na -> {b, 0, 0} in rack\n-> x\n")
    assert main(["constraints", "print", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    later, first = captured.err.splitlines()
    assert f"{path}: line 3: " in later
    assert first.startswith(f"argosy: error[command]: {path}: line 1: ")


def test_constraints_are_printed_as_tables_and_rows_too(written, capsys):
    path = written("web->{web,0,1}   in machine hard\n")
    text = "web -> {web, 0, 1} in machine hard"
    for output, told in (("table", f"{text}\n"), ("csv", f'constraint\n"{text}"\n')):
        assert main(["constraints", "print", str(path), "-o", output]) == 0
        assert capsys.readouterr().out.replace("\r", "") == told
    assert main(["constraints", "print", str(path), "-o", "json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["constraints"]
    assert table == {"subject": "web", "tags": "web", "max": 1, "group": "machine", "hard": True}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "neither or both of --to and --from; expected one of them"),
        (("--to", "yarn", "--from", "yarn"), "neither or both of --to and --from"),
        (("--to", "yarn", "--tag", "zk"), "--tag zk; expected TAG=COUNT, such as zk=3"),
        (("--to", "yarn", "--tag", "zk=²"), "--tag zk=²; expected TAG=COUNT, such as zk=3"),
        (("--from", "yarn"), "rules.txt: "),
    ],
)
def test_what_to_translate_has_to_be_clear(written, capsys, options, told):
    path = written("web -> {web, 0, 1} in machine hard\n")
    assert told in failure(capsys, "translate", path, *options)


def test_yarn_is_translated_there_and_back(written, capsys):
    path = written("appID:self & zk -> {appID:self & zk, 0, 0} in machine hard\n")
    assert main(["constraints", "translate", str(path), "--to", "yarn", "--tag", "zk=3"]) == 0
    text = capsys.readouterr().out
    assert text == "zk=3,NOTIN,NODE,zk\n"
    assert main(["constraints", "translate", str(written(text, "spec")), "--from", "yarn"]) == 0
    assert capsys.readouterr().out == path.read_text()
