"""Quantities mean what they mean to Kubernetes. The tables hold the values of its own tests."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kubernetes.quantities import (
    LARGEST,
    NANOS,
    QuantityError,
    QuantityFormat,
    amount,
    canonical,
    milli_units,
    nanos,
    quantity,
    spelled,
    whole_units,
)
from argosy.model.errors import LONGEST_ECHO

#: Text, mantissa, decimal exponent.
READ = [
    *(
        (f"0{suffix}", 0, 0)
        for suffix in ("", "n", "u", "m", "k", "Ki", "M", "Mi", "G", "Gi", "T", "Ti")
    ),
    ("1", 1, 0),
    ("1Ki", 1024, 0),
    ("8Ki", 8 * 1024, 0),
    ("7Mi", 7 * 1024**2, 0),
    ("6Gi", 6 * 1024**3, 0),
    ("5Ti", 5 * 1024**4, 0),
    ("4Pi", 4 * 1024**5, 0),
    ("3Ei", 3 * 1024**6, 0),
    ("100Ti", 100 * 1024**4, 0),
    ("5n", 5, -9),
    ("4u", 4, -6),
    ("3m", 3, -3),
    ("9", 9, 0),
    ("8k", 8, 3),
    ("50k", 5, 4),
    ("7M", 7, 6),
    ("6G", 6, 9),
    ("5T", 5, 12),
    ("300T", 3, 14),
    ("2P", 2, 15),
    ("1E", 1, 18),
    ("1E-3", 1, -3),
    ("1e3", 1, 3),
    ("1E6", 1, 6),
    ("1e14", 1, 14),
    ("1E18", 1, 18),
    ("100.035k", 100035, 0),
    ("0.001", 1, -3),
    ("0.0005k", 5, -1),
    ("0.50000", 5, -1),
    ("0.5e0", 5, -1),
    ("0.5e-2", 5, -3),
    ("10.035M", 10035, 3),
    ("1.3E+6", 13, 5),
    ("1.40e9", 14, 8),
    ("1.7E18", 17, 17),
    ("9.01", 901, -2),
    ("6.987654321G", 6987654321, 0),
    ("1.01E", 101, 16),
    ("3.001n", 4, -9),
    ("1.1E-9", 2, -9),
    ("0.0000000001", 1, -9),
    ("0.00000000050", 1, -9),
    ("0.5e-9", 1, -9),
    ("0.00000012345", 124, -9),
    ("0.00000012354", 124, -9),
    ("9Ei", LARGEST, 0),
    ("9223372036854775807Ki", LARGEST, 0),
    ("12E", 12, 18),
    ("100.035Ki", 10243584, -2),
    ("0.5Mi", 524288, 0),
    ("0.05Gi", 536870912, -1),
    ("0.025Ti", 274877906944, -1),
    ("0.000000000001Ki", 2, -9),
    (".001", 1, -3),
    (".0001k", 100, -3),
    ("1.", 1, 0),
    ("1.G", 1, 9),
]


@pytest.mark.parametrize(("text", "mantissa", "exponent"), READ)
def test_texts_are_read_as_kubernetes_reads_them(text: str, mantissa: int, exponent: int) -> None:
    expected = mantissa * Fraction(10) ** (exponent + 9)
    assert nanos(text) == expected
    assert nanos(f"+{text}") == expected
    assert nanos(f"-{text}") == -expected


INVALID = [
    "",
    "1.1.M",
    "1+1.0M",
    "0.1mi",
    "0.1am",
    "aoeu",
    ".5i",
    "1i",
    "-3.01i",
    "-3.01e-",
    " 1",
    "1 ",
]


@pytest.mark.parametrize(
    "text", [*INVALID, "1\n", ".", "-", "1K3", "1m3", "\N{ARABIC-INDIC DIGIT ONE}"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        nanos(text)


SPELLED = [
    ("1024Mi", "1Gi"),
    ("307200Ki", "300Mi"),
    ("6Ki", "6Ki"),
    ("1025024Mi", "1001Gi"),
    ("1024Gi", "1Ti"),
    ("5000m", "5"),
    ("0.5", "500m"),
    ("1000M", "1G"),
    ("0.001T", "1G"),
    ("1000u", "1m"),
    ("80m", "80m"),
    ("1.08", "1080m"),
    ("1080000000n", "1080m"),
    ("300M", "300M"),
    ("1234567M", "1234567M"),
    ("3k", "3k"),
    (".001e12", "1e9"),
    ("0.001e0", "1e-3"),
    ("1000e-12", "1e-9"),
    ("80e-3", "80e-3"),
    ("300e6", "300e6"),
    ("00", "0"),
    ("0Ki", "0"),
    ("80n", "80n"),
    ("1080u", "1080u"),
    ("0.5Ki", "512"),
    ("1Ki", "1Ki"),
    ("1Mi", "1Mi"),
    ("0.9990234375Ki", "1023"),
    ("1.0009765625Ki", "1025"),
    ("1000E", "1000E"),
]


@pytest.mark.parametrize(("text", "expected"), SPELLED)
def test_the_canonical_spelling_is_kubernetes(text: str, expected: str) -> None:
    assert canonical(text) == expected
    if expected != "0":
        assert canonical(f"-{text}") == f"-{expected}"


@pytest.mark.parametrize(
    ("text", "value", "format"),
    [("1025", 1025, QuantityFormat.BINARY), ("5", 5, QuantityFormat.BINARY)],
)
def test_binary_amounts_without_a_suffix(text: str, value: int, format: QuantityFormat) -> None:
    assert spelled(value * NANOS, format) == text


def test_a_fraction_of_a_large_binary_amount_is_not_lost() -> None:
    assert spelled(1_234_567 * NANOS // 1000, QuantityFormat.BINARY) == "1234567m"


@pytest.mark.parametrize(
    ("text", "whole", "milli"),
    [("0.1", 1, 100), ("1n", 1, 1), ("9.01", 10, 9010), ("-9.01", -10, -9010), ("1.0001", 2, 1001)],
)
def test_units_are_rounded_away_from_zero(text: str, whole: int, milli: int) -> None:
    assert (whole_units(text), milli_units(text)) == (whole, milli)


def test_enormous_amounts_saturate_at_once() -> None:
    assert whole_units("1e999999999") == LARGEST
    assert milli_units("9Ei") == LARGEST
    assert whole_units("1e-999999999") == 1


def test_cpu_is_counted_in_thousandths_and_memory_in_bytes() -> None:
    assert amount("cpu", "1.5") == 1500
    assert amount("memory", "1Gi") == 2**30
    assert amount("example.com/gpu", "2") == 2
    assert quantity("cpu", 1500) == "1500m"
    assert quantity("memory", 2**30) == "1Gi"
    assert quantity("hugepages-2Mi", 2**21) == "2Mi"
    assert quantity("pods", 110) == "110"


RESOURCES = st.sampled_from(["cpu", "memory", "ephemeral-storage", "pods", "example.com/gpu"])


@given(RESOURCES, st.integers(-(2**62), 2**62))
def test_what_is_written_is_read_back_equal(resource: str, count: int) -> None:
    text = quantity(resource, count)
    assert amount(resource, text) == count


@given(
    st.integers(0, 10**12),
    st.integers(0, 12),
    st.sampled_from(["n", "u", "m", "", "k", "M", "G", "Ki", "Mi", "Gi", "e-3", "e2", "E+1"]),
)
def test_reading_is_exact_up_to_nine_decimals(digits: int, places: int, suffix: str) -> None:
    text = f"{digits:0{places + 1}d}"
    text = f"{text[: len(text) - places]}.{text[len(text) - places :]}{suffix}"
    factor = {
        "n": Fraction(1, 10**9),
        "u": Fraction(1, 10**6),
        "m": Fraction(1, 1000),
        "": Fraction(1),
    }
    factor |= {"k": Fraction(1000), "M": Fraction(10**6), "G": Fraction(10**9)}
    factor |= {"Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30)}
    factor |= {"e-3": Fraction(1, 1000), "e2": Fraction(100), "E+1": Fraction(10)}
    exact = Fraction(digits, 10**places) * factor[suffix] * NANOS
    assert nanos(text) == -(-exact.numerator // exact.denominator)
    assert nanos(canonical(text)) == nanos(text)


@pytest.mark.parametrize(
    ("resource", "count", "spelling"),
    [
        ("cpu", 1_500, "1500m"),
        ("cpu", 2_000, "2"),
        ("cpu", -1, "-1m"),
        ("memory", 2**30, "1Gi"),
        ("memory", 1_000, "1k"),
        ("memory", 1_023, "1023"),
        ("memory", 1_024, "1Ki"),
        ("ephemeral-storage", 2**20, "1Mi"),
        ("storage", 3 * 2**40, "3Ti"),
        ("hugepages-2Mi", 2**21, "2Mi"),
        ("pods", 1_000, "1k"),
        ("pods", 1_024, "1024"),
        ("example.com/memory", 2**20, "1048576"),
        ("nvidia.com/gpu", 0, "0"),
    ],
)
def test_what_is_counted_is_spelled_by_the_kind_of_resource(
    resource: str, count: int, spelling: str
) -> None:
    assert quantity(resource, count) == spelling
    assert amount(resource, spelling) == count


def test_a_text_that_is_no_quantity_is_shown_as_far_as_it_goes() -> None:
    expected = "expected a number such as 500m, 1.5Gi or 2e3"
    for text, shown in (
        ("1x", "1x"),
        ("", ""),
        ("a" * LONGEST_ECHO, "a" * LONGEST_ECHO),
        ("a" * (LONGEST_ECHO + 1), "a" * LONGEST_ECHO + "..."),
    ):
        with pytest.raises(QuantityError) as caught:
            whole_units(text)
        assert str(caught.value) == f"'{shown}' is not a quantity; {expected}"
