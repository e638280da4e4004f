"""The documents of an agent's calls: samples, commits and reservations.

Amounts are whole numbers: `cpu` in thousandths of a core, `memory` in bytes. Columns belong together:
row i of `scores` and of `free` is about machine i.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from argosy.model.units import LARGEST

Amount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
WholeAmounts: TypeAlias = Annotated[dict[str, Amount], msgspec.Meta(max_length=8)]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
PluginNames: TypeAlias = Annotated[tuple[Name, ...], msgspec.Meta(max_length=20)]
Labels: TypeAlias = Annotated[dict[str, str], msgspec.Meta(max_length=50)]
PlaceNames: TypeAlias = Annotated[tuple[str, ...], msgspec.Meta(max_length=1_000)]
WhichReservations: TypeAlias = Literal["earlier", "all"]


class SampleRequest(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What a task asks for, and how the agent is to look: its plug-ins by name, in order."""

    request: WholeAmounts
    #: Attributes that machines must have.
    requires: Labels = {}
    #: For plug-ins.
    demands: Labels = {}
    #: How many machines to find: a share of the cluster's, or if that is 0 a number.
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    count: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1
    strategy: Name = "Random"
    filters: PluginNames = ("ResourcesFit",)
    scores: PluginNames = ("ResourcesFit",)
    #: 0: draw until enough machines were found or all were seen. Otherwise at most so many rounds, each
    #: of which may draw the same machines again.
    rounds: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 0
    #: Stop drawing after so many microseconds; 0: no limit.
    limit: Annotated[int, msgspec.Meta(ge=0, le=LARGEST)] = 0
    #: Whether the answer says what is free on each machine.
    free: bool = False
    #: If a round finds more machines than are wanted: keep them, or cut the sample to its size.
    overshoot: Literal["keep", "cut"] = "keep"
    #: Machines that several rounds drew: only once in the sample, or each time.
    repeats: Literal["drop", "keep"] = "drop"
    #: For plug-ins: how long a message takes from the cluster to other places, in microseconds, and at
    #: which places jobs are that the demands name.
    distances: Annotated[dict[Name, Amount], msgspec.Meta(max_length=1_000)] = {}
    jobs: Annotated[dict[str, PlaceNames], msgspec.Meta(max_length=50)] = {}


class ClusterPlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a cluster is."""

    #: What distances to it are known by; the cluster's name, unless it was given another.
    place: str
    #: "Latitude,longitude" in degrees: that of its machines, unless they state another.
    location: str = ""


class SampleResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Machines that can take the task."""

    machines: list[str]
    #: One row per machine, with one number from 0 to 100 per plug-in of `scores`.
    scores: list[list[int]]
    #: One row per machine, with one amount per resource of `resources`.
    free: list[list[int]] = []
    resources: tuple[str, ...] = ()
    #: How many machines were drawn, and for which reasons how many of them were dropped.
    drawn: int = 0
    ruled_out: dict[str, int] = {}


class CommitOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job of one task, and machines for it, best first: the agent tries one after another."""

    #: As in a job file.
    job: dict[str, Any]
    machines: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=1_000)]
    #: Plug-ins that check for conflicts, and the one that commits.
    checks: PluginNames = ("ResourcesFit",)
    commit: Name = "Bind"
    #: Which reservations of others count: those that came before, so that the first wins, or all.
    reservations: WhichReservations = "earlier"
    #: A reservation of the caller's on the first machine, which the commit uses up.
    reservation: Name | None = None


class CommitResult(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was committed, or is being."""

    key: str
    job: str
    machine: str


class CommitInfo(CommitResult, frozen=True, kw_only=True, omit_defaults=True):
    """A commit, and what has become of its job."""

    state: str
    exit_status: int | None = None
    reason: str = ""


class CommitPage(msgspec.Struct, frozen=True, kw_only=True):
    """The caller's committed jobs that are not over, by key."""

    items: tuple[CommitResult, ...]
    next: str | None = None
    #: The id of the last event that the page takes account of, for `GET /v1/events`.
    position: str = "0"


class ReleaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that is undone. The key cannot be used any more."""

    key: str
    #: The job that was cancelled; none if nothing was committed, or the job was over.
    job: str | None = None


class ReservationRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Room on a machine that samples and other commits leave alone for a while."""

    machine: Name
    request: WholeAmounts
    #: Microseconds until it is given up.
    lease: Annotated[int, msgspec.Meta(ge=1, le=LARGEST)] = 10_000_000


class ReservationInfo(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    machine: str
    request: dict[str, int]
    #: Microseconds that are left.
    lease: int


class ReservationPage(msgspec.Struct, frozen=True, kw_only=True):
    """The caller's reservations, oldest first."""

    items: tuple[ReservationInfo, ...]


class RefusedCommit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why the last machine that was tried does not take the job."""

    #: As the reasons in a journal: `no_room`, `machine_gone`, ...
    why: str
    machine: str
    #: The resource that is lacking, and how much.
    resource: str = ""
    lacking: int = 0
