"""The list of all papers."""

from __future__ import annotations

from typing import Final

from argosy.model.errors import UnknownName
from argosy.papers.firmament import FIRMAMENT
from argosy.papers.medea import MEDEA
from argosy.papers.murmuration import MURMURATION
from argosy.papers.omega import OMEGA
from argosy.papers.paper import Paper
from argosy.papers.vela import VELA

PAPERS: Final[dict[str, Paper]] = {
    FIRMAMENT.name: FIRMAMENT,
    MEDEA.name: MEDEA,
    MURMURATION.name: MURMURATION,
    OMEGA.name: OMEGA,
    VELA.name: VELA,
}


def find_paper(name: str) -> Paper:
    if name not in PAPERS:
        raise UnknownName("paper", name, PAPERS)
    return PAPERS[name]
