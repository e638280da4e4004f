"""Metrics in the text format of Prometheus, with names like those of kube-scheduler."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from argosy.api.values import TaskCounts
from argosy.service.agent import LiveAgent
from argosy.service.event_log import EventLog, Position
from argosy.service.live import LiveCluster
from argosy.service.measured_distances import MeasuredDistances
from argosy.version import __version__
from argosy.worlds.local.changes import TaskNote
from argosy.worlds.local.projection import OVER

_SECOND: Final = 1_000_000
#: Upper bounds in seconds: doubling from a millisecond.
BOUNDS: Final = tuple(0.001 * 2**power for power in range(16))
_PREFIX: Final = "argosy_"
_OPEN: Final = ("pending", "queued", "running")
#: The states that kube-scheduler calls results of attempts.
_RESULTS: Final = {"running": "scheduled", "queued": "scheduled", "abandoned": "unschedulable"}


class Histogram:
    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self._sum += seconds

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        total = 0
        inner = f"{labels}," if labels else ""
        for bound, count in zip(BOUNDS, self._counts, strict=False):
            total += count
            yield f'{name}_bucket{{{inner}le="{bound:g}"}} {total}'
        total += self._counts[-1]
        yield f'{name}_bucket{{{inner}le="+Inf"}} {total}'
        outer = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{outer} {self._sum:.6f}"
        yield f"{name}_count{outer} {total}"


class Metrics:
    """Counts since the server started."""

    def __init__(
        self,
        cluster: LiveCluster,
        events: EventLog,
        agent: LiveAgent | None,
        distances: MeasuredDistances | None = None,
    ) -> None:
        """`distances` are those of a scheduler over other agents."""
        self._cluster = cluster
        self._agent = agent
        self._distances = distances
        self._events = events
        self._position = events.now
        self._attempts: Counter[str] = Counter()
        self._ends: Counter[str] = Counter()
        #: Tasks in queues of machines.
        self._queued: set[tuple[str, int]] = set()
        #: Open tasks by state, and when they were counted: with many jobs that takes a while.
        self._waiting: dict[str, int] = {}
        self._counted_at: Position | None = None
        self._waits = Histogram()
        self._turn_times = Histogram()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._request_times = Histogram()
        #: Lines of others, such as of what a world outside is asked.
        self.sections: list[Callable[[], Iterable[str]]] = []

    def request_ended(self, method: str, status: int, seconds: float) -> None:
        self._requests[method, status] += 1
        self._request_times.add(seconds)

    def turn_ended(self, seconds: float) -> None:
        """Counts what the last turns changed; to be called after the event log's."""
        self._turn_times.add(seconds)
        rows = self._cluster.world.projection.by_id
        for change in self._events.changes_after(self._position):
            if not isinstance(change, TaskNote):
                continue
            was_queued = self._was_queued(change)
            if change.state in _RESULTS and not was_queued:
                self._attempts[_RESULTS[change.state]] += 1
            if change.state in OVER:
                self._ends[change.state] += 1
            if change.state == "running" and change.job in rows:
                self._waits.add(max(0, change.at - rows[change.job].submitted) / _SECOND)
        self._position = self._events.now

    def _was_queued(self, change: TaskNote) -> bool:
        """Whether it starts out of a machine's queue: it had its place already."""
        task = (change.job, change.index)
        was_queued = task in self._queued
        if change.state == "queued":
            self._queued.add(task)
        else:
            self._queued.discard(task)
        return was_queued and change.state == "running"

    @property
    def placed(self) -> int:
        """Tasks that got a place."""
        return self._attempts["scheduled"]

    def tasks(self) -> TaskCounts:
        """Tasks that wait or run, and those that came to their end since the start."""
        if self._counted_at != self._position:
            self._counted_at, self._waiting = self._position, self._count_waiting()
        ends = {state: self._ends[state] for state in OVER}
        return TaskCounts(**self._waiting, **ends)

    def _count_waiting(self) -> dict[str, int]:
        waiting = dict.fromkeys(_OPEN, 0)
        for row in self._cluster.world.projection.by_id.values():
            for state in _OPEN:
                waiting[state] += row.counts[state]
        return waiting

    def text(self) -> bytes:
        return ("\n".join(self._lines()) + "\n").encode()

    def _lines(self) -> Iterator[str]:
        world = self._cluster.world
        tasks = self.tasks()
        yield from metric("build_info", "gauge", "The version.", {label("version", __version__): 1})
        yield from metric(
            "scheduler_pending_tasks",
            "gauge",
            "Tasks that wait: for a scheduler, or in a machine's queue.",
            {
                'queue="active"': tasks.pending,
                'queue="machines"': tasks.queued,
            },
        )
        yield from metric(
            "scheduler_running_tasks", "gauge", "Tasks that run.", {"": tasks.running}
        )
        yield from metric(
            "scheduler_schedule_attempts_total",
            "counter",
            "Tasks that got a place, or were given up.",
            {
                f'result="{result}"': self._attempts[result]
                for result in ("scheduled", "unschedulable")
            },
        )
        yield from metric(
            "scheduler_task_ends_total",
            "counter",
            "Tasks that are over, by how.",
            {f'state="{state}"': self._ends[state] for state in OVER},
        )
        yield from metric(
            "scheduler_jobs_open",
            "gauge",
            "Jobs that are not over.",
            {"": len(world.projection.by_id)},
        )
        lived = max(1, world.now - world.host.setup.began)
        yield from metric(
            "scheduler_busyness_ratio",
            "gauge",
            "Share of its time that a scheduler spends deciding.",
            {
                f"{label('scheduler', each.name)},{label('engine', each.entry.engine)}": (
                    each.busy_time(world.now) / lived
                )
                for each in world.host.schedulers
            },
        )
        yield from metric(
            "scheduler_figure",
            "gauge",
            "What an engine counts by itself, since it started.",
            {
                f"{label('scheduler', each.name)},{label('figure', name)}": value
                for each in world.host.schedulers
                for name, value in each.figures().items()
            },
        )
        used, capacity = world.host.view.used_total(), world.host.view.capacity_total()
        for what, amounts in (("used", used), ("capacity", capacity)):
            yield from metric(
                f"cluster_{what}",
                "gauge",
                f"Resources {'claimed' if what == 'used' else 'there are'}: cpu in thousandths of a "
                "core, memory in bytes.",
                {label("resource", name): amount for name, amount in amounts.items()},
            )
        yield from head(
            "scheduler_task_scheduling_sli_duration_seconds",
            "histogram",
            "From a job's submission until a task of it starts.",
        )
        yield from self._waits.lines(f"{_PREFIX}scheduler_task_scheduling_sli_duration_seconds")
        yield from head("turn_duration_seconds", "histogram", "Time to decide and store a turn.")
        yield from self._turn_times.lines(f"{_PREFIX}turn_duration_seconds")
        yield from self._agent_lines()
        if self._distances is not None:
            yield from metric(
                "scheduler_agent_round_trip_seconds",
                "gauge",
                "Shortest of the last round trips to an agent.",
                {
                    f"{label('cluster', cluster)},{label('place', place)}": trip / _SECOND
                    for cluster, place, trip in self._distances.measured()
                },
            )
        for section in self.sections:
            yield from section()
        yield from metric(
            "http_requests_total",
            "counter",
            "Requests, by method and status.",
            {
                f"{label('method', method)},{label('code', status)}": count
                for (method, status), count in sorted(self._requests.items())
            },
        )
        yield from head("http_request_duration_seconds", "histogram", "Time to answer requests.")
        yield from self._request_times.lines(f"{_PREFIX}http_request_duration_seconds")

    def _agent_lines(self) -> Iterator[str]:
        """What schedulers elsewhere have asked."""
        if self._agent is None:
            return
        counts = self._agent.counts
        for name, text, value in (
            ("samples", "Samples drawn for schedulers elsewhere.", counts.samples),
            ("machines_drawn", "Machines drawn for them.", counts.drawn),
            (
                "machines_eligible",
                "Machines among these that could take the task.",
                counts.eligible,
            ),
            ("sampling_seconds", "Time spent on samples.", counts.sampling_time / 1e9),
            ("releases", "Commits that were undone.", counts.released),
            ("reservations_expired", "Reservations whose lease was over.", counts.expired),
        ):
            yield from metric(f"agent_{name}_total", "counter", text, {"": value})
        yield from metric(
            "agent_commits_total",
            "counter",
            "Commits of schedulers elsewhere: successes, machines that refused, and repetitions.",
            {
                'result="success"': counts.commits,
                'result="conflict"': counts.conflicts,
                'result="repeated"': counts.repeated,
            },
        )
        yield from metric(
            "agent_reservations",
            "gauge",
            "Room kept for commits that are under way or to come.",
            {"": self._agent.open_reservations},
        )


def label(name: str, value: object) -> str:
    text = str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{name}="{text}"'


def number(value: float) -> str:
    """Exact: counts may be large."""
    return str(int(value)) if value == int(value) else repr(float(value))


def head(name: str, kind: str, text: str) -> Iterable[str]:
    return (f"# HELP {_PREFIX}{name} {text}", f"# TYPE {_PREFIX}{name} {kind}")


def metric(name: str, kind: str, text: str, values: Mapping[str, float]) -> Iterator[str]:
    yield from head(name, kind, text)
    for labels, value in values.items():
        yield f"{_PREFIX}{name}{f'{{{labels}}}' if labels else ''} {number(value)}"
