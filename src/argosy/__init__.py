"""Argosy: one cluster scheduler with a fleet of engines.

    import argosy

    scenario = argosy.load("scenarios/quickstart.toml")
    result = argosy.run(scenario, engine="kube")
    print(result.summary.jct.p50, argosy.why(result, "crawl/199").sentence)
    print(argosy.compare(scenario, ["omega", "murmuration"], seeds=3).best())

`docs/library.md` describes this interface. `argosy.engine` has everything needed to write an engine.

Every error that the caller can fix is an `ArgosyError`: it has a `problem` and, if known, its `place`,
what was `expected` and a `hint`.

    ArgosyError
      ScenarioError           a scenario file, or a scenario, contradicts itself
      TraceError              a trace cannot be read
      JobError                a job file, or a job for a live cluster, is not right
      RunDirectoryError       a saved run is incomplete, or lacks what is asked for
      ReplayDiverged          a replay made other decisions than its journal
      UnitError               an amount or a time without a known unit
      ModelError              a machine, job or resource vector contradicts itself
      ConstraintSyntaxError   a placement constraint cannot be parsed
      Untranslatable          another system's language cannot express this constraint
      SettingError            an engine's setting is unknown or out of range
      UnknownName             a name that is not among those known
        UnknownEngine
        UnknownForm           no published configuration has this name
      EngineNotFound          an engine's class cannot be imported
      EngineFault             an engine broke its contract, or failed
      FleetRefused            a live cluster cannot start this fleet, and goes on with the one it has
      MissingExtra            an optional part of Argosy is not installed
      MissingLibrary          an optional library is not installed
      CommandError            arguments do not make sense together
      ServerError             a server refused a request
        CommitRefused         no machine of a commit takes its job
      ServerUnreachable       no server answers

Names are imported when they are first used.
"""

from __future__ import annotations

import importlib

from argosy.version import __version__

# Type checkers assume it is true; importing `typing` would take longer than everything else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from argosy import engine
    from argosy.client import AsyncClient, Client
    from argosy.library import (
        Comparison,
        Result,
        compare,
        load,
        open_run,
        replay,
        replay_with,
        run,
        story,
        why,
    )
    from argosy.model.answers import StoryLine, WhyAnswer
    from argosy.model.errors import (
        ArgosyError,
        CommandError,
        CommitRefused,
        ConstraintSyntaxError,
        EngineFault,
        EngineNotFound,
        FleetRefused,
        JobError,
        MissingExtra,
        MissingLibrary,
        ModelError,
        ReplayDiverged,
        RunDirectoryError,
        ScenarioError,
        ServerError,
        ServerUnreachable,
        SettingError,
        TraceError,
        UnitError,
        UnknownEngine,
        UnknownForm,
        UnknownName,
        Untranslatable,
    )
    from argosy.model.scenario import Scenario
    from argosy.records.replay import ReplaySummary
    from argosy.records.summary import Summary

__all__ = [
    "ArgosyError",
    "AsyncClient",
    "Client",
    "CommandError",
    "CommitRefused",
    "Comparison",
    "ConstraintSyntaxError",
    "EngineFault",
    "EngineNotFound",
    "FleetRefused",
    "JobError",
    "MissingExtra",
    "MissingLibrary",
    "ModelError",
    "ReplayDiverged",
    "ReplaySummary",
    "Result",
    "RunDirectoryError",
    "Scenario",
    "ScenarioError",
    "ServerError",
    "ServerUnreachable",
    "SettingError",
    "StoryLine",
    "Summary",
    "TraceError",
    "UnitError",
    "UnknownEngine",
    "UnknownForm",
    "UnknownName",
    "Untranslatable",
    "WhyAnswer",
    "__version__",
    "compare",
    "engine",
    "load",
    "open_run",
    "replay",
    "replay_with",
    "run",
    "story",
    "why",
]

#: The module of each name, except errors.
_HOMES = {
    "AsyncClient": "argosy.client",
    "Client": "argosy.client",
    "Comparison": "argosy.library",
    "Result": "argosy.library",
    "Scenario": "argosy.model.scenario",
    "ReplaySummary": "argosy.records.replay",
    "StoryLine": "argosy.model.answers",
    "Summary": "argosy.records.summary",
    "WhyAnswer": "argosy.model.answers",
    "compare": "argosy.library",
    "load": "argosy.library",
    "open_run": "argosy.library",
    "replay": "argosy.library",
    "replay_with": "argosy.library",
    "run": "argosy.library",
    "story": "argosy.library",
    "why": "argosy.library",
}


def __getattr__(name: str) -> object:
    if name == "engine":
        return importlib.import_module("argosy.engine")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_HOMES.get(name, "argosy.model.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
