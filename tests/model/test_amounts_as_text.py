"""Amounts as text, unit by unit and up to their bounds: what is read, how it is refused and how it is
shown."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

import pytest

from argosy.model.errors import LONGEST_ECHO, UnitError
from argosy.model.resources import Resources
from argosy.model.units import (
    format_amount,
    format_bytes,
    format_count,
    format_duration,
    parse_bytes,
    parse_count,
    parse_cpu,
    parse_duration,
    shown,
)

LARGEST = 2**53
DURATION = 'a duration with a unit, such as "250ms", "90s", "10min", "2h" or "1d"'
CPU = 'whole milli-cores such as 1500, or text such as "1500m" or "1.5"'
MEMORY = 'whole bytes such as 1048576, or text such as "512MiB" or "64GiB"'
SIZES = "one of the units B, KB, MB, GB, TB, KiB, MiB, GiB, TiB; " + MEMORY
TIMES = "one of the units us, ms, s, min, h, d; " + DURATION


@pytest.mark.parametrize(
    ("parse", "sizes"),
    [
        (
            parse_duration,
            {
                "us": 1,
                "ms": 1_000,
                "s": 1_000_000,
                "min": 60_000_000,
                "h": 3_600_000_000,
                "d": 86_400_000_000,
            },
        ),
        (parse_cpu, {"m": 1, "": 1_000}),
        (
            parse_bytes,
            {
                "": 1,
                "B": 1,
                "KB": 1_000,
                "MB": 1_000_000,
                "GB": 1_000_000_000,
                "TB": 1_000_000_000_000,
                "KiB": 1_024,
                "MiB": 1_048_576,
                "GiB": 1_073_741_824,
                "TiB": 1_099_511_627_776,
            },
        ),
    ],
)
def test_every_unit_has_its_size(parse: Any, sizes: dict[str, int]) -> None:
    for unit, size in sizes.items():
        assert parse(f"3{unit}") == parse(f" 3 {unit} ") == 3 * size
        assert parse(f"0{unit}") == parse(f"0.0{unit}") == 0
        most = LARGEST // size
        assert parse(f"{most}{unit}") == most * size
        with pytest.raises(UnitError, match="is too large"):
            parse(f"{most + 1}{unit}")


@pytest.mark.parametrize("parse", [parse_cpu, parse_bytes, parse_count])
def test_a_plain_number_has_the_same_bounds(parse: Any) -> None:
    assert (parse(0), parse(1), parse(LARGEST)) == (0, 1, LARGEST)
    for beyond in (-1, LARGEST + 1):
        with pytest.raises(UnitError):
            parse(beyond)


@pytest.mark.parametrize(
    ("parse", "value", "problem", "expected", "hint"),
    [
        (parse_duration, "soon", "'soon' is not a duration", DURATION, None),
        (parse_duration, "", "'' is not a duration", DURATION, None),
        (parse_duration, [5], "an array is not a duration", DURATION, None),
        (parse_duration, 90, "90 has no unit", DURATION, None),
        (parse_duration, 1.5, "1.5 has no unit", DURATION, None),
        (parse_duration, "90", "'90' has no unit", TIMES, None),
        (parse_duration, "9m", "'9m' has an unknown unit 'm'", TIMES, None),
        (
            parse_duration,
            "9MIN",
            "'9MIN' has an unknown unit 'MIN'",
            TIMES,
            "did you mean 'min'?",
        ),
        (parse_duration, "-1s", "'-1s' is negative", f"zero or more: {DURATION}", None),
        (
            parse_duration,
            "0.5us",
            "'0.5us' is not a whole number of the base unit",
            DURATION,
            None,
        ),
        (
            parse_duration,
            "9007199254740993us",
            "'9007199254740993us' is too large",
            "at most 2^53 microseconds, about 285 years",
            None,
        ),
        (parse_cpu, 1.5, "1.5 is fractional", CPU, None),
        (parse_cpu, {}, "a table is not an amount of cpu", CPU, None),
        (parse_cpu, -7, "-7 is negative", "an amount of cpu of zero or more", None),
        (parse_cpu, LARGEST + 1, f"{LARGEST + 1} is too large", "at most 2^53 milli-cores", None),
        (parse_cpu, "1k", "'1k' has an unknown unit 'k'", f"one of the units m; {CPU}", None),
        (parse_bytes, 0.5, "0.5 is fractional", MEMORY, None),
        (parse_bytes, False, "false is not an amount of memory", MEMORY, None),
        (parse_bytes, -1, "-1 is negative", "an amount of memory of zero or more", None),
        (
            parse_bytes,
            LARGEST + 1,
            f"{LARGEST + 1} is too large",
            "at most 2^53 bytes, which is 8192TiB",
            None,
        ),
        (
            parse_bytes,
            "1kib",
            "'1kib' has an unknown unit 'kib'",
            SIZES,
            "did you mean 'KiB'?",
        ),
        (parse_bytes, "1EiB", "'1EiB' has an unknown unit 'EiB'", SIZES, None),
        (parse_count, 1.0, "1.0 is fractional", "a whole number", None),
        (parse_count, "1", "'1' is not an amount", "a whole number", None),
        (parse_count, -1, "-1 is negative", "an amount of zero or more", None),
        (parse_count, LARGEST + 1, f"{LARGEST + 1} is too large", "at most 2^53", None),
    ],
)
def test_a_refusal_says_what_was_expected(
    parse: Any, value: object, problem: str, expected: str, hint: str | None
) -> None:
    with pytest.raises(UnitError) as caught:
        parse(value)
    error = caught.value
    assert (error.problem, error.expected, error.hint) == (problem, expected, hint)


def test_a_number_has_up_to_forty_digits() -> None:
    assert parse_duration("0" * 39 + "7us") == 7
    assert parse_duration("1." + "0" * 38 + "us") == 1
    with pytest.raises(UnitError, match="has 41 digits"):
        parse_duration("0" * 40 + "7us")


def test_an_extra_resource_is_a_count_of_its_own_name() -> None:
    assert Resources.parse({"gpu": 2, "disk": 0}) == Resources(0, 0, {"gpu": 2, "disk": 0})
    assert Resources.of({"memory": 3}) == Resources(0, 3)
    assert Resources.of({"cpu": 3, "gpu": 1}) == Resources(3, 0, {"gpu": 1})
    for table, problem, hint in (
        ({"bandwidth": "two"}, "'two' is not an amount of bandwidth", None),
        ({"cpus": "2"}, "'2' is not an amount of cpus", "did you mean 'cpu'?"),
        ({"cpu": "x"}, "'x' is not an amount of cpu", None),
        ({"memory": "1gib"}, "'1gib' has an unknown unit 'gib'", "did you mean 'GiB'?"),
    ):
        with pytest.raises(UnitError) as caught:
            Resources.parse(table)
        error = caught.value
        assert (error.problem, error.hint, error.field) == (problem, hint, next(iter(table)))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ("a b", "'a b'"),
        ("x" * 61, repr("x" * 60) + "..."),
        ({"a": 1}, "a table"),
        ([1], "an array"),
        ((1,), "an array"),
        (12, "12"),
        (1.5, "1.5"),
        (2**479, f"{str(2**479)[:57]}..."),
        (2**480, "a number of 481 bits"),
        (2**4_000, "a number of 4,001 bits"),
        (date(1979, 5, 27), "1979-05-27"),
        (time(7, 32), "07:32:00"),
        (datetime(1979, 5, 27, 7, 32), "1979-05-27T07:32:00"),
        (10**59, "1" + "0" * 59),
        (10**60, "1" + "0" * 56 + "..."),
    ],
)
def test_a_value_is_shown_as_its_file_writes_it(value: object, expected: str) -> None:
    assert shown(value) == expected
    assert len(expected) <= LONGEST_ECHO + 5


@pytest.mark.parametrize(
    ("micros", "expected"),
    [
        (0, "0 µs"),
        (1, "1 µs"),
        (999, "999 µs"),
        (1_000, "1 ms"),
        (1_234, "1.23 ms"),
        (99_900, "99.9 ms"),
        (100_000, "100 ms"),
        (999_400, "999 ms"),
        (1_000_000, "1 s"),
        (59_900_000, "59.9 s"),
        (60_000_000, "1 min"),
        (3_599_000_000, "60 min"),
        (3_600_000_000, "1 h"),
        (86_399_000_000, "24 h"),
        (86_400_000_000, "1 d"),
        (12.5 * 86_400_000_000, "12.5 d"),
        (99.96 * 86_400_000_000, "100 d"),
        (100 * 86_400_000_000, "100 d"),
        (12_345 * 86_400_000_000, "12345 d"),
        (-1_500_000, "-1.5 s"),
        (-200_000 * 86_400_000_000, "-200000 d"),
        (-5, "-5 µs"),
    ],
)
def test_a_duration_is_shown_with_three_digits(micros: float, expected: str) -> None:
    assert format_duration(micros) == expected


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_024, "1 KiB"),
        (1_536, "1.5 KiB"),
        (2**20 - 1, "1024 KiB"),
        (2**20, "1 MiB"),
        (2**30, "1 GiB"),
        (2**40, "1 TiB"),
        (1.2345678 * 2**30, "1.235 GiB"),
        (-(2**20), "-1 MiB"),
        (-1, "-1 B"),
        (0.4, "0 B"),
    ],
)
def test_bytes_are_shown_with_four_digits(amount: float, expected: str) -> None:
    assert format_bytes(amount) == expected


def test_amounts_and_counts_are_shown_in_words() -> None:
    cores = [(0, "0 cores"), (1, "0.001 cores"), (999, "0.999 cores"), (1_000, "1 core")]
    for amount, expected in (*cores, (1_001, "1.001 cores"), (2_000, "2 cores")):
        assert format_amount("cpu", amount) == expected
    assert format_amount("memory", 2**31) == "2 GiB"
    assert (format_amount("gpu", 1), format_amount("gpu", 1_000)) == ("1 gpu", "1000 gpu")
    counted = [format_count(count, "task") for count in (0, 1, 2, 1_200)]
    assert counted == ["0 tasks", "1 task", "2 tasks", "1,200 tasks"]
