"""The way between a scheduler and the API server: delays, cuts, lost answers, and watches that break."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import msgspec

from argosy.kubernetes.connection import Connection
from argosy.kubernetes.credentials import FixedCredentials, Login
from argosy.kubernetes.failures import KubernetesUnreachable
from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.requests import (
    KubernetesCall,
    RequestAttempt,
    RequestSender,
    RequestSettings,
)
from argosy.model.random import Random
from argosy.model.scenario import ConstantLatency, Network, PairLatency, UniformLatency
from argosy.service.kubernetes.played.api import PlayedApi
from argosy.testing.api_objects import ApiAnswer, ApiChange, path_of_kind, refusal
from argosy.testing.virtual_loop import VirtualLoop

#: Whether a watch whose connection broke finds that the versions it knows are gone.
FORGETTING: Final = 0.3
#: What may become of a request: no answer, no connection, or a server that is busy or fails.
_TROUBLES: Final = ("lost", "broken", "busy", "failed")
#: A pod is deleted while it is bound, or touched by somebody else; a budget keeps it.
_TROUBLES_OF: Final = {"bind": ("gone", "conflict"), "evict": ("budget",)}
_CONNECTION: Final = Connection("http://played", FixedCredentials(Login()))


class PlayedNetwork:
    """The conditions of all connections. They are good once it is `healed`."""

    def __init__(self, loop: VirtualLoop, api: PlayedApi, network: Network, dice: Random) -> None:
        self.loop = loop
        self.api = api
        self._network = network
        self._dice = dice
        self.is_healed = False
        #: How many troubles keep everybody apart; what each request takes longer.
        self.cuts = 0
        self.extra = 0
        #: Until when watches hear nothing.
        self.silent_until = 0
        self.watches: list[PlayedWatch] = []
        api.listeners.append(self._news)

    def hop(self) -> int:
        """Microseconds."""
        match self._network.latency:
            case _ if self.is_healed:
                return 500
            case ConstantLatency(delay=delay):
                return delay + self.extra
            case UniformLatency(low=low, high=high):
                return low + self._dice.below(max(1, high - low)) + self.extra
            case PairLatency(default=default):
                return default + self.extra

    def chance(self, probability: float) -> bool:
        return not self.is_healed and probability > 0 and self._dice.uniform() < probability

    def trouble(self, call: KubernetesCall) -> str:
        """What happens to a request; usually nothing."""
        if not self.chance(self._network.loss / 2):
            return ""
        kinds = (*_TROUBLES_OF.get(call.verb, ()), *_TROUBLES)
        return kinds[self._dice.below(len(kinds))]

    def cut(self, lasts: int) -> None:
        self.cuts += 1
        self.break_watches()
        self.loop.at(self.loop.micros + lasts, self._mend)

    def _mend(self) -> None:
        self.cuts -= 1

    def slow_down(self, extra: int, lasts: int) -> None:
        self.extra += extra

        def over() -> None:
            self.extra -= extra

        self.loop.at(self.loop.micros + lasts, over)

    def silence(self, lasts: int) -> None:
        self.silent_until = max(self.silent_until, self.loop.micros + lasts)

    def heal(self) -> None:
        self.is_healed, self.silent_until = True, 0
        self.extra = 0

    @property
    def is_cut(self) -> bool:
        return self.cuts > 0 and not self.is_healed

    def break_watches(self) -> None:
        for watch in list(self.watches):
            watch.end(is_broken=self._dice.below(2) == 0)
        if self.chance(FORGETTING):
            self.api.forget_changes()

    def _news(self, change: ApiChange) -> None:
        for watch in list(self.watches):
            if watch.path != change.path:
                continue
            if self.chance(self._network.loss / 20):
                watch.end(is_broken=self._dice.below(2) == 0)
                if self.chance(FORGETTING):
                    self.api.forget_changes()
                continue
            is_late = self.chance(self._network.reordering)
            late = self._dice.below(max(1, self._network.extra_delay)) if is_late else 0
            watch.tell(change.line(), late)
            if self.chance(self._network.duplication):
                watch.tell(change.line(), late)


class PlayedWatch:
    """The answer to a watch. News come in their order."""

    def __init__(self, network: PlayedNetwork, path: str) -> None:
        self._network = network
        self.path = path
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        #: On their way, oldest first. The loop calls those of one instant in any order, so each call
        #: delivers the oldest.
        self._coming: deque[bytes] = deque()
        self._last = 0
        self._is_broken = False

    def tell(self, line: bytes, late: int = 0) -> None:
        network = self._network
        at = max(network.loop.micros + network.hop() + late, self._last, network.silent_until)
        self._last = at
        self._coming.append(line)
        network.loop.at(at, lambda: self._lines.put_nowait(self._coming.popleft()))

    def end(self, *, is_broken: bool) -> None:
        if self in self._network.watches:
            self._network.watches.remove(self)
        self._is_broken = is_broken
        self._lines.put_nowait(None)

    async def iter_any(self) -> AsyncIterator[bytes]:
        while (line := await self._lines.get()) is not None:
            yield line
        if self._is_broken:
            raise KubernetesUnreachable("watch", "the connection broke", may_have_happened=True)


class PlayedSender(RequestSender):
    """Of one scheduler. What it has sent arrives even if it is killed, unless it `is_succeeded`."""

    def __init__(self, network: PlayedNetwork, settings: RequestSettings, seed: int) -> None:
        super().__init__(_CONNECTION, settings, random=random.Random(seed))
        self._network = network
        self.is_succeeded = False

    async def open(self) -> None:
        """There is nothing to open."""

    async def close(self) -> None:
        """There is nothing to close."""

    async def exchange(self, call: KubernetesCall) -> RequestAttempt:
        network, loop = self._network, self._network.loop
        answered: asyncio.Future[RequestAttempt] = loop.create_future()
        trouble = network.trouble(call)
        if network.is_cut or trouble == "broken":
            await asyncio.sleep(network.hop() / 1_000_000)
            raise self._broken(call, may_have_happened=False)
        arrive = partial(self._arrive, call, trouble, answered)
        loop.at(loop.micros + network.hop(), arrive)
        try:
            async with asyncio.timeout(self.settings.timeout):
                return await answered
        except TimeoutError:
            raise self._broken(call, may_have_happened=True) from None

    def _arrive(
        self, call: KubernetesCall, trouble: str, answered: asyncio.Future[RequestAttempt]
    ) -> None:
        network, loop = self._network, self._network.loop
        if self.is_succeeded:
            return
        answer = refusal(503, "Cut") if network.is_cut else self._carried_out(call, trouble)
        is_lost = network.is_cut or trouble == "lost"
        settle: Callable[[], Any]
        if is_lost:
            settle = partial(answered.set_exception, self._broken(call, may_have_happened=True))
        else:
            wait = 1.0 if trouble == "busy" else None
            body = msgspec.json.encode(answer.document)
            settle = partial(answered.set_result, RequestAttempt(answer.code, body, wait))
        loop.at(loop.micros + network.hop(), lambda: None if answered.done() else settle())

    def _carried_out(self, call: KubernetesCall, trouble: str) -> ApiAnswer:
        given = msgspec.json.decode(call.body) if call.body else None
        match trouble:
            case "busy":
                return refusal(429, "TooManyRequests")
            case "failed":
                return refusal(500, "InternalError")
            case "conflict":
                return refusal(409, "Conflict")
            case "budget":
                return refusal(429, "TooManyRequests", cause="DisruptionBudget")
            case "gone":
                *_, namespace, _, name, _ = call.path.split("/")
                if self._network.api.document(PODS, name, namespace) is not None:
                    self._network.api.remove(PODS, name, namespace)
        return self._network.api.answer(call.method, call.path, call.parameters, given)

    def _broken(self, call: KubernetesCall, *, may_have_happened: bool) -> KubernetesUnreachable:
        problem = f"the connection to {self.connection.server} broke"
        return KubernetesUnreachable(str(call), problem, may_have_happened=may_have_happened)

    @asynccontextmanager
    async def stream(self, call: KubernetesCall) -> AsyncIterator[Any]:
        network = self._network
        await asyncio.sleep(network.hop() / 1_000_000)
        if network.is_cut:
            raise self._broken(call, may_have_happened=False)
        watch = PlayedWatch(network, path_of_kind(call.path))
        for line in network.api.opening(watch.path, call.parameters):
            watch.tell(line)
        network.watches.append(watch)
        seconds = int(call.parameters["timeoutSeconds"])
        over = network.loop.call_later(seconds, partial(watch.end, is_broken=False))
        try:
            yield watch
        finally:
            over.cancel()
            watch.end(is_broken=False)
