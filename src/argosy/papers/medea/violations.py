"""Figures 9 and 10: how many containers violate constraints, and how the machines are used."""

from __future__ import annotations

from typing import Final

import numpy as np

from argosy.model.random import Random
from argosy.papers.experiment import DONE, ExperimentPoint, PointResult
from argosy.papers.medea.deployment import (
    INTERVAL,
    Deployed,
    Site,
    WantedApplication,
    deploy,
    site_of,
)
from argosy.papers.medea.trial import HBASE, HBASE_AS_PRINTED, HBASE_ROLES

#: Steps of utilisation in figures 9a and 10.
STEPS: Final = tuple(range(10, 100, 10))
#: The share held by tasks in figures 9c and 9d; the share that applications reach in addition.
TASKS: Final = 0.4
APPLICATIONS: Final = 0.1
#: Algorithms that are compared on a small cell, where the printed program can be solved.
SMALL: Final = {"ilp-small": "ilp", "ilp-printed": "ilp-printed"}
SMALL_MACHINES: Final = 20
#: What members of a family want of each other member's workers in the rack of each of their own: some,
#: or at most four, so that no two members fit into one rack.
BETWEEN: Final = {"affinity": "{tags}, 1, inf", "cardinality": "{tags}, 0, 4"}
_ALONE: Final = WantedApplication(HBASE_ROLES, HBASE)
_AS_PRINTED: Final = WantedApplication(HBASE_ROLES, HBASE_AS_PRINTED)


def filling(point: ExperimentPoint) -> PointResult:
    """Figures 9a and 10: applications fill the cell, two at a time. What is measured at a step is what
    the applications placed until then hold and violate."""
    name = str(point.parameters["algorithm"])
    site = Site(SMALL_MACHINES, 2) if name in SMALL else site_of(point)
    wanted = site.filled_by(_ALONE, max(STEPS) / 100) + 1
    done = deploy(point, site, [_ALONE] * wanted, SMALL.get(name, name))
    values: dict[str, float] = {}
    whole, count = site.machines * site.memory, 0
    used = done.used_after(0)
    for step in STEPS:
        while used.sum() < step / 100 * whole and count < len(done.order):
            # Two applications are placed at a time.
            count = min(len(done.order), count + 2)
            used = done.used_after(count)
        violating, extent = done.violating(count)
        values[f"violating.{step}"], values[f"extent.{step}"] = violating, extent
        values[f"fragmented.{step}"] = done.fragmented(used)
        values[f"imbalance.{step}"] = done.imbalance(used)
        values[f"used.{step}"] = float(used.sum() / whole)
    # The last step is not reached exactly, because applications come in pairs.
    values[DONE] = min(1.0, values[f"used.{max(STEPS)}"] / (max(STEPS) / 100))
    return PointResult(values)


def beside_tasks(point: ExperimentPoint) -> PointResult:
    """Figure 9b: 10 % applications in a cell with tasks."""
    site = site_of(point, tasks=float(point.parameters["tasks"]))
    wanted = [_AS_PRINTED] * site.filled_by(_AS_PRINTED, APPLICATIONS)
    return _judged(deploy(point, site, wanted))


def intervals(point: ExperimentPoint) -> PointResult:
    """Figure 9c: families of ten, with the point's number of applications per interval. Either more of
    them come in intervals of equal length, or intervals are longer by as much."""
    period = int(point.parameters["period"])
    is_longer = point.parameters["longer"] == "interval"
    interval = period * INTERVAL if is_longer else INTERVAL
    return _families(point, 10, period, "affinity", interval)


def complexity(point: ExperimentPoint) -> PointResult:
    """Figure 9d: families of the given complexity, two applications per interval."""
    size, between = int(point.parameters["complexity"]), str(point.parameters["between"])
    return _families(point, size, 2, between)


def _judged(done: Deployed) -> PointResult:
    violating, extent = done.violating()
    return PointResult(
        {
            "violating": violating,
            "extent": extent,
            DONE: done.placed,
            "conflicts": float(done.refused),
        }
    )


def _families(
    point: ExperimentPoint, size: int, period: int, between: str, interval: int = INTERVAL
) -> PointResult:
    """HBase instances in families of `size`, whose members want something of each other; at most two
    workers of any instance are on a machine. Members arrive in random order, so a family arrives over
    many intervals."""
    site = site_of(point, tasks=TASKS)
    families = max(1, round(site.filled_by(_AS_PRINTED, APPLICATIONS) / size))
    random = Random(point.seed).child("arrivals")
    arriving = np.argsort(random.integers(families * size, 2**30), kind="stable").tolist()
    wanted = [_member(number // size, number % size, size, between) for number in arriving]
    return _judged(deploy(point, site, wanted, period=period, interval=interval))


def _member(family: int, index: int, size: int, between: str) -> WantedApplication:
    texts = []
    for other in range(size):
        if other != index:
            tags = f"family:{family} & member:{other} & worker"
            bounds = BETWEEN[between].format(tags=tags)
            texts.append(f"appID:self & worker -> {{{bounds}}} in rack")
    mark = f"family:{family} member:{index}"
    roles = [(f"{role} {mark}", memory, count) for role, memory, count in HBASE_ROLES]
    return WantedApplication(roles, [*HBASE_AS_PRINTED, *texts])
