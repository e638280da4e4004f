"""What must be true after a kill campaign. Each check lists what it found wrong.

What really ran is counted from the lines that the tasks themselves have written, and from the files of
their supervisors; what the server says comes from its API and its database.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec
from kill_campaign import FAILURE, OPEN_TRIES, KillCampaign
from killable_server import until
from supervised import processes_with

from argosy.engines.registry import ENGINES
from argosy.model.errors import ArgosyError
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay
from argosy.worlds.local import EndCause, SupervisedTry, TryEnd, TryState

OVER = ("finished", "failed", "cancelled", "abandoned")
#: Outcomes of tries whose tasks lost their places: they were stopped, whatever they did.
STOPPED = ("cancelled", "preempted", "moved", "released", "evicted")
#: Outcome of a try that was not needed: the task had come to its end while it lost its place.
ENDED_AS = "ended as try "


class TryRow(msgspec.Struct, frozen=True):
    """A try as the database has it; times are microseconds since the cluster was made."""

    number: int
    job: str
    index: int
    started: int
    ended: int | None
    exit_status: int | None
    outcome: str


class KillResult(msgspec.Struct, frozen=True, kw_only=True):
    engine: str
    kills: int
    jobs: int
    tasks: int
    tries: int
    #: Tries that went on while there was no server, and were adopted by the next.
    adopted: int
    #: Of these, tries that ended before the next server was there.
    ended_meanwhile: int
    #: Requests that were cut off by a kill and sent again.
    cut_off: int
    #: What each check found wrong.
    failures: dict[str, list[str]]


class KillChecks:
    """`campaign` has run, and its server runs."""

    def __init__(self, campaign: KillCampaign) -> None:
        self._campaign, self._server = campaign, campaign.server

    def run(self) -> KillResult:
        """Stops the server between the checks that need it and those that need it gone."""
        server, campaign = self._server, self._campaign
        failures = {
            "requests": campaign.load.surprises + self._complaints(),
            "jobs": [*self._jobs()],
            "claims": [*self._claims()],
            "events": [*self._events()],
        }
        until(lambda: not server.running_tries(), "every supervisor ends")
        self._jobs_at_end = {job["id"]: job for job in server.jobs()}
        server.stop()
        self._read()
        others: dict[str, Callable[[], Iterator[str]]] = {
            "processes": self._processes,
            "runs": self._runs,
            "overlaps": self._overlaps,
            "records": self._records,
            "journals": self._journals,
        }
        failures |= {name: [*check()] for name, check in others.items()}
        adopted, ended_meanwhile = self._survivors()
        return KillResult(
            engine=campaign.engine,
            kills=len(campaign.downtimes),
            jobs=len(campaign.load.jobs),
            tasks=sum(sum(job["tasks"].values()) for job in self._jobs_at_end.values()),
            tries=len(self._tries),
            adopted=adopted,
            ended_meanwhile=ended_meanwhile,
            cut_off=campaign.load.cut_off,
            failures=failures,
        )

    def _read(self) -> None:
        rows = self._server.rows(
            "SELECT try, jobs.id, idx, started, tries.ended, exit_status, outcome "
            "FROM tries JOIN jobs ON jobs.seq = tries.job ORDER BY try"
        )
        self._tries = [TryRow(*row) for row in rows]
        self._files: dict[int, TryEnd | None] = {}
        self._states: dict[int, TryState] = {}
        for number in self._server.try_numbers():
            directory = str(self._server.try_directory(number))
            status = SupervisedTry(directory, str(number)).status()
            self._files[number], self._states[number] = status.end, status.state
        self._lines = [
            line.split() for line in self._campaign.recount.read_text("ascii").splitlines()
        ]

    def _complaints(self) -> list[str]:
        """What the server told its operator, apart from having started."""
        lines = self._server.said.splitlines()
        return [line for line in lines if not line.startswith(("argosy: up: ", "argosy: down; "))]

    def _jobs(self) -> Iterator[str]:
        """Every acknowledged job is there once and over, and nothing else is."""
        known = {job["id"]: job for job in self._server.jobs()}
        works = {work.id: work for work in self._campaign.load.jobs}
        if len(works) != len(self._campaign.load.jobs):
            yield "two submissions became one job"
        for extra in known.keys() - works.keys():
            yield f"{extra} was submitted once and is there twice"
        for name, work in works.items():
            if name not in known:
                yield f"{name} was acknowledged and is lost"
                continue
            job = known[name]
            if job["state"] not in OVER or job["ended"] is None:
                yield f"{name} is {job['state']}"
            wanted = ["failed" if work.kind == "failing" else "finished"]
            if work.is_cancelled or work.is_scaled:
                wanted.append("cancelled")
            for task in self._server.tasks(name):
                if task["state"] not in wanted:
                    yield f"{name}/{task['index']} is {task['state']}"

    def _claims(self) -> Iterator[str]:
        for machine in self._server.get("/v1/machines")["items"]:
            if any(machine["used"].values()) or machine["running"] or machine["queued"]:
                yield f"{machine['name']} is in use: {machine['used']}"
        for (number,) in self._server.rows(OPEN_TRIES):
            yield f"try {number} is not over"

    def _events(self) -> Iterator[str]:
        """Who has watched from the beginning knows what everybody knows, and saw each end once."""
        jobs: dict[str, str] = {}
        tasks: dict[tuple[str, int], str] = {}
        ends: Counter[str] = Counter()
        for event in self._server.events():
            if event["what"] == "job":
                if event["state"] in OVER:
                    ends[event["job"]] += 1
                jobs[event["job"]] = event["state"]
            elif event["what"] == "task":
                tasks[event["job"], event["index"]] = event["state"]
        for job in self._server.jobs():
            name = job["id"]
            if jobs.get(name) != job["state"]:
                yield f"{name} is {job['state']}, and the events say {jobs.get(name)}"
            if ends[name] != 1:
                yield f"{name} came to its end {ends[name]} times"
            for task in self._server.tasks(name):
                seen = tasks.get((name, task["index"]), "pending")
                if seen != task["state"]:
                    yield f"{name}/{task['index']} is {task['state']}, and the events say {seen}"

    def _processes(self) -> Iterator[str]:
        for pid in processes_with(str(self._campaign.root)):
            yield f"process {pid} is left"

    def _runs(self) -> Iterator[str]:
        """Every task ran as often as it had to."""
        begun = Counter(int(line[3]) for line in self._lines if line[0] == "begin")
        rows = {row.number: row for row in self._tries}
        for number, times in begun.items():
            if number not in rows:
                yield f"try {number} ran, and nobody knows of it"
            elif times != 1:
                yield f"try {number} began {times} times"
            elif rows[number].outcome == "lost":
                yield f"try {number} ran, and counts as lost"
        # A process that was stopped between its last line and its exit has not come to its end.
        completed = Counter(
            (line[1], int(line[2]), int(line[6]))
            for line in self._lines
            if line[0] == "end" and self._ended_by_itself(int(line[3]))
        )
        works = {work.id: work for work in self._campaign.load.jobs}
        states = self._server.rows(
            "SELECT jobs.id, idx, tasks.state FROM tasks JOIN jobs ON jobs.seq = tasks.job"
        )
        for name, index, state in states:
            well, badly = completed[name, index, 0], completed[name, index, FAILURE]
            if state == "finished" and (well, badly) != (1, 0):
                yield f"{name}/{index} finished and ran {well} times to its end"
            if well > 1:
                yield f"{name}/{index} is {state} and ran {well} times to its end"
            allowed = works[name].retries + 1 if works[name].kind == "failing" else 0
            if state == "failed" and badly != allowed:
                yield f"{name}/{index} failed and ran {badly} times instead of {allowed}"
            if badly > allowed:
                yield f"{name}/{index} is {state} and failed {badly} times, with {allowed} allowed"

    def _ended_by_itself(self, number: int) -> bool:
        end = self._files.get(number)
        return end is not None and end.cause is EndCause.NONE

    def _overlaps(self) -> Iterator[str]:
        """No task ran twice at the same time: by its own lines, and by the supervisors' records."""
        running: dict[tuple[str, str], set[str]] = defaultdict(set)
        ended = {line[3] for line in self._lines if line[0] == "end"}
        for what, job, index, number, *_ in self._lines:
            if what == "begin":
                # A try that was killed has no last line.
                others = [other for other in running[job, index] if other in ended]
                if others:
                    yield f"{job}/{index} ran as tries {others[0]} and {number} at the same time"
                running[job, index].add(number)
            else:
                running[job, index].discard(number)
        spans = defaultdict(list)
        for row in self._tries:
            end = self._files.get(row.number)
            if end is not None and end.started_at:
                spans[row.job, row.index].append((end.started_at, end.ended_at, row.number))
        for (job, index), tries in spans.items():
            tries.sort()
            for (_, until_then, first), (since, _, second) in pairwise(tries):
                if since < until_then:
                    late = (until_then - since) / 1e3
                    yield (
                        f"{job}/{index}: try {second} began {late:.1f} ms before {first} was over"
                    )

    def _records(self) -> Iterator[str]:
        """Rows and files agree."""
        numbers = {row.number for row in self._tries}
        for number in self._files.keys() - numbers:
            yield f"try {number} has a directory and no row"
        for row in self._tries:
            state, end = self._states.get(row.number), self._files.get(row.number)
            if row.ended is None:
                yield f"try {row.number} has no end"
            elif row.outcome in STOPPED:
                continue
            elif row.outcome == "lost":
                if state not in (None, TryState.WITHDRAWN, TryState.LAUNCHED):
                    yield f"try {row.number} counts as lost and is {state}"
            elif row.outcome.startswith(ENDED_AS):
                former = self._files.get(int(row.outcome.removeprefix(ENDED_AS)))
                if state is not None or former is None or former.code != row.exit_status:
                    yield f"try {row.number} {row.outcome} and is {state}"
            elif end is None:
                yield f"try {row.number} {row.outcome} and is {state}"
            elif end.code != row.exit_status:
                yield f"try {row.number} exited with {end.code}, not {row.exit_status}"
        counts = self._server.rows(
            "SELECT jobs.id, tasks.state, count(*) FROM tasks JOIN jobs ON jobs.seq = tasks.job "
            "GROUP BY 1, 2"
        )
        for name, state, count in counts:
            told = self._jobs_at_end[name]["tasks"][state]
            if told != count:
                yield f"{name} has {count} tasks {state}, and says {told}"
        for (found,) in self._server.rows("PRAGMA integrity_check"):
            if found != "ok":
                yield found

    def _journals(self) -> Iterator[str]:
        for life, header in self._server.rows("SELECT life, header FROM lives ORDER BY life"):
            turns = self._server.rows("SELECT lines FROM turns WHERE life = ? ORDER BY turn", life)
            data = header + b"".join(lines for (lines,) in turns)
            try:
                Replay(JournalFile(data, f"life {life}"), ENGINES, finished=False).run()
            except ArgosyError as error:
                yield f"life {life}: {error}"

    def _survivors(self) -> tuple[int, int]:
        """How many tries lived through a kill, and how many of these ended before the next start."""
        [(origin,)] = self._server.rows("SELECT value FROM meta WHERE key = 'origin'")
        headers = self._server.rows("SELECT header FROM lives ORDER BY life")
        starts = [JournalFile(header).header().setup.began for (header,) in headers]
        adopted = ended_meanwhile = 0
        for row in self._tries:
            end = self._files.get(row.number)
            if end is None or row.ended is None:
                continue
            lives = [began for began in starts if row.started < began <= row.ended]
            adopted += bool(lives)
            ended_meanwhile += bool(lives) and end.ended_at < int(origin) + lives[-1]
        return adopted, ended_meanwhile
