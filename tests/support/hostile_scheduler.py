"""Hostile requests to an agent: all must be refused with a reason, and none may leave room reserved."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from argosy.client.agent_connection import AgentLink, AgentReply
from argosy.client.endpoints import parse_endpoint

TOKENS = """
[[tokens]]
name = "good"
token = "good-good-good-good"

[[tokens]]
name = "evil"
token = "evil-evil-evil-evil"

[[tokens]]
name = "looks"
token = "looks-looks-looks-looks"
scope = "sample"

[[tokens]]
name = "late"
token = "late-late-late-late"
expires = 2020-01-01T00:00:00Z

[[tokens]]
name = "hoarder"
token = "hoarder-hoarder-hoarder"
reservations = 2
"""
REQUEST = {"cpu": 100, "memory": 1 << 20}
JUNK: tuple[Any, ...] = (
    None, True, -1, 1.5, 2**70, 1e308, "", "x" * 300, [], {}, [[]], {"a": {"b": []}}, "\x00", "../..",
    "\ud83d\ude00", "m0; DROP TABLE jobs", float(2**53),
)  # fmt: skip


class HostileScheduler:
    """Sends one bad request after another, and counts what comes back."""

    def __init__(self, url: str, seed: int) -> None:
        self._random = random.Random(seed)
        endpoint = parse_endpoint(url, "the agent")
        names = ("good", "evil", "looks", "late", "hoarder")
        self._links = {name: AgentLink(endpoint, "-".join([name] * _times(name))) for name in names}
        self._links["nobody"] = AgentLink(endpoint)
        self._links["wrong"] = AgentLink(endpoint, "wrong-wrong-wrong-wrong")
        self.statuses: Counter[int] = Counter()
        self.wrong: list[str] = []
        self._number = 0
        self._reservation = ""

    async def prepare(self) -> None:
        """A commit to be replayed, and a reservation of somebody else's."""
        reply = await self._commit("good", "known", self._order("known"))
        assert reply.status == 201, reply
        self._known = msgspec.json.decode(reply.body)
        body = msgspec.json.encode({"machine": "m1", "request": REQUEST, "lease": 60_000_000})
        reply = await self._links["good"].ask("POST", "/v1/reservations", body)
        assert reply.status == 201, reply
        self._reservation = msgspec.json.decode(reply.body)["id"]
        for _ in range(2):
            await self._links["hoarder"].ask("POST", "/v1/reservations", body)

    async def tidy(self) -> tuple[int, int]:
        """Gives back what was taken on purpose. Returns reservations and commits that are left."""
        for name in ("good", "hoarder"):
            link = self._links[name]
            for held in msgspec.json.decode((await link.ask("GET", "/v1/reservations")).body)[
                "items"
            ]:
                await link.ask("DELETE", f"/v1/reservations/{held['id']}")
        await self._links["good"].ask("DELETE", "/v1/commits/known")
        commits = 0
        for name in ("good", "evil", "hoarder"):
            page = await self._links[name].ask("GET", "/v1/commits")
            commits += len(msgspec.json.decode(page.body)["items"])
        metrics = (await self._links["looks"].ask("GET", "/metrics")).body.decode()
        left = next(
            line for line in metrics.splitlines() if line.startswith("argosy_agent_reservations ")
        )
        used = [line for line in metrics.splitlines() if line.startswith("argosy_cluster_used{")]
        if any(float(line.split()[-1]) for line in used):
            self.wrong.append(f"something is still claimed: {used}")
        for link in self._links.values():
            link.close()
        return int(float(left.split()[-1])), commits

    async def attack(self) -> None:
        kinds: tuple[Callable[[], Any], ...] = (
            self._bad_json,
            self._wrong_types,
            self._huge_body,
            self._unknown_machine,
            self._unknown_plugin,
            self._replayed,
            self._key_again,
            self._bad_token,
            self._stolen,
            self._no_reservation,
            self._hoard,
            self._bad_key,
            self._too_little,
            self._bad_job,
        )
        # Few are huge: what is measured is the agent, not the loopback device.
        weights = [1 if kind == self._huge_body else 10 for kind in kinds]
        kind = self._random.choices(kinds, weights)[0]
        reply = await kind()
        if reply is None:
            return
        self.statuses[reply.status] += 1
        try:
            detail = msgspec.json.decode(reply.body).get("detail", "")
        except msgspec.MsgspecError:
            detail = ""
        if not 400 <= reply.status < 500 or not detail:
            self.wrong.append(f"{kind.__name__}: {reply.status} {reply.body[:300]!r}")

    def _order(self, name: str, **keys: Any) -> dict[str, Any]:
        job = {"id": name, "command": "true", "request": REQUEST}
        return {"job": job, "machines": ["m0"], **keys}

    async def _commit(self, who: str, key: str, order: Any) -> AgentReply:
        return await self._links[who].ask("POST", "/v1/commits", _json(order), key=key)

    def _next(self) -> str:
        self._number += 1
        return f"hostile-{self._number}"

    def _path(self) -> str:
        return self._random.choice(("/v1/sample", "/v1/commits", "/v1/reservations"))

    async def _bad_json(self) -> AgentReply:
        good = _json(self._order("x"))
        cut = self._random.randrange(1, len(good))
        damaged = self._random.choice(
            (good[:cut], good[:cut] + b"\xff\xfe" + good[cut:], b"[" * 5_000, b"nul", good + b"}")
        )
        return await self._links["good"].ask("POST", self._path(), damaged, key=self._next())

    async def _wrong_types(self) -> AgentReply:
        path = self._path()
        document: dict[str, Any] = {
            "/v1/sample": {"request": dict(REQUEST), "share": 0.1, "filters": ["ResourcesFit"]},
            "/v1/commits": self._order("x"),
            "/v1/reservations": {"machine": "m0", "request": dict(REQUEST), "lease": 1_000},
        }[path]
        key = self._random.choice(list(document))
        junk = self._random.choice(JUNK)
        if junk is None and key == "reservation":
            junk = 1
        fits = {"request": ({},), "share": (True,), "filters": ([],), "lease": (float(2**53),)}
        if junk in fits.get(key, ()):
            junk = "no"
        document[key] = junk
        return await self._links["good"].ask("POST", path, _json(document), key=self._next())

    async def _huge_body(self) -> AgentReply | None:
        body = b'{"request": "' + b"x" * (5 << 20) + b'"}'
        return await self._links["good"].ask("POST", self._path(), body, key=self._next())

    async def _unknown_machine(self) -> AgentReply:
        machine = self._random.choice(("m999999", "", "m0 ", "M0", "../m0"))
        if self._random.random() < 0.5:
            body = _json({"machine": machine, "request": REQUEST})
            return await self._links["good"].ask("POST", "/v1/reservations", body)
        return await self._commit(
            "good", self._next(), {**self._order(self._next()), "machines": [machine]}
        )

    async def _unknown_plugin(self) -> AgentReply:
        name = self._random.choice(("Nobody", "Bind", "Random", "__class__"))
        if self._random.random() < 0.5:
            body = _json({"request": REQUEST, "filters": [name]})
            return await self._links["good"].ask("POST", "/v1/sample", body)
        order = self._order(self._next(), checks=[name])
        return await self._commit("good", self._next(), order)

    async def _replayed(self) -> None:
        reply = await self._commit("good", "known", self._order("known"))
        self.statuses[reply.status] += 1
        if reply.status != 200 or msgspec.json.decode(reply.body) != self._known:
            self.wrong.append(f"a replayed commit got {reply.status} {reply.body[:200]!r}")

    async def _key_again(self) -> AgentReply:
        return await self._commit("good", "known", self._order(self._next()))

    async def _bad_token(self) -> AgentReply:
        who = self._random.choice(("nobody", "wrong", "late"))
        return await self._commit(who, self._next(), self._order(self._next()))

    async def _stolen(self) -> AgentReply:
        """Another's reservation, or another's commit."""
        order = {**self._order(self._next()), "machines": ["m1"]}
        which = self._random.randrange(3)
        if which == 0:
            path = f"/v1/reservations/{self._reservation}"
            return await self._links["evil"].ask("DELETE", path)
        if which == 1:
            return await self._links["evil"].ask("GET", "/v1/commits/known")
        return await self._commit("evil", self._next(), {**order, "reservation": self._reservation})

    async def _no_reservation(self) -> AgentReply:
        order = self._order(self._next(), reservation=self._random.choice(("r0", "x", "r-1")))
        return await self._commit("evil", self._next(), order)

    async def _hoard(self) -> AgentReply:
        body = _json({"machine": "m2", "request": REQUEST})
        return await self._links["hoarder"].ask("POST", "/v1/reservations", body)

    async def _bad_key(self) -> AgentReply:
        key = self._random.choice(("", "k" * 201))
        return await self._commit("good", key, self._order(self._next()))

    async def _too_little(self) -> AgentReply:
        method, path = self._random.choice(
            (
                ("POST", "/v1/commits"),
                ("POST", "/v1/shutdown"),
                ("GET", "/v1/jobs"),
                ("PUT", "/v1/fleet"),
            )
        )
        body = _json(self._order(self._next())) if method != "GET" else b""
        return await self._links["looks"].ask(method, path, body, key=self._next())

    async def _bad_job(self) -> AgentReply:
        job = {"id": self._next(), "command": "true", "request": REQUEST}
        job |= self._random.choice(
            (
                {"id": "known"},
                {"id": "a b"},
                {"count": 2},
                {"command": ""},
                {"request": {"cpu": "lots"}},
                {"request": {"cpu": 10**9}},
                {"priority": 1},
                {"duration": 5},
                {"constraints": ["nonsense"]},
            )
        )
        return await self._commit("good", self._next(), {"job": job, "machines": ["m0"]})


def _times(name: str) -> int:
    return 3 if name == "hoarder" else 4


def _json(document: Any) -> bytes:
    return json.dumps(document).encode()


async def attack(url: str, requests: int, seed: int) -> HostileScheduler:
    """The scheduler after its attack; what went wrong is in `wrong`."""
    hostile = HostileScheduler(url, seed)
    await hostile.prepare()
    turns = asyncio.Semaphore(16)

    async def one() -> None:
        async with turns:
            await hostile.attack()

    await asyncio.gather(*(one() for _ in range(requests)))
    reservations, commits = await hostile.tidy()
    if reservations or commits:
        hostile.wrong.append(f"{reservations} reservations and {commits} commits are left")
    return hostile
