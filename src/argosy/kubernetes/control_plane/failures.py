"""What can go wrong with a control plane."""

from __future__ import annotations

from argosy.model.errors import ArgosyError


class ControlPlaneError(ArgosyError):
    """A control plane that does not start, or a program of it that has ended."""

    code = "control-plane"
