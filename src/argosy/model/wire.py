"""Events and effects as bytes, and back: JSON for people and other languages, msgpack for speed.

    data = encode(event, "json")
    assert same(decode_event(data, "json"), event)

The field `type` gives the type of each value. An array of one dimension is a list in JSON; in msgpack
it is an extension type, whose code says what kind of numbers its little-endian data are. One of several
dimensions is a map of its `shape` and its flat `values`. An array that is read has the kind of numbers
that the field's annotation names.

The questions (`Deliberate`) and decisions (`Deliberated`) of an engine have types that it declares; a
reader must pass them (`Deliberates.question_type` and `decision_type`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args, get_origin

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.model.effects import Deliberate, Effect, Question
from argosy.model.errors import ModelError
from argosy.model.events import Decision, Deliberated, Event
from argosy.model.messages import WaitReport

_T = TypeVar("_T")
Format: TypeAlias = Literal["json", "msgpack"]

#: Codes of msgpack's extension types. They are part of the format: append, never change.
_CODES: Final[Mapping[str, int]] = {
    "|b1": 1,
    "|i1": 2,
    "<i2": 3,
    "<i4": 4,
    "<i8": 5,
    "|u1": 6,
    "<u2": 7,
    "<u4": 8,
    "<u8": 9,
    "<f8": 10,
}
_ELEMENTS: Final[Mapping[str, Any]] = {
    "b": list[bool],
    "i": list[int],
    "u": list[int],
    "f": list[float],
}


def encode(value: Event | Effect | WaitReport, format: Format) -> bytes:
    return _ENCODERS[format](value)


def decode_event(data: bytes, format: Format, decision: type[Decision] = Decision) -> Event:
    event: Event = _decode(_EVENTS[format], data, "event")
    if isinstance(event, Deliberated) and decision is not Decision:
        told = _decode(_part("decision", decision)[format], data, "event")
        return structs.replace(event, decision=told.decision)
    return event


def decode_effect(data: bytes, format: Format, question: type[Question] = Question) -> Effect:
    effect: Effect = _decode(_EFFECTS[format], data, "effect")
    if isinstance(effect, Deliberate) and question is not Question:
        told = _decode(_part("question", question)[format], data, "effect")
        return structs.replace(effect, question=told.question)
    return effect


def to_plain(value: msgspec.Struct) -> Any:
    """The value as JSON-compatible Python objects."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_as_json)


def from_plain(value: Any, kind: type[_T]) -> _T:
    """The inverse of `to_plain`."""
    try:
        return msgspec.convert(value, kind, str_keys=True, dec_hook=_array)
    except msgspec.MsgspecError as error:
        raise ModelError(f"not the {kind.__name__} expected: {error}") from None


def decode_wait_report(data: bytes, format: Format) -> WaitReport:
    report: WaitReport = _decode(_REPORTS[format], data, "wait report")
    return report


def same(one: object, other: object) -> bool:
    """Whether two values are equal in every part, including the types and shapes of arrays. A NumPy
    number differs from a Python number, because it would not survive encoding."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray)
        return one.dtype == other.dtype and bool(np.array_equal(one, other))
    if isinstance(one, msgspec.Struct):
        return all(same(getattr(one, n), getattr(other, n)) for n in one.__struct_fields__)
    if isinstance(one, (tuple, list)):
        assert isinstance(other, (tuple, list))
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        assert isinstance(other, dict)
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


def _decode(decode: Callable[[bytes], Any], data: bytes, what: str) -> Any:
    try:
        return decode(data)
    except msgspec.MsgspecError as error:
        raise ModelError(f"not the {what} expected: {error}") from None


def _plain(value: Any, flat: Callable[[NDArray[Any]], Any]) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        raise NotImplementedError(f"{type(value).__name__} is not a plain value")
    if value.ndim == 1:
        return flat(value)
    return {"shape": value.shape, "values": flat(value.reshape(-1))}


def _packed(array: NDArray[Any]) -> msgspec.msgpack.Ext:
    kind = array.dtype.newbyteorder("<")
    return msgspec.msgpack.Ext(_CODES[kind.str], array.astype(kind, copy=False).tobytes())


@cache
def _element(kind: Any) -> np.dtype[Any]:
    """The element type of an array type such as ``NDArray[np.int64]``."""
    if get_origin(kind) is not np.ndarray:
        raise NotImplementedError(f"{kind} is not a plain value")
    element: np.dtype[Any] = np.dtype(get_args(get_args(kind)[1])[0])
    return element


def _array(kind: Any, told: Any) -> NDArray[Any]:
    element = _element(kind)
    if isinstance(told, dict):
        shape = msgspec.convert(told.get("shape"), tuple[int, ...])
        return _flat(element, told.get("values")).reshape(shape)
    return _flat(element, told)


def _flat(element: np.dtype[Any], told: Any) -> NDArray[Any]:
    if isinstance(told, msgspec.msgpack.Ext):
        kind = element.newbyteorder("<")
        if told.code != _CODES[kind.str]:
            raise ValueError(f"an array of another kind than {element}")
        # A writable copy in native byte order.
        numbers: NDArray[Any] = np.frombuffer(bytes(told.data), kind)
        return numbers.astype(element)
    try:
        return np.array(msgspec.convert(told, _ELEMENTS[element.kind]), element)
    except OverflowError:
        raise ValueError(f"a number beyond {element}") from None


def _as_json(value: Any) -> Any:
    return _plain(value, lambda array: array.tolist())


def _as_msgpack(value: Any) -> Any:
    return _plain(value, _packed)


def _decoders(union: Any) -> Mapping[Format, Callable[[bytes], Any]]:
    return {
        "json": msgspec.json.Decoder(union, dec_hook=_array).decode,
        "msgpack": msgspec.msgpack.Decoder(union, dec_hook=_array).decode,
    }


@cache
def _part(field: str, kind: type[msgspec.Struct]) -> Mapping[Format, Callable[[bytes], Any]]:
    """Decoders that read only one field of a struct."""
    return _decoders(msgspec.defstruct("Part", [(field, kind)]))


_ENCODERS: Final[Mapping[Format, Callable[[Any], bytes]]] = {
    "json": msgspec.json.Encoder(enc_hook=_as_json).encode,
    "msgpack": msgspec.msgpack.Encoder(enc_hook=_as_msgpack).encode,
}
_EVENTS: Final = _decoders(Event)
_EFFECTS: Final = _decoders(Effect)
_REPORTS: Final = _decoders(WaitReport)
