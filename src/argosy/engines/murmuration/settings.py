from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from argosy.engines.api import Settings
from argosy.model.units import Micros


class MurmurationSettings(Settings, frozen=True):
    """How a Murmuration scheduler orders, decides and gossips."""

    #: Decision time is t_job + t_task x tasks.
    t_job: Micros = Micros(100_000)
    t_task: Micros = Micros(5_000)
    #: Which job comes next: the earliest, or the one with the least estimated work.
    order: Literal["fcfs", "shortest-job"] = "fcfs"
    #: With the shortest job first, one is overtaken by jobs of at most so many times its own work; 0: by
    #: any number.
    slack: Annotated[int, Meta(ge=0)] = 0
    #: One message for all placements of a job, or one for each.
    gossip: Literal["job", "task"] = "job"
    #: How long reports lie at a scheduler before they are worked in.
    update_delay: Micros = Micros(0)
    #: How often views are compared with a random peer's, to make up for lost messages; 0: never.
    anti_entropy: Micros = Micros(60_000_000)
    #: Estimates are those that jobs come with, or learnt from jobs that ended: those of the same owner
    #: and name, then of the owner, then all. The quantile of their tasks' times is the estimate.
    estimates: Literal["told", "learnt"] = "told"
    quantile: Annotated[float, Meta(ge=0, le=1)] = 0.5
    #: What a task without an estimate is taken to run for: such tasks mostly run until stopped.
    unknown_estimate: Annotated[Micros, Meta(ge=1)] = Micros(3_600_000_000)
    #: How long a scheduler that starts again waits for two peers' views before it asks two others.
    ask_timeout: Annotated[Micros, Meta(ge=1_000)] = Micros(1_000_000)
    #: A view is handed out after up to so long: background work that comes first.
    answer_delay: Micros = Micros(0)
    #: How long tasks wait that all machines' full queues gave back.
    retry: Annotated[Micros, Meta(ge=1_000)] = Micros(1_000_000)
    #: How much longer a task waits for a machine that has what it `prefers`, near its data, rather than
    #: go elsewhere.
    locality: Micros = Micros(0)
    #: Do as the authors' simulator: machines are busy until a time, choices are made when a decision
    #: begins, and tasks leave one by one while it lasts.
    as_published: bool = False
