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
        return Terms(
            atomic=work.job.gang or self._settings.transaction == "atomic",
            coarse=self._settings.detection == "coarse",
            preempt=self._settings.preempt,
        )

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
