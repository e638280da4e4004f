"""How a pod that is no longer watched reaches the cluster, and what happens if nothing is."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec

from argosy.kubernetes.meta import ObjectMeta
from argosy.kubernetes.objects import Pod, PodStatus
from argosy.kubernetes.watching import ChangeKind, ObjectChange
from argosy.service.kubernetes.driver import KubernetesDriver


class RecordedPods:
    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str]] = []

    def set_pod(self, pod: Pod) -> None:
        self.calls.append(("set", pod.uid, pod.status.phase))

    def remove_pod(self, uid: str, **how: Any) -> None:
        assert not how
        self.calls.append(("remove", uid, ""))


RUNNING = Pod(
    metadata=ObjectMeta(name="p", namespace="default", uid="u"), status=PodStatus(phase="Running")
)
FAILED = msgspec.structs.replace(RUNNING, status=PodStatus(phase="Failed"))
AGAIN = msgspec.structs.replace(RUNNING, metadata=ObjectMeta(name="p", uid="v"))


def calls(*change: Pod | None) -> list[tuple[str, str, str]]:
    driver = KubernetesDriver.__new__(KubernetesDriver)
    driver._pods = pods = RecordedPods()  # type: ignore[assignment]
    driver._pod_changed(ObjectChange(ChangeKind.DELETED, *change))
    return pods.calls


def test_a_pod_that_has_failed_is_told_with_its_end_before_it_is_gone() -> None:
    assert calls(RUNNING, None, FAILED) == [("set", "u", "Failed"), ("remove", "u", "")]


def test_a_pod_that_was_deleted_is_gone_and_nobody_says_that_it_finished() -> None:
    assert calls(RUNNING, None, None) == [("remove", "u", "")]


def test_a_pod_made_again_under_its_name_is_another_one() -> None:
    assert calls(RUNNING, AGAIN, None) == [("remove", "u", ""), ("set", "v", "Running")]


def test_a_driver_that_hears_of_nothing_any_more_says_so_unless_it_was_stopped() -> None:
    async def fails() -> None:
        raise OSError("the watch is broken")

    async def test(work: Coroutine[Any, Any, None], *, is_cancelled: bool) -> KubernetesDriver:
        driver = KubernetesDriver.__new__(KubernetesDriver)
        driver.error, driver.failed = None, asyncio.Event()
        task = asyncio.ensure_future(work)
        task.add_done_callback(driver._task_ended)
        if is_cancelled:
            task.cancel()
        await asyncio.wait([task])
        await asyncio.sleep(0)
        return driver

    broken = asyncio.run(test(fails(), is_cancelled=False))
    assert (str(broken.error), broken.failed.is_set()) == ("the watch is broken", True)
    for ended in (test(asyncio.sleep(0), is_cancelled=False), test(fails(), is_cancelled=True)):
        driver = asyncio.run(ended)
        assert (driver.error, driver.failed.is_set()) == (None, False)
