"""What runners have in common that start no processes: nothing is written, reported by descriptors, or
left behind."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class ProcesslessRunner(Generic[T]):
    has_stillborn = False
    report_fd = None

    def __init__(self) -> None:
        #: Tries that are not over, each with what its runner keeps of it.
        self._running: dict[int, T] = {}

    def discard_after(self, number: int) -> int:
        return number

    def is_running(self, number: int) -> bool:
        return number in self._running

    @property
    def is_idle(self) -> bool:
        return not self._running

    def directory_of(self, number: int) -> str:
        return ""

    def hear(self) -> None:
        """Nothing is reported by descriptors."""

    def sweep(self) -> None:
        """Nothing can be missed."""
