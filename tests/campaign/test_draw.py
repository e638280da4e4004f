"""Scenarios that campaigns draw."""

import hashlib
import subprocess
import sys
import tomllib
from collections import Counter
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from golden_log import require_golden

from argosy.campaign.dice import FEATURES
from argosy.campaign.draw import ScenarioSource
from argosy.campaign.settings import draw_settings, values_of
from argosy.engines.registry import ENGINES
from argosy.model.errors import SettingError, UnknownName
from argosy.model.machines import GroupName
from argosy.model.scenario import Fault, MachineRelabel, MachineUse
from argosy.scenarios.loader import load
from argosy.scenarios.toml_text import to_toml
from argosy.solvers.flow import Algorithm

MANY = 250


@pytest.fixture(scope="module")
def drawn():
    source = ScenarioSource(5, ENGINES)
    return [source.draw(number).document for number in range(MANY)]


@pytest.fixture(scope="module")
def loaded(drawn, tmp_path_factory):
    file = tmp_path_factory.mktemp("drawn") / "scenario.toml"
    scenarios = {}
    for document in drawn:
        file.write_text(to_toml(document))
        # Settings with which an engine cannot work in the cell are drawn too: such a run is refused.
        with suppress(SettingError):
            scenarios[document["name"]] = load(file)
    return list(scenarios.values())


def test_what_is_drawn_is_written_and_loads(drawn, loaded) -> None:
    names = [document["name"] for document in drawn]
    assert len(loaded) >= 0.95 * len(names)
    assert [scenario.name for scenario in loaded] == [
        n for n in names if n in {s.name for s in loaded}
    ]
    assert all(tomllib.loads(to_toml(document)) == document for document in drawn)


def test_the_same_seed_draws_the_same_in_another_process(drawn) -> None:
    code = (
        "from argosy.campaign.draw import ScenarioSource\n"
        "from argosy.engines.registry import ENGINES\n"
        "source = ScenarioSource(5, ENGINES)\n"
        "print([source.draw(number).document for number in range(20)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONHASHSEED": "77"}
    )
    assert done.stdout.strip() == repr(drawn[:20])


def test_schedulers_that_try_again_without_a_pause_run_for_a_short_time(drawn) -> None:
    for pause, horizons in (("0s", {"1s", "30s", "90s"}), ("3s", {"1s", "30s", "90s", "12min"})):
        busy = {"name": "t", "engine": "kube", "settings": {"retry": pause}}
        source = ScenarioSource(5, ENGINES, fleet=[{"name": "s", "engine": "omega"}, busy])
        assert {source.draw(number).document["horizon"] for number in range(60)} == horizons
    assert Counter(document["horizon"] for document in drawn)["12min"] > 0.8 * MANY


def test_an_engine_that_must_be_alone_has_no_replicas(drawn) -> None:
    replicas = {True: Counter[int](), False: Counter[int]()}
    for document in drawn:
        for entry in document["fleet"]:
            is_alone = ENGINES[entry["engine"]].capabilities.alone
            replicas[is_alone][entry.get("replicas", 1)] += 1
    assert set(replicas[True]) == {1}
    assert set(replicas[False]) == {1, 2, 3, 4}


def test_what_a_seed_draws_for_a_fleet_is_pinned(request: pytest.FixtureRequest) -> None:
    """Whole scenarios as text, and a digest of each section of many."""
    fleet = [
        {"name": "s", "engine": "omega", "replicas": 2, "takes": {"kinds": ["batch"]}},
        {"name": "t", "engine": "sparrow"},
    ]
    source = ScenarioSource(3, ENGINES, fleet=fleet)
    documents = [source.draw(number).document for number in range(200)]
    texts = [to_toml(document) for document in documents[:2]]
    for section in ("cell", "clusters", "workload", "network", "machines", "faults", "horizon"):
        found = [document.get(section) for document in documents]
        digest = hashlib.sha256(msgspec.json.encode(found)).hexdigest()[:16]
        texts.append(f"# {section}: in {sum(map(bool, found))} of {len(found)}, {digest}\n")
    update = request.config.getoption("--update-golden")
    require_golden("drawn", "\n".join(texts), update=update, folder=Path(__file__).parent)


def test_another_seed_draws_something_else(drawn) -> None:
    assert ScenarioSource(6, ENGINES).draw(0).document["workload"] != drawn[0]["workload"]


def test_every_engine_has_its_turn_alone_and_in_mixed_fleets(drawn) -> None:
    alone, mixed = Counter(), Counter()
    for document in drawn:
        engines = {entry["engine"] for entry in document["fleet"]}
        (alone if len(engines) == 1 else mixed).update(engines)
    assert set(alone) == set(mixed) == set(ENGINES)


def test_every_kind_of_fault_is_drawn(loaded) -> None:
    kinds = {type(fault) for scenario in loaded for fault in scenario.faults}
    # What tasks required need not hold any more once their machine is relabelled, so nothing could be
    # checked there. What is observed matters to one setting of one policy only.
    assert kinds == set(Fault.__args__) - {MachineRelabel, MachineUse}


def test_scenarios_have_all_that_a_scenario_can_have(loaded) -> None:
    jobs = [made for scenario in loaded for made in scenario.jobs]
    groups = [group for made in jobs for group in made.groups]
    entries = [entry for scenario in loaded for entry in scenario.fleet]
    assert any(scenario.federation for scenario in loaded)
    assert any(scenario.machines.steal for scenario in loaded)
    assert any(scenario.machines.limit for scenario in loaded)
    assert len({type(scenario.network.latency) for scenario in loaded}) == 3
    assert len({type(entry.decision_time) for entry in entries}) == 3
    assert any(made.job.gang for made in jobs)
    assert any(made.job.activities for made in jobs)
    assert any(c.hard for made in jobs for c in made.job.constraints)
    assert any(made.is_endless for made in jobs)
    assert any(truth.durations == (0,) for made in jobs for truth in made.truth)
    assert any(group.requires for group in groups)
    assert any(group.request.extras for group in groups)
    assert any(entry.limits.jobs for entry in entries)
    assert any(entry.takes.kinds for entry in entries)
    assert any(entry.replicas > 1 for entry in entries)


def present(document) -> set[str]:
    """Some of the features that a document has."""
    found = {fault["kind"] for fault in document.get("faults", ())}
    found |= {key for job in document["workload"]["jobs"] for key in job}
    found |= {key for entry in document["fleet"] for key in entry}
    found |= {*document, *document.get("machines", {}), *document.get("network", {})}
    return found


@pytest.mark.parametrize(
    ("feature", "gone"),
    [
        ("clusters", "clusters"),
        ("gangs", "gang"),
        ("constraints", "constraints"),
        ("limits", "limits"),
        ("replicas", "replicas"),
        ("stealing", "steal"),
        ("queue-limits", "limit"),
        ("drains", "machine-drain"),
        ("resizes", "machine-resize"),
        ("partitions", "partition"),
        ("latency", "latency"),
        ("precedence", "precedence"),
    ],
)
def test_a_feature_can_be_left_out_without_changing_the_others(drawn, feature, gone) -> None:
    source = ScenarioSource(5, ENGINES, without=frozenset({feature}))
    documents = [source.draw(number).document for number in range(80)]
    assert any(gone in present(document) for document in drawn[:80])
    assert not any(gone in present(document) for document in documents)
    if feature in ("stealing", "latency", "drains", "queue-limits"):
        pairs = zip(documents, drawn, strict=False)
        assert all(mine["workload"] == other["workload"] for mine, other in pairs)


def test_jobs_without_gangs_are_otherwise_the_same(drawn) -> None:
    source = ScenarioSource(5, ENGINES, without=frozenset({"gangs"}))
    for number in range(40):
        jobs = source.draw(number).document["workload"]["jobs"]
        known = drawn[number]["workload"]["jobs"]
        assert jobs == [{k: v for k, v in job.items() if k != "gang"} for job in known]


@pytest.mark.parametrize(
    ("feature", "kind", "what"),
    [
        ("crashes", "machine-crash", "machines"),
        ("scheduler-crashes", "scheduler-crash", "schedulers"),
    ],
)
def test_crashes_at_random_are_left_out_with_the_others(feature, kind, what) -> None:
    source = ScenarioSource(5, ENGINES, without=frozenset({feature}))
    documents = [source.draw(number).document for number in range(80)]
    faults = [fault for document in documents for fault in document.get("faults", ())]
    assert kind not in {fault["kind"] for fault in faults}
    at_random = {fault["what"] for fault in faults if fault["kind"] == "random-crashes"}
    assert at_random == {"machines", "schedulers"} - {what}


def test_everything_can_be_left_out(tmp_path) -> None:
    source = ScenarioSource(5, ENGINES, without=frozenset(FEATURES))
    file = tmp_path / "scenario.toml"
    for number in range(40):
        file.write_text(to_toml(source.draw(number).document))
        assert load(file).faults == ()


def test_an_unknown_feature_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'gangs'"):
        ScenarioSource(1, ENGINES, without=frozenset({"gang"}))


def test_a_given_fleet_is_used_as_it_is_with_jobs_of_its_kinds() -> None:
    fleet = [{"name": "only", "engine": "omega", "replicas": 2, "takes": {"kinds": ["query"]}}]
    source = ScenarioSource(5, {"omega": ENGINES["omega"]}, fleet=fleet)
    for number in range(10):
        document = source.draw(number).document
        assert document["fleet"] == fleet
        assert {job["kind"] for job in document["workload"]["jobs"]} == {"query"}


def test_most_settings_of_every_engine_are_drawn() -> None:
    import msgspec

    from argosy.campaign.dice import Dice
    from argosy.model.random import Random

    for name, engine in ENGINES.items():
        dice = Dice(Random(1))
        seen = {
            key
            for number in range(200)
            for key in draw_settings(dice.part(str(number)), engine, ["machine", "rack"])
        }
        fields = msgspec.structs.fields(engine.settings_type)
        can = {f.encode_name for f in fields if values_of(f.type, f.default, ["rack"])}
        assert can <= seen, (name, can - seen)


def test_what_does_not_repeat_is_not_drawn() -> None:
    assert "race" not in values_of(Algorithm, Algorithm.AUTO, [])
    assert "cost-scaling" in values_of(Algorithm, Algorithm.AUTO, [])


def test_settings_that_name_a_node_group_name_one_of_the_cell() -> None:
    assert values_of(GroupName, "", ["machine", "zone"]) == ["", "machine", "zone"]
