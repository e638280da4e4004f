"""How applications perform depending on their placement: a model fitted to the Medea paper's reported
measurements. Nothing here was measured.

**HBase and TensorFlow.** A worker's time is 1, plus a price for the network, plus interference:

    slowdown = 1 + network(load) * distance + interference * neighbours^3

`distance` is the mean over the other workers of its instance: 0 on its machine, 1 in its rack, 10/6
elsewhere, for the paper's network has 10 Gbps within a rack and 6 across. `neighbours` are the other
workers of such applications on its machine. An instance takes the mean over its workers, for requests
and iterations go to all of them. Fitted are

- TensorFlow's interference and the network's price at 70 % load: of 32 workers, 16 on a machine take
  42 % less time than 32 and 34 % less than one (section 2.2). These are linear equations; 3 is the
  lowest whole power for which they have a positive solution.
- the price at the other loads: where 4 workers of TensorFlow on a machine are best, as the paper found
  at 5 % (section 2.2) and at 50 % (footnote 7), it is between 0.37 and 2.24. At 50 % it is the
  geometric mean of these; at 5 % that of the lower one and the price at 50 %. Between loads it is
  interpolated geometrically. Footnote 7's two workers of HBase are then best at 50 % too.
- HBase's interference: without constraints the throughput is 34 % lower than with anti-affinity (figure
  2b), in the mean over eight seeds of figure 2b's placements here.
- isolation: control groups improve the throughput without constraints by 20 % (figure 2b), likewise.

**Storm with Memcached.** A request costs 1, plus 2.6 times the share of pairs of supervisors that are on
different machines, plus 4 times the share of supervisors that are not beside Memcached; a lookup costs 1
plus 3.6 times the latter. So all on one machine are 5 and 7.6 times faster end to end and 4.6 times in
lookups, as the paper says. Its 31 % for the supervisors alone comes out as 34 %, which is 1 - 5 / 7.6.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Distance to another rack, in units of the distance within a rack.
ACROSS: Final = 10 / 6
POWER: Final = 3
#: By load of the cell.
NETWORK: Final = ((0.05, 0.58), (0.5, 0.91), (0.7, 23.78))
#: Per cube of neighbours.
TENSORFLOW: Final = 27.19 / 31**POWER
HBASE: Final = 0.02
#: The share of interference that remains with control groups.
ISOLATED: Final = 0.3
STORM_PAIRS: Final = 2.6
STORM_LOOKUPS: Final = 4.0
LOOKUP: Final = 3.6


def network(load: float) -> float:
    """The price of distance at a load of the cell."""
    loads, prices = zip(*NETWORK, strict=True)
    return math.exp(float(np.interp(load, loads, np.log(prices))))


def slowdowns(
    workers: NDArray[np.int32],
    racks: NDArray[np.int32],
    crowd: NDArray[np.int64],
    interference: float,
    load: float,
) -> NDArray[np.float64]:
    """The slowdown of each worker of an instance, given its machines, the rack of every machine, and
    the number of workers of such applications on every machine."""
    count = len(workers)
    same = workers[:, None] == workers[None, :]
    near = racks[workers][:, None] == racks[workers][None, :]
    apart = np.where(same, 0.0, np.where(near, 1.0, ACROSS))
    distance = apart.sum(axis=1) / max(1, count - 1)
    neighbours = crowd[workers] - 1.0
    return np.asarray(
        1 + network(load) * distance + interference * neighbours**POWER, dtype=np.float64
    )


def storm(supervisors: NDArray[np.int32], memcached: int) -> tuple[float, float]:
    """The time of a request end to end, and of a lookup."""
    away = float((supervisors != memcached).mean())
    count = len(supervisors)
    pairs = float((supervisors[:, None] != supervisors[None, :]).sum()) / (count * (count - 1))
    return 1 + STORM_PAIRS * pairs + STORM_LOOKUPS * away, 1 + LOOKUP * away
