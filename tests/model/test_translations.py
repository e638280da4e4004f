"""Constraints in the words of Kubernetes and YARN, exactly; contradictions; amounts; tables as TOML."""

from __future__ import annotations

import tomllib
from typing import Any

import numpy as np
import pytest

from argosy.model.constraints.kubernetes import to_kubernetes
from argosy.model.constraints.lint import Surroundings, _clash
from argosy.model.constraints.text import parse_constraint
from argosy.model.constraints.yarn import from_yarn, to_yarn
from argosy.model.errors import ArgosyError, ModelError
from argosy.model.resources import Resources, dimensions_of
from argosy.model.wire import same
from argosy.scenarios.toml_text import to_toml


def kubernetes(*texts: str, tags: tuple[str, ...] = ("w",), static: tuple[str, ...] = ()) -> Any:
    return to_kubernetes([parse_constraint(text) for text in texts], tags, static)


class TestKubernetes:
    def test_presence_and_absence_are_affinities(self) -> None:
        found = kubernetes(
            "w -> {a & b, 1, inf} in rack hard",
            "w -> {c, 0, 0} in machine weight 3",
            "w -> {d, 0, 0} in machine hard",
        )
        text = repr(found)
        assert "podAffinity" in text
        assert "podAntiAffinity" in text
        affinity = found["affinity"]
        (required,) = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert len(required["labelSelector"]["matchLabels"]) == 2
        anti = affinity["podAntiAffinity"]
        (hard,) = anti["requiredDuringSchedulingIgnoredDuringExecution"]
        (soft,) = anti["preferredDuringSchedulingIgnoredDuringExecution"]
        assert (
            hard["topologyKey"]
            == soft["podAffinityTerm"]["topologyKey"]
            == "kubernetes.io/hostname"
        )
        assert required["topologyKey"] != hard["topologyKey"]
        assert 1 <= soft["weight"] <= 100

    @pytest.mark.parametrize(("tags", "skew"), [(("w",), 3), (("v",), 2)])
    def test_an_upper_bound_is_a_spread_that_counts_the_pod_itself(
        self, tags: tuple[str, ...], skew: int
    ) -> None:
        subject = tags[0]
        found = kubernetes(f"{subject} -> {{w, 0, 2}} in rack hard", tags=tags)
        (spread,) = found["topologySpreadConstraints"]
        assert (spread["maxSkew"], spread["whenUnsatisfiable"]) == (skew, "DoNotSchedule")
        assert spread["minDomains"] >= 2

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("w -> {a, 2, inf} in rack hard", "two or more pods"),
            ("w -> {a, 1, 3} in rack hard", "from both sides"),
            ("w -> {a, 0, 3} in rack", "soft spreads bound no count"),
        ],
    )
    def test_what_it_cannot_say_is_named(self, text: str, says: str) -> None:
        with pytest.raises(ArgosyError, match=says):
            kubernetes(text)


class TestYarn:
    @pytest.mark.parametrize(
        ("text", "written"),
        [
            ("appID:self & zk -> {appID:self & zk, 0, 0} in machine hard", "zk=3,NOTIN,NODE,zk"),
            ("appID:self & zk -> {hb, 1, inf} in rack hard", "zk=3,IN,RACK,all/hb"),
            (
                "appID:self & zk -> {appID:other & hb, 0, 4} in rack hard",
                "zk=3,CARDINALITY,RACK,app-id/other/hb,0,4",
            ),
            ("appID:self & zk -> {a & b, 1, inf} in rack hard", "zk=3,IN,RACK,app-tag/a/b"),
            (
                "appID:self & zk -> {a, 1, inf} and {b, 0, 0} in rack hard",
                "zk=3,AND(IN,RACK,all/a:NOTIN,RACK,all/b)",
            ),
            (
                "appID:self & zk -> {a, 1, inf} or {b, 1, inf} in rack hard",
                "zk=3,OR(IN,RACK,all/a:IN,RACK,all/b)",
            ),
            (
                "appID:self & zk -> {a, 1, inf} in rack or appID:self & zk -> {b, 0, 0} in machine hard",
                "zk=3,OR(IN,RACK,all/a:NOTIN,NODE,all/b)",
            ),
        ],
    )
    def test_a_constraint_is_written_and_read_back(self, text: str, written: str) -> None:
        constraint = parse_constraint(text)
        assert to_yarn([constraint], {"zk": 3}) == written
        (part,) = from_yarn(written)
        assert (part.tag, part.count, part.constraint.hard) == ("zk", 3, True)
        assert to_yarn([part.constraint], {"zk": 3}) == written

    def test_several_constraints_of_a_tag_are_joined(self) -> None:
        first = parse_constraint("appID:self & zk -> {a, 1, inf} in rack hard")
        second = parse_constraint("appID:self & zk -> {b, 0, 0} in machine hard")
        third = parse_constraint("appID:self & hb -> {b, 0, 0} in machine hard")
        assert to_yarn([first, third, second], {"zk": 3, "hb": 1}) == (
            "zk=3,AND(IN,RACK,all/a:NOTIN,NODE,all/b):hb=1,NOTIN,NODE,all/b"
        )
        with pytest.raises(ArgosyError, match="no number of containers with the tag 'hb'"):
            to_yarn([third], {"zk": 3})

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("zk=3,CARDINALITY,RACK,a,0", "no bounds"),
            ("zk=3,CARDINALITY,RACK,0,1", "no bounds"),
            ("zk=3,CARDINALITY,RACK,a,b,0,1", "a cardinality of several tags"),
            ("zk=3,CARDINALITY,RACK,a,x,1", "no bounds"),
            ("zk=3,IN,NODE", "no tags"),
            ("zk=3,IN,ZONE,a", "unknown scope 'ZONE'"),
            ("zk=3,NEAR,NODE,a", "unknown kind 'NEAR'"),
            ("zk=3,AND(IN,NODE,a)", "one part in"),
            ("zk=3,IN,NODE,other/a", "namespace 'other'"),
        ],
    )
    def test_a_mistake_is_named(self, text: str, says: str) -> None:
        with pytest.raises(ArgosyError, match=says):
            from_yarn(text)


class TestContradictions:
    def clash(self, one: str, other: str, **around: Any) -> str | None:
        a, b = (parse_constraint(text).rule for text in (one, other))
        return _clash(a, b, Surroundings(**around))  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("one", "other", "is_clash"),
        [
            ("w -> {a, 3, inf} in rack", "w -> {a, 0, 2} in rack", True),
            ("w -> {a, 2, inf} in rack", "w -> {a, 0, 2} in rack", False),
            ("w -> {a & b, 3, inf} in rack", "w -> {a, 0, 2} in rack", True),
            ("w -> {a, 3, inf} in rack", "w -> {a & b, 0, 2} in rack", False),
            ("w & x -> {a, 3, inf} in rack", "w -> {a, 0, 2} in rack", True),
            ("w -> {a, 3, inf} in rack", "w & x -> {a, 0, 2} in rack", False),
            ("w -> {a, 3, inf} in machine", "w -> {a, 0, 2} in rack", True),
            ("w -> {a, 3, inf} in rack", "w -> {a, 0, 2} in machine", False),
            ("w -> {a, 3, inf} in rack", "w -> {a, 1, inf} in rack", False),
            # Whom the one wants nearby does not want it there.
            ("w -> {a, 1, inf} in rack", "a -> {w, 0, 0} in rack", True),
            ("w -> {a, 1, inf} in rack", "a -> {w, 0, 1} in rack", False),
            ("w -> {a, 1, inf} in rack", "a & b -> {w, 0, 0} in rack", False),
            ("w -> {a & b, 1, inf} in rack", "a -> {w, 0, 0} in rack", True),
            ("w -> {a, 1, inf} in rack", "a -> {w & v, 0, 0} in rack", False),
            ("w & v -> {a, 1, inf} in rack", "a -> {w, 0, 0} in rack", True),
            ("w -> {a, 1, inf} in rack", "a -> {w, 0, 0} in machine", False),
        ],
    )
    def test_who_asks_for_more_than_is_allowed(self, one: str, other: str, is_clash: bool) -> None:
        assert (self.clash(one, other) is not None) == is_clash

    def test_groups_that_overlap_or_are_nested(self) -> None:
        one, other = "w -> {a, 3, inf} in rack", "w -> {a, 0, 2} in rack"
        assert self.clash(one, other, overlapping=frozenset({"rack"})) is None
        told = self.clash(one, "w -> {a, 0, 2} in zone", nested=frozenset({("rack", "zone")}))
        assert told == "at least 3 a in a rack, but at most 2 a in a zone"
        assert self.clash(one, "w -> {a, 0, 2} in zone") is None
        told = self.clash("w -> {a, 1, inf} in rack", "a -> {w, 0, 0} in rack")
        assert told == "w wants a in its rack, which does not want w in its rack"


class TestAmounts:
    def test_vectors_are_in_the_order_of_the_cell(self) -> None:
        plain, gpu = Resources(1, 2), Resources(1, 2, {"gpu": 3})
        assert plain.vector(("cpu", "memory")) == (1, 2)
        assert plain.vector(("cpu", "memory", "gpu", "tpu")) == (1, 2, 0, 0)
        assert gpu.vector(("cpu", "memory", "disk", "gpu")) == (1, 2, 0, 3)
        assert plain.vector(("memory", "cpu")) == (2, 1)
        with pytest.raises(ModelError, match="the cell has no resource 'gpu'; expected one of cpu"):
            gpu.vector(("cpu", "memory"))
        assert Resources(1, 2, {"gpu": 0}).vector(("cpu", "memory")) == (1, 2)
        assert gpu.within(("gpu", "cpu", "x")) == (3, 1, 0)

    def test_dimensions_are_all_that_are_asked_for(self) -> None:
        asked = [Resources(1, 1, {"b": 1}), Resources(1, 1, {"a": 1, "b": 2})]
        assert dimensions_of(asked) == ("cpu", "memory", "a", "b")
        assert dimensions_of([]) == ("cpu", "memory")
        many = Resources(1, 1, {f"r{n}": 1 for n in range(6)})
        assert len(dimensions_of([many])) == 8
        with pytest.raises(ModelError, match="9 resource dimensions; expected at most 8"):
            dimensions_of([many, Resources(1, 1, {"x": 1})])

    @pytest.mark.parametrize("amount", [-1, 2**53 + 1])
    def test_an_amount_has_bounds(self, amount: int) -> None:
        with pytest.raises(ModelError, match="an amount from 0 to 2\\^53"):
            Resources(0, 0, {"gpu": amount})
        assert Resources(2**53).cpu == 2**53

    def test_texts_are_read_with_their_units(self) -> None:
        found = Resources.parse({"cpu": "500m", "memory": "2GiB", "gpu": 1})
        assert found == Resources(500, 2 << 30, {"gpu": 1})
        with pytest.raises(ArgosyError) as caught:
            Resources.parse({"memry": "2GiB"})
        assert caught.value.field == "memry"
        assert "memory" in (caught.value.hint or "")


def test_values_are_the_same_only_with_the_same_types() -> None:
    array = np.array([1, 2], np.int64)
    assert same([array, (1, "a")], [array.copy(), (1, "a")])
    assert same({"a": [1]}, {"a": [1]})
    for one, other in (
        ([1, 2], (1, 2)),
        ([1], [1, 2]),
        ([1], [2]),
        ((1, 2), (1, 3)),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 2}),
        (1, True),
        (array, array.astype(np.int32)),
        (array, array + 1),
        (np.int64(1), 1),
    ):
        assert not same(one, other), (one, other)


def test_tables_are_written_as_people_would() -> None:
    table = {
        "name": 'a "b"\x7f',
        "seed": 3,
        "share": 0.5,
        "is": True,
        "none": None,
        "list": [1, "x"],
        "empty": {},
        "cell": {"constraints": ["c"], "at": {"deep": [{"a": 1}, {"b": None}]}},
        "fleet": [{"name": "s", "settings": {"a b": 1}, "parts": [{"x": 1}, {"y": 2}]}],
    }
    text = to_toml(table)
    assert tomllib.loads(text) == {
        "name": 'a "b"\x7f',
        "seed": 3,
        "share": 0.5,
        "is": True,
        "list": [1, "x"],
        "empty": {},
        "cell": {"constraints": ["c"], "at": {"deep": [{"a": 1}, {}]}},
        "fleet": [{"name": "s", "settings": {"a b": 1}, "parts": [{"x": 1}, {"y": 2}]}],
    }
    assert "parts = [\n  { x = 1 },\n  { y = 2 },\n]\n" in text
    assert '"a b" = 1' in text
    with pytest.raises(TypeError, match="TOML has no object"):
        to_toml({"a": object()})
