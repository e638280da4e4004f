"""What happens to a server in a while: drawn requests, ends, changes and crashes, and what it says of
everything after each of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from drawn_documents import GOOD_QUERIES, LOG_QUERIES, NO_TABLES, WRONG_QUERIES, Documents
from memory_loop import MemoryLoop
from played_server import ServerBench

from argosy.campaign.dice import Dice
from argosy.campaign.draw import ScenarioSource
from argosy.campaign.local_runs import LocalRuns
from argosy.engines.api import Engine
from argosy.model.random import Random
from argosy.model.scenario import Scenario
from argosy.scenarios.loader import load_cluster
from argosy.scenarios.toml_text import to_toml
from argosy.worlds.local.turn import LocalCluster

TOKENS = """
[[tokens]]
name = "looker"
token = "looker-looker-looker"
scope = "sample"
rate = 3

[[tokens]]
name = "placer"
token = "placer-placer-placer"
reservations = 2

[[tokens]]
name = "former"
token = "former-former-former"
expires = 2001-01-01T00:00:00Z

[[tokens]]
name = "other"
token = "other-other-other-other"
scope = "operate"
expires = 2999-01-01T00:00:00Z
"""
OPERATOR = "operator-operator-operator"
TOKEN_OF = {name: "-".join([name] * 3) for name in ("looker", "placer", "former", "operator")}
TOKEN_OF["other"] = "other-other-other-other"
#: What is asked after each step, besides what is drawn.
ALWAYS = ("/v1/fleet", "/v1/summary", "/v1/health", "/readyz", "/metrics", "/v1/commits",
          "/v1/reservations")  # fmt: skip


def drawn_scenario(
    folder: Path, seed: int, number: int, engines: Mapping[str, type[Engine]]
) -> tuple[Scenario, dict[str, Any]]:
    """A scenario for a live cluster, and its document."""
    source = ScenarioSource(seed, engines, without=LocalRuns().lacks | {"mixed"})
    document = source.draw(number).document
    path = folder / "scenario.toml"
    path.write_text(to_toml(document), "utf-8")
    return load_cluster(path), document


class DrawnSession:
    """One directory from its first server to its last; `lines` of the bench have all that was said."""

    def __init__(
        self,
        loop: MemoryLoop,
        folder: Path,
        seed: int,
        engine: str,
        engines: Mapping[str, type[Engine]],
        **options: Any,
    ) -> None:
        self.dice = Dice(Random(seed).child(f"session of {engine}"))
        self._folder = folder
        self._engines = dict(engines)
        folder.mkdir(parents=True, exist_ok=True)
        names = list(engines)
        order = {engine: engines[engine], **engines}
        scenario, document = drawn_scenario(folder, seed, 0, order)
        assert scenario.fleet[0].engine == engine, (scenario.fleet[0].engine, names)
        cluster = LocalCluster(
            name="local",
            seed=seed,
            cell=scenario.cell,
            fleet=scenario.fleet,
            machines=scenario.machines,
            audit=True,
        )
        self.fleet = document["fleet"]
        attributes: dict[str, list[str]] = {}
        for machine in scenario.cell.machines:
            for name, value in machine.attributes.items():
                attributes.setdefault(name, []).append(value)
        self.documents = Documents(
            self.dice.part("documents"),
            [dict(machine.capacity.items()) for machine in scenario.cell.machines],
            attributes,
            ["machine", *(group.name for group in scenario.cell.groups)],
        )
        (folder / "tokens.toml").write_text(TOKENS)
        (folder / "token").write_text(OPERATOR + "\n")
        if options.pop("has_tokens", False):
            options |= {"tokens": folder / "tokens.toml", "token_file": folder / "token"}
        self.has_tokens = "tokens" in options
        self.bench = ServerBench(loop, folder / "s", seed, cluster=cluster, **options)
        self.keys: dict[str, Any] = {}
        self.commits: dict[str, Any] = {}
        self.seen: dict[str, str] = {}

    def begin(self) -> None:
        self.bench.start()

    # What there is.

    def found(self, target: str, key: str = "id") -> list[str]:
        """Names in a list, without a trace in what is said."""
        kept = list(self.bench.lines)
        _, _, body = self.bench.ask("GET", target)
        self.bench.lines[:] = kept
        items = msgspec.json.decode(body).get("items", ())
        return [str(item[key]) for item in items]

    def jobs(self) -> list[str]:
        return self.found("/v1/jobs?limit=30")

    def machines(self) -> list[str]:
        return self.found("/v1/machines", "name")

    def job(self) -> str:
        return quote(self.dice.one_of(self.jobs() or ["nobody"]), safe="")

    def open_job(self) -> str:
        found = self.found("/v1/jobs?open=true&limit=12")
        return quote(self.dice.one_of(found or ["nobody"]), safe="")

    # Steps.

    def step(self) -> None:
        steps = (
            (14, self.submit), (3, self.submit_wrongly), (4, self.submit_with_key), (4, self.scale),
            (4, self.cancel), (4, self.cancel_parts), (4, self.change_machine), (3, self.add_machine),
            (2, self.remove_machine), (2, self.change_fleet), (2, self.change_fleet_wrongly),
            (4, self.plan), (5, self.sample), (4, self.reserve), (6, self.commit), (2, self.release),
            (2, self.unreserve), (2, self.restart), (4, self.ask_wrongly), (4, self.ask_as_somebody),
            (4, self.ask_conditionally), (4, self.follow), (8, self.pass_time), (1, self.lose_a_try),
            (2, self.at_once), (1, self.break_engine), (2, self.trouble_database),
        )  # fmt: skip
        weights = [action for weight, action in steps for _ in range(weight)]
        self.bench.lines.append(f"-- at {self.bench.loop.micros}")
        self.dice.one_of(weights)()

    def submit(self) -> None:
        self.bench.ask("POST", "/v1/jobs", self.documents.job())

    def submit_wrongly(self) -> None:
        document = self.documents.wrong_job()
        headers = {"Content-Type": "text/plain"} if self.dice.chance(0.1) else None
        self.bench.ask("POST", "/v1/jobs", document, headers)

    def submit_with_key(self) -> None:
        dice = self.dice
        if self.keys and dice.chance(0.6):
            key = dice.one_of(list(self.keys))
            document = self.keys[key]
            if dice.chance(0.3):
                document = self.documents.job()
            if dice.chance(0.5):
                document = dict(reversed(document.items()))
        else:
            key, document = f"key {len(self.keys)}", self.documents.job()
            self.keys[key] = document
        if dice.chance(0.1):
            key = dice.one_of(("", "x" * 201, "x" * 200, "\x01"))
        self.bench.ask("POST", "/v1/jobs", document, {"Idempotency-Key": key})

    def scale(self) -> None:
        tasks = self.dice.one_of((1, 2, 3, 5, 9, 0, -1, "x", 10**12))
        name = self.open_job() if self.dice.chance(0.8) else self.job()
        self.bench.ask(
            "PATCH", f"/v1/jobs/{name}", {"tasks": tasks}, self.condition(f"/v1/jobs/{name}")
        )

    def condition(self, target: str) -> dict[str, str]:
        """If-Match with the version that there is, another, or none."""
        if self.dice.chance(0.6):
            return {}
        kept = list(self.bench.lines)
        _, headers, _ = self.bench.ask("GET", target)
        self.bench.lines[:] = kept
        tag = headers.get("ETag", '"none"')
        return {
            "If-Match": self.dice.one_of((tag, tag, '"0"', "*", f'"x", {tag}', "1", f"W/{tag}"))
        }

    def cancel(self) -> None:
        name = self.open_job() if self.dice.chance(0.8) else self.job()
        bodies: tuple[Any, ...] = (None, {}, {"tasks": None}, {"taks": []}, [])
        body = self.dice.one_of(bodies)
        for _ in range(self.dice.one_of((1, 1, 2))):
            self.bench.ask(
                "POST", f"/v1/jobs/{name}/cancel", body, self.condition(f"/v1/jobs/{name}")
            )

    def cancel_parts(self) -> None:
        name = self.open_job()
        wrong: tuple[Any, ...] = ([-1], ["x"], 3)
        tasks: Any = [self.dice.among(0, 6) for _ in range(self.dice.among(0, 3))]
        if self.dice.chance(0.1):
            tasks = self.dice.one_of(wrong)
        self.bench.ask("POST", f"/v1/jobs/{name}/cancel", {"tasks": tasks})

    def machine(self) -> str:
        return quote(self.dice.one_of((*self.machines(), "nowhere")), safe="")

    def change_machine(self) -> None:
        name = self.machine()
        target = f"/v1/machines/{name}"
        self.bench.ask("PATCH", target, self.documents.patch(), self.condition(target))

    def add_machine(self) -> None:
        wrong = self.dice.chance(0.3)
        document = self.documents.wrong_machine() if wrong else self.documents.machine()
        self.bench.ask("POST", "/v1/machines", document)

    def remove_machine(self) -> None:
        target = f"/v1/machines/{self.machine()}"
        self.bench.ask("DELETE", target, None, self.condition(target))

    def change_fleet(self) -> None:
        _, document = drawn_scenario(self._folder, self.dice.among(1, 99), 0, self._some_engine())
        fleet = document["fleet"]
        if self.dice.chance(0.3):
            fleet = self.fleet
        self.bench.ask("PUT", "/v1/fleet", {"fleet": fleet}, self.condition("/v1/fleet"))

    def _some_engine(self) -> dict[str, type[Engine]]:
        name = self.dice.one_of(list(self._engines))
        return {name: self._engines[name]}

    def change_fleet_wrongly(self) -> None:
        omega = {"name": "o", "engine": "omega"}
        wrong: tuple[Any, ...] = (
            {}, {"fleet": []}, {"fleet": None}, {"fleets": [omega]}, {"fleet": [omega, omega]},
            {"fleet": [{"name": "o"}]}, {"fleet": [{"name": "o", "engine": "omgea"}]},
            {"fleet": [omega | {"settings": {"retyr": 1}}]}, {"fleet": [omega | {"replicas": 0}]},
            {"fleet": [omega | {"takes": {"kinds": ["query"]}}]},
            {"fleet": [{"name": "b", "engine": "broken_engines:Choosy"}]},
            {"fleet": [{"name": "b", "engine": "broken_engines:Nobody"}]},
            {"fleet": [{"name": "b", "engine": "no_such_module:Engine"}]},
            {"fleet": [{"name": "v", "engine": "vela"}]}, [], "fleet",
            {"fleet": [omega | {"name": "two words"}]}, {"fleet": [omega | {"settings": 3}]},
        )  # fmt: skip
        self.bench.ask("PUT", "/v1/fleet", self.dice.one_of(wrong))

    def break_engine(self) -> None:
        """An engine that fails on some gangs; and back, perhaps while it fails."""
        broken = {"fleet": [{"name": "f", "engine": "broken_engines:Faulty"}]}
        self.bench.ask("PUT", "/v1/fleet", broken)
        gang = {"request": {"cpu": 1}, "command": ["play", "3:0"], "gang": True, "count": 3}
        for _ in range(self.dice.one_of((0, 1, 1))):
            self.bench.ask("POST", "/v1/jobs", gang)
            self.bench.ask("GET", "/v1/health")
            self.bench.ask("GET", "/readyz")
            self.bench.ask("POST", "/v1/jobs", gang | {"count": 1})
            if self.dice.chance(0.5):
                self.bench.wait(self.dice.one_of((0.05, 0.2, 3.0)))
        if self.dice.chance(0.5):
            self.bench.ask("PUT", "/v1/fleet", {"fleet": [{"name": "b", "engine": "nothing"}]})
        self.bench.ask("PUT", "/v1/fleet", {"fleet": self.fleet})

    def trouble_database(self) -> None:
        """Another program holds the database for a while."""
        import sqlite3

        other = sqlite3.connect(self.bench.server.store.path, isolation_level=None, timeout=0)
        self.bench.server.store._db.execute("PRAGMA busy_timeout = 0")
        other.execute("BEGIN IMMEDIATE")
        documents = self.documents
        requests = [("POST", "/v1/jobs", documents.job()), ("GET", "/v1/jobs", None)]
        pending = [self._begin(*each) for each in requests]
        self.bench.wait(self.dice.one_of((0.1, 1.5, 4.0)))
        for target in ("/v1/health", "/readyz", "/v1/summary"):
            self.bench.ask("GET", target)
        self.bench.ask("POST", "/v1/jobs", documents.job())
        other.execute("ROLLBACK")
        other.close()
        self.bench.wait(2.0)
        self._end(pending)

    def _begin(self, method: str, target: str, body: Any, headers: Any = None) -> Any:
        request = self.bench.request(method, target, body, headers)
        self.bench.lines.append(f">> {method} {target} {body!r} {headers}")
        return self.bench.loop.create_task(self.bench.exchange(request, "unix", None))

    def _end(self, pending: list[Any]) -> None:
        for each in pending:
            raw = self.bench.loop.run_until_complete(each)
            self.bench.lines.append(self.bench.readable(raw))

    def at_once(self) -> None:
        """Several requests that share a turn, or come between others."""
        documents, dice = self.documents, self.dice
        machines = self.machines()
        pending = []
        order, key = documents.order(machines), f"race {self.bench.loop.micros}"
        options = [
            lambda: self._begin("POST", "/v1/jobs", documents.job()),
            lambda: self._begin("POST", f"/v1/jobs/{self.job()}/cancel", None),
            lambda: self._begin("POST", "/v1/commits", order, {"Idempotency-Key": key}),
            lambda: self._begin("DELETE", f"/v1/commits/{quote(key)}", None),
            lambda: self._begin("POST", "/v1/plan", {"jobs": [documents.job()]}),
        ]
        for _ in range(dice.among(2, 5)):
            pending.append(dice.one_of(options)())  # noqa: PERF401
        self._end(pending)

    def plan(self) -> None:
        jobs = [self.documents.job() for _ in range(self.dice.among(1, 3))]
        if self.dice.chance(0.2):
            jobs.append(dict(jobs[0]))
        if self.dice.chance(0.2):
            jobs.append(self.documents.wrong_job())
        body: Any = {"jobs": jobs}
        if self.dice.chance(0.1):
            body = self.dice.one_of(({"jobs": []}, {"jobs": {}}, {}, None, {"job": jobs}))
        self.bench.ask("POST", "/v1/plan", body)

    # As a scheduler elsewhere.

    def sample(self) -> None:
        for _ in range(self.dice.one_of((1, 2, 4))):
            wrong = self.dice.chance(0.2)
            body = self.documents.wrong_sample() if wrong else self.documents.sample()
            headers = {"Content-Type": "text/json"} if self.dice.chance(0.03) else None
            self.bench.ask("POST", "/v1/sample", body, headers)

    def reserve(self) -> None:
        dice = self.dice
        body: dict[str, Any] = {
            "machine": dice.one_of((*self.machines(), "nowhere")),
            "request": self.documents.amounts(),
        }
        if dice.chance(0.7):
            body["lease"] = dice.one_of((1, 100_000, 3_000_000, 10**9, 0, -1))
        for _ in range(dice.one_of((1, 2, 3))):
            self.ask_with_token("POST", "/v1/reservations", body, None)

    def ask_with_token(self, method: str, target: str, body: Any, headers: Any) -> tuple[int, Any]:
        headers = dict(headers or {})
        over = "unix"
        if self.has_tokens and self.dice.chance(0.5):
            over, name = "tcp", self.dice.one_of(("placer", "placer", "other", "operator"))
            headers["Authorization"] = f"Bearer {TOKEN_OF[name]}"
        status, _, answer = self.bench.ask(method, target, body, headers, over=over)
        try:
            return status, msgspec.json.decode(answer)
        except msgspec.DecodeError:
            return status, None

    def commit(self) -> None:
        dice = self.dice
        if self.commits and dice.chance(0.3):
            key = dice.one_of(list(self.commits))
            order = self.commits[key]
            if dice.chance(0.2):
                order = self.documents.order(self.machines())
        else:
            key = f"c/{len(self.commits)}"
            wrong = dice.chance(0.2)
            make = self.documents.wrong_order if wrong else self.documents.order
            order = make(self.machines())
            held = self.found("/v1/reservations")
            if held and dice.chance(0.6):
                order["reservation"] = dice.one_of(held)
                if dice.chance(0.6):
                    machines = self.found("/v1/reservations", "machine")
                    order["machines"] = [machines[held.index(order["reservation"])]]
            self.commits[key] = order
        headers = {} if dice.chance(0.03) else {"Idempotency-Key": key}
        self.ask_with_token("POST", "/v1/commits", order, headers)
        self.ask_with_token("GET", f"/v1/commits/{quote(key, safe='')}", None, None)

    def release(self) -> None:
        key = quote(self.dice.one_of((*self.commits, "unknown", "x" * 201)), safe="")
        self.ask_with_token("DELETE", f"/v1/commits/{key}", None, None)
        self.ask_with_token("GET", f"/v1/commits/{key}", None, None)

    def unreserve(self) -> None:
        held = self.found("/v1/reservations")
        name = self.dice.one_of((*held, "r1", "nothing"))
        self.ask_with_token("DELETE", f"/v1/reservations/{name}", None, None)

    # Time, crashes and streams.

    def pass_time(self) -> None:
        self.bench.wait(self.dice.one_of((0.001, 0.3, 1.0, 2.5, 7.0, 30.0, 130.0)))

    def restart(self) -> None:
        dice, bench = self.dice, self.bench
        how = dice.one_of(
            ("kill", "kill", "write", "act", "stop", "shutdown", "stop tasks", "down")
        )
        bench.lines.append(f"-- {how}")
        if dice.chance(0.5):
            # Something is on its way.
            pending = [self._begin("POST", "/v1/jobs", self.documents.job())]
        else:
            pending = []
        match how:
            case "kill" | "write" | "act":
                bench.kill("" if how == "kill" else how)
            case "stop" | "down":
                bench.stop()
            case _:
                body = {"stop_tasks": True} if how == "stop tasks" else None
                bench.ask("POST", "/v1/shutdown", body)
                bench.ask("GET", "/v1/health", seconds=0.01)
                bench.gone()
        self._end(pending)
        if how == "down":
            bench.wait(dice.one_of((1.0, 20.0)))
        bench.start()

    def lose_a_try(self) -> None:
        """A process is gone that nobody knows anything of, when there is no server."""
        self.bench.kill()
        computer = self.bench.computer
        if computer is not None:
            running = [each for each in computer.tries.values() if each.end is None]
            for played in running[: self.dice.among(0, 2)]:
                played.is_lost = True
        self.bench.start()

    def follow(self) -> None:
        dice, bench = self.dice, self.bench
        seconds = dice.one_of((0.01, 1.0, 16.0))
        headers = {"Last-Event-ID": dice.one_of(("1.0", "3", "x"))} if dice.chance(0.2) else None
        if dice.chance(0.5):
            query = dice.one_of(GOOD_QUERIES["/v1/events"])
            bench.ask("GET", f"/v1/events?{query}", None, headers, seconds=seconds)
            return
        query = dice.one_of(LOG_QUERIES)
        target = f"/v1/jobs/{self.job()}/tasks/{dice.among(0, 3)}/logs?{query}"
        bench.ask("GET", target, seconds=seconds)

    # Requests that are refused, or depend on who asks.

    def ask_wrongly(self) -> None:
        dice, bench = self.dice, self.bench
        for _ in range(3):
            method = dice.one_of(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))
            target = dice.one_of(
                ("/v1/jobs", "/v1/jobs/j1", "/v1/jobs/nobody", "/v1/jobs/j1/tasks/x", "/v1/tasks",
                 "/v1/jobs/j1/tasks/9999999999", "/v1/jobs/j1/tasks/99/why", "/v1/machines/nowhere",
                 "/v1/fleet", "/v1/nothing", "/", "/v2", "/v1/journal", "/v1/recording", "/v1/plan",
                 "/v1/sample", "/v1/commits", "/v1/jobs/j1/cancel", "/v1/commits/nothing", "/metrics",
                 "/v1/jobs/%2e%2e", "/v1/jobs/a%2fb", "/v1/jobs/j1/tasks/-1/story", "/v1/events",
                 "/v1/jobs/j1/tasks/0/logs", "/v1/machines", "/page/none.js")
            )  # fmt: skip
            if dice.chance(0.6):
                target += f"?{dice.one_of(WRONG_QUERIES)}"
            body = dice.one_of(NO_TABLES) if dice.chance(0.4) else None
            bench.ask(method, target, body, seconds=1.0)

    def ask_as_somebody(self) -> None:
        dice, bench = self.dice, self.bench
        for _ in range(3):
            headers = {}
            if dice.chance(0.8):
                name = dice.one_of((*TOKEN_OF, "looker", "placer"))
                scheme = dice.one_of(("Bearer", "Bearer", "bearer", "Basic", ""))
                headers["Authorization"] = f"{scheme} {TOKEN_OF[name]}"
            if dice.chance(0.1):
                headers["Authorization"] = dice.one_of(("Bearer ", "Bearer wrong", "x", "\xff"))
            for name, options in (
                ("Host", ("evil.com", "127.0.0.1:1", "[::1]:5", "localhost:99", "[x", "10.0.0.1")),
                ("Origin", ("http://evil.com", "http://localhost", "null", "http://[x")),
                ("Sec-Fetch-Site", ("cross-site", "same-origin", "same-site", "none")),
            ):
                if dice.chance(0.2):
                    headers[name] = dice.one_of(options)
            target = dice.one_of(
                ("/v1/jobs", "/v1/machines", "/v1/sample", "/v1/commits", "/livez", "/healthz",
                 "/readyz", "/", "/v1/health", "/metrics", "/v1/place", "/v1/fleet", "/v1/summary")
            )  # fmt: skip
            bench.ask("GET", target, None, headers, over=dice.one_of(("tcp", "tcp", "unix")))

    def ask_conditionally(self) -> None:
        dice, bench = self.dice, self.bench
        target = dice.one_of(
            (f"/v1/jobs/{self.job()}", f"/v1/machines/{self.machine()}", "/", "/page/page.css")
        )
        _, headers, _ = bench.ask("GET", target)
        tag = headers.get("ETag", '"none"')
        for seen in (tag, f"W/{tag}", '"x"', f'"x",{tag}', "*", ""):
            bench.ask("GET", target, None, {"If-None-Match": seen})

    # What it says of everything.

    def look(self) -> None:
        dice, bench = self.dice, self.bench
        for target in ALWAYS:
            bench.ask("GET", target)
        self.pages("/v1/jobs?limit=4")
        self.pages("/v1/tasks?limit=5")
        self.pages("/v1/machines?limit=2")
        for target in ("/v1/jobs", "/v1/tasks", "/v1/machines"):
            bench.ask("GET", f"{target}?{dice.one_of(GOOD_QUERIES[target])}")
        name = self.job()
        bench.ask("GET", f"/v1/jobs/{name}")
        self.pages(f"/v1/jobs/{name}/tasks?limit={dice.one_of((1, 2, 50))}")
        states = ("pending", "queued", "running", "failed", "finished", "cancelled", "abandoned")
        bench.ask("GET", f"/v1/jobs/{name}/tasks?state={dice.one_of(states)}")
        self.look_at_task(name, dice.among(0, 4))
        bench.ask("GET", f"/v1/machines/{self.machine()}")

    def look_at_task(self, name: str, index: int) -> None:
        task = f"/v1/jobs/{name}/tasks/{index}"
        for target in (task, f"{task}/why", f"{task}/story", f"{task}/logs"):
            self.bench.ask("GET", target)

    def pages(self, target: str) -> None:
        after = ""
        for _ in range(6):
            _, _, body = self.bench.ask("GET", target + after)
            following = msgspec.json.decode(body).get("next") if body else None
            if following is None:
                return
            after = f"&after={quote(following)}"

    def look_at_all(self) -> None:
        """At the end."""
        bench = self.bench
        for name in self.jobs():
            quoted = quote(name, safe="")
            bench.ask("GET", f"/v1/jobs/{quoted}")
            bench.ask("GET", f"/v1/jobs/{quoted}/tasks")
            for index in range(3):
                self.look_at_task(quoted, index)
            bench.ask("GET", f"/v1/events?after=0&job={quoted}", seconds=0.01)
        for life in range(1, 5):
            bench.ask("GET", f"/v1/journal?life={life}")
        for target in ("/v1/journal", "/v1/recording", "/v1/place"):
            bench.ask("GET", target)
        bench.ask("GET", "/v1/events?after=0", seconds=0.01)


def split(lines: list[str], mark: str, size: int) -> list[str]:
    """Texts of so many steps each."""
    starts = [at for at, line in enumerate(lines) if line.startswith(mark)][::size]
    ends = [*starts[1:], len(lines)]
    parts = ["\n".join(lines[a:b]) for a, b in zip(starts, ends, strict=True)]
    return ["\n".join(lines[: starts[0]]), *parts] if starts else ["\n".join(lines)]


def run_session(session: DrawnSession, steps: int, size: int = 10) -> dict[str, str]:
    """What is said in each part of a session, and what is in the database then."""
    bench = session.bench
    session.begin()
    for _ in range(steps):
        session.step()
        session.look()
    bench.lines.append("-- at the end")
    session.look_at_all()
    tables = bench.tables()
    bench.close()
    found = {f"part {at}": text for at, text in enumerate(split(bench.lines, "-- at ", size))}
    computer = bench.computer
    said = "" if computer is None else "\n".join(computer.said)
    return found | {"tables": tables, "processes": said}
