"""Min-cost flow: see core/flow."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from argosy._core.clock import Budget

class FlowAlgorithm(IntEnum):
    AUTO = 0
    LOCAL = 1
    SHORTEST_PATHS = 2
    PRIMAL_DUAL = 3
    RELAXATION = 4
    COST_SCALING = 5
    CYCLE_CANCELLING = 6
    RACE = 7
    WARM_RACE = 8

class FlowStatus(IntEnum):
    OPTIMAL = 0
    INFEASIBLE = 1
    UNBALANCED = 2
    OVERFLOW = 3
    STOPPED = 4

class RosterState(IntEnum):
    GONE = 0
    PENDING = 1
    RUNNING = 2

class FlowStop:
    def __init__(self) -> None: ...
    def set(self) -> None: ...

class FlowSolver:
    def __init__(self) -> None: ...
    @property
    def vertices(self) -> int: ...
    @property
    def arcs(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    def cost(self) -> str: ...
    def add_vertices(self, supplies: NDArray[np.int64]) -> NDArray[np.int32]: ...
    def add_arcs(
        self,
        tails: NDArray[np.int32],
        heads: NDArray[np.int32],
        capacities: NDArray[np.int64],
        costs: NDArray[np.int64],
        steps: NDArray[np.int64],
    ) -> NDArray[np.int32]: ...
    def add_segmented_arc(
        self, tail: int, head: int, units: NDArray[np.int64], costs: NDArray[np.int64]
    ) -> int: ...
    def set_arcs(
        self,
        arcs: NDArray[np.int32],
        capacities: NDArray[np.int64],
        costs: NDArray[np.int64],
        steps: NDArray[np.int64],
    ) -> None: ...
    def set_segments(
        self, arc: int, units: NDArray[np.int64], costs: NDArray[np.int64]
    ) -> None: ...
    def balance(self, vertex: int) -> None: ...
    def set_supplies(self, vertices: NDArray[np.int32], supplies: NDArray[np.int64]) -> None: ...
    def remove_vertices(self, vertices: NDArray[np.int32], drain: bool) -> None: ...
    def remove_arcs(self, arcs: NDArray[np.int32]) -> None: ...
    def solve(
        self,
        algorithm: FlowAlgorithm,
        warm: bool,
        budget: Budget | None,
        stop: FlowStop | None,
        arc_prioritisation: bool,
        depth_first: bool,
        price_refine: bool,
        fresh_prices: bool,
        short_searches: bool,
        alpha: int,
    ) -> tuple[FlowStatus, FlowAlgorithm, int, int]: ...
    def way(
        self,
        starts: NDArray[np.int32],
        entries: NDArray[np.int64],
        closed: NDArray[np.int32],
        target: int,
    ) -> tuple[bool, int, int, NDArray[np.int32]]: ...
    def reset(self) -> None: ...
    def forget_prices(self) -> None: ...
    def all_vertices(self) -> NDArray[np.int32]: ...
    def all_arcs(self) -> NDArray[np.int32]: ...
    def supplies(self, vertices: NDArray[np.int32] | None = None) -> NDArray[np.int64]: ...
    def prices(self, vertices: NDArray[np.int32] | None = None) -> NDArray[np.int64]: ...
    def tails(self, arcs: NDArray[np.int32] | None = None) -> NDArray[np.int32]: ...
    def heads(self, arcs: NDArray[np.int32] | None = None) -> NDArray[np.int32]: ...
    def flow(self, arc: int) -> int: ...
    def flows(self, arcs: NDArray[np.int32] | None = None) -> NDArray[np.int64]: ...
    def capacities(self, arcs: NDArray[np.int32] | None = None) -> NDArray[np.int64]: ...
    def costs(self, arcs: NDArray[np.int32] | None = None) -> NDArray[np.int64]: ...
    def steps(self, arcs: NDArray[np.int32] | None = None) -> NDArray[np.int64]: ...
    def segments(
        self, arcs: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]: ...

class FlowRoster:
    def __init__(
        self,
        solver: FlowSolver,
        dimensions: int,
        reschedules: bool,
        migration: int,
        drains: bool,
    ) -> None: ...
    def add_machines(self, vertices: NDArray[np.int32]) -> None: ...
    def open_pool(
        self,
        number: int,
        vertex: int,
        request: NDArray[np.int64],
        is_choosy: bool,
        preempts: bool = True,
    ) -> None: ...
    def add_aggregators(
        self,
        number: int,
        vertices: NDArray[np.int32],
        froms: NDArray[np.int64],
        tos: NDArray[np.int64],
        arcs: NDArray[np.int32],
    ) -> None: ...
    def close_pool(self, number: int) -> None: ...
    def widen(self, requests: NDArray[np.int64], are_choosy: NDArray[np.bool_]) -> None: ...
    def add_owner(self) -> None: ...
    def add_job(self, number: int, tasks: int, head: int, precedence: int) -> None: ...
    def add_classes(
        self,
        jobs: NDArray[np.int64],
        pools: NDArray[np.int64],
        owners: NDArray[np.int64],
        shapes: NDArray[np.int64],
        waiting: NDArray[np.int64],
        sizes: NDArray[np.int64],
        each: NDArray[np.bool_],
        rows: NDArray[np.int64],
        pool_costs: NDArray[np.int64],
        preemption: int,
        now: int,
    ) -> NDArray[np.int64]: ...
    def enter(self, tasks: NDArray[np.int64], now: int) -> NDArray[np.int64]: ...
    def start(
        self,
        rows: NDArray[np.int64],
        machines: NDArray[np.int64],
        costs: NDArray[np.int64],
        now: int,
    ) -> None: ...
    def stop(self, rows: NDArray[np.int64], now: int) -> None: ...
    def finish(self, tasks: NDArray[np.int64]) -> list[int]: ...
    def drop(self, tasks: NDArray[np.int64]) -> list[int]: ...
    def grow_job(self, number: int, tasks: int) -> None: ...
    def park(self, jobs: NDArray[np.int64], is_parked: bool) -> None: ...
    def sync(self) -> None: ...
    def age(self, now: int, price: int) -> None: ...
    def extract(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
    def admit(
        self,
        rooms: FlowRooms,
        rows: NDArray[np.int64],
        machines: NDArray[np.int64],
        costs: NDArray[np.int64],
        leaving: NDArray[np.int64],
        free: NDArray[np.int64],
        usable: NDArray[np.bool_],
        moves: int,
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int64],
        bool,
    ]: ...
    def job(self, number: int) -> tuple[int, int, int, int, int]: ...
    @property
    def waiting_jobs(self) -> int: ...
    def rows(self, tasks: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def named(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
    def tasks(self, name: str) -> NDArray[np.int64]: ...
    def classes(self, name: str) -> NDArray[np.int64]: ...
    def runs(self, name: str) -> NDArray[np.int64]: ...
    def run_of(self, task_class: int, machine: int) -> int: ...
    def entries(
        self,
        task_class: int,
        above: NDArray[np.int64],
        arcs: NDArray[np.int32],
        rooms: NDArray[np.int64],
        costs: NDArray[np.int64],
        steps: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def second_best(
        self,
        task_class: int,
        machine: int,
        above: NDArray[np.int64],
        arcs: NDArray[np.int32],
        rooms: NDArray[np.int64],
        costs: NDArray[np.int64],
        steps: NDArray[np.int64],
    ) -> tuple[int, int, bool, int, int, int]: ...
    def price(
        self, task_class: int, targets: list[tuple[int, int]]
    ) -> tuple[int, bool, int, int, int, int, int]: ...
    def last_task(self, task_class: int, where: NDArray[np.int64], machine: int) -> int: ...
    def own(self) -> NDArray[np.int64]: ...
    def own_tasks(self) -> NDArray[np.int64]: ...
    def owner_tasks(self) -> NDArray[np.int64]: ...
    def demands(self) -> NDArray[np.int64]: ...
    def waiting(
        self, placed: NDArray[np.int64]
    ) -> tuple[list[int], list[int], NDArray[np.int64]]: ...
    def has_room(
        self,
        machines: NDArray[np.int32],
        free: NDArray[np.int64],
        allowed: NDArray[np.bool_],
    ) -> bool: ...
    def running(self, pools: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def pool_tasks(self) -> NDArray[np.int64]: ...

class FlowRooms:
    def __init__(self, roster: FlowRoster, slots: int) -> None: ...
    def unbar(self) -> None: ...
    def forget(self) -> None: ...
    def look(
        self,
        free: NDArray[np.int64],
        usable: NDArray[np.bool_],
        allowed: NDArray[np.bool_],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
    def counted(self) -> NDArray[np.int64]: ...
    def set_pool_arcs(
        self,
        new_costs: int | NDArray[np.int64],
        new_steps: int | NDArray[np.int64],
        above: NDArray[np.int64],
        arcs: NDArray[np.int32],
        rooms: NDArray[np.int64],
        costs: NDArray[np.int64],
        steps: NDArray[np.int64],
        thinned: NDArray[np.int64] | None = None,
    ) -> None: ...
    def set_sink_arcs(
        self,
        new_costs: int | NDArray[np.int64],
        new_steps: int | NDArray[np.int64],
        arcs: NDArray[np.int32],
        rooms: NDArray[np.int64],
        costs: NDArray[np.int64],
        steps: NDArray[np.int64],
    ) -> None: ...
