"""Several clusters in one scenario: what the tables make, and each mistake with its place."""

import re
from pathlib import Path

import pytest
from small_scenario import SMALL, line

from argosy.experiments.execute import execute
from argosy.model.errors import ArgosyError
from argosy.model.machines import Cluster
from argosy.model.scenario import Places
from argosy.scenarios.loader import as_published, load, with_engine

SCENARIOS = Path(__file__).parents[2] / "scenarios"
CLUSTERS = """\
[[clusters]]
name = "north"
place = "oslo"
[[clusters.machines]]
name = "m"
count = 3
capacity = { cpu = 8000, memory = "32GiB" }
attributes = { arch = "x86" }
joins = { domain = ["u1"] }
[clusters.groups]
rack = { size = 2 }
domain = { sets = ["u1", "u2"] }

[[clusters]]
name = "south"
[[clusters.machines]]
name = "m"
capacity = { cpu = 4000 }
[clusters.groups]
rack = { size = 2 }

"""
HEAD, REST = SMALL[: SMALL.index("[[cell")], SMALL[SMALL.index("[[workload") :]
FEDERATION = f"""{HEAD}{CLUSTERS}{REST}replicas = 2
place = "rome"

[network.places]
default = "20ms"
delays = {{ "rome<>oslo" = "30ms", "south<>oslo" = "10ms" }}
"""


def test_clusters_are_one_cell_whose_names_begin_with_the_clusters(read):
    cell = read(FEDERATION).cell
    assert [machine.name for machine in cell.machines] == [
        "north/m-0",
        "north/m-1",
        "north/m-2",
        "south/m",
    ]
    assert cell.machines[2].joins == {
        "cluster": ("north",),
        "rack": ("north/rack-1",),
        "domain": ("north/u1",),
    }
    assert {group.name: group.sets for group in cell.groups} == {
        "cluster": ("north", "south"),
        "rack": ("north/rack-0", "north/rack-1", "south/rack-0"),
        "domain": ("north/u1", "north/u2"),
    }


def test_clusters_and_schedulers_have_places_and_places_have_distances(read):
    federation = read(FEDERATION).federation
    assert federation.clusters == (Cluster("north", "oslo"), Cluster("south", "south"))
    assert federation.schedulers == {"s-0": "rome", "s-1": "rome"}
    delays = {"rome<>oslo": 30_000, "south<>oslo": 10_000}
    assert federation.places == Places(default=20_000, within=500, delays=delays)


def test_a_place_may_be_the_second_of_its_pair(read):
    turned = read(FEDERATION.replace('"rome<>oslo"', '"oslo<>rome"')).federation
    assert turned.schedulers == {"s-0": "rome", "s-1": "rome"}


def test_a_cell_without_clusters_is_not_a_federation(read):
    assert read(SMALL).federation is None


def test_constraints_and_requirements_are_checked_against_all_clusters(read):
    wish = 'request = { cpu = 500 }\nconstraints = ["a -> {a, 0, 0} in cluster"]\ntags = ["a"]'
    assert read(FEDERATION.replace("request = { cpu = 500 }", wish)).jobs


MISTAKES = {
    "no cluster": ((CLUSTERS, "clusters = []\n"), "clusters = []", "clusters", "no clusters"),
    "a cluster without machines": (
        (
            'name = "south"\n[[clusters.machines]]\nname = "m"\ncapacity = { cpu = 4000 }\n',
            'name = "south"\nmachines = []\n',
        ),
        "machines = []",
        "clusters[1].machines",
        "no machines",
    ),
    "a cluster's name again": (
        ('name = "south"', 'name = "north" # too'),
        "# too",
        "clusters[1].name",
        "each cluster name once",
    ),
    "a cluster's name with a slash": (
        ('name = "south"', 'name = "so/uth"'),
        "so/uth",
        "clusters[1].name",
        "letters, digits",
    ),
    "a cluster's name with a space": (
        ('name = "south"', 'name = "the south"'),
        'name = "the south"',
        "clusters[1].name",
        "letters, digits and _ . : -, beginning with a letter, digit or _",
    ),
    "a place with a space": (
        ('place = "oslo"', 'place = "os lo"'),
        'place = "os lo"',
        "clusters[0].place",
        "a name without spaces, '<' and '>'",
    ),
    "a place that no pair could name": (
        ('place = "oslo"', 'place = "os<>lo"'),
        'place = "os<>lo"',
        "clusters[0].place",
        "without spaces",
    ),
    "a mistake within a cluster": (
        ('domain = ["u1"]', 'domain = ["u3"]'),
        'domain = ["u3"]',
        "clusters[0].machines[0].joins.domain[0]",
        "expected one of u1, u2",
    ),
    "an unknown key of a cluster": (
        ('place = "oslo"', 'plaec = "oslo"'),
        "plaec",
        "clusters[0].plaec",
        "did you mean 'place'?",
    ),
    "the group that all clusters are in": (
        ("rack = { size = 2 }\ndomain", "cluster = { size = 2 }\ndomain"),
        "cluster = { size",
        "clusters[0].groups.cluster",
        "already exists",
    ),
    "a scheduler at a place to which no distance is told": (
        ('"rome<>oslo" = "30ms", ', ""),
        'place = "rome"',
        "fleet[0].place",
        "unknown place 'rome'",
    ),
    "a distance to a place where nobody is": (
        ('place = "rome"\n', ""),
        "rome<>oslo",
        "network.places.delays.rome<>oslo",
        "unknown place 'rome'",
    ),
    "a distance to an unknown place": (
        ("south<>oslo", "suoth<>oslo"),
        "suoth<>oslo",
        "network.places.delays.suoth<>oslo",
        "did you mean 'south'?",
    ),
    "a distance one way": (
        ("south<>oslo", "south>oslo"),
        "south>oslo",
        "network.places.delays.south>oslo",
        '"one<>other"',
    ),
    "a distance within a place": (
        ("south<>oslo", "oslo<>oslo"),
        "oslo<>oslo",
        "network.places.delays.oslo<>oslo",
        "`within`",
    ),
    "a distance told twice": (
        ("south<>oslo", "oslo<>rome"),
        "oslo<>rome",
        "network.places.delays.oslo<>rome",
        "each pair once",
    ),
    "distances without a default": (
        ('default = "20ms"\n', ""),
        "[network.places]",
        "network.places",
        "missing key 'default'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_about_clusters_is_found_where_it_is(refused, mistake):
    (old, new), where, field, said = MISTAKES[mistake]
    assert old in FEDERATION
    text = FEDERATION.replace(old, new, 1)
    error = refused(text, ArgosyError)
    assert said in str(error)
    assert error.field == field
    assert error.line == line(text, where)


def test_all_clusters_together_hold_no_more_machines_than_a_cell(read, refused, monkeypatch):
    monkeypatch.setattr("argosy.scenarios.cluster_tables.MOST_MACHINES", 4)
    assert len(read(FEDERATION).cell.machines) == 4
    monkeypatch.setattr("argosy.scenarios.cluster_tables.MOST_MACHINES", 3)
    error = refused(FEDERATION)
    assert "4 machines in all; expected at most 3" in str(error)
    assert (error.field, error.line) == (
        "clusters[1].machines",
        line(FEDERATION, 'name = "south"') + 1,
    )


def test_no_scheduler_has_the_name_of_an_agent(refused):
    text = FEDERATION.replace('name = "s"', 'name = "cell:north"').replace("replicas = 2\n", "")
    error = refused(text, ArgosyError)
    assert error.field == "fleet[0].name"
    assert "is reserved" in str(error)


def test_a_scenario_has_a_cell_or_clusters(refused):
    both = refused(f"{HEAD}{CLUSTERS}{SMALL[len(HEAD) :]}")
    assert both.field == "clusters"
    assert "both cell and clusters" in str(both)
    neither = refused(HEAD + REST)
    assert "missing key 'cell'" in str(neither)


@pytest.mark.parametrize(
    ("added", "field"),
    [('place = "rome"', "fleet[0].place"), ('[network.places]\ndefault = "1ms"', "network.places")],
)
def test_places_are_for_clusters(refused, added, field):
    error = refused(f"{SMALL}{added}\n")
    assert error.field == field
    assert "places without clusters" in str(error)


def test_latencies_may_name_agents(read, refused):
    pair = (
        '[network]\nlatency = { model = "per-pair", default = "1ms", delays = { "%s" = "2ms" } }\n'
    )
    text = FEDERATION.replace("[network.places]", pair % "s-0>cell:south" + "[network.places]")
    assert read(text).network.latency.delays == {"s-0>cell:south": 2_000}
    assert "cell:suoth" in str(refused(text.replace("cell:south", "cell:suoth"), ArgosyError))


def test_places_follow_the_schedulers_to_another_engine():
    scenario = load(SCENARIOS / "federation.toml")
    other = with_engine(scenario, "murmuration")
    assert other.federation.schedulers == {
        "scheduler-0": "helsinki",
        "scheduler-1": "helsinki",
        "scheduler-2": "lisbon",
    }
    alone = with_engine(scenario, "monolithic")
    assert alone.federation.schedulers == {"scheduler": "helsinki"}


def test_as_published_all_hops_are_alike():
    scenario = with_engine(load(SCENARIOS / "federation.toml"), "sparrow")
    assert as_published(scenario).federation.places is None


@pytest.mark.parametrize("engine", ["omega", "murmuration", "sparrow"])
def test_engines_that_know_nothing_of_clusters_run_on_a_federation(tmp_path, engine):
    scenario = load(SCENARIOS / "federation.toml")
    if engine != "omega":
        scenario = with_engine(scenario, engine)
    counts = execute(scenario, tmp_path / engine).counts
    assert counts.tasks_finished == counts.tasks > 1_000


def test_the_clusters_of_the_documentation_load(read):
    page = (SCENARIOS.parent / "docs" / "scenarios.md").read_text()
    blocks = re.findall(r"```text\n(\[\[clusters.*?)```", page, re.DOTALL)
    text = HEAD + blocks[0] + REST.replace("patient", "omega")
    assert [cluster.place for cluster in read(text).federation.clusters] == ["helsinki", "lisbon"]
