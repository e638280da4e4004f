"""One switch for the published simulations: settings, machines, schedulers and hops at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from argosy.cli.app import run
from argosy.engines.families.lra.settings import LraSettings
from argosy.engines.registry import ENGINES, find_published, forms_compared, forms_named
from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ScenarioError, SettingError, UnknownForm
from argosy.model.machine_model import MachineModel
from argosy.model.scenario import ConstantLatency, Scenario
from argosy.scenarios.loader import as_published, load, with_engine
from argosy.testing.builders import job

SCENARIO = """
name = "sample"
as_published = {as_published}

[[cell.machines]]
name = "m"
count = 40
capacity = {{ cpu = 1000 }}

[workload.eagle]
path = "sample.tr"
speedup = 1000

[network]
latency = {{ model = "constant", delay = "3ms" }}

[[fleet]]
name = "s"
engine = "{engine}"
settings = {{ {settings} }}
"""
TRACE = "0 3 2.0 1 2 3\n7.5 2 100.0 90 110\n15 4 1.5 1 1 2 2\n"


def write(tmp_path: Path, engine: str, settings: str = "", published: bool = True) -> Path:
    (tmp_path / "sample.tr").write_text(TRACE)
    path = tmp_path / "sample.toml"
    word = "true" if published else "false"
    path.write_text(SCENARIO.format(engine=engine, settings=settings, as_published=word))
    return path


class Answer(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Answer]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def answer(*arguments: str) -> Answer:
        code = run(arguments)
        return Answer(code, *capsys.readouterr())

    return answer


@pytest.mark.parametrize("form", forms_named())
def test_a_form_is_settings_of_its_engine(form: str) -> None:
    engine, published = find_published(form)
    msgspec.convert(published.settings, ENGINES[engine].settings_type)


@pytest.mark.parametrize("form", forms_named())
def test_every_form_runs_a_trace_to_its_end(tmp_path: Path, call: Call, form: str) -> None:
    path = write(tmp_path, "omega", published=False)
    result = call("run", str(path), "--engine", form, "--as-published", "--no-save", "-o", "json")
    assert result.code == 0, result.err
    answer = msgspec.json.decode(result.out)
    assert answer["counts"]["jobs_finished"] == 3


def test_the_switch_sets_machines_schedulers_and_hops(tmp_path: Path) -> None:
    scenario = with_engine(load(write(tmp_path, "omega", published=False), published=True), "eagle")
    entry, form = scenario.fleet[0], find_published("eagle")[1]
    assert (entry.engine, entry.replicas, entry.split) == ("eagle", 1, "random")
    assert entry.settings == form.settings
    assert scenario.machines == form.machines
    assert scenario.network.latency == ConstantLatency(delay=500)


def test_a_scenario_that_is_as_published_says_which_form_by_its_settings(tmp_path: Path) -> None:
    plain = load(write(tmp_path, "murmuration"))
    short = load(write(tmp_path, "murmuration", 'order = "shortest-job"'))
    assert plain.machines == find_published("murmuration-fcfs")[1].machines
    assert short.machines == find_published("murmuration-srjf")[1].machines
    assert plain.fleet[0].replicas == short.fleet[0].replicas == 10


def test_what_a_scenario_spells_out_stays_as_it_is(tmp_path: Path) -> None:
    scenario = load(write(tmp_path, "yaq-d", 'jitter = "1s"'))
    assert scenario.fleet[0].settings["jitter"] == 1_000_000
    assert scenario.fleet[0].settings["share"] == 0.98


def test_a_setting_that_moved_to_the_machines_says_where(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="heartbeat is no longer a setting of yaq-d") as caught:
        load(write(tmp_path, "yaq-d", 'heartbeat = "8s"', published=False))
    assert caught.value.hint == "say it as heartbeat of [machines]"
    assert caught.value.field == "fleet[0].settings.heartbeat"


def test_the_heartbeat_of_machines_is_set_in_the_scenario(tmp_path: Path) -> None:
    path = write(tmp_path, "yaq-d", published=False)
    path.write_text(path.read_text() + '[machines]\nheartbeat = "2s"\n')
    assert load(path).machines.heartbeat == 2_000_000
    assert load(write(tmp_path, "yaq-d")).machines.heartbeat == 8_000


def test_a_form_that_is_named_is_that_form(tmp_path: Path) -> None:
    scenario = load(write(tmp_path, "murmuration", 'order = "shortest-job"'))
    assert with_engine(scenario, "murmuration-fcfs").fleet[0].settings["order"] == "fcfs"


def test_an_engine_without_a_published_form_is_an_error(tmp_path: Path, call: Call) -> None:
    path = write(tmp_path, "omega", published=False)
    for command in ("run", "compare"):
        result = call(command, str(path), "--as-published", "--engine", "yag-d")
        assert result.code == 2
        assert "unknown published form 'yag-d'" in result.err
        assert "did you mean 'yaq-d'?" in result.err


def test_the_error_for_an_engine_without_a_published_form_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(UnknownForm) as caught:
        load(write(tmp_path, "spread"))
    assert (caught.value.line, caught.value.field) == (3, "as_published")


def test_two_kinds_of_schedulers_are_not_a_published_form(tmp_path: Path) -> None:
    scenario: Scenario = load(write(tmp_path, "sparrow", published=False))
    two = msgspec.structs.replace(scenario, fleet=scenario.fleet * 2)
    with pytest.raises(ScenarioError):
        as_published(two)


def test_forms_are_compared_by_name(tmp_path: Path, call: Call) -> None:
    path = write(tmp_path, "sparrow")
    names = ("murmuration-srjf", "murmuration-fcfs", "sparrow")
    engines = [part for name in names for part in ("--engine", name)]
    result = call("compare", str(path), *engines, "--seeds", "1", "--jobs", "1", "-o", "json")
    assert result.code == 0, result.err
    runs = msgspec.json.decode(result.out)["runs"]
    assert [run["engine"] for run in runs] == list(names)


SHORTEST = {"queue": "shortest-remaining", "slack": 5, "start_delay": 1_000}
GOOGLE, CLOUDERA = 90_581_100, 272_783_000
#: Settings, how machines differ from the usual ones, and the number of schedulers, as in the papers.
PUBLISHED: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "murmuration-fcfs": ({"as_published": True, "order": "fcfs"}, {"start_delay": 1_000}, 10),
    "murmuration-srjf": ({"as_published": True, "order": "shortest-job"}, SHORTEST, 10),
    "mesos-simulator": (
        {
            "refuse": 0,
            "uses": "queue-at-once",
            "gather": 1_000_000,
            "least_cores": 100,
            "rest": 1_000_000,
            "attempts_in_vain": 100,
        },
        {},
        1,
    ),
    "murmuration-sjf-stf": (
        {"as_published": True, "order": "shortest-job"},
        {"queue": "shortest-first", "start_delay": 1_000},
        10,
    ),
    "sparrow": ({"cancel": False, "repeated": True}, {}, 1),
    **{
        f"hawk{name}": (
            {"cutoff": cutoff, "long_share": share},
            {
                "start_delay": 1_000,
                "long_above": cutoff,
                "steal": {"attempts": 10, "most": 10_000, "after": after},
            },
            1,
        )
        for name, cutoff, share, after in (
            ("", GOOGLE, 0.98, 0.02),
            ("-cloudera", CLOUDERA, 0.91, 0.09),
        )
    },
    **{
        f"eagle{name}": (
            {
                "cutoff": cutoff,
                "long_share": share,
                "least": 20,
                "stale_state": True,
                "repeated": True,
            },
            {**SHORTEST, "long_above": cutoff},
            1,
        )
        for name, cutoff, share in (("", GOOGLE, 0.98), ("-cloudera", CLOUDERA, 0.91))
    },
    "yaq-c": ({"share": 0.98}, {"start_delay": 1_000}, 1),
    "yaq-c-cloudera": ({"share": 0.91}, {"start_delay": 1_000}, 1),
    **{
        f"yaq-d{name}": (
            {"jitter": heartbeat, "jitter_step": step, "share": share},
            {**SHORTEST, "heartbeat": heartbeat, "heartbeat_counts_sent": True},
            1,
        )
        for name, heartbeat, step, share in (
            ("", 8_000, 1, 0.98),
            ("-cloudera", 8_000, 1, 0.91),
            ("-8s", 8_000_000, 1_000_000, 0.98),
            ("-8s-cloudera", 8_000_000, 1_000_000, 0.91),
        )
    },
    "omega-simulator": ({"retry_after": 1_000_000, "backoff": 0}, {}, 1),
    "firmament-paper": (
        {
            "policy": "quincy",
            "algorithm": "race",
            "heuristics": {"depth_first": False, "fresh_prices": False, "alpha": 9},
            "task_removal": True,
            "evenness": 0,
        },
        {},
        1,
    ),
    "quincy-paper": ({"heuristics": {"alpha": 2}, "scratch_every": 1, "evenness": 0}, {}, 1),
    "medea-printed": ({"algorithm": "ilp-printed", "routing": "constraints"}, {}, 1),
    **{
        f"medea-{name}": ({"algorithm": f"{name}-plain", "routing": "constraints"}, {}, 1)
        for name in ("tag-popularity", "node-candidates", "serial")
    },
    "jkube-plain": ({"reading": "plain", "routing": "constraints"}, {}, 1),
}
#: Those that are not from the simulations of Murmuration's paper: messages take no time there.
WITHOUT_HOPS = {
    "omega-simulator", "mesos-simulator", "firmament-paper", "quincy-paper", "medea-printed",
    "medea-tag-popularity", "medea-node-candidates", "medea-serial", "jkube-plain",
}  # fmt: skip


def test_published_forms_have_the_numbers_of_their_papers() -> None:
    found = {}
    for form in forms_named():
        _, preset = find_published(form)
        machines = {**msgspec.to_builtins(MachineModel()), **PUBLISHED.get(form, ({}, {}, 1))[1]}
        assert msgspec.to_builtins(preset.machines) == machines, form
        found[form] = (preset.settings, preset.schedulers)
    assert found == {form: (told, count) for form, (told, _, count) in PUBLISHED.items()}


def test_published_forms_deal_jobs_and_send_messages_as_in_their_papers() -> None:
    for form in forms_named():
        preset = find_published(form)[1]
        assert preset.hop == (0 if form in WITHOUT_HOPS else 500), form
        assert preset.split == ("round-robin" if form == "omega-simulator" else "random"), form


def test_a_published_form_brings_its_own_hop_and_split(tmp_path: Path) -> None:
    scenario = with_engine(
        load(write(tmp_path, "spread", published=False), published=True), "omega"
    )
    assert scenario.network.latency == ConstantLatency(delay=0)
    assert (scenario.fleet[0].split, scenario.fleet[0].replicas) == ("round-robin", 1)


def test_a_comparison_of_all_published_forms_is_of_the_simulations_of_one_paper() -> None:
    """And of Mesos; other papers' forms are for other machines, or take long with thousands of jobs."""
    assert set(forms_named()) - set(forms_compared()) == WITHOUT_HOPS - {"mesos-simulator"}


def test_in_medea_s_forms_it_is_constraints_that_make_an_application() -> None:
    forms = ("medea-printed", "medea-tag-popularity", "medea-node-candidates", "medea-serial")
    apart = parse_constraint("w -> {w, 0, 0} in machine")
    constrained = job("a", 2, kind="batch", constraints=(apart,)).job
    for form in (*forms, "jkube-plain"):
        engine, preset = find_published(form)
        settings = msgspec.convert(preset.settings, ENGINES[engine].settings_type)
        assert isinstance(settings, LraSettings)
        assert settings.is_lra(constrained), form
        assert not settings.is_lra(job("b", 2, kind="service").job), form
