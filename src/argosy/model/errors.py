"""One error tree. Each error has a code, a place, what was expected and a hint.

Expected outcomes (no room, a conflict) are values, not errors: see `explanations`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: How many characters of the user's text a message quotes: enough to find it again.
LONGEST_ECHO: Final = 60


class ArgosyError(Exception):
    """An error that the user can fix. Shown as one line; the CLI exits with 2."""

    code = "error"

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.field = field
        self.expected = expected
        self.hint = hint
        super().__init__(problem)

    @property
    def place(self) -> str:
        where = self.file or ""
        if self.line is not None:
            where += f":{self.line}" if where else f"line {self.line}"
        if self.field:
            where += f": {self.field}" if where else self.field
        return where

    def __str__(self) -> str:
        parts = [f"{self.place}: {self.problem}" if self.place else self.problem]
        if self.expected:
            parts.append(f"expected {self.expected}")
        if self.hint:
            parts.append(self.hint)
        return "; ".join(parts)

    def located(
        self, *, file: str | None = None, line: int | None = None, field: str | None = None
    ) -> ArgosyError:
        """The same error with the missing parts of its place filled in."""
        self.file = self.file or file
        self.line = self.line if self.line is not None else line
        self.field = self.field or field
        return self


class ScenarioError(ArgosyError):
    code = "scenario"


class TraceError(ArgosyError):
    code = "trace"


class JobError(ArgosyError):
    """A job for a live cluster that cannot be accepted as it is."""

    code = "job"


class RunDirectoryError(ArgosyError):
    code = "run-directory"


class ReplayDiverged(ArgosyError):
    """A replay made different decisions from those in the journal."""

    code = "replay-diverged"


class UnitError(ArgosyError):
    code = "unit"


class ModelError(ArgosyError):
    """A machine, job or resource vector that contradicts itself."""

    code = "model"


class ConstraintSyntaxError(ArgosyError):
    code = "constraint-syntax"

    def __init__(
        self, problem: str, *, text: str, column: int, expected: str | None = None
    ) -> None:
        self.text = text
        self.column = column
        super().__init__(
            f"{problem} at column {column + 1} of {excerpt(text, column)}", expected=expected
        )


class Untranslatable(ArgosyError):
    """A constraint that another system's language cannot express, or the reverse."""

    code = "untranslatable"


class SettingError(ArgosyError):
    code = "setting"


class UnknownName(ArgosyError):
    """An unknown name; suggests the nearest known one."""

    code = "unknown-name"

    def __init__(self, kind: str, name: str, known: Iterable[str], **place: object) -> None:
        options = sorted(known)
        super().__init__(
            f"unknown {kind} {excerpt(name)}",
            expected="one of " + ", ".join(options) if options else None,
            hint=did_you_mean(name, options),
            **place,  # type: ignore[arg-type]
        )


class UnknownEngine(UnknownName):
    code = "unknown-engine"

    def __init__(self, name: str, known: Iterable[str], **place: object) -> None:
        super().__init__("engine", name, known, **place)


class EngineNotFound(ArgosyError):
    """A class given as an engine cannot be imported."""

    code = "engine-not-found"


class MissingExtra(ArgosyError):
    """An optional part of the installation is needed."""

    code = "missing-extra"

    def __init__(self, who: str, extra: str, otherwise: str = "") -> None:
        hint = f"pip install 'argosy[{extra}]'"
        super().__init__(
            f"{who} needs the extra {extra!r}, which is not installed",
            hint=f"{hint}, or {otherwise}" if otherwise else hint,
        )


class MissingLibrary(ArgosyError):
    """A library is needed that Argosy does not require otherwise."""

    code = "missing-library"


class UnknownForm(UnknownName):
    """No published configuration has this name."""

    code = "unknown-form"

    def __init__(self, name: str, known: Iterable[str], **place: object) -> None:
        super().__init__("published form", name, known, **place)


class CommandError(ArgosyError):
    """A command's arguments do not make sense together."""

    code = "command"


class ServerError(ArgosyError):
    """A server refused a request. `code`, `field`, `expected` and `hint` are the server's; so is the
    text, which is complete but for the file that the request came from."""

    code = "server"

    def __init__(
        self,
        text: str,
        *,
        status: int,
        code: str = "",
        field: str | None = None,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(text, field=field, expected=expected, hint=hint)
        #: The status of the HTTP response.
        self.status = status
        self.code = code or self.code

    def __str__(self) -> str:
        if self.file is None:
            return self.problem
        line = "" if self.line is None else f":{self.line}"
        return f"{self.file}{line}: {self.problem}"


class CommitRefused(ServerError):
    """No machine of a commit takes its job. `why` is the reason of the last one, as in a journal; of
    `resource` it lacks `lacking`, if that is why."""

    code = "commit-refused"

    def __init__(
        self, text: str, *, code: str, why: str, machine: str, resource: str, lacking: int
    ) -> None:
        super().__init__(text, status=409, code=code)
        self.why = why
        self.machine = machine
        self.resource = resource
        self.lacking = lacking


class ServerUnreachable(ArgosyError):
    """No server answers at this address, or it broke off."""

    code = "unreachable"


class EngineFault(ArgosyError):
    """An engine broke its contract: a bug in the engine, not in the input."""

    code = "engine-fault"


class FleetRefused(ArgosyError):
    """A fleet for a live cluster that cannot start. The one there is goes on."""

    code = "fleet-refused"

    @staticmethod
    def by(error: ArgosyError) -> FleetRefused:
        return FleetRefused(error.problem, expected=error.expected, hint=error.hint)


def error_tree() -> list[type[ArgosyError]]:
    """`ArgosyError` and all its subclasses, parents first."""
    found: list[type[ArgosyError]] = [ArgosyError]
    for kind in found:
        found.extend(kind.__subclasses__())
    return found


def excerpt(text: str, around: int = 0) -> str:
    """`text` in quotes; if it is long, only the part near position `around`."""
    if len(text) <= LONGEST_ECHO:
        return repr(text)
    start = max(0, min(around - LONGEST_ECHO // 2, len(text) - LONGEST_ECHO))
    end = start + LONGEST_ECHO
    return ("..." if start else "") + repr(text[start:end]) + ("..." if end < len(text) else "")


def did_you_mean(name: str, options: Iterable[str]) -> str | None:
    import difflib

    near = difflib.get_close_matches(name, list(options), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else None
