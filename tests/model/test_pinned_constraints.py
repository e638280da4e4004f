"""Constraints of every form, read, written, judged, checked and translated to and from every notation,
with all that is refused on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from drawn_clusters import dice_of, draw_constraint
from pinned_digests import require_digests
from told_values import outcome, told

from argosy.campaign.dice import Dice
from argosy.model.constraints import Constraint, parts
from argosy.model.constraints.kubernetes import label, tag_of, to_kubernetes
from argosy.model.constraints.kubernetes_manifests import from_manifests
from argosy.model.constraints.kubernetes_reader import from_kubernetes
from argosy.model.constraints.lint import Surroundings, lint, unsound
from argosy.model.constraints.meaning import Container, Meaning, distance, negated
from argosy.model.constraints.tables import read_constraint, write_constraint
from argosy.model.constraints.text import format_constraint, parse_constraint
from argosy.model.constraints.yarn import from_yarn, to_yarn
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.solvers.placement.forms import alternatives, without_choice

PINNED: Final = Path(__file__).parent / "pinned"
GROUPS: Final = ["machine", "rack", "zone", "cluster"]
TAGS: Final = ("web", "db", "cache")


def drawn(dice: Dice, tags: Any = TAGS) -> Constraint:
    return parse_constraint(draw_constraint(dice, tags, GROUPS))


def machines(dice: Dice) -> list[Machine]:
    return [
        Machine(
            f"m{at}",
            Resources(1_000, 1),
            {"disk": dice.one_of(("ssd", "hdd")), "gpu-node": dice.one_of(("true", "no"))},
            {"rack": (f"r{at // 2}",)} | ({"zone": tuple(dice.some_of(("a", "b"), 0))}),
        )
        for at in range(dice.among(1, 5))
    ]


def around(dice: Dice) -> Surroundings:
    return Surroundings(
        groups=dice.one_of((None, {"rack": 2, "zone": 1}, {"rack": 9, "zone": 3, "cluster": 2})),
        containers=dice.one_of(
            (None, [(frozenset({"web"}), 2)], [(frozenset({"web", "db"}), 1), (frozenset(), 3)])
        ),
        machines=dice.one_of(((), [frozenset({"disk:ssd"}), frozenset({"gpu-node"})])),
        nested=dice.one_of((frozenset(), frozenset({("machine", "rack"), ("rack", "zone")}))),
        overlapping=dice.one_of((frozenset(), frozenset({"zone"}))),
    )


def told_constraint(constraint: Constraint, dice: Dice) -> str:
    rule = constraint.rule
    text = format_constraint(constraint)
    again = parse_constraint(text)
    table = write_constraint(constraint)
    leaves = list(parts.leaves(rule))
    rename = {"web": "shop", "appID:self": "appID:j7"}
    tags = frozenset(dice.some_of((*TAGS, "appID:self")))
    lines = [
        told(constraint),
        text,
        told(again == constraint),
        told(table),
        told(read_constraint(table) == constraint),
        told(leaves),
        told(list(parts.conjuncts(constraint))),
        told(parts.tags_of(rule)),
        told(list(parts.names_of(rule))),
        told(parts.renamed(constraint, rename)),
        told(parts.apart_tag(constraint)),
        told(parts.of_job("j7", [constraint])),
        told(parts.container_names([constraint])),
        outcome(alternatives, rule, tags),
        outcome(without_choice, rule, frozenset({"zone"})),
    ]
    for leaf in leaves:
        if hasattr(leaf, "expression"):
            lines.append(told(list(parts.atoms(leaf.expression))))
            lines.append(outcome(negated, leaf.expression))
    return "\n".join(lines)


@pytest.mark.parametrize("part", range(3))
def test_constraints_and_what_they_mean_are_pinned(
    part: int, request: pytest.FixtureRequest
) -> None:
    outcomes = {}
    for number in range(100):
        dice = dice_of("constraint", part, number)
        rules = [drawn(dice) for _ in range(dice.among(1, 3))]
        lines = [told_constraint(each, dice) for each in rules]
        known = machines(dice)
        meaning = Meaning(known)
        containers = [
            Container(frozenset(dice.some_of((*TAGS, "appID:self"))), dice.one_of(known).name)
            for _ in range(dice.among(0, 6))
        ]
        lines.append(told(meaning.judge(rules, containers)))
        lines.append(told(meaning.judge(rules, containers).containers))
        lines += [
            told(meaning.extent(each.rule, one, containers)) for each in rules for one in containers
        ]
        seen = around(dice)
        lines += [outcome(lint, rules, seen), outcome(unsound, rules, seen), outcome(lint, rules)]
        tags = dice.some_of((*TAGS, "disk:ssd"))
        spec = outcome(to_kubernetes, rules, tags, dice.one_of(((), ("disk:ssd", "gpu-node"))))
        lines.append(spec)
        for each in rules:
            for hard in (False, True):
                one = Constraint(each.rule, each.weight, hard)
                lines.append(outcome(to_kubernetes, [one], tags, ("disk:ssd", "gpu-node")))
                lines.append(outcome(read_back, [one], tags))
                lines.append(outcome(to_yarn, [one], {"web": 3, "db": 1}))
        lines.append(outcome(to_yarn, [Constraint(r.rule, 1.0, True) for r in rules], {"web": 2}))
        outcomes[f"{part} {number}"] = "\n".join(lines)
    require_digests(PINNED / f"constraints_{part}.txt", outcomes, request.config)


def read_back(rules: list[Constraint], tags: list[str]) -> Any:
    spec = to_kubernetes(rules, tags, ("disk:ssd", "gpu-node"))
    found = from_kubernetes(spec)
    kind = {"kind": "Deployment", "metadata": {"name": "web"}}
    inside = {name: part for name, part in spec.items() if name != "labels"}
    pod = {"metadata": {"labels": spec.get("labels")}, "spec": inside}
    return found, from_manifests([kind | {"spec": {"template": pod}}])


TEXTS: Final = (
    "web -> {db, 0, 1} in rack", "web & db -> not ({db, 1, inf} or {web, 0, 0}) in zone hard",
    "web -> spread {1, 3} over rack weight 0.5",
    "(web -> {db, 0, 1} in rack) or db -> {web, 1, 2} in zone",
)  # fmt: skip
PIECES: Final = (
    "", " ", "->", "{", "}", ",", "in", "over", "rack", "-1", "inf", "9" * 30, "weight", "weight 0",
    "weight -1", "weight x", "hard", "hard hard", "not", "(", ")", "or", "and", "&", "é", "\t", "{}",
    "spread", "spread {2, 1}", "1.5", "{web, 3, 1}", "appID:self", "#",
)  # fmt: skip


def test_changed_texts_and_their_errors_are_pinned(request: pytest.FixtureRequest) -> None:
    """At each word of a text, another one, or one more."""
    outcomes = {}
    for number, text in enumerate(TEXTS):
        words = text.split(" ")
        for at in range(len(words) + 1):
            lines = []
            for piece in PIECES:
                lines.append(outcome(parse_constraint, " ".join([*words[:at], piece, *words[at:]])))
                other = " ".join([*words[:at], piece, *words[at + 1 :]])
                lines.append(outcome(parse_constraint, other))
            outcomes[f"{number} {at}"] = "\n".join(lines)
    deep = "(" * 200 + TEXTS[0] + ")" * 200
    outcomes["deep"] = outcome(parse_constraint, deep)
    outcomes["not"] = outcome(parse_constraint, "web -> " + "not " * 300 + "{db, 0, 1} in rack")
    require_digests(PINNED / "constraint_texts.txt", outcomes, request.config)


def changed(value: Any, dice: Dice) -> Any:
    """The value with one thing in it replaced, left out or added."""
    wrong = dice.one_of(
        (None, True, -1, 0, 3, 2**40, 1.5, "", "x", [], {}, [1], {"x": 1}, "web web")
    )
    if isinstance(value, dict) and value and dice.chance(0.85):
        key = dice.one_of(list(value))
        match dice.among(0, 6):
            case 0:
                return {k: v for k, v in value.items() if k != key}
            case 1:
                return value | {dice.one_of(("x", f"{key}s", "kind")): wrong}
            case _:
                return value | {key: changed(value[key], dice)}
    if isinstance(value, list) and value and dice.chance(0.85):
        at = dice.among(0, len(value) - 1)
        match dice.among(0, 4):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return [*value, wrong]
            case _:
                return [*value[:at], changed(value[at], dice), *value[at + 1 :]]
    return wrong


@pytest.mark.parametrize("part", range(2))
def test_changed_tables_and_specifications_are_pinned(
    part: int, request: pytest.FixtureRequest
) -> None:
    outcomes = {}
    for number in range(120):
        dice = dice_of("tables", part, number)
        rule = drawn(dice)
        table: Any = write_constraint(rule)
        lines = [outcome(read_constraint, changed(table, dice)) for _ in range(8)]
        spec: Any = None
        for _ in range(10):
            try:
                spec = to_kubernetes([drawn(dice), drawn(dice)], ["web", "db"], ("disk:ssd",))
            except Exception:
                continue
            break
        if spec is not None:
            plain = json.loads(json.dumps(spec))
            for _ in range(12):
                other = changed(plain, dice)
                lines.append(outcome(from_kubernetes, other))
                kind = dice.one_of(("Pod", "Job", "CronJob", "List", "Service", "PodTemplate"))
                manifest = {
                    "kind": kind,
                    "metadata": {"name": "n"},
                    "spec": other,
                    "items": [other],
                }
                lines.append(outcome(from_manifests, [changed(manifest, dice), None]))
        outcomes[f"{part} {number}"] = "\n".join(lines)
    require_digests(PINNED / f"constraint_tables_{part}.txt", outcomes, request.config)


YARN: Final = (
    "web=3,IN,RACK,db", "web=3,NOTIN,NODE,web", "web=3,CARDINALITY,RACK,db,0,2", "zk=1",
    "web=2,AND(IN,RACK,db:NOTIN,NODE,web)", "web=2,OR(IN,NODE,all/db:CARDINALITY,NODE,x,1,1)",
    "a=1,IN,NODE,app-id/j7/db:b=2,NOTIN,RACK,app-tag/t/web", "a=1,NODE,EQ,x",
)  # fmt: skip


def test_specifications_of_yarn_are_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {}
    for number, text in enumerate(YARN):
        lines = [outcome(from_yarn, text)]
        for at in range(len(text) + 1):
            pieces = ("", ",", ":", "(", ")", "x", "0", "-", " ", "=", "/")
            lines += [outcome(from_yarn, text[:at] + each + text[at + 1 :]) for each in pieces]
        outcomes[f"{number}"] = "\n".join(lines)
    require_digests(PINNED / "yarn.txt", outcomes, request.config)


def test_small_rules_are_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {
        "distance": "\n".join(
            outcome(distance, count, least, most)
            for count in range(6)
            for least in range(5)
            for most in (None, 0, 1, 3)
        ),
        "labels": told([label(tag) for tag in ("web", "a:b", "a:", ":b", "a:b:c", "x:true")]),
        "tags": told([tag_of(k, v) for k in ("a", "") for v in ("true", "b", "")]),
        "names": told(
            [
                parts.app_tag("j 7"),
                parts.kind_tag("a{b}"),
                parts.container_tag("j7", 3),
                parts.is_container_of("j7", parts.container_tag("j7", 3)),
                parts.is_container_of("j", parts.container_tag("j7", 3)),
            ]
        ),
    }
    require_digests(PINNED / "small_rules.txt", outcomes, request.config)
