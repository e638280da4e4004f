"""Reads journals from the database: of one life, or what they say of one job."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from argosy.model.answers import StoryLine, WhyAnswer
from argosy.model.jobs import task_name
from argosy.records.answers import TaskAnswers
from argosy.records.journal_file import JournalFile
from argosy.records.journal_run import JournalRun
from argosy.service.problems import NotFound
from argosy.service.retention import forgotten_life
from argosy.worlds.local.projection import MACHINES_SEQ
from argosy.worlds.local.store import LocalStore

#: Turns that are read at once.
_BATCH = 1_000


class Journals:
    def __init__(self, store: LocalStore) -> None:
        self._store = store

    def life(self, number: int | None) -> Iterator[bytes]:
        """The journal of one life (the last, if none is given) in pieces. Each piece is read when it is
        asked for."""
        condition, values = ("life = ?", [number]) if number is not None else ("1", [])
        rows = self._store.rows(
            f"SELECT life, header FROM lives WHERE {condition} ORDER BY life DESC LIMIT 1", values
        )
        if not rows:
            last = self._store.rows("SELECT max(life) FROM lives")[0][0]
            raise NotFound(f"there is no life {number}", field="life", expected=f"1 to {last}")
        if rows[0][0] <= forgotten_life(self._store):
            raise NotFound(
                f"the journal of life {rows[0][0]} is not kept as a whole",
                field="life",
                hint="`argosy up` forgets turns with the jobs they speak of (--keep-jobs, --keep-for)",
            )
        return self._pieces(*rows[0])

    def _pieces(self, life: int, header: bytes) -> Iterator[bytes]:
        yield header
        last = 0
        while True:
            rows = self._store.rows(
                "SELECT turn, lines FROM turns WHERE life = ? AND turn > ? ORDER BY turn LIMIT ?",
                (life, last, _BATCH),
            )
            if not rows:
                return
            last = rows[-1][0]
            yield b"".join(lines for _, lines in rows)

    def why(self, seq: int, job: str, index: int) -> WhyAnswer:
        """From the last life in which somebody decided on the task. What waits is explained by the
        present life alone."""
        task = task_name(job, index)
        *earlier, last = (
            TaskAnswers(JournalRun(each), task, whole=False) for each in self._of_job(seq)
        )
        answer = last.why()
        if not last.is_decided and answer.state != "pending":
            for older in reversed(earlier):
                if older.is_decided:
                    return older.why(answer.state)
        return answer

    def story(self, seq: int, job: str, index: int) -> list[StoryLine]:
        """Over all lives."""
        task = task_name(job, index)
        return [
            line
            for journal in self._of_job(seq)
            for line in TaskAnswers(JournalRun(journal), task, whole=False).story()
        ]

    def _of_job(self, seq: int) -> Iterator[JournalFile]:
        """What the journals say of the job, life by life."""
        rows = self._store.rows(
            "SELECT DISTINCT turns.life, turns.turn, turns.lines FROM job_turns JOIN turns USING (turn) "
            "WHERE job_turns.job IN (?, ?) AND turns.life IN (SELECT life FROM job_turns "
            "JOIN turns USING (turn) WHERE job_turns.job = ?) ORDER BY turns.turn",
            (seq, MACHINES_SEQ, seq),
        )
        for life, turns in groupby(rows, key=lambda row: int(row[0])):
            header = self._store.rows("SELECT header FROM lives WHERE life = ?", (life,))[0][0]
            yield JournalFile(header + b"".join(lines for _, _, lines in turns), f"life {life}")
