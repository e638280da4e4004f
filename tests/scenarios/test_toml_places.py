"""Where in a TOML file a value stands."""

import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.scenarios.toml_places import find_places, line_of

PLACES = '''\
# [not.a.table]
a = 1 # b = 2
"quoted.key" = 'x'
[cell] # comment with "quote
x.y.z = """
[fake]
k = 1 \\""" still"""""
[[cell.m]]
name = "a#]\\""
cap = { cpu = 1, b.c = [1, { d = 2 }] }
[[cell.m]]
list = [
  "x", # , ]
  [1,
   2],
  { k = 1979-05-27T07:32:00Z },
]
[cell.m.sub]
v = true
[ q . 'r s' ]
w = \'\'\'
[[z]]
\'\'\'
t = 1.5e3
'''


def walk(value, path=()):
    if path:
        yield path
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from walk(inside, (*path, key))
    if isinstance(value, list):
        for index, inside in enumerate(value):
            yield from walk(inside, (*path, index))


def test_every_path_of_a_toml_file_has_its_line():
    places = find_places(PLACES)
    assert set(places) == set(walk(tomllib.loads(PLACES)))
    assert places["quoted.key",] == 3
    assert places["cell", "x", "y", "z"] == 5
    assert places["cell", "m", 0, "cap", "b", "c", 1, "d"] == 10
    assert places["cell", "m", 1] == 11
    assert places["cell", "m", 1, "list", 1, 1] == 15
    assert places["cell", "m", 1, "list", 2, "k"] == 16
    assert places["cell", "m", 1, "sub", "v"] == 19
    assert places["q", "r s", "t"] == 24


def test_what_is_missing_is_placed_at_the_table_around_it():
    places = find_places(PLACES)
    assert line_of(places, ("cell", "m", 1, "name")) == 11
    assert line_of(places, ("nowhere",)) is None


keys = st.sampled_from(["a", "b-c", '"d.e"', "'f g'", "1"])
scalars = st.sampled_from(["1", "true", '"x # ]"', "'}'", '"""\n"q" \\" \n"""', "1.5", "[]", "{}"])
values = st.recursive(
    scalars,
    lambda inside: st.lists(inside, max_size=3).map(
        lambda items: "[ # [\n" + ",\n".join(items) + "\n]"
    ),
    max_leaves=5,
)


@given(st.lists(st.tuples(keys, st.lists(st.tuples(keys, values), max_size=3)), max_size=5))
@settings(derandomize=True, deadline=None)
def test_a_key_is_found_on_the_line_that_begins_with_it(tables):
    lines = []
    for header, pairs in tables:
        lines.append(f"[[{header}]]")
        lines += [f"{key} = {value}" for key, value in dict(pairs).items()]
    text = "\n".join(lines)
    document = tomllib.loads(text)
    places = find_places(text)
    content = text.splitlines()
    for header, elements in document.items():
        for index, element in enumerate(elements):
            assert content[places[header, index] - 1].startswith("[[")
            for key in element:
                found = content[places[header, index, key] - 1]
                assert tomllib.loads(found.split(" = ")[0] + " = 1") == {key: 1}
