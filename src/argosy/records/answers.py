"""What a run can answer about one task: its story, and why it is where it is.

Both are read off the decision log and the task timeline; nothing is simulated again.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from msgspec import structs

from argosy.model.explanations import Explanation, Price, Refusal, Why
from argosy.model.jobs import index_of, job_of, task_name, task_number
from argosy.model.units import format_duration
from argosy.records.record import RunRecord


class StoryLine(msgspec.Struct, frozen=True):
    at: int
    what: str
    text: str
    detail: dict[str, Any] = {}


class WhyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Why a task is placed where it is, or why it has no machine."""

    task: str
    state: str
    sentence: str
    looked_at: int = 0
    feasible: int = 0
    ruled_out: dict[str, int] = {}
    nearest_miss: str = ""
    remedy: str = ""
    violated: tuple[str, ...] = ()
    placed_on: str = ""
    rule: str = ""
    score: int | None = None
    second: str = ""
    second_score: int | None = None
    price: Price | None = None


class TaskAnswers:
    def __init__(self, run: RunRecord, task: str) -> None:
        self._run = run
        self._job, self._index = run.resolve(task)
        self.task = task_name(self._job, self._index)
        scenario = run.scenario()
        self._machines = [machine.name for machine in scenario.cell.machines]
        self._dimensions = tuple(run.summary().utilisation)
        self._jobs = [job.id for job in scenario.jobs]
        self._number = self._jobs.index(self._job)
        self._lines = [line for line in run.log_lines() if self._concerns(line)]

    def story(self) -> list[StoryLine]:
        """The task's life, line by line; attempts that changed nothing are counted, not repeated."""
        return _fold(self._all_lines())

    def _all_lines(self) -> list[StoryLine]:
        lines = [self._line(line) for line in self._lines]
        lines.extend(self._timeline())
        return sorted(lines, key=lambda line: line.at)

    def why(self) -> WhyAnswer:
        whats = [line.what for line in self._all_lines()]
        state = next((_STATES[what] for what in reversed(whats) if what in _STATES), "pending")
        decisive = next((line for line in reversed(self._lines) if line["what"] in _DECISIVE), None)
        if decisive is None:
            return WhyAnswer(
                task=self.task,
                state=state,
                sentence=f"{self.task} was submitted but no scheduler has decided on it yet.",
                remedy="more time, or more schedulers: no attempt had begun when the run ended",
            )
        if decisive["what"] in ("placed", "enqueued"):
            return self._why_here(decisive, state)
        return self._why_not(decisive, state)

    def _concerns(self, line: dict[str, Any]) -> bool:
        if line.get("job") != self._job:
            return False
        indices = line.get("indices")
        return indices is None or self._index in indices

    def _position(self, line: dict[str, Any]) -> int:
        position: int = line["indices"].index(self._index)
        return position

    def _machine(self, line: dict[str, Any]) -> str:
        return self._name(line["machines"][self._position(line)])

    def _name(self, machine: int) -> str:
        return self._machines[machine] if 0 <= machine < len(self._machines) else str(machine)

    def _refusal(self, line: dict[str, Any]) -> Refusal:
        row = self._position(line)
        detail = line["details"][row]
        return Refusal(
            why=Why(line["whys"][row]),
            machine=line["machines"][row],
            dimension=self._dimensions[detail] if 0 <= detail < len(self._dimensions) else "",
            lacking=line["amounts"][row],
        )

    def _line(self, line: dict[str, Any]) -> StoryLine:
        at, what = line["at"], line["what"]
        by = f" by {line['scheduler']}" if "scheduler" in line else ""
        match what:
            case "submitted":
                text = f"submitted with {line['tasks']} tasks, goes to {line['scheduler']}"
            case "resubmitted":
                text = f"given to {line['scheduler']} again"
            case "attempt":
                text = f"{line['scheduler']} begins to decide, for {format_duration(line['takes'])}"
            case "placed":
                text = f"placed on {self._machine(line)}{by}"
            case "enqueued":
                text = f"sent to the queue of {self._machine(line)}{by}"
            case "probed":
                text = f"{len(line['machines'])} probes for its job's tasks sent{by}"
            case "refused":
                text = "refused: " + self._refusal(line).sentence(self._machine(line))
            case "lost":
                text = f"lost {self._machine(line)}: {line['why'].replace('_', ' ')}"
            case "released":
                text = f"released{by}"
            case "explained":
                explanation = msgspec.convert(line["explanation"], Explanation)
                text = f"waits: {self._reason(explanation)}"
            case "abandoned":
                explanation = msgspec.convert(line["explanation"], Explanation)
                text = f"abandoned: {self._reason(explanation)}"
            case _:
                text = what
        return StoryLine(at, what, text, {k: v for k, v in line.items() if k not in ("at", "what")})

    def _timeline(self) -> list[StoryLine]:
        rows = self._run.task_rows()
        mine = np.flatnonzero(rows["task"] == task_number(self._number, self._index))
        lines = []
        for row in mine.tolist():
            name = self._name(int(rows["machine"][row]))
            started, finished = int(rows["started"][row]), int(rows["finished"][row])
            waited = started - int(rows["placed"][row])
            queued = (
                f" after {format_duration(waited)} on the way and in its queue" if waited else ""
            )
            lines.append(StoryLine(started, "started", f"starts on {name}{queued}"))
            if finished >= 0:
                ran = format_duration(finished - started)
                lines.append(StoryLine(finished, "finished", f"finished, having run {ran}"))
        return lines

    def _reason(self, explanation: Explanation) -> str:
        if explanation.refused is not None:
            return explanation.refused.sentence(self._name(explanation.refused.machine))
        if explanation.price is not None:
            return self._priced(explanation.price)
        if explanation.feasible and explanation.feasible >= explanation.looked_at:
            room = f"each of {explanation.looked_at} machines has room, but not all may be used"
        elif explanation.feasible:
            room = f"only {explanation.feasible} of {explanation.looked_at} machines have room"
        else:
            room = f"none of {explanation.looked_at} machines can take it"
        miss = explanation.nearest_miss
        if miss is None:
            return room
        return f"{room}; the nearest is {miss.sentence(self._name(miss.machine) + ', which')}"

    def _why_here(self, line: dict[str, Any], state: str) -> WhyAnswer:
        explanation = msgspec.convert(line.get("explanation") or {}, Explanation)
        if "explanation" not in line and (told := self._told_before(line)) is not None:
            explanation = told
        machine = self._machine(line)
        second = "" if explanation.second is None else self._name(explanation.second)
        if second == machine:
            # The explanation is that of tasks placed together: another of them took the best machine.
            second = ""
        return WhyAnswer(
            task=self.task,
            state=state,
            sentence=f"{self.task} {_PLACES[state]} {machine}: {_choice(explanation)}.",
            looked_at=explanation.looked_at,
            feasible=explanation.feasible,
            ruled_out=explanation.ruled_out,
            placed_on=machine,
            rule=explanation.rule,
            score=explanation.score,
            violated=explanation.violated,
            second=second,
            second_score=explanation.second_score if second or explanation.second is None else None,
        )

    def _told_before(self, placed: dict[str, Any]) -> Explanation | None:
        """What the scheduler said of the place just before it asked for it, where it said it apart."""
        before = [x for x in self._lines if x["what"] == "explained" and x["at"] <= placed["at"]]
        told = msgspec.convert(before[-1]["explanation"], Explanation) if before else Explanation()
        return told if told.rule and told.score is not None else None

    def _priced(self, price: Price) -> str:
        """The price of a place in words."""
        where = f", on {self._name(price.machine)}," if price.machine >= 0 else ""
        text = f"waiting costs it {price.waiting:,}, and the cheapest place{where} {price.place:,}"
        if price.holder >= 0:
            text += f": {self._task_name(price.holder)} holds it"
        if price.loser >= 0 and price.loser != price.holder:
            text += f", and {self._task_name(price.loser)} would be without a machine in the end"
        return text

    def _task_name(self, task: int) -> str:
        number = job_of(task)
        jobs = self._jobs
        return task_name(jobs[number] if number < len(jobs) else str(number), index_of(task))

    def _why_not(self, line: dict[str, Any], state: str) -> WhyAnswer:
        """The line's own reason; for a task given up, also that of the last attempt."""
        given_up = ""
        if line["what"] == "abandoned":
            explanation = msgspec.convert(line["explanation"], Explanation)
            if explanation.refused is not None:
                given_up = explanation.refused.sentence() + "; at last, "
                explanation = structs.replace(explanation, refused=None)
            earlier = [x for x in self._lines if x["what"] in ("refused", "explained")]
            line = earlier[-1] if earlier else line
        if line["what"] == "refused":
            refusal = self._refusal(line)
            explanation = Explanation(refused=refusal, remedy=refusal.remedy())
        elif line["what"] in ("explained", "abandoned"):
            explanation = msgspec.convert(line["explanation"], Explanation)
        else:
            return WhyAnswer(
                task=self.task,
                state=state,
                sentence=f"{self.task} has no machine: {self._line(line).text}, and no scheduler has "
                "decided on it again.",
            )
        miss = explanation.nearest_miss
        return WhyAnswer(
            task=self.task,
            state=state,
            sentence=f"{self.task} has no machine: {given_up}{self._reason(explanation)}.",
            looked_at=explanation.looked_at,
            feasible=explanation.feasible,
            ruled_out=explanation.ruled_out,
            nearest_miss="" if miss is None else miss.sentence(self._name(miss.machine)),
            remedy=explanation.remedy,
            price=explanation.price,
        )


_PLACES = {"finished": "ran on", "running": "runs on", "queued": "waits in the queue of"}


def _choice(explanation: Explanation) -> str:
    """How the machine was chosen, as far as the scheduler said."""
    if not explanation.rule:
        return "its scheduler chose it"
    if explanation.rule == "first":
        return (
            "the first machine with room from a random start; the tasks decided on together needed "
            f"{explanation.looked_at} looks"
        )
    if explanation.rule == "cheapest flow":
        return "the flow of least cost over all tasks leads it there"
    if not explanation.feasible:
        machines = (
            "1 machine" if explanation.looked_at == 1 else f"{explanation.looked_at} machines"
        )
        return f"decided by {explanation.rule}, over {machines}"
    return (
        f"{explanation.rule} of the {explanation.feasible} that could take it, "
        f"of {explanation.looked_at} looked at"
    )


#: What a task's state is after each kind of line.
_STATES = {
    "submitted": "pending",
    "resubmitted": "pending",
    "placed": "running",
    "enqueued": "queued",
    "probed": "queued",
    "started": "running",
    "finished": "finished",
    "lost": "pending",
    "released": "pending",
    "abandoned": "abandoned",
}
#: Lines that say where the task is, or why it is nowhere; the last one decides.
_DECISIVE = ("placed", "enqueued", "refused", "explained", "lost", "released", "abandoned")


def _fold(lines: list[StoryLine]) -> list[StoryLine]:
    """Lines that say the same as one of the three before them become one, with a count."""
    folded: list[StoryLine] = []
    repeats: list[int] = []
    for line in lines:
        recent = range(1, min(3, len(folded)) + 1)
        same = next((n for n in recent if _gist(folded[-n]) == _gist(line)), None)
        if same is None:
            folded.append(line)
            repeats.append(1)
        else:
            repeats[-same] += 1
    return [
        line if count == 1 else structs.replace(line, text=f"{line.text} ({count} times)")
        for line, count in zip(folded, repeats, strict=True)
    ]


def _gist(line: StoryLine) -> tuple[Any, ...]:
    """What makes two lines the same to a reader: not which machine refused, nor how long one thought."""
    detail = line.detail
    match line.what:
        case "attempt":
            return line.what, detail["scheduler"]
        case "refused":
            return line.what, *sorted(set(detail["whys"]))
        case "explained":
            return line.what, *sorted(detail["explanation"].get("ruled_out", {}))
    return line.what, line.at, line.text
