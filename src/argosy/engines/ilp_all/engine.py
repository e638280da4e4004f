from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from argosy.engines.api import Settings
from argosy.engines.lra.program import ByProgram, ProgramSettings


class IlpAllSettings(ProgramSettings, frozen=True):
    """As for Medea, but every kind of job is an application."""

    long_running: tuple[str, ...] = ("*",)
    #: Fewer than Medea's: batches are larger.
    nodes: Annotated[int, Meta(ge=1, le=10_000_000)] = 10


class IlpAll(ByProgram):
    name: ClassVar[str] = "ilp-all"
    summary: ClassVar[str] = "The integer program for everything: applications and tasks alike."
    settings_type: ClassVar[type[Settings]] = IlpAllSettings
