"""Who asks: tokens, what each allows, and how much of it.

A scope includes those before it: `sample` is for schedulers that only look, `commit` for those that
place jobs, `operate` for all the rest. Whoever needs no token operates.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

import msgspec

from argosy.model.errors import CommandError
from argosy.service.problems import Forbidden, TooMany, Unauthorised

TokenScope: TypeAlias = Literal["sample", "commit", "operate"]
_SCOPES: Final[tuple[str, ...]] = get_args(TokenScope)
SHORTEST_TOKEN: Final = 16
#: Reservations that one caller may hold at once, unless its token says otherwise.
MOST_RESERVATIONS: Final = 1_000
_Limit: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class TokenTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[tokens]]` of a file of tokens."""

    #: Whose token it is: the name that its jobs are placed by.
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=r"^[\w.-]+$")]
    token: Annotated[str, msgspec.Meta(min_length=SHORTEST_TOKEN)]
    scope: TokenScope = "commit"
    #: When it ceases to be valid; absent: never.
    expires: datetime | None = None
    #: Requests at once, and on average per second; absent: any number.
    requests: _Limit | None = None
    rate: _Limit | None = None
    #: Open reservations.
    reservations: _Limit = MOST_RESERVATIONS


class TokenFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tokens: tuple[TokenTable, ...] = ()


class Caller:
    """Somebody who may ask, with what is left of its limits."""

    def __init__(self, table: TokenTable, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = table.name
        self.table = table
        self._clock = clock
        self._level = _SCOPES.index(table.scope)
        self._under_way = 0
        #: Requests that may come at once, and when that was counted. A full second's worth at most.
        self._allowance = float(table.rate or 0)
        self._counted = clock()

    def require(self, scope: TokenScope) -> None:
        if self._level < _SCOPES.index(scope):
            raise Forbidden(
                f"the token of {self.name} is for the scope {self.table.scope}",
                expected=f"a token for the scope {scope}",
            )

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Counts a request from its begin to its end."""
        most, rate = self.table.requests, self.table.rate
        if most is not None and self._under_way >= most:
            raise TooMany(f"{self.name} has {most} requests under way", expected="fewer at once")
        if rate is not None:
            self._take(rate)
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    def _take(self, rate: int) -> None:
        now = self._clock()
        self._allowance = min(rate, self._allowance + (now - self._counted) * rate)
        self._counted = now
        if self._allowance < 1:
            raise TooMany(
                f"{self.name} asks too often", expected=f"at most {rate} requests a second"
            )
        self._allowance -= 1


def operator(name: str) -> Caller:
    """Somebody who may do everything."""
    return Caller(TokenTable(name=name, token="-" * SHORTEST_TOKEN, scope="operate"))


class Callers:
    """All who may ask. Without any token, whoever can connect may."""

    def __init__(self, token: str | None = None, tables: tuple[TokenTable, ...] = ()) -> None:
        self._local = operator("local")
        self._known = {_digest(table.token): Caller(table) for table in tables}
        if token is not None:
            self._known[_digest(token)] = operator("operator")

    @property
    def need_token(self) -> bool:
        return bool(self._known)

    @property
    def local(self) -> Caller:
        return self._local

    def of(self, authorization: str) -> Caller:
        """Whose token the header has."""
        scheme, _, given = authorization.partition(" ")
        # Looking up a digest tells nothing about the token by the time it takes.
        caller = self._known.get(_digest(given.strip()))
        if scheme.lower() != "bearer" or caller is None:
            raise Unauthorised(
                "wrong token" if given else "missing token",
                field="Authorization",
                expected="Bearer and the server's token",
                hint="the token is in the file `token` of the server's directory",
            )
        expires = caller.table.expires
        if expires is not None and expires <= datetime.now(UTC):
            raise Unauthorised(
                f"the token of {caller.name} has expired",
                field="Authorization",
                expected="a token that is still valid",
            )
        return caller


def _digest(token: str) -> bytes:
    # Headers may hold any bytes.
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def read_tokens(path: Path) -> tuple[TokenTable, ...]:
    """The tokens of a file; each has a name and a secret of its own."""
    try:
        plain: Any = tomllib.loads(path.read_text("utf-8"))
        tables = msgspec.convert(plain, TokenFile).tokens
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CommandError(f"cannot read the tokens: {error}", file=str(path)) from None
    except msgspec.ValidationError as error:
        # The value itself is not shown: it may be a token.
        text = str(error).replace("Object", "the file")
        raise CommandError(f"unfit tokens: {text}", file=str(path)) from None
    for what in ("name", "token"):
        if len({getattr(table, what) for table in tables}) < len(tables):
            raise CommandError(f"two entries have the same {what}", file=str(path))
    for table in tables:
        if table.expires is not None and table.expires.tzinfo is None:
            raise CommandError(
                f"the token of {table.name} expires at a time without a zone",
                file=str(path),
                expected="a time such as 2030-01-31T12:00:00Z",
            )
    if not tables:
        raise CommandError("no tokens", file=str(path), expected="[[tokens]]")
    return tables
