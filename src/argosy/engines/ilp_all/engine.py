from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from argosy.engines.api import Settings
from argosy.engines.families.lra.program import ByProgram, ProgramSettings
from argosy.model.units import Micros


class IlpAllSettings(ProgramSettings, frozen=True):
    """As for Medea, but every kind of job is an application."""

    long_running: tuple[str, ...] = ("*",)
    #: Limits for larger batches than Medea's: fewer nodes of the search tree, and more time.
    nodes: Annotated[int, Meta(ge=1, le=10_000_000)] = 10
    budget: Annotated[Micros, Meta(ge=1_000)] = Micros(10_000_000)


class IlpAll(ByProgram):
    name: ClassVar[str] = "ilp-all"
    summary: ClassVar[str] = "One integer program for both applications and tasks."
    settings_type: ClassVar[type[Settings]] = IlpAllSettings
