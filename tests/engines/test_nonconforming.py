"""Every check of the conformance suite turns down an engine that breaks its rule, and says which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest
from msgspec import structs

from argosy.cell import View
from argosy.engines.api import Context, Engine, Settings
from argosy.engines.medea import Medea
from argosy.engines.omega import Omega
from argosy.model.effects import Effect, Explain
from argosy.model.events import (
    Event,
    JobChanged,
    JobSubmitted,
    TaskFailed,
    TasksLost,
)
from argosy.model.scenario import Scenario
from argosy.testing import conformance
from argosy.testing.conformance import ConformanceRun

#: What becomes of an event before an engine sees it; None: it never does.
Filter = Callable[[Event], Event | None]


def heard(engine: type[Engine], change: Filter) -> type[Engine]:
    """The engine, with other ears."""

    class Deaf(engine):  # type: ignore[misc, valid-type]
        def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
            changed = change(event)
            return () if changed is None else super().handle(changed, view, now)

    return Deaf


def without(*kinds: type) -> Filter:
    return lambda event: None if isinstance(event, kinds) else event


def with_jobs(**fields: Any) -> Filter:
    """Jobs seem to be otherwise than they are."""

    def change(event: Event) -> Event:
        if isinstance(event, JobSubmitted | TasksLost):
            return structs.replace(event, job=structs.replace(event.job, **fields))
        return event

    return change


def first_group(event: Event) -> Event:
    """Only tasks of the first group are seen."""
    if isinstance(event, JobSubmitted):
        return structs.replace(event, tasks=event.tasks[: event.job.groups[0].count])
    return event


def no_services(event: Event) -> Event | None:
    if isinstance(event, JobSubmitted) and event.job.groups[0].endless:
        return None
    return event


class Silent(Omega):
    """Places well, and explains nothing."""

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        effects = super().handle(event, view, now)
        return [effect for effect in effects if not isinstance(effect, Explain)]


class Moody(Omega):
    """Its decisions depend on something besides events."""

    mood: ClassVar[int] = 0

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        for _ in range(Moody.mood):
            context.random.bits()


def in_another_mood(
    engine: type[Engine], spec: Scenario, also: Sequence[type[Engine]] = (), **options: Any
) -> ConformanceRun:
    """Each run is repeated by its own replay, and differs from the others."""
    Moody.mood += 1
    return conformance.SIMULATED(engine, spec, also, **options)


class Boastful(Omega):
    """Claims to follow constraints."""

    capabilities = structs.replace(Omega.capabilities, constraints=True)


NOT_FINISHED = "pending"
BROKEN: dict[str, tuple[type[Engine], str]] = {
    "what_cannot_be_placed_is_explained": (Silent, "waits and nobody says why"),
    "endless_services_stay_up": (heard(Omega, no_services), "an endless service is not running"),
    "jobs_with_several_groups_are_placed": (heard(Omega, first_group), NOT_FINISHED),
    "gangs_start_together": (heard(Omega, with_jobs(gang=False)), "the gang was placed in"),
    "hard_constraints_are_kept": (Boastful, "a hard constraint is broken"),
    "survives_a_machine_crash": (heard(Omega, without(TasksLost)), NOT_FINISHED),
    "survives_a_machine_that_never_returns": (heard(Omega, without(TasksLost)), NOT_FINISHED),
    "survives_a_drain_and_a_resize": (heard(Omega, without(TasksLost)), NOT_FINISHED),
    "jobs_whose_tasks_share_work_are_done": (heard(Omega, without(TasksLost)), NOT_FINISHED),
    "jobs_grow_and_shrink": (heard(Omega, without(JobChanged)), "grew and shrank are"),
}


@pytest.mark.parametrize("check", BROKEN)
def test_an_engine_that_breaks_a_rule_does_not_conform(check: str) -> None:
    engine, says = BROKEN[check]
    with pytest.raises(AssertionError, match=says):
        getattr(conformance, check)(engine)


#: They only compare runs.
COMPARING = {
    "the_same_seed_gives_the_same_log": "the journal differs between two runs",
    "faults_do_not_break_determinism": "the journal differs between two runs",
    "events_that_were_written_and_read_give_the_same_decisions": "more than the values of events",
    "nothing_depends_on_how_long_tasks_really_run": "a real running time shows",
}


@pytest.mark.parametrize("check", COMPARING)
def test_an_engine_that_decides_otherwise_in_another_run_does_not_conform(check: str) -> None:
    with pytest.raises(AssertionError, match=COMPARING[check]):
        getattr(conformance, check)(Moody, in_another_mood)


@pytest.mark.parametrize(
    "check",
    [check for check in conformance.CHECKS if check.__name__ not in COMPARING],
    ids=lambda check: check.__name__,
)
def test_an_engine_that_does_nothing_conforms_to_nothing_it_claims(
    check: conformance.Check,
) -> None:
    class Idle(Medea):
        def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
            return ()

    with pytest.raises(AssertionError):
        check(Idle, conformance.SIMULATED)


def test_a_failed_task_that_is_not_tried_again_is_noticed_where_tasks_fail() -> None:
    broken = heard(Omega, without(TaskFailed))
    conformance.one_scheduler_alone_works(broken, conformance.SIMULATED)
    with pytest.raises(AssertionError, match=NOT_FINISHED):
        conformance.one_scheduler_alone_works(broken, conformance.SCRIPTED)
