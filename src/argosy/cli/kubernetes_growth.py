"""The policy by which malleable Jobs grow, as it is written on the command line."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from argosy.model.errors import CommandError, excerpt
from argosy.worlds.kubernetes.malleable import GrowthSettings

_EXPECTED: Final = (
    "max-parallelism, global-cap=SHARE (above 0, at most 1) or relative-job-size=TIMES"
)
#: The setting that a policy takes; empty: none.
_SETTINGS: Final = {"max-parallelism": "", "global-cap": "cap", "relative-job-size": "times"}


def read_growth(text: str) -> GrowthSettings:
    """`POLICY` or `POLICY=NUMBER`."""
    policy, equals, number = text.partition("=")
    told: dict[str, Any] = {"policy": policy}
    setting = _SETTINGS.get(policy)
    try:
        if equals:
            if not setting:
                raise ValueError
            told[setting] = float(number)
        return msgspec.convert(told, GrowthSettings)
    except (ValueError, msgspec.ValidationError):
        raise CommandError(
            f"--grow-jobs {excerpt(text)} is no policy", expected=_EXPECTED
        ) from None
