"""All engines on one screen; third parties come in through the entry-point group `argosy.engines`."""

from __future__ import annotations

from importlib import metadata
from typing import Final

from argosy.engines.api import Engine, HasPaperPresets, PaperPreset
from argosy.engines.eagle import Eagle
from argosy.engines.firmament import Firmament
from argosy.engines.hawk import Hawk
from argosy.engines.ilp_all import IlpAll
from argosy.engines.jkube import JKube, JKubePlus, KubeModern
from argosy.engines.kube import Kube
from argosy.engines.mapreduce import MapReduce
from argosy.engines.medea import Medea
from argosy.engines.mesos import Mesos
from argosy.engines.monolithic import Monolithic
from argosy.engines.murmuration import Murmuration
from argosy.engines.omega import Omega
from argosy.engines.partitioned import Partitioned
from argosy.engines.quincy import Quincy
from argosy.engines.sparrow import Sparrow
from argosy.engines.spread import Spread
from argosy.engines.yaq_c import YaqC
from argosy.engines.yaq_d import YaqD
from argosy.engines.yarn import Yarn
from argosy.model.errors import EngineFault, UnknownEngine, UnknownForm

ENTRY_POINTS: Final = "argosy.engines"

ENGINES: Final[dict[str, type[Engine]]] = {
    Omega.name: Omega,
    MapReduce.name: MapReduce,
    Monolithic.name: Monolithic,
    Partitioned.name: Partitioned,
    Mesos.name: Mesos,
    Kube.name: Kube,
    Murmuration.name: Murmuration,
    Firmament.name: Firmament,
    Quincy.name: Quincy,
    Spread.name: Spread,
    Sparrow.name: Sparrow,
    Hawk.name: Hawk,
    Eagle.name: Eagle,
    YaqC.name: YaqC,
    YaqD.name: YaqD,
    Medea.name: Medea,
    JKube.name: JKube,
    JKubePlus.name: JKubePlus,
    KubeModern.name: KubeModern,
    Yarn.name: Yarn,
    IlpAll.name: IlpAll,
}


def all_engines() -> dict[str, type[Engine]]:
    """Built-in engines and installed third-party ones, by name."""
    engines = dict(ENGINES)
    for entry in metadata.entry_points(group=ENTRY_POINTS):
        try:
            engine = entry.load()
        except Exception as error:
            raise EngineFault(
                f"{entry.value} cannot be imported: {error}",
                hint="mend or uninstall the package that brings it",
            ) from error
        check(engine, entry.value)
        if engine.name in engines:
            raise EngineFault(
                f"{entry.value} calls itself {engine.name!r}, which is taken",
                expected="a name of its own",
            )
        engines[engine.name] = engine
    return engines


def check(engine: object, origin: str) -> None:
    """Refuse what does not keep the contract's form, before a run depends on it."""
    for attribute in ("name", "summary", "settings_type", "capabilities", "handle"):
        if not hasattr(engine, attribute):
            raise EngineFault(
                f"{origin} has no {attribute!r}",
                expected="a class that keeps argosy.engines.api.Engine",
            )


def forms_named() -> list[str]:
    """Names of the forms in which engines have been published."""
    engines = all_engines().values()
    return [name for engine in engines for name in getattr(engine, "published", ())]


def find_published(name: str) -> tuple[str, PaperPreset]:
    """The engine with a form of this name, and the form. An engine by its own name has its first."""
    for engine in all_engines().values():
        if not isinstance(engine, HasPaperPresets):
            continue
        if name in engine.published:
            return engine.name, engine.published[name]
        if name == engine.name:
            return engine.name, next(iter(engine.published.values()))
    raise UnknownForm(name, forms_named())


def find_engine(name: str, also: dict[str, type[Engine]] | None = None) -> type[Engine]:
    engines = {**all_engines(), **(also or {})}
    if name not in engines:
        raise UnknownEngine(name, engines)
    return engines[name]
