"""Constraints in tables, in other systems' languages, and what `lint` says of them."""

import json

import pytest

from argosy.cli.app import run as main
from argosy.model.constraints.kubernetes import MANY_DOMAINS, to_kubernetes
from argosy.model.constraints.kubernetes_reader import from_kubernetes
from argosy.model.constraints.lint import Surroundings, lint
from argosy.model.constraints.tables import read_constraint
from argosy.model.constraints.text import format_constraint, parse_constraint
from argosy.model.constraints.yarn import from_yarn, to_yarn
from argosy.model.errors import ArgosyError, Untranslatable
from argosy.scenarios.constraint_files import lint_file


def test_a_table_says_what_its_text_says() -> None:
    table = {
        "subject": ["storm"],
        "any": [{"tags": "hb & mem", "min": 1}, {"not": {"tags": "db", "max": 2}}],
        "group": "rack",
        "weight": 2,
    }
    text = "storm -> {hb & mem, 1, inf} or not {db, 0, 2} in rack weight 2"
    assert read_constraint(table) == parse_constraint(text)
    compound = read_constraint(
        {"all_of": [text.removesuffix(" weight 2"), "a -> {b, 1, 2} in zone"]}
    )
    assert format_constraint(compound) == text.replace("weight 2", "and a -> {b, 1, 2} in zone")


@pytest.mark.parametrize(
    ("table", "field"),
    [
        ({"tags": "b", "group": "r"}, None),
        ({"subject": "a", "tags": "b"}, "group"),
        ({"subject": "a", "tags": "b", "min": "1", "group": "r"}, "min"),
        ({"subject": "a", "tags": "b", "most": 1, "group": "r"}, "most"),
        ({"subject": "a", "any": [{"tags": "b"}, {"tags": "c", "max": -1.5}], "group": "r"},
         "any[1].max"),
        ({"any_of": [{"subject": "a", "tags": "b", "group": "r"}, {"subject": "a"}]},
         "any_of[1].group"),
        ({"subject": "a", "tags": "b", "group": "r", "weight": True}, "weight"),
        ({"subject": "a", "spread": {"least": 1}, "group": "r"}, "spread.least"),
        ({"all_of": ["a -> {b, 0, 1} in r hard", "a -> {b, 0, 1} in r"]}, "all_of[0]"),
        (7, None),
    ],
)  # fmt: skip
def test_a_mistake_in_a_table_names_its_field(table, field) -> None:
    with pytest.raises(ArgosyError) as caught:
        read_constraint(table)
    assert caught.value.field == field


AROUND = Surroundings(
    groups={"rack": 2, "zone": 1},
    containers=((frozenset({"a", "b"}), 2), (frozenset({"c"}), 1)),
    machines=(frozenset({"gpu"}),),
    nested=frozenset({("rack", "zone")}),
)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["a -> {c, 1, inf} in rack"], []),
        (["a -> {gpu, 1, inf} in machine"], []),
        (["a -> {c, 1, inf} in rak"], [("error", "unknown-group")]),
        (["a -> {d, 1, inf} in rack"], [("warning", "nobody")]),
        (["a & c -> {c, 1, inf} in rack"], [("warning", "nobody")]),
        (["a -> not {c, 0, inf} in rack"], [("error", "never")]),
        (["a -> {c, 0, 1} and {c, 2, 3} in rack"], [("error", "never")]),
        (["a -> spread {3, inf} over rack"], [("error", "spread"), ("warning", "spread")]),
        (["a -> {c, 0, 0} in rack or c -> {a, 0, 0} in rack"], [("warning", "subjects")]),
        (["a -> {c, 1, 2} in rack"] * 2, [("warning", "twice")]),
        (["a -> {c, 4, inf} in rack", "a -> {c, 0, 3} in rack"], [("error", "conflict")]),
        (["a -> {c, 3, inf} in rack", "a -> {c, 0, 3} in rack"], []),
        (["a & b -> {c, 4, inf} in rack", "a -> {c, 0, 3} in zone"], [("error", "conflict")]),
        (["a -> {c, 4, inf} in zone", "a -> {c, 0, 3} in rack"], []),
        (["a -> {c, 1, inf} in rack", "c -> {a, 0, 0} in rack"], [("error", "conflict")]),
        (["a -> {c, 1, inf} in rack", "c -> {a, 0, 0} in machine"], []),
        (["a -> {c, 0, 3} in rack or a -> {c, 4, 9} in zone", "a -> {c, 4, 9} in rack"],
         []),
    ],
)  # fmt: skip
def test_lint_finds_what_cannot_be_kept_and_what_nothing_answers_to(texts, expected) -> None:
    found = lint([parse_constraint(text) for text in texts], AROUND)
    assert [(finding.severity, finding.code) for finding in found] == expected


def test_lint_without_a_cell_finds_conflicts_alone() -> None:
    texts = ["a -> {c, 4, inf} in hall", "a -> {c, 0, 3} in hall"]
    assert [finding.code for finding in lint(list(map(parse_constraint, texts)))] == ["conflict"]


@pytest.mark.parametrize(
    "text",
    [
        "web -> {cache, 1, inf} in zone hard",
        "web -> {cache & app:x, 0, 0} in machine hard",
        "web -> {web, 0, 2} in machine hard",
        "web -> {db, 0, 2} in rack hard",
        "web -> {disk:ssd, 1, inf} or {gpu, 1, inf} in machine hard",
        "web -> {disk:ssd, 1, inf} and {gpu, 0, 0} in machine hard",
        "web -> {cache, 1, inf} in rack",
    ],
)
def test_what_kubernetes_can_say_comes_back_the_same(text) -> None:
    constraint = parse_constraint(text)
    spec = to_kubernetes([constraint], ["web"], ["disk:ssd", "gpu"])
    assert [format_constraint(back) for back in from_kubernetes(spec)] == [text]


@pytest.mark.parametrize(
    "text",
    [
        "web -> {cache, 2, inf} in rack hard",
        "web -> {cache, 1, 4} in rack hard",
        "web -> {web, 0, 2} in machine",
        "web -> {cache, 1, inf} or {db, 1, inf} in rack hard",
        "web -> {cache, 1, inf} in rack or web -> {db, 0, 0} in rack hard",
        "web -> spread {2, inf} over rack hard",
        "web -> not {cache, 0, inf} in rack hard",
        "web -> {gpu, 1, inf} in rack hard",
    ],
)
def test_what_kubernetes_cannot_say_is_refused_with_the_constraint(text) -> None:
    with pytest.raises(Untranslatable) as caught:
        to_kubernetes([parse_constraint(text)], ["web"], ["gpu"])
    assert text in caught.value.problem


def test_a_skew_is_a_limit_only_against_empty_domains() -> None:
    spread = {"maxSkew": 2, "topologyKey": "rack", "labelSelector": {"matchLabels": {"w": "true"}}}
    spec = {"labels": {"w": "true"}, "topologySpreadConstraints": [spread]}
    with pytest.raises(Untranslatable):
        from_kubernetes(spec)
    spread["minDomains"] = MANY_DOMAINS
    assert format_constraint(from_kubernetes(spec)[0]) == "w -> {w, 0, 1} in rack hard"


def test_a_yarn_specification_reads_as_its_manual_says() -> None:
    text = "zk=3,NOTIN,NODE,zk:hbase=5,IN,RACK,all/zk:spark=7,CARDINALITY,NODE,hbase,1,3"
    parts = from_yarn(text)
    assert [(part.tag, part.count) for part in parts] == [("zk", 3), ("hbase", 5), ("spark", 7)]
    assert [format_constraint(part.constraint) for part in parts] == [
        "appID:self & zk -> {appID:self & zk, 0, 0} in machine hard",
        "appID:self & hbase -> {zk, 1, inf} in rack hard",
        "appID:self & spark -> {appID:self & hbase, 1, 3} in machine hard",
    ]
    assert to_yarn([part.constraint for part in parts], {"zk": 3, "hbase": 5, "spark": 7}) == text


def test_yarn_joins_whole_constraints_and_several_tags_mean_any_of_them() -> None:
    (part,) = from_yarn("a=1,OR(IN,NODE,app-id/9/b:AND(NOTIN,RACK,c,d:IN,RACK,app-tag/t/e))")
    own = "appID:self & a -> "
    assert format_constraint(part.constraint) == (
        f"{own}{{appID:9 & b, 1, inf}} in machine or"
        f" {own}{{appID:self & c, 0, 0}} and {{appID:self & d, 0, 0}} in rack and"
        f" {own}{{t & e, 1, inf}} in rack hard"
    )


@pytest.mark.parametrize(
    "text",
    ["", "a,IN,NODE,b", "a=1,IN,HALL,b", "a=1,NEAR,NODE,b", "a=1,IN,NODE", "a=1,AND(IN,NODE,b",
     "a=1,CARDINALITY,NODE,b,c,1,2", "a=1,IN,NODE,not-self/b", "a=1,AND(IN,NODE,b)",
     "a=1,CARDINALITY,NODE,b,1", "a=1,CARDINALITY,NODE,b,²,3", "a=1,CARDINALITY,NODE,b,1,\u0663",
     "a=\u0661,IN,NODE,b", f"a={'9' * 5_000},IN,NODE,b", f"a=1,CARDINALITY,NODE,b,1,{'9' * 5_000}"],
)  # fmt: skip
def test_a_yarn_specification_that_means_nothing_here_is_refused(text) -> None:
    with pytest.raises(Untranslatable):
        from_yarn(text)


@pytest.mark.parametrize(
    "text",
    [
        "appID:self & a -> {b, 1, inf} in machine",
        "appID:self & a -> {b, 1, inf} in zone hard",
        "a -> {b, 1, inf} in machine hard",
        "appID:self & a -> not {b, 1, inf} in machine hard",
        "appID:self & a -> {b & c & d, 1, inf} in machine hard",
        "appID:self & a -> {b, 2, inf} in machine hard",
        "appID:self & a -> spread {2, inf} over rack hard",
    ],
)
def test_what_yarn_cannot_say_is_refused_with_the_constraint(text) -> None:
    with pytest.raises(Untranslatable) as caught:
        to_yarn([parse_constraint(text)], {"a": 1})
    assert text in caught.value.problem


def test_lint_reports_every_mistake_of_a_file_with_its_line(tmp_path, capsys) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text(
        "a -> {b, 1, inf} in rack  # near\n\na -> {b, 2, 1} in r\n a -> {b, 0, 0} in rack"
    )
    linted = lint_file(rules)
    assert [mistake.place for mistake in linted.mistakes] == ["line 3"]
    assert [(finding.code, linted.constraints[finding.constraint].line) for finding in
            linted.findings] == [("conflict", 4)]  # fmt: skip
    assert main(["constraints", "lint", str(rules), "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["errors"] == 2


@pytest.mark.parametrize("suffix", ["toml", "yaml"])
def test_lists_of_toml_and_yaml_hold_texts_and_tables(suffix, tmp_path, capsys) -> None:
    rules = tmp_path / f"rules.{suffix}"
    rules.write_text(
        'constraints = [\n"a -> {b, 1, inf} in rack",\n{subject = "a", tags = "c", max = 2, group="r"}]'
        if suffix == "toml"
        else "constraints:\n- 'a -> {b, 1, inf} in rack'\n- {subject: a, tags: c, max: 2, group: r}\n"
    )
    assert main(["constraints", "print", str(rules)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "a -> {b, 1, inf} in rack",
        "a -> {c, 0, 2} in r",
    ]


def test_translation_on_the_command_line_goes_both_ways(tmp_path, capsys) -> None:
    rules, pod = tmp_path / "rules.txt", tmp_path / "pod.json"
    rules.write_text("web -> {web, 0, 1} in machine hard\n")
    assert main(["constraints", "translate", str(rules), "--to", "kubernetes", "--tag", "web"]) == 0
    pod.write_text(capsys.readouterr().out)
    assert main(["constraints", "translate", str(pod), "--from", "kubernetes"]) == 0
    assert capsys.readouterr().out == rules.read_text()


def test_static_tags_on_the_command_line_are_labels_of_nodes(tmp_path, capsys) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text("web -> {disk:ssd, 1, inf} in machine hard\n")
    to = ["constraints", "translate", str(rules), "--to", "kubernetes", "--tag", "web"]
    kinds = []
    for options in ([], ["--static", "disk:ssd"]):
        assert main([*to, *options]) == 0
        affinity = json.loads(capsys.readouterr().out)["affinity"]
        kinds.append(list(affinity))
    assert kinds == [["podAffinity"], ["nodeAffinity"]]


@pytest.mark.parametrize(
    ("tag", "hint"),
    [
        ("containerID:two/4", "two has no container 4"),
        ("containerID:twoo/3", "did you mean 'containerID:two/3'?"),
    ],
)
def test_the_name_of_a_container_that_does_not_exist_is_found(tag: str, hint: str) -> None:
    alone = frozenset({"appID:two", "db", "containerID:two/3"})
    kinds = [(frozenset({"appID:two", "db"}), 3), (alone, 1)]
    rule = parse_constraint(f"db -> {{{tag}, 1, inf}} in machine")
    [finding] = lint([rule], Surroundings(containers=kinds))
    assert hint in finding.problem
