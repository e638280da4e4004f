"""Scenarios as JSON, written job by job, and the digest that identifies them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from argosy.model.scenario import Scenario

#: Jobs that are encoded together.
_AT_ONCE: Final = 64
_PLAIN: Final = msgspec.json.Encoder()
_CANONICAL: Final = msgspec.json.Encoder(order="deterministic")


def scenario_digest(scenario: Scenario) -> str:
    """SHA-256 of the scenario as canonical JSON: digests are equal exactly if the scenarios are."""
    digest = hashlib.sha256()
    for piece in _pieces(scenario):
        digest.update(piece.text(_CANONICAL))
    return digest.hexdigest()


def write_scenario(scenario: Scenario, file: BinaryIO) -> str:
    """Writes what ``msgspec.json.decode(type=Scenario)`` reads, and returns the digest."""
    digest = hashlib.sha256()
    for piece in _pieces(scenario):
        file.write(piece.text(_PLAIN))
        digest.update(piece.text(_CANONICAL))
    return digest.hexdigest()


class _Piece(NamedTuple):
    """A value, after some text; with `is_inside`, the items of a list without its brackets."""

    before: bytes
    value: Any
    is_inside: bool = False

    def text(self, encoder: msgspec.json.Encoder) -> bytes:
        encoded = encoder.encode(self.value)
        return self.before + (encoded[1:-1] if self.is_inside else encoded)


def _pieces(scenario: Scenario) -> Iterator[_Piece]:
    """Together, they are what ``msgspec.json.encode`` would make of the scenario as a whole."""
    before = "{"
    for name in scenario.__struct_fields__:
        key = f'{before}"{name}":'.encode()
        before = ","
        if name != "jobs":
            yield _Piece(key, getattr(scenario, name))
            continue
        yield _Piece(key + b"[", (), is_inside=True)
        jobs, between = iter(scenario.jobs), b""
        while some := tuple(islice(jobs, _AT_ONCE)):
            yield _Piece(between, some, is_inside=True)
            between = b","
        before = "],"
    yield _Piece(b"}", (), is_inside=True)
