"""The list of all engines, and lookup by name.

A name is looked up among the built-in engines first and among installed ones next, so no package can
replace a built-in engine. A name with a colon is a class: ``package.module:Class``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from argosy.engines import plugins
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
from argosy.engines.vela import Vela
from argosy.engines.yaq_c import YaqC
from argosy.engines.yaq_d import YaqD
from argosy.engines.yarn import Yarn
from argosy.model.errors import ArgosyError, EngineFault, UnknownEngine, UnknownForm

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
    Vela.name: Vela,
}


def all_engines() -> dict[str, type[Engine]]:
    """Built-in engines and installed ones that can be loaded, by name."""
    return survey()[0]


def survey() -> tuple[dict[str, type[Engine]], dict[str, ArgosyError]]:
    """All engines that can be loaded, and for each other one the error."""
    engines, broken = dict(ENGINES), dict[str, ArgosyError]()
    for name, entries in plugins.entry_points().items():
        try:
            if name in ENGINES:
                raise _name_taken(name, entries[0].value)
            engines[name] = plugins.load_entry_point(name, entries)
        except ArgosyError as error:
            broken[name] = error
    return engines, broken


def _name_taken(name: str, value: str) -> EngineFault:
    return EngineFault(
        f"{value} is installed as {name!r}, the name of a built-in engine, which goes first",
        expected="an entry point with a name of its own",
        hint=f"name the class instead: {value}",
    )


def forms_named() -> list[str]:
    """Names of all published configurations."""
    return _forms_of(all_engines())


def forms_compared() -> list[str]:
    """Those that a comparison includes if it names none."""
    return [name for name in forms_named() if find_published(name)[1].is_compared]


def built_in_forms() -> list[str]:
    """Names of the published configurations of built-in engines."""
    return _forms_of(ENGINES)


def _forms_of(engines: Mapping[str, type[Engine]]) -> list[str]:
    return [name for engine in engines.values() for name in getattr(engine, "published", ())]


def find_published(
    name: str, also: Mapping[str, type[Engine]] | None = None
) -> tuple[str, PaperPreset]:
    """The engine and configuration of this name. An engine's own name stands for its first
    configuration. Installed engines are loaded only if neither the name nor a built-in engine
    determines the configuration."""
    known = {**ENGINES, **(also or {})}
    if (found := _form(name, known)) is not None:
        return found
    is_installed = name in plugins.entry_points()
    if name in known or is_installed or plugins.is_reference(name):
        engine = find_engine(name, also)
        if isinstance(engine, HasPaperPresets) and engine.published:
            return name, next(iter(engine.published.values()))
        raise UnknownForm(name, _forms_of(known))
    every = {**known, **all_engines()}
    if (found := _form(name, every)) is not None:
        return found
    raise UnknownForm(name, _forms_of(every))


def _form(name: str, engines: Mapping[str, type[Engine]]) -> tuple[str, PaperPreset] | None:
    """The configuration of exactly this name."""
    for key, engine in engines.items():
        if isinstance(engine, HasPaperPresets) and name in engine.published:
            return key, engine.published[name]
    return None


def find_engine(name: str, also: Mapping[str, type[Engine]] | None = None) -> type[Engine]:
    """The engine of this name, from `also`, built in or installed; or the class it refers to."""
    engines = {**ENGINES, **(also or {})}
    if name in engines:
        return engines[name]
    if plugins.is_reference(name):
        return plugins.load_reference(name)
    installed = plugins.entry_points()
    if name not in installed:
        raise UnknownEngine(name, [*engines, *installed])
    return plugins.load_entry_point(name, installed[name])


def find_engines(
    names: Iterable[str], also: Mapping[str, type[Engine]] | None = None
) -> dict[str, type[Engine]]:
    """The engines of these names; no others are loaded."""
    return {name: find_engine(name, also) for name in names}
