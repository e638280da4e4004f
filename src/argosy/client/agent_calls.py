"""The calls of an agent: what schedulers elsewhere ask of a cluster."""

from __future__ import annotations

from typing import Final

import msgspec

from argosy.api.agent_values import (
    ClusterPlace,
    CommitInfo,
    CommitOrder,
    CommitPage,
    CommitResult,
    ReleaseResult,
    ReservationInfo,
    ReservationPage,
    ReservationRequest,
    SampleRequest,
    SampleResult,
)
from argosy.client.calls import ApiCall, document, get, nothing, path_of, send

_PLACE: Final = document(ClusterPlace)
_SAMPLE: Final = document(SampleResult)
_COMMIT: Final = document(CommitResult)
_COMMITS: Final = document(CommitPage)
_INFO: Final = document(CommitInfo)
_RELEASED: Final = document(ReleaseResult)
_RESERVATION: Final = document(ReservationInfo)
_RESERVATIONS: Final = document(ReservationPage)


def place() -> ApiCall[ClusterPlace]:
    return get(path_of("place"), _PLACE)


def sample(asked: SampleRequest) -> ApiCall[SampleResult]:
    return send("POST", path_of("sample"), _SAMPLE, asked)


def commit(order: CommitOrder, key: str) -> ApiCall[CommitResult]:
    return send("POST", path_of("commits"), _COMMIT, order, key=key)


def commits(*, after: str | None = None) -> ApiCall[CommitPage]:
    return get(path_of("commits"), _COMMITS, {"after": after})


def commit_info(key: str) -> ApiCall[CommitInfo]:
    return get(path_of("commits", key), _INFO)


def release(key: str) -> ApiCall[ReleaseResult]:
    return msgspec.structs.replace(get(path_of("commits", key), _RELEASED), method="DELETE")


def reserve(asked: ReservationRequest) -> ApiCall[ReservationInfo]:
    return send("POST", path_of("reservations"), _RESERVATION, asked, is_repeatable=False)


def reservations() -> ApiCall[ReservationPage]:
    return get(path_of("reservations"), _RESERVATIONS)


def unreserve(reservation: str) -> ApiCall[None]:
    target = path_of("reservations", reservation)
    return ApiCall(method="DELETE", target=target, read=nothing, is_repeatable=False)
