"""Kills a server again and again while a client works with it, and starts it again.

The client repeats every request until it is answered, as clients do. Each task writes a line when it
begins and one when it ends to a file of its own making, so that `kill_checks` can count what really ran.
When and what depends on one seed, as far as a computer's timing allows.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from killable_server import GLANCE, PATIENCE, Answer, KillableServer, NoServer, job_document, until

#: Arguments: seconds to work, and the exit code.
SCRIPT = """
read up _ </proc/uptime
echo "begin $ARGOSY_JOB $ARGOSY_TASK $ARGOSY_TRY $$ $up" >>"$RECOUNT"
sleep "$1"
read up _ </proc/uptime
echo "end $ARGOSY_JOB $ARGOSY_TASK $ARGOSY_TRY $$ $up $2" >>"$RECOUNT"
exit "$2"
"""
MACHINES = 4
FAILURE = 3
#: Seconds between a request and a kill that is meant to hit its turn.
SOON = 0.012
#: Seconds of work between a start and a kill.
WHILE = 0.8
#: Jobs that the client may submit for every kill.
JOBS_PER_KILL = 6


class SubmittedWork(msgspec.Struct):
    """A job of the campaign, and what has been done to it."""

    id: str
    kind: str
    tasks: int
    retries: int = 0
    is_cancelled: bool = False
    is_scaled: bool = False


class Downtime(msgspec.Struct, frozen=True):
    """How a server was killed: when, in seconds since 1970, and at which occasion."""

    at: float
    occasion: str


class Load(threading.Thread):
    """A client that submits, cancels and scales jobs, and drains and replaces machines."""

    def __init__(
        self, server: KillableServer, recount: Path, rng: random.Random, engines: Sequence[str]
    ) -> None:
        super().__init__(name="load", daemon=True)
        self._server, self._recount, self._rng = server, recount, rng
        #: Engines that it puts in place of each other.
        self._engines = engines
        self._allowance = threading.Semaphore(0)
        self._ending = threading.Event()
        #: Set whenever a request is about to be sent.
        self.sending = threading.Event()
        #: Acknowledged jobs, in the order of submission.
        self.jobs: list[SubmittedWork] = []
        #: Requests that were sent again because the server died before it had answered.
        self.cut_off = 0
        #: Answers that no client should get.
        self.surprises: list[str] = []
        self.error: BaseException | None = None

    def allow(self, jobs: int) -> None:
        self._allowance.release(jobs)

    def finish(self) -> None:
        """Returns when the client has got its last answer."""
        self._ending.set()
        self._allowance.release()
        self.join(PATIENCE)
        assert not self.is_alive(), "the client waits for an answer"
        if self.error is not None:
            raise self.error

    def run(self) -> None:
        try:
            while self._allowance.acquire() and not self._ending.is_set():
                self._submit()
                for action in (self._cancel, self._scale, self._drain, self._replace):
                    if self._rng.random() < 0.25:
                        action()
                if self._engines and self._rng.random() < 0.25:
                    self._change_fleet()
            self._tidy_up()
        except BaseException as error:
            self.error = error

    def _tidy_up(self) -> None:
        """Services would go on for ever, and drained machines would let nobody in."""
        for work in self.jobs:
            if work.kind == "service" and not work.is_cancelled:
                self._cancel_job(work)
        for number in range(MACHINES):
            self._send("PATCH", f"/v1/machines/local-{number}", {"draining": False}, (200,))

    def _send(
        self,
        method: str,
        path: str,
        body: object,
        expected: tuple[int, ...],
        key: str | None = None,
    ) -> Answer:
        """Until there is an answer."""
        headers = {} if key is None else {"Idempotency-Key": key}
        deadline = time.monotonic() + PATIENCE
        while True:
            self.sending.set()
            try:
                answer = self._server.ask(method, path, body, headers)
            except NoServer as error:
                assert time.monotonic() < deadline, f"{method} {path} is not answered"
                self.cut_off += error.is_cut_off
                time.sleep(GLANCE)
                continue
            if answer.status == 503 and b"stopping" in answer.data:
                continue
            if answer.status not in expected:
                self.surprises.append(f"{method} {path} {body}: {answer}")
            return answer

    def _submit(self) -> None:
        number, rng = len(self.jobs), self._rng
        kind = rng.choices(
            ("short", "long", "at once", "failing", "stubborn", "service"), (5, 6, 2, 2, 2, 1)
        )[0]
        seconds = {
            "short": rng.uniform(0.01, 0.3),
            "long": rng.uniform(1.0, 4.0),
            "at once": 0.0,
            "failing": 0.05,
            "stubborn": rng.uniform(0.5, 2.0),
            "service": 1000.0,
        }[kind]
        script = f"trap '' TERM\n{SCRIPT}" if kind == "stubborn" else SCRIPT
        work = SubmittedWork("", kind, rng.randint(1, 4), retries=int(kind == "failing"))
        document = job_document(
            "sh",
            "-c",
            script,
            "task",
            f"{seconds:.3f}",
            str(FAILURE if kind == "failing" else 0),
            count=work.tasks,
            kind="service" if kind == "service" else "batch",
            retries=work.retries,
            grace="300ms",
            environment={"RECOUNT": str(self._recount)},
        )
        answer = self._send("POST", "/v1/jobs", document, (200, 201), key=f"key-{number}")
        if answer.status in (200, 201):
            work.id = answer.json["id"]
            self.jobs.append(work)

    def _cancel(self) -> None:
        open_work = [work for work in self.jobs[-8:] if not work.is_cancelled]
        if open_work:
            self._cancel_job(self._rng.choice(open_work))

    def _cancel_job(self, work: SubmittedWork) -> None:
        # Conflict: it is over, perhaps because an earlier request was carried out before the kill.
        self._send("POST", f"/v1/jobs/{work.id}/cancel", None, (200, 409))
        work.is_cancelled = True

    def _scale(self) -> None:
        """Each job once: an index that comes back would be another task of the same name."""
        others = [work for work in self.jobs[-8:] if not work.is_scaled]
        if others:
            work = self._rng.choice(others)
            work.is_scaled = True
            tasks = self._rng.randint(1, 5)
            self._send("PATCH", f"/v1/jobs/{work.id}", {"tasks": tasks}, (200, 409))

    def _drain(self) -> None:
        name = f"local-{self._rng.randrange(MACHINES)}"
        body = {"draining": self._rng.random() < 0.4}
        self._send("PATCH", f"/v1/machines/{name}", body, (200,))

    def _replace(self) -> None:
        """A machine leaves, with all that runs there, and comes back."""
        name = f"local-{self._rng.randrange(MACHINES)}"
        capacity = self._capacity()
        self._send("DELETE", f"/v1/machines/{name}", None, (204, 404))
        self._send("POST", "/v1/machines", {"name": name, "capacity": capacity}, (201, 409))

    def _change_fleet(self) -> None:
        engine = self._rng.choice(self._engines)
        fleet = [{"name": engine, "engine": engine}]
        self._send("PUT", "/v1/fleet", {"fleet": fleet}, (200,))

    def _capacity(self) -> dict[str, int]:
        machines = self._send("GET", "/v1/machines", None, (200,)).json["items"]
        capacity: dict[str, int] = machines[0]["capacity"]
        return capacity


class KillCampaign:
    """`kills` kills of a server with one engine, which the client replaces now and then if there are
    `others`. `root` is a new directory."""

    def __init__(
        self, root: Path, engine: str, kills: int, seed: int, others: Sequence[str] = ()
    ) -> None:
        self.root, self.engine, self.kills = root, engine, kills
        self.rng = random.Random(f"{engine}/{seed}")
        self.recount = root / "recount"
        self.recount.touch()
        self.server = KillableServer(
            root / "cluster", "--machines", str(MACHINES), "--engine", engine
        )
        self.load = Load(self.server, self.recount, random.Random(f"load/{engine}/{seed}"), others)
        self.downtimes: list[Downtime] = []
        #: Seconds that starts take; the first guess is too long rather than too short.
        self._start_seconds = 2.0

    def run(self) -> None:
        """The server runs afterwards, and every job is over."""
        self.load.start()
        for occasion in self._occasions():
            self.load.allow(JOBS_PER_KILL)
            self._live(occasion)
            self.server.kill()
            self.downtimes.append(Downtime(time.time(), occasion))
        self._start()
        self.load.finish()
        until(lambda: not self.server.jobs("&open=true"), "every job is over")

    def _occasions(self) -> Iterator[str]:
        """The first start is among the moments, and each occasion has its share."""
        occasions = ("starting", "working", "writing", "working", "writing")
        for number in range(self.kills):
            yield occasions[number % len(occasions)]

    def _live(self, occasion: str) -> None:
        if occasion == "starting":
            self.server.spawn()
            time.sleep(self.rng.uniform(0.0, 1.2 * self._start_seconds))
            return
        self._start()
        if occasion == "working":
            self._check_claims()
            time.sleep(self.rng.uniform(0.0, WHILE))
            return
        for _ in range(self.rng.randint(1, 2 * JOBS_PER_KILL)):
            self.load.sending.clear()
            # If the client has nothing more to say, this is a kill like any other.
            if not self.load.sending.wait(WHILE):
                break
        time.sleep(self.rng.uniform(0.0, SOON))

    def _start(self) -> None:
        began = time.monotonic()
        self.server.start()
        self._start_seconds = time.monotonic() - began

    def _check_claims(self) -> None:
        """Whatever is claimed now has a process, or its end is reported."""
        claimed = {number for (number,) in self.server.rows(OPEN_TRIES)}

        def is_settled() -> bool:
            is_open = {number for (number,) in self.server.rows(OPEN_TRIES)}
            return claimed & is_open <= set(self.server.running_tries())

        until(is_settled, "each claim has a process")


OPEN_TRIES = "SELECT try FROM tries WHERE ended IS NULL"
