"""A client of a cluster that exists only as answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.api.values import JobDetails, TaskCounts

NOON = "2026-05-01T12:00:00.000000+00:00"
LATER = "2026-05-01T12:00:01.500000+00:00"


class ScriptedClient:
    """Answers each method with the value of this name, or what it returns or raises; remembers the
    questions."""

    def __init__(self, endpoint: str = "unix:/somewhere", **answers: Any) -> None:
        self.endpoint = endpoint
        self.asked: list[tuple[Any, ...]] = []
        self._answers = answers

    def __enter__(self) -> ScriptedClient:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __getattr__(self, name: str) -> Callable[..., Any]:
        answer = self._answers[name]

        def ask(*arguments: Any, **options: Any) -> Any:
            self.asked.append((name, *arguments, *([options] if options else [])))
            found = answer(*arguments, **options) if callable(answer) else answer
            if isinstance(found, Exception):
                raise found
            return found

        return ask


def made_up_job(job_id: str = "a", **fields: Any) -> JobDetails:
    known: dict[str, Any] = {
        "id": job_id,
        "kind": "batch",
        "scheduler": "s",
        "state": "running",
        "version": 1,
        "submitted": NOON,
        "document": {},
    }
    tasks = TaskCounts(**fields.pop("tasks", {"running": 1}))
    return JobDetails(**known | fields, tasks=tasks)
