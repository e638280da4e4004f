"""What tests of the Kubernetes client have in common."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

from argosy.kubernetes.meta import ObjectMeta
from argosy.kubernetes.objects import Pod, PodContainer, PodSpec

#: Seconds after which a test is taken to hang.
PATIENCE = 60.0


class Plane(Protocol):
    """What they need of a control plane."""

    @property
    def kubeconfig(self) -> Path: ...


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs a test in a loop of its own."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        async def in_time() -> None:
            async with asyncio.timeout(PATIENCE):
                await test(*arguments, **named)

        asyncio.run(in_time())

    return run


def pod(name: str, namespace: str, **labels: str) -> Pod:
    """A pod that nobody schedules."""
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, labels=labels),
        spec=PodSpec(
            scheduler_name="nobody", containers=(PodContainer(name="main", image="none.invalid/x"),)
        ),
    )
