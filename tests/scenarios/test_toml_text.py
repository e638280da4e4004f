"""Documents written as TOML."""

import tomllib

import pytest

from argosy.scenarios.toml_text import to_toml


@pytest.mark.parametrize(
    "document",
    [
        {"name": "a", "seed": 3, "share": 0.5, "is_on": True, "list": ["x", "y"], "empty": []},
        {"cell": {"machines": [{"name": "m", "capacity": {"cpu": 1}}]}},
        {"cell": {"groups": {"rack": {"size": 2}}, "constraints": ["a -> {a, 0, 0} in rack"]}},
        {"workload": {"jobs": [{"id": "j", "groups": [{"count": 1}, {"count": 2}]}]}},
        {"network": {"latency": {"delays": {"a>b": "1s", "plain": "2s"}}, "loss": 0.0}},
        {"text": 'a "quoted" \\ line\n and \x7f, µs', "key with space": {"é": 1}},
        {"a \x7f": {"\x7f": 1}, "list": [{"\n": "\x7f"}]},
        {"machines": {}, "nested": {"deeper": {"deepest": {}}}},
        {"clusters": [{"name": "n", "machines": [{"name": "m", "joins": {"zone": ["z"]}}]}]},
    ],
)
def test_what_is_written_is_read_back_equal(document: dict[str, object]) -> None:
    assert tomllib.loads(to_toml(document)) == document


def test_plain_values_stand_before_the_tables_that_would_swallow_them() -> None:
    text = to_toml({"cell": {"machines": [{"name": "m"}]}, "seed": 1})
    assert text.index("seed") < text.index("[[cell.machines]]")


def test_none_is_left_out() -> None:
    assert tomllib.loads(to_toml({"a": None, "b": {"c": None, "d": 1}})) == {"b": {"d": 1}}
