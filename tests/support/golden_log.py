"""A run's decisions as text that a person can read: one line a decision.

    time  what  tasks  machines  scheduler

After an intended change of behaviour, write the files again and read the difference:

    pytest tests/worlds/test_golden.py --update-golden
"""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from argosy.host import records
from argosy.model.explanations import Explanation, Why
from argosy.model.jobs import index_of, job_of, task_name
from argosy.model.transactions import (
    AddMachine,
    DrainMachine,
    MachineChange,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)
from argosy.records.journal_file import Fact, JournalFile

GOLDEN = Path(__file__).parents[1] / "worlds" / "golden"


def readable(journal: JournalFile, *, reasons: bool = False) -> str:
    """The decisions of a journal, and the faults between them; also why tasks wait, if asked for."""
    log = _Log(journal, reasons=reasons)
    return "\n".join(line for fact in journal.facts() for line in log.lines(fact)) + "\n"


class _Log:
    def __init__(self, journal: JournalFile, *, reasons: bool) -> None:
        self._reasons = reasons
        self._told: dict[tuple[str, int], Explanation] = {}
        self._jobs = journal.job_names()
        self._machines = journal.machine_names()

    def lines(self, fact: Fact) -> list[str]:
        match fact:
            case records.SubmittedRecord(at, _, job, scheduler):
                return [_line(at, "submitted", f"{job.id}/0-{job.tasks - 1}", "", scheduler)]
            case records.AttemptRecord(at, job, scheduler, takes):
                return [_line(at, "attempt", job, f"for {takes / 1e6:.3f}", scheduler)]
            case records.PlacedRecord(at, job, indices, machines, scheduler):
                return [_line(at, "placed", *self._pairs(job, indices, machines), scheduler)]
            case records.EnqueuedRecord(at, job, indices, machines, scheduler):
                return [_line(at, "enqueued", *self._pairs(job, indices, machines), scheduler)]
            case records.ProbedRecord(at, job, indices, machines, scheduler):
                return [_line(at, "probed", *self._pairs(job, indices, machines), scheduler)]
            case records.RefusedRecord(at, job, indices, machines, scheduler, whys):
                reasons = ",".join(dict.fromkeys(Why(why).name.lower() for why in whys))
                pairs = self._pairs(job, indices, machines)
                return [_line(at, "refused", *pairs, scheduler, reasons)]
            case records.LostRecord(at, job, indices, machines, why):
                return [_line(at, "lost", *self._pairs(job, indices, machines), "", why)]
            case records.ReleasedRecord(at, job, indices, scheduler):
                return [_line(at, "released", *self._pairs(job, indices), scheduler)]
            case records.ResubmittedRecord(at, job, indices, scheduler):
                return [_line(at, "resubmitted", *self._pairs(job, indices), scheduler)]
            case records.AbandonedRecord(at, job, indices, scheduler):
                return [_line(at, "abandoned", *self._pairs(job, indices), scheduler)]
            case records.ExplainedRecord(at, job, indices, scheduler, told) if self._reasons:
                tasks = {(job, index): told for index in indices}
                if tasks.items() <= self._told.items():
                    return []
                self._told.update(tasks)
                pairs = self._pairs(job, indices)
                return [_line(at, "explained", *pairs, scheduler, *self._reason(told))]
            case records.StartedRecord(at, tasks, machines):
                numbers = zip(tasks, machines, strict=True)
                return [
                    _line(at, "started", self._task(task), self._machines[machine], "")
                    for task, machine in numbers
                ]
            case records.MachineRecord(at, change):
                return [_line(at, "machine", "", *self._change(change))]
            case records.CrashedRecord(at, scheduler):
                return [_line(at, "crashed", "", "", scheduler)]
            case records.RestartedRecord(at, scheduler):
                return [_line(at, "restarted", "", "", scheduler)]
        return []

    def _task(self, task: int) -> str:
        return task_name(self._jobs[job_of(task)], index_of(task))

    def _pairs(self, job: str, indices: list[int], machines: list[int] | None = None) -> list[str]:
        names = [self._machines[machine] if machine >= 0 else "-" for machine in machines or ()]
        return [f"{job}/{','.join(map(str, indices))}", ",".join(names)]

    def _reason(self, told: Explanation) -> list[str]:
        counts = [f"{count} {why}" for why, count in told.ruled_out.items()]
        misses = [
            miss.sentence(self._machines[miss.machine] if miss.machine >= 0 else "")
            for miss in (told.refused, told.nearest_miss)
            if miss is not None
        ]
        price = ""
        if told.price is not None:
            where = self._machines[told.price.machine] if told.price.machine >= 0 else "-"
            price = f"{where} costs {told.price.place}, waiting {told.price.waiting}"
        seen = f"{told.feasible}/{told.looked_at}"
        return [seen, " | ".join(filter(None, (", ".join(counts), *misses, price, told.remedy)))]

    def _change(self, change: MachineChange) -> tuple[str, str]:
        match change:
            case AddMachine(machine):
                return machine.name, "joins"
            case RemoveMachine(number):
                return self._machines[number], "is gone"
            case ReviveMachine(number):
                return self._machines[number], "is back"
            case DrainMachine(number, draining):
                return self._machines[number], "drains" if draining else "drains no more"
            case ResizeMachine(number):
                return self._machines[number], "is resized"
            case RelabelMachine(number):
                return self._machines[number], "is relabelled"


def _line(at: int, what: str, tasks: str, machines: str, *rest: str) -> str:
    text = f"{at / 1e6:10.6f}  {what:<11} {tasks:<16} {machines:<16} {' '.join(filter(None, rest))}"
    return text.rstrip()


def require_golden(name: str, text: str, *, update: bool, folder: Path | None = None) -> None:
    """Compares with the file of that name, or writes it."""
    path = (folder or GOLDEN) / f"{name}.txt"
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return
    expected = path.read_text("utf-8") if path.exists() else ""
    if text != expected:
        difference = difflib.unified_diff(
            expected.splitlines(),
            text.splitlines(),
            f"{path.name}, as kept",
            "now",
            lineterm="",
            n=2,
        )
        pytest.fail(
            f"{name} is otherwise than {path} says; if that is meant, run pytest with "
            "--update-golden and explain it in the changelog\n" + "\n".join(difference),
            pytrace=False,
        )
