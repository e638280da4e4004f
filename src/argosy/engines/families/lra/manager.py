"""The constraint manager: all active constraints, validated on submission.

Constraints of the operator are there from the beginning, or come with a job of an owner who counts as
operator and go when it is over; those of an application come with it and go when its last container has
ended. If several jobs are one application, because their containers carry its `appID:` tag as pods of
one controller do, what several of them ask for counts once. Where they contradict the operator's,
`overrides` says what becomes of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from argosy.engines.api import RunFacts, SettingMismatch
from argosy.engines.families.lra.overrides import Overrides
from argosy.model.constraints import Constraint
from argosy.model.constraints.lint import Surroundings, unsound
from argosy.model.constraints.parts import APP, conjuncts, container_names, of_job
from argosy.model.constraints.text import format_constraint
from argosy.model.errors import ModelError
from argosy.model.jobs import Job
from argosy.solvers.placement import PlacementState
from argosy.solvers.placement.forms import without_choice
from argosy.solvers.placement.printed import has_printed_form

#: How an engine sees a constraint: as another constraint, or not at all.
Sight = Callable[[Constraint], Constraint | None]


class ConstraintManager:
    """Maintains the constraints in a ledger."""

    def __init__(
        self,
        ledger: PlacementState,
        operator: Iterable[Constraint] = (),
        sight: Sight | None = None,
        operators: Sequence[str] = (),
    ) -> None:
        """`operators` are owners whose jobs bring constraints of the operator."""
        self._ledger = ledger
        self._sight = sight or (lambda constraint: constraint)
        self._operators = frozenset(operators)
        #: Applications with active constraints.
        self._jobs: dict[int, Job] = {}
        self.operator = tuple(operator)
        self._around = Surroundings(groups={name: f.sets for name, f in ledger.families.items()})
        self._overrides = Overrides(self.operator, ledger.families)
        #: Active constraints per application number.
        self._active: dict[int, tuple[Constraint, ...]] = {}
        #: How many jobs of an application ask for a constraint; the ledger has it once.
        self._asking: Counter[tuple[str, Constraint]] = Counter()
        #: How many active constraints name a single container, by its tag.
        self._naming: Counter[str] = Counter()
        #: These tags.
        self.names: frozenset[str] = frozenset()
        self._require_sound(self.operator)
        self.operator_seen = tuple(self._seen(self.operator))
        #: Number of active hard constraints.
        self._hard = sum(constraint.hard for constraint in self.operator_seen)
        for seen in self.operator_seen:
            self._change(seen, 1)

    def submit(self, number: int, job: Job) -> None:
        """Activates the application's constraints, or raises an error that says what is wrong with
        them."""
        if number in self._active:
            return
        own = of_job(job.id, job.constraints)
        self._require_sound(own)
        is_operator = job.owner in self._operators
        self._activate(number, job, own if is_operator else self._overrides.settled(own))
        self._jobs[number] = job
        if is_operator:
            self._settle_again()

    def _activate(self, number: int, job: Job, settled: Sequence[Constraint]) -> None:
        seen, application = tuple(self._seen(settled)), _application(job)
        added: list[Constraint] = []
        try:
            for constraint in seen:
                self._add(application, constraint)
                added.append(constraint)
        except ModelError:
            for constraint in added:
                self._remove(application, constraint)
            raise
        self._active[number] = seen
        self._hard += sum(constraint.hard for constraint in seen)

    def withdraw(self, number: int) -> None:
        self._deactivate(number)
        job = self._jobs.pop(number, None)
        if job is not None and job.owner in self._operators:
            self._settle_again()

    def _deactivate(self, number: int) -> None:
        for constraint in self._active.pop(number, ()):
            self._remove(_application(self._jobs[number]), constraint)
            self._hard -= constraint.hard

    def _add(self, application: str, constraint: Constraint) -> None:
        if not self._asking[application, constraint]:
            self._change(constraint, 1)
        self._asking[application, constraint] += bool(application)

    def _remove(self, application: str, constraint: Constraint) -> None:
        self._asking[application, constraint] -= bool(application)
        if not self._asking[application, constraint]:
            del self._asking[application, constraint]
            self._change(constraint, -1)

    def _change(self, constraint: Constraint, times: int) -> None:
        """Activates the constraint (1), or takes it back (-1)."""
        if times > 0:
            self._ledger.add(constraint)
        else:
            self._ledger.remove(constraint)
        if named := container_names((constraint,)):
            for name in named:
                self._naming[name] += times
            self.names = frozenset(+self._naming)

    def _settle_again(self) -> None:
        """The operator's constraints have changed, and with them what they override."""
        more = [
            constraint
            for job in self._jobs.values()
            if job.owner in self._operators
            for constraint in of_job(job.id, job.constraints)
        ]
        self._overrides = Overrides((*self.operator, *more), self._ledger.families)
        for number, job in self._jobs.items():
            if job.owner not in self._operators:
                own = of_job(job.id, job.constraints)
                self._deactivate(number)
                self._activate(number, job, self._overrides.settled(own))

    def active(self, number: int) -> tuple[Constraint, ...]:
        return self._active.get(number, ())

    def numbers(self) -> list[int]:
        """The applications that have constraints."""
        return list(self._active)

    @property
    def is_idle(self) -> bool:
        """Whether no constraint is active."""
        return not self.operator_seen and not any(self._active.values())

    @property
    def has_hard(self) -> bool:
        return self._hard > 0

    def everything(self) -> list[Constraint]:
        """All active constraints: the operator's, then each application's."""
        return [*self.operator_seen, *self._of_applications()]

    def _of_applications(self) -> Iterator[Constraint]:
        told: set[tuple[str, Constraint]] = set()
        for number, own in self._active.items():
            application = _application(self._jobs[number])
            for constraint in own:
                if (application, constraint) not in told:
                    yield constraint
                if application:
                    told.add((application, constraint))

    def _seen(self, constraints: Iterable[Constraint]) -> Iterable[Constraint]:
        for constraint in constraints:
            seen = self._sight(constraint)
            if seen is not None:
                yield seen

    def _require_sound(self, constraints: Sequence[Constraint]) -> None:
        if (finding := unsound(constraints, self._around)) is not None:
            text = format_constraint(constraints[finding.constraint])
            raise ModelError(f"'{text}': {finding.problem}")


def _application(job: Job) -> str:
    """The tag of the application that a job is part of; empty if it is one by itself."""
    tags = (tag for group in job.groups for tag in group.tags if tag.startswith(APP))
    return next(tags, "")


def not_simple(
    algorithm: str, place: tuple[str, ...], operator: Sequence[Constraint], facts: RunFacts
) -> SettingMismatch | None:
    """The first constraint that an algorithm for simple ones has no form for."""
    operators = ((constraint, "the operator's") for constraint in operator)
    jobs = ((own, f"of job {job.id}") for job in facts.jobs for own in job.constraints)
    for constraint, owner in chain(operators, jobs):
        if not has_printed_form(constraint, facts.overlapping):
            name = "printed" if algorithm == "ilp-printed" else "plain"
            return SettingMismatch(
                place,
                f"'{format_constraint(constraint)}', {owner}, has no {name} form",
                "constraints without spreads, alternatives and overlapping sets with the"
                f" {place[0]} {algorithm}",
                "choose another" if algorithm == "plain" else "choose the algorithm ilp",
            )
    return None


def operator_mismatch(constraints: Sequence[Constraint], facts: RunFacts) -> SettingMismatch | None:
    """The first of the setting `operator` that a manager would not take."""
    problem: tuple[int, str] | None = None
    finding = unsound(constraints, Surroundings(groups=facts.groups))
    if finding is not None:
        problem = finding.constraint, finding.problem
    else:
        for index, constraint in enumerate(constraints):
            try:
                for part in conjuncts(constraint):
                    without_choice(part, facts.overlapping)
            except ModelError as error:
                problem = index, str(error)
                break
    if problem is None:
        return None
    index, why = problem
    return SettingMismatch(("operator", index), f"'{format_constraint(constraints[index])}': {why}")
