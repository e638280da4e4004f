"""A small scenario, and an engine for its settings alone, for the tests of the loader."""

from typing import Annotated, ClassVar, Literal

import msgspec

from argosy.engines.api import Capabilities
from argosy.model.errors import ArgosyError
from argosy.model.units import Micros


class PatientSettings(msgspec.Struct, frozen=True, kw_only=True):
    patience: Micros = Micros(5)
    pause: Annotated[Micros, msgspec.Meta(ge=1000, le=60_000_000)] = Micros(1000)
    tries: Annotated[int, msgspec.Meta(ge=1, le=9)] = 3
    order: Literal["first", "last"] = "first"


class Patient:
    """An engine for its settings alone."""

    name: ClassVar[str] = "patient"
    settings_type = PatientSettings
    capabilities = Capabilities()


ALSO = {"patient": Patient}

SMALL = """\
name = "small"
horizon = "1h"

[[cell.machines]]
name = "m"
count = 4
capacity = { cpu = 8000, memory = "32GiB" }
attributes = { arch = "x86" }

[cell.groups]
rack = { size = 2 }
domain = { sets = ["u1", "u2"] }

[[workload.jobs]]
id = "a"
request = { cpu = 500 }
duration = "10s"

[[fleet]]
name = "s"
engine = "patient"
"""


def line(text, part):
    """The number of the first line of `text` that has `part`."""
    return next(n for n, content in enumerate(text.splitlines(), 1) if part in content)


def in_full(texts, refused):
    """What is said about each text, with what was expected, and a hint where there is one."""
    told = []
    for mistake, text in texts.items():
        error = refused(text, ArgosyError)
        told.append(f"{mistake}\n    {str(error).replace(error.file, 'scenario.toml')}\n")
    return "".join(told)
