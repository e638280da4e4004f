"""Small values of the client, case by case: failures by code, paths, leases, jobs and limits."""

from __future__ import annotations

from random import Random

import pytest
from kube_cases import asynchronous

from argosy.kubernetes import failures as failed
from argosy.kubernetes.batch import BATCH_JOBS, BatchCondition, BatchJob, BatchJobStatus
from argosy.kubernetes.kinds import LEASES, NODES, PODS
from argosy.kubernetes.leases import Leadership, lease_settings
from argosy.kubernetes.meta import ServerStatus, StatusCause, StatusDetails
from argosy.kubernetes.pacing import JitteredBackoff, RequestLimiter

KINDS = {
    400: failed.RequestInvalid, 401: failed.NotAuthenticated, 402: failed.StrangeAnswer,
    403: failed.RequestForbidden, 404: failed.ObjectNotFound, 405: failed.RequestInvalid,
    406: failed.RequestInvalid, 409: failed.ObjectConflict, 410: failed.ResourceVersionGone,
    413: failed.RequestInvalid, 415: failed.RequestInvalid, 422: failed.RequestInvalid,
    429: failed.RequestThrottled, 499: failed.StrangeAnswer, 500: failed.ServerFailed,
    503: failed.RequestThrottled, 504: failed.ServerFailed, 302: failed.StrangeAnswer,
}  # fmt: skip


@pytest.mark.parametrize("code", KINDS)
def test_a_code_is_one_kind_of_failure(code: int) -> None:
    found = failed.failure("GET /x", code, None)
    assert type(found) is KINDS[code]
    assert (found.request, found.status, found.reason) == ("GET /x", ServerStatus(), "")


def test_reasons_make_some_failures_more_precise() -> None:
    exists = ServerStatus(reason="AlreadyExists", message="m")
    assert type(failed.failure("x", 409, exists)) is failed.ObjectExists
    assert type(failed.failure("x", 404, exists)) is failed.ObjectNotFound
    assert failed.failure("x", 409, exists).reason == "AlreadyExists"
    budget = ServerStatus(details=StatusDetails(causes=(StatusCause(reason="DisruptionBudget"),)))
    other = ServerStatus(details=StatusDetails(causes=(StatusCause(reason="Other"),)))
    assert type(failed.failure("x", 429, budget)) is failed.EvictionRefused
    assert type(failed.failure("x", 429, other)) is failed.RequestThrottled
    assert failed.is_budget(budget)
    assert not failed.is_budget(ServerStatus())
    assert not failed.is_budget(None)


def test_paths_of_objects() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path("s") == "/api/v1/namespaces/s/pods"
    assert PODS.path("s", "p", "binding") == "/api/v1/namespaces/s/pods/p/binding"
    assert PODS.path("a/b", "c/d") == "/api/v1/namespaces/a%2Fb/pods/c%2Fd"
    assert NODES.path("s", "n") == "/api/v1/nodes/n"
    assert LEASES.path("s", "l") == "/apis/coordination.k8s.io/v1/namespaces/s/leases/l"
    assert (BATCH_JOBS.name, BATCH_JOBS.api_version) == ("Job", "batch/v1")
    assert repr(BATCH_JOBS) == "<jobs of batch/v1>"
    assert repr(PODS) == "<pods of v1>"


@pytest.mark.parametrize(
    ("type_", "status", "is_over"),
    [
        ("Complete", "True", True), ("Failed", "True", True), ("SuccessCriteriaMet", "True", True),
        ("FailureTarget", "True", True), ("Suspended", "True", False), ("Complete", "False", False),
    ],
)  # fmt: skip
def test_a_job_is_over_by_its_conditions(type_: str, status: str, is_over: bool) -> None:
    conditions = (BatchCondition(), BatchCondition(type=type_, status=status))
    assert BatchJob(status=BatchJobStatus(conditions=conditions)).is_over is is_over


def test_times_of_a_lease_are_in_the_usual_proportions() -> None:
    settings = lease_settings(30)
    told = (settings.duration, settings.renew_deadline, settings.retry_period)
    assert told == (30, 20.0, 4.0)


@asynchronous
async def test_a_right_ends_with_its_time_or_when_it_is_given_up() -> None:
    now = 5.0
    leadership = Leadership(3, 10.0, lambda: now)
    assert (leadership.fencing, leadership.is_held, leadership.remaining) == (3, True, 5.0)
    now = 10.0
    assert (leadership.is_held, leadership.remaining) == (False, 0.0)
    leadership._extend(12.0)
    assert (leadership.is_held, leadership.remaining) == (True, 2.0)
    leadership._end()
    assert (leadership.is_held, leadership.remaining) == (False, 0.0)
    await leadership.lost()


class Highest(Random):
    def uniform(self, a: float, b: float) -> float:
        return b


def test_delays_double_up_to_the_longest() -> None:
    backoff = JitteredBackoff(0.5, 3.0, Highest())
    assert [backoff.next() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert backoff.spread(7.0) == 7.5
    backoff.reset()
    assert backoff.next() == 0.5
    many = JitteredBackoff(0.5, 3.0, Highest())
    assert {many.next() for _ in range(2_000)} == {0.5, 1.0, 2.0, 3.0}


@asynchronous
async def test_a_limit_narrows_to_half_but_never_to_nothing() -> None:
    limiter = RequestLimiter(8)
    for _ in range(3):
        await limiter.enter()
    assert (limiter.width, limiter.under_way) == (8, 3)
    limiter.throttled()
    # Those that were under way tell nothing new.
    for _ in range(3):
        limiter.throttled()
        assert limiter.width == 4
    limiter.throttled()
    assert limiter.width == 2
    for _ in range(3):
        limiter.answered()
    for _ in range(40):
        limiter.answered()
    assert limiter.width == 8
    for _ in range(3):
        limiter.leave()
    assert limiter.under_way == 0
    for _ in range(9):
        limiter.throttled()
    assert limiter.width == 1
