"""Scripted runs whose long decisions are made beside the loop."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from argosy.host.journal import Journal
from argosy.model.events import Decision
from argosy.model.random import Random
from argosy.model.truth import SimulatedJob
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay
from argosy.testing.builders import SECOND, scenario
from argosy.testing.scripted_world import ScriptedWorld


class ByHand:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.open: list[tuple[Callable[[], Decision], Callable[[Decision], None]]] = []

    def start(self, run: Callable[[], Decision], done: Callable[[Decision], None]) -> None:
        self.open.append((run, done))

    def answer(self, which: int = 0) -> None:
        run, done = self.open.pop(which)
        done(run())


class LateAnswers(ByHand):
    """Answers each question after a time of its own, decided when it is asked, when the answer is due,
    or in a thread meanwhile."""

    def __init__(self, when: Literal["asked", "due", "thread"], longest: int = 3 * SECOND) -> None:
        super().__init__()
        self._when = when
        self._longest = longest
        self._random = Random(5)
        self.world: ScriptedWorld | None = None
        self.threads: list[threading.Thread] = []

    def start(self, run: Callable[[], Decision], done: Callable[[Decision], None]) -> None:
        assert self.world is not None
        made: list[Decision] = []

        def decide() -> None:
            made.append(run())

        thread = threading.Thread(target=decide)
        if self._when == "asked":
            decide()
        elif self._when == "thread":
            self.threads.append(thread)
            thread.start()

        def answer() -> None:
            if self._when == "due":
                decide()
            elif self._when == "thread":
                thread.join()
            done(made[0])

        self.world.at(1 + self._random.below(self._longest), answer)


class Run:
    """A scripted run in which somebody answers at some times, if there is anything to answer."""

    def __init__(
        self,
        engine: Any,
        jobs: Sequence[SimulatedJob] = (),
        answers: Sequence[float] = (),
        script: Callable[[ScriptedWorld], None] = lambda world: None,
        hand: ByHand | None = None,
        **fields: Any,
    ) -> None:
        self.engines = {engine.name: engine}
        spec = scenario(engine.name, list(jobs), replicas=1, **fields)
        stream, self.hand = io.BytesIO(), hand or ByHand()
        journal = Journal(stream)
        self.world = ScriptedWorld(spec, self.engines, journal, self.hand)
        if isinstance(self.hand, LateAnswers):
            self.hand.world = self.world
        for at in answers:
            self.world.inject(int(at * SECOND), self._answer)
        script(self.world)
        self.world.run()
        journal.flush()
        self.journal = stream.getvalue()
        self.lines: list[dict[str, Any]] = [
            msgspec.json.decode(line) for line in self.journal.splitlines()
        ]

    def _answer(self) -> None:
        if self.hand.open:
            self.hand.answer()

    def told(self, what: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["what"] == what]

    def replay(self) -> Replay:
        replay = Replay(JournalFile(self.journal), self.engines)
        replay.run()
        return replay
