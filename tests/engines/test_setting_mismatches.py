"""Settings that do not fit a run: which one, why, what was expected and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.engines.api import NeededExtra, RunFacts, SettingMismatch
from argosy.engines.families.flow.policies import find_policy, policy_mismatch
from argosy.engines.families.flow.policies.network_aware import NetworkAware
from argosy.engines.families.flow.settings import FlowSettings
from argosy.engines.families.lra import program
from argosy.engines.families.lra.program import ByProgram, ProgramSettings
from argosy.engines.families.lra.settings import QueueCapacity, TaskQueueSettings
from argosy.engines.firmament.engine import Firmament, FirmamentSettings
from argosy.engines.jkube.engine import JKube, JKubePlus, JKubeSettings
from argosy.engines.medea.engine import Medea, MedeaSettings
from argosy.engines.quincy.engine import Quincy, QuincySettings
from argosy.engines.vela.engine import Vela
from argosy.engines.vela.settings import VelaSettings
from argosy.engines.yarn.engine import Yarn, YarnSettings
from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ModelError, SettingError
from argosy.model.jobs import Job
from argosy.testing.builders import job

CHOICE = "a -> {a, 0, 0} in machine or a -> {a, 0, 1} in rack"
SPREAD = "a -> spread {2, inf} over rack"
PLAIN = "a -> {a, 0, 0} in machine"


def facts(*jobs: Job, operator: str = "", machines: int = 10, **fields: Any) -> RunFacts:
    usual: dict[str, Any] = {
        "dimensions": ("cpu", "memory"),
        "machines": machines,
        "groups": {"rack": 2},
        "overlapping": frozenset({"row"}),
        "constraints": (parse_constraint(operator),) if operator else (),
        "jobs": jobs,
    }
    return RunFacts(**{**usual, **fields})


def asking(text: str, name: str = "web", **fields: Any) -> Job:
    made: Job = job(name, 2, tags=("a",), constraints=(parse_constraint(text),), **fields).job
    return made


class TestFlow:
    def test_a_policy_that_needs_links_names_what_machines_have(self) -> None:
        settings = FirmamentSettings(policy="network-aware", bandwidth="net")
        expected = SettingMismatch(
            ("policy",),
            "the policy network-aware needs the resource 'net', which no machine has",
            "machines that have it, or the setting bandwidth to be one of cpu, memory",
            "add net to the capacity of machines, or choose another policy",
        )
        assert Firmament.mismatch(settings, facts()) == expected
        assert Firmament.mismatch(settings, facts(dimensions=("cpu", "net"))) is None
        own = QuincySettings(policy="network-aware", bandwidth="net")
        assert Quincy.mismatch(own, facts()) == expected
        assert Quincy.mismatch(QuincySettings(), facts()) is None
        with pytest.raises(ModelError) as caught:
            NetworkAware(settings, None, ("cpu", "memory"))  # type: ignore[arg-type]
        assert str(caught.value) == (
            "the policy network-aware needs the resource 'net'; "
            "expected machines that have it; one of cpu, memory"
        )

    def test_only_observed_bandwidth_is_observed(self) -> None:
        for use, observed in (("observed", "net"), ("reserved", None)):
            settings = FlowSettings(bandwidth="net", bandwidth_use=use)  # type: ignore[arg-type]
            assert NetworkAware.observed(settings) == observed

    def test_a_policy_that_does_not_exist_gets_a_suggestion(self) -> None:
        with pytest.raises(SettingError) as caught:
            find_policy("quinzy")
        error = caught.value
        assert error.problem == "there is no policy 'quinzy'"
        assert error.expected is not None
        assert error.expected.startswith(
            "one of load-spreading, quincy, network-aware, multi-dimensional"
        )
        assert error.hint == "did you mean 'quincy'?"
        found = policy_mismatch(FlowSettings(policy="quinzy"), facts())
        assert found == SettingMismatch(("policy",), error.problem, error.expected, error.hint)


class TestPrinted:
    """The integer program as printed, and readings that are as plain."""

    PROGRAM = MedeaSettings(algorithm="ilp-printed")

    @pytest.mark.parametrize(("tasks", "is_wrong"), [(500, False), (501, True)])
    def test_an_application_has_at_most_so_many_places(self, tasks: int, is_wrong: bool) -> None:
        large, batch = job("large", tasks, kind="service").job, job("batch", 9_999).job
        found = Medea.mismatch(self.PROGRAM, facts(batch, large, machines=100))
        expected = SettingMismatch(
            ("algorithm",),
            "job large on 100 machines has 50,100 places",
            "at most 50,000 for an application with the algorithm ilp-printed",
            "choose the algorithm ilp",
        )
        assert found == (expected if is_wrong else None)
        assert Medea.mismatch(MedeaSettings(), facts(large, machines=100)) is None

    @pytest.mark.parametrize("text", [CHOICE, SPREAD, "a -> {a, 0, 1} in row"])
    @pytest.mark.parametrize(
        ("algorithm", "form", "hint"),
        [
            ("ilp-printed", "printed", "choose the algorithm ilp"),
            ("serial-plain", "plain", "choose the algorithm ilp"),
        ],
    )
    def test_the_first_constraint_without_such_a_form_is_named(
        self, algorithm: Any, form: str, hint: str, text: str
    ) -> None:
        settings = MedeaSettings(algorithm=algorithm)
        jobs = (asking(PLAIN, "fine"), asking(text), asking(text, "later"))
        found = Medea.mismatch(settings, facts(*jobs))
        assert found == SettingMismatch(
            ("algorithm",),
            f"'{text}', of job web, has no {form} form",
            "constraints without spreads, alternatives and overlapping sets with the algorithm "
            + algorithm,
            hint,
        )
        found = Medea.mismatch(settings, facts(*jobs, operator=text))
        assert found is not None
        assert found.problem == f"'{text}', the operator's, has no {form} form"
        own = MedeaSettings(algorithm=algorithm, operator=(parse_constraint(text),))
        if "row" not in text:
            found = Medea.mismatch(own, facts())
            assert found is not None
            assert found.problem == f"'{text}', the operator's, has no {form} form"
        assert Medea.mismatch(settings, facts(jobs[0], operator=PLAIN)) is None
        assert Medea.mismatch(MedeaSettings(algorithm="serial"), facts(*jobs)) is None

    def test_a_plain_reading_of_kubernetes_has_no_other_algorithm(self) -> None:
        found = JKube.mismatch(JKubeSettings(reading="plain"), facts(asking(CHOICE)))
        assert found == SettingMismatch(
            ("reading",),
            f"'{CHOICE}', of job web, has no plain form",
            "constraints without spreads, alternatives and overlapping sets with the reading plain",
            "choose another",
        )
        assert JKubePlus.mismatch(JKubeSettings(), facts(asking(CHOICE))) is None
        own = JKubeSettings(reading="plain", operator=(parse_constraint(CHOICE),))
        for settings, run in (
            (own, facts()),
            (JKubeSettings(reading="plain"), facts(asking(CHOICE), operator=CHOICE)),
        ):
            found = JKube.mismatch(settings, run)
            assert found is not None
            assert found.problem == f"'{CHOICE}', the operator's, has no plain form"

    def test_what_is_wrong_with_the_operators_constraints_comes_first(self) -> None:
        operator = (parse_constraint("a -> spread {3, inf} over rack"),)
        large = job("large", 5_001, kind="service").job
        for found in (
            Medea.mismatch(MedeaSettings(algorithm="ilp-printed", operator=operator), facts(large)),
            Medea.mismatch(MedeaSettings(algorithm="serial-plain", operator=operator), facts()),
            JKube.mismatch(JKubeSettings(reading="plain", operator=operator), facts()),
        ):
            assert found is not None
            assert found.place == ("operator", 0)


class TestOperator:
    @pytest.mark.parametrize("engine", [(Medea, MedeaSettings), (JKube, JKubeSettings)])
    def test_a_constraint_that_no_such_cell_could_keep_is_named_with_its_place(
        self, engine: tuple[Any, Any]
    ) -> None:
        kind, settings = engine
        texts = (PLAIN, "a -> spread {3, inf} over rack")
        found = kind.mismatch(settings(operator=tuple(map(parse_constraint, texts))), facts())
        assert found is not None
        assert found.place == ("operator", 1)
        assert found.problem.startswith(f"'{texts[1]}': ")
        more = facts(groups={"rack": 3})
        assert kind.mismatch(settings(operator=tuple(map(parse_constraint, texts))), more) is None

    def test_one_with_too_many_alternatives_is_named(self) -> None:
        many = " or ".join(f"{{b{number}, 1, inf}}" for number in range(257))
        operator = (parse_constraint(PLAIN), parse_constraint(f"a -> {many} in machine"))
        found = Medea.mismatch(MedeaSettings(operator=operator), facts())
        assert found is not None
        assert found.place == ("operator", 1)
        assert "a constraint with 257 alternatives" in found.problem


class TestQueues:
    @pytest.mark.parametrize(
        ("settings", "place", "expected"),
        [
            ({"policy": "capacity", "queues": {"a": 1.0}}, "queues", "capacities instead"),
            (
                {"policy": "share", "capacities": {"a": QueueCapacity(0.5)}},
                "capacities",
                'policy = "capacity"',
            ),
            (
                {
                    "policy": "capacity",
                    "capacities": {"a": QueueCapacity(0.5), "b": QueueCapacity(0.6)},
                },
                "capacities",
                "at most 100 %",
            ),
            (
                {"policy": "capacity", "capacities": {"a": QueueCapacity(0.5, 0.4)}},
                "capacities",
                "guaranteed up to most",
            ),
        ],
    )
    def test_what_is_expected_of_queues(
        self, settings: dict[str, Any], place: str, expected: str
    ) -> None:
        for found in (
            TaskQueueSettings(**settings).queue_mismatch(),
            Yarn.mismatch(YarnSettings(**settings), facts()),
            Medea.mismatch(MedeaSettings(**settings), facts()),
        ):
            assert found is not None
            assert (found.place, found.expected, found.hint) == ((place,), expected, None)


class TestExtras:
    @pytest.mark.parametrize("is_there", [True, False])
    def test_only_programs_need_a_solver(
        self, is_there: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(program, "has_solver", lambda: is_there)
        lack = None if is_there else NeededExtra("ilp", "choose an engine that solves no program")
        assert ByProgram.lack(ProgramSettings()) == lack
        other = NeededExtra("ilp", "set algorithm to another, such as tag-popularity")
        for algorithm, needs in (
            ("ilp", True),
            ("ilp-printed", True),
            ("serial", False),
            ("serial-plain", False),
        ):
            found = Medea.lack(MedeaSettings(algorithm=algorithm))  # type: ignore[arg-type]
            assert found == (other if needs and not is_there else None)


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("sort", "Bind", "'Bind' is no sort"),
        ("strategy", "Bind", "'Bind' is no strategy"),
        ("filters", ("ResourcesFit", "Bind"), "'Bind' is no filter"),
        ("scores", {"ResourcesFit": 1.0, "Bind": 1.0}, "'Bind' is no score"),
        ("decision_filters", ("Bind",), "'Bind' is no filter"),
        ("decision_scores", {"Bind": 1.0}, "'Bind' is no score"),
        ("checks", ("Bind",), "'Bind' is no "),
        ("commit", "Random", "'Random' is no "),
    ],
)
def test_each_plug_in_of_vela_has_its_role(setting: str, value: Any, says: str) -> None:
    found = Vela.mismatch(VelaSettings(**{setting: value}), facts())
    assert found is not None
    assert found.place == (setting,)
    assert says in found.problem
