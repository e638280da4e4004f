"""What the host refuses from engines; errors name the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scripted_engine import (
    Script,
    Scripted,
    claim,
    world_of,
)

from argosy.cell import View
from argosy.model.effects import Abandon, Effect, Enqueue, Sample, Send, Think
from argosy.model.errors import EngineFault
from argosy.model.events import (
    Committed,
    Event,
    JobSubmitted,
    MessageReceived,
)
from argosy.model.explanations import Explanation
from argosy.model.jobs import task_number
from argosy.model.messages import Note
from argosy.model.resources import Resources
from argosy.testing.builders import job


def place_what_another_was_given(
    engine: Scripted, event: Event, view: View, now: int
) -> Sequence[Effect]:
    if isinstance(event, JobSubmitted):
        return [Send(engine.context.peers, Note("tasks", event.tasks.tolist()))]
    if isinstance(event, MessageReceived) and isinstance(event.payload, Note):
        tasks = np.array(event.payload.data, np.int64)
        return [Enqueue(tasks, np.zeros(len(tasks), np.int32))]
    return ()


def place_a_list(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    if isinstance(event, JobSubmitted):
        tasks: Any = event.tasks.tolist()
        return [Enqueue(tasks, np.zeros(len(tasks), np.int32))]
    return ()


def sample_another_cluster(
    engine: Scripted, event: Event, view: View, now: int
) -> Sequence[Effect]:
    if isinstance(event, JobSubmitted):
        return [Sample(Resources(1, 1), 1, token=1, cluster="elsewhere")]
    return ()


def place_twice(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    if isinstance(event, JobSubmitted):
        once = Enqueue(event.tasks, np.zeros(len(event.tasks), np.int32))
        return [once, once]
    return ()


def place_one_task_twice_at_once(
    engine: Scripted, event: Event, view: View, now: int
) -> Sequence[Effect]:
    if isinstance(event, JobSubmitted):
        return [Enqueue(np.repeat(event.tasks, 2), np.zeros(2 * len(event.tasks), np.int32))]
    return ()


def place_a_strangers_task(
    engine: Scripted, event: Event, view: View, now: int
) -> Sequence[Effect]:
    return [Enqueue(np.array([task_number(99, 0)]), np.zeros(1, np.int32))]


def place_nowhere(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    if isinstance(event, JobSubmitted):
        return [Enqueue(event.tasks, np.full(len(event.tasks), 10_000, np.int32))]
    return ()


def commit_as_another(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    return [claim(view, event, 0, "other")] if isinstance(event, JobSubmitted) else ()


def think_backwards(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    return [Think(-1, 0)]


def send_into_the_void(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    return [Send(("nobody",), Note("hello"))]


def return_nonsense(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Any]:
    return [42]


def fail(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    raise RuntimeError("boom")


def abandon_what_runs(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    match event:
        case JobSubmitted():
            return [claim(view, event, 0, engine.context.name)]
        case Committed():
            return [Abandon(np.zeros(1, np.int64), Explanation())]
    return ()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (place_twice, "may not place"),
        (place_one_task_twice_at_once, "enqueued twice"),
        (place_a_strangers_task, "may not place"),
        (place_what_another_was_given, "may not place"),
        (place_a_list, "Enqueue"),
        (sample_another_cluster, "no cluster 'elsewhere'"),
        (place_nowhere, "unknown machine"),
        (commit_as_another, "commits as 'other'"),
        (think_backwards, "think for -1"),
        (send_into_the_void, "not a scheduler"),
        (return_nonsense, "returned int"),
        (fail, "RuntimeError: boom"),
        (abandon_what_runs, "may not abandon; expected a pending task of its own"),
    ],
)
def test_an_engine_that_breaks_the_contract_is_named(script: Script, says: str) -> None:
    with pytest.raises(EngineFault, match=says) as caught:
        world_of(script, [job("a", 1)], replicas=2)
    assert "s-" in str(caught.value)
