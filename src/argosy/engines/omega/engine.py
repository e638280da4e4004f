from __future__ import annotations

from typing import ClassVar, Literal

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
