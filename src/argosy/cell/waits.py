"""Expected waits at machines, as one scheduler believes them to be: see core/waits/wait_view.hpp."""

from argosy._core import WaitState, WaitView

__all__ = ["WaitState", "WaitView"]
