"""What a trial can find wrong."""

from __future__ import annotations

from typing import Final

import msgspec

#: Every check, and what it says when it fails.
CHECKS: Final = {
    "crash": "the run ended in an exception, or its process died",
    "engine-fault": "an engine broke the contract or raised an exception",
    "time-limit": "the run did not end in time",
    "oversubscribed": "a machine held more than it has",
    "requires": "a task ran on a machine without an attribute that it requires",
    "gang": "only a part of a gang was placed at first",
    "hard-constraint": "a placement broke a hard constraint that its engine follows",
    "machine-state": "a task was placed on a machine that was gone or draining",
    "limits": "a scheduler held more than its limits allow",
    "task-steps": "a task made a step that is impossible where it was",
    "running-time": "a task did not run as long as the scenario says",
    "submissions": "a job was not submitted as the scenario says",
    "restored": "a server that started again did not go on with what the one before had written",
    "processes": "a task runs without a process, or a process without its task",
    "miscounted": "the world counts its tasks otherwise than the journal",
    "unexplained": "a task waits, or was given up, and nothing says why",
    "forgotten": "a task waits although an idle machine could run it",
    "stuck-queue": "a task is queued at an idle machine that could run it",
    "nondeterministic": "another process ran the same scenario differently",
    "replay": "the journal's inputs do not lead to its decisions again",
}


class Finding(msgspec.Struct, frozen=True):
    #: One of `CHECKS`.
    check: str
    #: What is the same whenever the same thing goes wrong: no names, times or amounts.
    kind: str
    #: The whole story.
    detail: str

    def __post_init__(self) -> None:
        assert self.check in CHECKS, self.check

    @property
    def signature(self) -> tuple[str, str]:
        """Findings with the same one are taken for the same mistake."""
        return self.check, self.kind
