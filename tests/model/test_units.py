"""Units, resource vectors and jobs: text at the edges, whole numbers inside."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.model.errors import ArgosyError, ModelError, UnitError
from argosy.model.jobs import (
    MOST_JOBS,
    MOST_TASKS,
    index_of,
    job_of,
    task_name,
    task_number,
)
from argosy.model.resources import Resources, dimensions_of
from argosy.model.units import (
    LARGEST,
    format_amount,
    format_bytes,
    format_duration,
    parse_bytes,
    parse_count,
    parse_cpu,
    parse_duration,
)

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("0s", 0),
        ("1us", 1),
        ("0.5ms", 500),
        ("90s", 90_000_000),
        ("1.5h", 5_400_000_000),
        ("10 min", 600_000_000),
        (" 2d ", 172_800_000_000),
    ],
)
def test_a_duration_is_exact_in_microseconds(text, micros):
    assert parse_duration(text) == micros


@pytest.mark.parametrize(
    "value", [90, 1.5, "90", "s", "", "-1s", "0.5us", "1 week", "1e3s", True, None]
)
def test_a_duration_that_is_not_whole_positive_and_with_a_unit_is_refused(value):
    with pytest.raises(UnitError) as caught:
        parse_duration(value)
    assert "such as" in caught.value.expected


@pytest.mark.parametrize(
    ("parse", "value", "said"),
    [
        (
            parse_cpu,
            "-1",
            "'-1' is negative; expected zero or more: whole milli-cores such as 1500",
        ),
        (parse_cpu, True, "true is not an amount of cpu"),
        (parse_bytes, None, "null is not an amount of memory"),
        (parse_bytes, [1], "an array is not an amount of memory"),
        (parse_bytes, "8EiB", "'8EiB' has an unknown unit 'EiB'; expected one of the units B, KB"),
        (parse_bytes, "9000TiB", "'9000TiB' is too large; expected at most 2^53 bytes"),
        (parse_bytes, "64gib", "did you mean 'GiB'?"),
        (parse_duration, date(1979, 5, 27), "1979-05-27 is not a duration"),
        (parse_duration, True, "true is not a duration"),
        (parse_duration, "90", "'90' has no unit"),
        (parse_duration, "9" * 5000 + "s", "has 5000 digits"),
        (parse_count, 10**400, "is too large"),
    ],
)
def test_a_refusal_uses_the_terms_of_the_file(parse, value, said):
    with pytest.raises(UnitError) as caught:
        parse(value)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 250


def test_a_duration_beyond_the_range_is_refused():
    with pytest.raises(UnitError, match="too large"):
        parse_duration("200000000d")


@pytest.mark.parametrize(
    ("value", "milli"), [(1500, 1500), ("1500m", 1500), ("1.5", 1500), ("4", 4000), (0, 0)]
)
def test_cpu_is_milli_cores_as_a_number_and_cores_as_text(value, milli):
    assert parse_cpu(value) == milli


@pytest.mark.parametrize("value", [1.5, "0.5m", -1, "-2", "4 cores", True, None, [1]])
def test_cpu_that_is_fractional_negative_or_no_amount_is_refused(value):
    with pytest.raises(UnitError):
        parse_cpu(value)


@pytest.mark.parametrize(
    ("value", "amount"),
    [(5, 5), ("5", 5), ("5B", 5), ("1KB", 1000), ("1KiB", 1024), ("1.5GiB", 3 * GIB // 2)],
)
def test_memory_is_bytes_or_text_with_a_unit(value, amount):
    assert parse_bytes(value) == amount


@pytest.mark.parametrize("value", [0.5, "0.5B", "-1GiB", "1gib", False])
def test_memory_that_is_fractional_negative_or_misspelt_is_refused(value):
    with pytest.raises(UnitError):
        parse_bytes(value)


@pytest.mark.parametrize("value", [1.0, "1", -1, True, LARGEST + 1])
def test_a_count_is_a_whole_number_in_range(value):
    with pytest.raises(UnitError):
        parse_count(value)


@given(st.integers(0, LARGEST))
@settings(derandomize=True, deadline=None)
def test_whole_microseconds_survive_text(micros):
    assert parse_duration(f"{micros}us") == micros


def test_amounts_are_shown_in_units_a_person_would_choose():
    assert format_duration(90_000_000) == "1.5 min"
    assert format_duration(1_000_000) == "1 s"
    assert format_duration(250) == "250 µs"
    assert format_bytes(3 * GIB // 2) == "1.5 GiB"
    assert format_amount("cpu", 500) == "0.5 cores"
    assert format_amount("gpu", 2) == "2 gpu"


def test_a_resource_vector_keeps_extras_by_name():
    vector = Resources.parse({"gpu": 2, "memory": "1GiB", "cpu": "500m"})
    assert vector == Resources(500, GIB, {"gpu": 2})
    assert vector.vector(("cpu", "memory", "bandwidth", "gpu")) == (500, GIB, 0, 2)


def test_a_bad_amount_names_its_dimension():
    with pytest.raises(UnitError) as caught:
        Resources.parse({"cpu": 1, "gpu": 0.5})
    assert caught.value.field == "gpu"


def test_a_negative_amount_cannot_be_made():
    with pytest.raises(ModelError):
        Resources(cpu=-1)


def test_a_vector_of_a_dimension_the_cell_lacks_is_refused():
    with pytest.raises(ModelError, match="'gpu'"):
        Resources(extras={"gpu": 1}).vector(("cpu", "memory"))


def test_a_cell_has_cpu_and_memory_first_and_then_extras_in_order_of_name():
    vectors = [Resources(extras={"gpu": 1}), Resources(extras={"bandwidth": 1})]
    assert dimensions_of(vectors) == ("cpu", "memory", "bandwidth", "gpu")


def test_a_cell_of_too_many_dimensions_is_refused():
    with pytest.raises(ModelError, match="9 resource dimensions"):
        dimensions_of([Resources(extras={f"x{index}": 1 for index in range(7)})])


@given(st.integers(0, MOST_JOBS), st.integers(0, MOST_TASKS - 1))
@settings(derandomize=True, deadline=None)
def test_a_task_number_gives_back_job_and_index(job, index):
    task = task_number(job, index)
    assert (job_of(task), index_of(task)) == (job, index)
    assert task < 2**63


def test_a_task_is_named_after_its_job():
    assert task_name("crawl", 3) == "crawl/3"


def test_an_error_is_one_line_with_its_place_expectation_and_hint():
    error = ArgosyError("bad", expected="good", hint="try").located(file="f", line=3, field="a.b")
    assert str(error) == "f:3: a.b: bad; expected good; try"
