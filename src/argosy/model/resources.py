"""Resource vectors: whole numbers with named dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from argosy.model import units
from argosy.model.errors import ArgosyError, ModelError, did_you_mean

#: A part of a whole.
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1, description="a share from 0 to 1")]

#: Every cell has these two, in this order; extras follow, sorted by name.
BASE_DIMENSIONS: Final = ("cpu", "memory")
#: The native columns have room for this many.
MOST_DIMENSIONS: Final = 8


class Resources(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Milli-cores, bytes, and any number of named extras such as ``gpu`` or ``bandwidth``."""

    cpu: int = 0
    memory: int = 0
    extras: dict[str, int] = {}

    def __post_init__(self) -> None:
        for name, amount in self.items():
            if not 0 <= amount <= units.LARGEST:
                raise ModelError(f"{name} = {amount}", expected="an amount from 0 to 2^53")

    def items(self) -> list[tuple[str, int]]:
        return [("cpu", self.cpu), ("memory", self.memory), *self.extras.items()]

    def vector(self, dimensions: tuple[str, ...]) -> tuple[int, ...]:
        """The amounts in the order of `dimensions`, which must include every resource asked for."""
        if not self.extras and dimensions[:2] == BASE_DIMENSIONS:
            return (self.cpu, self.memory, *(0,) * (len(dimensions) - 2))
        amounts = dict(self.items())
        unknown = [name for name, amount in amounts.items() if amount and name not in dimensions]
        if unknown:
            raise ModelError(
                f"the cell has no resource {unknown[0]!r}",
                expected="one of " + ", ".join(dimensions),
            )
        return tuple(amounts.get(name, 0) for name in dimensions)

    def within(self, dimensions: tuple[str, ...]) -> tuple[int, ...]:
        """The amounts in the order of `dimensions`; other resources are ignored."""
        amounts = dict(self.items())
        return tuple(amounts.get(name, 0) for name in dimensions)

    @staticmethod
    def of(amounts: Mapping[str, int]) -> Resources:
        """From whole amounts by name; what is left out is none."""
        extras = {name: each for name, each in amounts.items() if name not in ("cpu", "memory")}
        return Resources(amounts.get("cpu", 0), amounts.get("memory", 0), extras)

    @staticmethod
    def parse(table: Mapping[str, Any]) -> Resources:
        """Reads the form used in scenarios and traces: ``{cpu = "500m", memory = "2GiB", gpu = 1}``."""
        amounts: dict[str, int] = {}
        for name, value in table.items():
            try:
                if name == "cpu":
                    amounts[name] = units.parse_cpu(value)
                elif name == "memory":
                    amounts[name] = units.parse_bytes(value)
                else:
                    amounts[name] = units.parse_count(value, f"an amount of {name}")
            except ArgosyError as error:
                if name not in BASE_DIMENSIONS:
                    error.hint = error.hint or did_you_mean(name, BASE_DIMENSIONS)
                raise error.located(field=name) from None
        return Resources.of(amounts)


def dimensions_of(vectors: Iterable[Resources]) -> tuple[str, ...]:
    """The dimensions that a cell needs for all of `vectors`."""
    extras = sorted({name for vector in vectors for name in vector.extras})
    dimensions = (*BASE_DIMENSIONS, *extras)
    if len(dimensions) > MOST_DIMENSIONS:
        raise ModelError(
            f"{len(dimensions)} resource dimensions", expected=f"at most {MOST_DIMENSIONS}"
        )
    return dimensions
