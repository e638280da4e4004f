from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from argosy.cell import Bitmap, View
from argosy.engines.api import Capabilities, Context, Settings
from argosy.engines.serial import SerialScheduler, SerialSettings, Terms, Work


class OmegaSettings(SerialSettings, frozen=True):
    """How an Omega scheduler decides and commits."""

    #: Whether a transaction is taken claim by claim or all or nothing. Gang jobs are always the latter.
    transaction: Literal["incremental", "atomic"] = "incremental"
    #: Whether a conflict is lack of room, or any change of the machine since the decision began.
    detection: Literal["fine", "coarse"] = "fine"
    #: Whether jobs may push out tasks of lower precedence.
    preempt: bool = False
    #: After so many lost attempts a job claims with growing precedence and pushes out what is below it,
    #: so that no job loses for ever; 0: never. Its ceiling is the precedence limit of the scheduler.
    patience: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    #: By how much the precedence grows with each attempt that is lost then.
    raise_by: Annotated[int, Meta(ge=1, le=65_535)] = 1
    #: The node group whose sets a job's tasks are dealt out over first, to resist failures; empty: none.
    spread: str = ""
    #: Into how many regions the machines are cut; a scheduler looks in its own first, so that slow
    #: deciders collide less. 1 looks everywhere at once, as in the paper.
    regions: Annotated[int, Meta(ge=1, le=1_000)] = 1


class Omega(SerialScheduler):
    name: ClassVar[str] = "omega"
    summary: ClassVar[str] = "Shared state: decide on the whole cell, commit optimistically, retry."
    settings_type: ClassVar[type[Settings]] = OmegaSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, gang=True, preemption=True
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, OmegaSettings)
        super().__init__(settings, context)
        self._settings = settings

    def terms(self, work: Work) -> Terms:
        """A job that starves is judged by room alone: changes elsewhere must not make it lose again."""
        is_starving = self._is_starving(work)
        return Terms(
            atomic=work.job.gang or self._settings.transaction == "atomic",
            coarse=self._settings.detection == "coarse" and not is_starving,
            preempt=self._settings.preempt or is_starving,
        )

    def _is_starving(self, work: Work) -> bool:
        return 0 < self._settings.patience <= work.lost

    def precedence(self, work: Work, view: View) -> int:
        own = work.job.precedence
        if not self._is_starving(work):
            return own
        raised = own + self._settings.raise_by * (1 + work.lost - self._settings.patience)
        return max(own, min(raised, view.highest_precedence(self._context.name)))

    def preferred(self, work: Work, count: int, view: View) -> Iterable[tuple[Bitmap, int]]:
        if self._settings.spread:
            yield from self._over_domains(count, view)
        if self._settings.regions > 1:
            yield self._region(view), count

    def _over_domains(self, count: int, view: View) -> Iterable[tuple[Bitmap, int]]:
        """The sets of the group in random order, each for an even part of the tasks."""
        group = self._settings.spread
        sets = list(view.sets_in(group))
        part = -(-count // len(sets)) if sets else 0
        while sets:
            chosen = sets.pop(self._context.random.below(len(sets)))
            yield view.members(group, chosen), part

    def _region(self, view: View) -> Bitmap:
        """The scheduler's own region: replicas in turn, others by their name."""
        regions = self._settings.regions
        replicas = sorted((self._context.name, *self._context.peers))
        entry = zlib.crc32(replicas[0].encode())
        region = (entry + replicas.index(self._context.name)) % regions
        first, last = (view.machines * edge // regions for edge in (region, region + 1))
        return view.between(first, last)
