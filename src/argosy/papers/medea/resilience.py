"""Figure 8: how many containers of an application are unavailable when service units fail."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.model.random import Random
from argosy.papers.experiment import DONE, ExperimentPoint, PointResult
from argosy.papers.medea.deployment import WantedApplication, deploy, site_of
from argosy.papers.medea.trial import MB

UNITS: Final = 25
HOURS: Final = 15 * 24
TASKS: Final = 0.3
#: Two forms of "spread over service units": no two in one unit, as in the paper; or at most an even
#: share per unit, which the paper's Kubernetes cannot express.
SAID: Final = {
    "anti-affinity": "appID:self -> {appID:self, 0, 0} in unit",
    "limit": "appID:self -> {appID:self, 0, 3} in unit",
}


def resilience(point: ExperimentPoint) -> PointResult:
    """Applications of 100 containers of 1 GB, each spread over 25 service units of 40 machines of 16 GB
    that tasks fill to 30 %. They stay where they were placed for all hours."""
    site = site_of(point, 1_000, UNITS, "unit", tasks=TASKS)
    wanted = WantedApplication([("part", MB, 100)], [SAID[str(point.parameters["said"])]])
    done = deploy(point, site, [wanted] * (4 if point.scale == "smoke" else 20))
    spread: list[NDArray[np.float64]] = []
    for number in done.order:
        inside = done.set_of[done.machines_of(number)]
        spread.append(np.bincount(inside, minlength=site.sets) / len(inside))
    shares = np.array(spread)
    worst = (unavailability(site.sets, point.seed) @ shares.T).max(axis=1)
    violating, extent = done.violating()
    return PointResult(
        {
            "median": float(np.median(worst)),
            "largest": float(worst.max()),
            "crowded": float(shares.max()),
            "violating": violating,
            "extent": extent,
            DONE: done.placed,
        },
        {"worst": np.sort(worst).tolist()},
    )


def unavailability(units: int, seed: int) -> NDArray[np.float64]:
    """The share of each unit's machines that are down in each hour, following the description of figure
    3: usually below 3 %, with spikes to 25 % and sometimes 100 %, correlated within a unit and not
    between units."""
    random = Random(seed).child("unavailability")
    down = np.empty((HOURS, units))
    for unit in range(units):
        hours = 0
        level = 0.0
        for hour in range(HOURS):
            if hours == 0:
                draw = random.uniform()
                if draw < 0.003:
                    level, hours = 1.0, 1 + int(3 * random.exponential())
                elif draw < 0.02:
                    level, hours = 0.05 + 0.2 * random.uniform(), 1 + int(4 * random.exponential())
                else:
                    level, hours = min(0.03, 0.01 * random.exponential()), 1
            down[hour, unit] = level
            hours -= 1
    return down
