"""What the database of a live cluster tells of a run."""

from __future__ import annotations

from typing import Final

from argosy.campaign.recount import Where
from argosy.worlds.local.store import LocalStore

_LINES: Final = "SELECT lines FROM turns WHERE life = ? ORDER BY turn"
_COUNTS: Final = f"SELECT {', '.join(f'sum({where.value})' for where in Where)} FROM jobs"


def stored_journals(store: LocalStore) -> tuple[bytes, ...]:
    """Those of its servers, in their order."""
    return tuple(
        header + b"".join(lines for (lines,) in store.rows(_LINES, (life,)))
        for life, header in store.rows("SELECT life, header FROM lives ORDER BY life")
    )


def stored_counts(store: LocalStore) -> dict[Where, int]:
    counts = store.rows(_COUNTS)[0]
    return {where: int(count or 0) for where, count in zip(Where, counts, strict=True)}
