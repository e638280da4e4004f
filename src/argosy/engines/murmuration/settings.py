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
    #: Whether a decision is about a whole job or about one task. Tasks that are decided one by one leave
    #: one by one, each by what is known when its own t_task is over.
    decide: Literal["job", "task"] = "job"
    #: Which job is next: the earliest, or the one with the least estimated work.
    order: Literal["fcfs", "shortest-job"] = "fcfs"
    #: With the shortest job first: how much work may overtake a job, in multiples of its own; 0: no
    #: limit.
    slack: Annotated[int, Meta(ge=0)] = 0
    #: Whether peers get one message per job, one per placement, or one for all placements since the
    #: last: every `batch_time`, or as soon as there are `batch_size`.
    gossip: Literal["job", "task", "batch"] = "job"
    batch_time: Annotated[Micros, Meta(ge=1_000)] = Micros(1_000_000)
    #: 0: only the time counts.
    batch_size: Annotated[int, Meta(ge=0)] = 0
    #: How long a scheduler takes to read one message. It reads while it does not decide.
    t_update: Micros = Micros(0)
    #: The expected wait of a machine: the work of its tasks by the share of the machine that they take,
    #: and none if there is room; or the plain sum of their estimates, as in the paper's formula.
    expected_wait: Literal["share", "sum"] = "share"
    #: How long a scheduler delays reports before it uses them.
    update_delay: Micros = Micros(0)
    #: How often a scheduler compares its view with a random peer's, to repair lost messages; 0: never.
    anti_entropy: Micros = Micros(60_000_000)
    #: Estimates come with the job, or are learnt from finished jobs: of the same owner and name, else
    #: of the owner, else all. The estimate is this quantile of their tasks' running times.
    estimates: Literal["told", "learnt"] = "told"
    quantile: Annotated[float, Meta(ge=0, le=1)] = 0.5
    #: Assumed running time of a task without an estimate; most such tasks run until stopped.
    unknown_estimate: Annotated[Micros, Meta(ge=1)] = Micros(3_600_000_000)
    #: How long a restarted scheduler waits for two peers' views before it asks two others.
    ask_timeout: Annotated[Micros, Meta(ge=1_000)] = Micros(1_000_000)
    #: Largest delay before a scheduler answers a peer's request for its view.
    answer_delay: Micros = Micros(0)
    #: How long tasks wait if every machine's queue is full.
    retry: Annotated[Micros, Meta(ge=1_000)] = Micros(1_000_000)
    #: How much longer a task waits for a machine near its data (one that it `prefers`).
    locality: Micros = Micros(0)
    #: Behave like the authors' simulator: a view holds the time until which each machine is busy,
    #: machines are chosen when a decision begins, and tasks leave one by one while it lasts.
    as_published: bool = False
