"""How tables become values, and what is said of those that do not: words, places and hints."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from argosy.model.errors import ModelError, ScenarioError
from argosy.model.jobs import Execution
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry, Latency
from argosy.model.units import Micros, Time
from argosy.workloads.job_tables import GroupKeys, check_labels, read_job
from argosy.workloads.live_jobs import IN_DOCUMENTS, live_job_table, read_live_job
from argosy.workloads.tables import CommandLine, Converter, Misfit, misfit, path_text

SECOND = 1_000_000
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
READ = Converter(ScenarioError)
Wait = Annotated[int, Micros, msgspec.Meta(ge=1_000_000, le=60_000_000)]
Even = Annotated[int, msgspec.Meta(multiple_of=2, description="an even number")]


class Inner(msgspec.Struct, frozen=True):
    size: int
    share: float = 0.5


class Outer(msgspec.Struct, frozen=True, kw_only=True):
    inner: Inner
    several: tuple[Inner, ...] = ()
    named: dict[str, Inner] = {}
    texts: str | tuple[str, ...] = ""
    maybe: Inner | None = None
    time: Time = 0


def refusal(value: Any, kind: Any) -> tuple[str, str, str | None, str | None]:
    with pytest.raises(Misfit) as caught:
        READ.convert(value, kind, ("top", 2))
    error = caught.value.error
    assert isinstance(error, ScenarioError | ModelError) or error.code == "unit"
    return path_text(caught.value.path), error.problem, error.expected, error.hint


class TestConverter:
    @pytest.mark.parametrize(
        ("value", "kind", "expected"),
        [
            (3, int, 3),
            (3, float, 3.0),
            ("x", str, "x"),
            (True, bool, True),
            ("b", Literal["a", "b"], "b"),
            ({"a": [1]}, Any, {"a": [1]}),
            ("2s", Wait, 2 * SECOND),
            ("1s", Wait, SECOND),
            ("60s", Wait, 60 * SECOND),
            ("sort -u 'a b'", CommandLine, ("sort", "-u", "a b")),
            (["sort", "-u"], CommandLine, ("sort", "-u")),
            ({"cpu": "1", "gpu": 2}, Resources, Resources(1_000, 0, {"gpu": 2})),
            ([1, 2], tuple[int, ...], (1, 2)),
            ((), tuple[int, ...], ()),
            ({"a": 1}, dict[str, int], {"a": 1}),
            (None, Any, None),
        ],
    )
    def test_plain_values(self, value: Any, kind: Any, expected: Any) -> None:
        read = READ.convert(value, kind)
        assert read == expected
        assert type(read) is type(expected)

    def test_structs_are_walked(self) -> None:
        table = {
            "inner": {"size": 1},
            "several": [{"size": 2, "share": 1}],
            "named": {"x": {"size": 3}},
            "texts": ["a", "b"],
            "maybe": {"size": 4},
            "time": "1ms",
        }
        assert READ.convert(table, Outer) == Outer(
            inner=Inner(1),
            several=(Inner(2, 1.0),),
            named={"x": Inner(3)},
            texts=("a", "b"),
            maybe=Inner(4),
            time=1_000,
        )
        assert READ.convert({"inner": {"size": 1}, "texts": "a"}, Outer).texts == "a"

    @pytest.mark.parametrize(
        ("value", "kind", "place", "problem", "expected", "hint"),
        [
            ("x", int, "", "'x' does not fit", "a whole number", None),
            (True, int, "", "true does not fit", "a whole number", None),
            ("x", float, "", "'x' does not fit", "a number", None),
            (5, str, "", "5 does not fit", "text", None),
            (1, bool, "", "1 does not fit", "true or false", None),
            (3, Even, "", "3 does not fit", "an even number", None),
            ("c", Literal["aa", "bb"], "", "unknown value 'c'", "one of aa, bb", None),
            (
                "ab",
                Literal["aab", "xy"],
                "",
                "unknown value 'ab'",
                "one of aab, xy",
                "did you mean 'aab'?",
            ),
            (5, dict[str, int], "", "5 is not a table", "a table", None),
            ({"a": "x"}, dict[str, int], ".a", "'x' does not fit", "a whole number", None),
            (5, tuple[int, ...], "", "5 is not an array", "an array", None),
            ([1, "x"], tuple[int, ...], "[1]", "'x' does not fit", "a whole number", None),
            ("0.5s", Wait, "", "'0.5s' is too short", "at least 1 s", None),
            ("61s", Wait, "", "'61s' is too long", "at most 1 min", None),
            (
                "a 'b",
                CommandLine,
                "",
                '"a \'b": a quotation mark is not closed',
                "text that a shell could split, or a list of words",
                None,
            ),
            (
                5,
                CommandLine,
                "",
                "5 is not a command",
                'text such as "sort -u data.txt", or a list of words',
                None,
            ),
            (["a", 5], CommandLine, "[1]", "5 does not fit", "text", None),
            (
                5,
                Resources,
                "",
                "5 is not a resource vector",
                'a table such as {cpu = 500, memory = "2GiB"}',
                None,
            ),
            ([], Inner, "", "an array is not a table", "a table", None),
            ({}, Inner, "", "missing key 'size'", "size = 1", None),
            (
                {"size": 1, "shar": 2},
                Inner,
                ".shar",
                "unknown key 'shar'",
                "one of share, size",
                "did you mean 'share'?",
            ),
            ({}, Outer, "", "missing key 'inner'", "inner = ...", None),
            (
                {"inner": {"size": 1}, "texts": 5},
                Outer,
                ".texts",
                "5 does not fit",
                "text, or an array of texts",
                None,
            ),
            (
                {"inner": {"size": 1}, "texts": [5]},
                Outer,
                ".texts[0]",
                "5 does not fit",
                "text",
                None,
            ),
            (
                {"inner": {"size": 1}, "named": {"x": {"size": "y"}}},
                Outer,
                ".named.x.size",
                "'y' does not fit",
                "a whole number",
                None,
            ),
            (5, Latency, "", "5 is not a table", 'a table with model = "..."', None),
            (
                {"delay": "1s"},
                Latency,
                "",
                "missing key 'model'",
                "model = one of constant, uniform, per-pair",
                None,
            ),
            (
                {"model": 5},
                Latency,
                ".model",
                "5 is not text",
                "one of constant, per-pair, uniform",
                None,
            ),
            (
                {"model": "unifrm"},
                Latency,
                ".model",
                "unknown model 'unifrm'",
                "one of constant, per-pair, uniform",
                "did you mean 'uniform'?",
            ),
            (
                {"model": "uniform", "low": "1s"},
                Latency,
                "",
                "missing key 'high'",
                'high = "10s"',
                None,
            ),
            (
                {"model": "uniform", "low": 1, "high": "1s"},
                Latency,
                ".low",
                "1 has no unit",
                'a duration with a unit, such as "250ms", "90s", "10min", "2h" or "1d"',
                None,
            ),
            ({"engine": "x"}, FleetEntry, "", "missing key 'name'", 'name = "..."', None),
        ],
    )
    def test_what_does_not_fit(
        self, value: Any, kind: Any, place: str, problem: str, expected: str, hint: str | None
    ) -> None:
        assert refusal(value, kind) == (f"top[2]{place}", problem, expected, hint)

    def test_whole_microseconds_are_for_those_who_ask_for_them(self) -> None:
        bare = Converter(ScenarioError, bare_micros=True)
        assert [bare.convert(value, Micros) for value in (5, "5us", 0)] == [5, 5, 0]
        for wrong, problem in ((True, "true is not a duration"), (1.0, "1.0 has no unit")):
            with pytest.raises(Misfit) as caught:
                bare.convert(wrong, Micros)
            assert caught.value.error.problem == problem
        with pytest.raises(Misfit) as caught:
            bare.convert(-1, Micros)
        assert caught.value.error.expected == "a time in microseconds of zero or more"
        with pytest.raises(Misfit, match="has no unit"):
            READ.convert(5, Micros)

    def test_a_place_is_written_as_in_the_file(self) -> None:
        for path, text in (
            ((), ""),
            (("a",), "a"),
            (("a", 0, "b", 1, 2), "a[0].b[1][2]"),
            ((0, "a"), "[0].a"),
        ):
            assert path_text(path) == text
        error = ModelError("bad", field="x")
        found = misfit(error, ("a", 1))
        assert (path_text(found.path), error.field) == ("a[1].x", None)
        assert misfit(ModelError("bad"), ("a",)).path == ("a",)


class TestJobTables:
    def problem(self, table: Any, **live: Any) -> tuple[str, str, str | None]:
        def read() -> object:
            if live:
                return read_live_job(table, default_id="j", path=("jobs", 4))
            return read_job(IN_DOCUMENTS, table, ("jobs", 4))

        with pytest.raises(Misfit) as caught:
            read()
        error = caught.value.error
        return path_text(caught.value.path), error.problem, error.expected

    @pytest.mark.parametrize(
        ("table", "place", "problem", "expected"),
        [
            (
                {"id": "a"},
                "",
                "missing key 'request'",
                'request = {cpu = 500, memory = "2GiB"}, or groups',
            ),
            (
                {"id": "a", "groups": [], "count": 2},
                ".count",
                "both 'count' and groups",
                "count in each group",
            ),
            (
                {"id": "a", "groups": [], "duration": 2},
                ".duration",
                "both 'duration' and groups",
                "duration in each group",
            ),
            ({"id": "a", "groups": []}, ".groups", "job a has no tasks", "at least one task group"),
            (
                {"id": "a", "request": {}, "duration": 1, "durations": [1]},
                ".durations",
                "both duration and durations",
                "one of them or neither",
            ),
            (
                {"id": "a", "request": {}, "durations": [1, 2]},
                ".durations",
                "2 durations for 1 tasks",
                "one per task, or `duration` for all",
            ),
            (
                {"id": "a", "groups": [{"request": {}}, {"request": {}, "count": 0}]},
                ".groups[1].count",
                "0 tasks in a group",
                "1 to 16,777,216",
            ),
            (
                {
                    "id": "a",
                    "groups": [
                        {"request": {}},
                        {"request": {}, "phases": [{"activities": 1, "duration": 1}]},
                    ],
                },
                ".groups",
                "job a has phases and several groups",
                "one group of workers",
            ),
            (
                {"id": "a", "request": {}, "phases": [{"activities": 0, "duration": 1}]},
                ".phases[0].activities",
                "0 activities in a phase",
                "1 to 16,777,216",
            ),
            (
                {"id": "a", "request": {}, "requires": {"a": "b\n"}},
                ".requires",
                "attribute 'b\\n'",
                "printable characters",
            ),
            (
                {"id": "a", "request": {}, "demands": {"a\n": "b"}},
                ".demands",
                "attribute 'a\\n'",
                "printable characters",
            ),
            (
                {"id": "a", "request": {}, "tags": ["-a"]},
                ".tags",
                "tag '-a' is not valid in constraints",
                "letters, digits and _ . : / -, starting with a letter, digit or _, and not a keyword",
            ),
        ],
    )
    def test_mistakes_of_simulated_jobs(
        self, table: Any, place: str, problem: str, expected: str
    ) -> None:
        assert self.problem(table) == (f"jobs[4]{place}", problem, expected)

    @pytest.mark.parametrize(
        ("table", "place", "problem", "expected"),
        [
            ({"request": {}}, "", "nothing to execute", 'command = "sort -u data.txt"'),
            (
                {"request": {}, "command": []},
                "",
                "nothing to execute",
                'command = "sort -u data.txt"',
            ),
            (
                {"groups": [{"request": {}, "command": "a"}, {"request": {}}]},
                ".groups[1]",
                "nothing to execute",
                'command = "sort -u data.txt"',
            ),
            (
                {"request": {}, "command": "a", "image": "b"},
                ".image",
                "container images cannot be run on this computer",
                "a command",
            ),
            (
                {"request": {}, "command": "a", "submit": 5},
                ".submit",
                "submit is only for simulated jobs: it starts now",
                "nothing",
            ),
            (
                {"request": {}, "command": "a", "phases": 5},
                ".phases",
                "phases is only for simulated jobs: a live task ends when its process does",
                "estimate for what schedulers may expect, or nothing",
            ),
            (
                {"groups": [{"request": {}, "command": "a", "duration": 5}]},
                ".groups[0].duration",
                "duration is only for simulated jobs: a live task ends when its process does",
                "estimate for what schedulers may expect, or nothing",
            ),
            (
                {"groups": [], "endless": True},
                ".endless",
                "both 'endless' and groups",
                "endless in each group",
            ),
        ],
    )
    def test_mistakes_of_live_jobs(
        self, table: Any, place: str, problem: str, expected: str
    ) -> None:
        assert self.problem(table, live=True) == (f"jobs[4]{place}", problem, expected)

    def test_what_a_group_executes_is_all_that_is_said_of_it(self) -> None:
        assert GroupKeys(request=Resources(1)).execution() is None
        assert GroupKeys(request=Resources(1), timeout=5, grace=6).execution() is None
        full = GroupKeys(
            request=Resources(1), command=("a",), environment={"A": "b"}, working_directory="/w",
            stdin="in", image="i", timeout=1, grace=2, output_limit=3,
        )  # fmt: skip
        assert full.execution() == Execution(
            command=("a",), environment={"A": "b"}, working_directory="/w", stdin="in", image="i",
            timeout=1, grace=2, output_limit=3,
        )  # fmt: skip
        only: list[dict[str, Any]] = [{"command": ("a",)}, {"image": "i"}]
        for given in only:
            found = GroupKeys(request=Resources(1), **given).execution()
            assert found == Execution(**given)

    def test_labels_are_checked_whatever_they_are_for(self) -> None:
        check_labels(("a", "b:c"), {"a": ""})
        for tags, requires in ((("and",), {}), (("",), {}), ((), {"a\t": "b"}), ((), {"a": "\n"})):
            with pytest.raises(ModelError):
                check_labels(tags, requires)

    @pytest.mark.parametrize(
        ("said", "written"),
        [
            ({}, {}),
            ({"endless": True}, {"endless": True}),
            ({"estimate": 5}, {"estimate": 5}),
            ({"kind": "service"}, {}),
            ({"kind": "service", "endless": False}, {"endless": False}),
            ({"kind": "service", "estimate": 5}, {"estimate": 5}),
        ],
    )
    def test_a_live_job_is_written_without_what_goes_without_saying(
        self, said: dict[str, Any], written: dict[str, Any]
    ) -> None:
        made = read_live_job({"request": {"cpu": 5}, "command": "a", **said}, default_id="j")
        assert live_job_table(made) == {
            "id": "j",
            "kind": said.get("kind", "batch"),
            "count": 1,
            "request": {"cpu": 5},
            **written,
            "command": ("a",),
        }
