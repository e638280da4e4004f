"""Traces at the edges of what they may say: windows, bounds, and the words of each refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_alibaba import MIB, NODES, SECOND, pod, trace, write

from argosy.model.errors import ArgosyError, TraceError, UnknownName
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.units import LARGEST
from argosy.testing.builders import job
from argosy.workloads import alibaba2023, eagle, fanout
from argosy.workloads import trace as traces
from argosy.workloads.google_jobs import Notes
from argosy.workloads.seen_names import SeenNames
from argosy.workloads.synthetic import Estimates
from argosy.workloads.trace import read_trace, write_trace


def said(error: ArgosyError) -> tuple[str, str | None, str | None]:
    return error.problem, error.expected, error.hint


class TestAlibaba:
    @pytest.mark.parametrize(
        ("times", "expected"),
        [
            ((0, 0, 99), None),
            ((0, 0, 100), (0, 0)),
            ((0, 50, 101), (0, 1)),
            ((99, 100, 100), (0, 0)),
            ((100, 100, 130), (0, 30)),
            ((119, 125, 130), (19, 5)),
            ((120, 125, 130), None),
        ],
    )
    def test_a_window_takes_what_lives_within_it(
        self, tmp_path: Path, times: tuple[int, int, int], expected: tuple[int, int] | None
    ) -> None:
        directory, notes = trace(tmp_path, pod("p", times)), Notes()
        window: dict[str, Any] = {"start": 100 * SECOND, "span": 20 * SECOND}
        found = list(alibaba2023.jobs(directory, **window, notes=notes))
        told = [(each.submit // SECOND, each.truth[0].durations[0] // SECOND) for each in found]
        assert told == ([] if expected is None else [expected])
        assert (notes.jobs, notes.tasks) == (len(found), len(found))

    def test_pods_that_never_ran_count_only_within_the_window(self, tmp_path: Path) -> None:
        pods = [pod("a", (0, "", 50)), pod("b", (100, "", 150)), pod("c", (120, "", 150))]
        notes = Notes()
        directory = trace(tmp_path, *pods)
        window: dict[str, Any] = {"start": 100 * SECOND, "span": 20 * SECOND}
        assert not list(alibaba2023.jobs(directory, **window, notes=notes))
        assert notes.never_ran == 1

    def test_a_pod_without_a_model_or_with_spaces_around_it(self, tmp_path: Path) -> None:
        specs = ("", "T4", " T4 | ", "V100M32 | T4|T4")
        pods = [pod(f"p{at}", (0, 0, 1), spec=spec) for at, spec in enumerate(specs)]
        directory = trace(tmp_path, *pods)
        requires = [each.groups[0].requires for each in alibaba2023.jobs(directory)]
        either = {"gpu_model=T4|V100M32": "yes"}
        assert requires == [{}, {"gpu_model": "T4"}, {"gpu_model": "T4"}, either]
        found = [machine.attributes for machine in alibaba2023.machines(directory)]
        assert found == [
            {},
            {"gpu_model": "T4", **either},
            {"gpu_model": "V100M32", **either},
        ]
        assert alibaba2023.machines(directory, most=0) == ()

    def test_lists_have_names(self, tmp_path: Path) -> None:
        directory = trace(tmp_path, pod("p", (0, 0, 1)))
        write(directory / "openb_node_list_gpu_node.csv", NODES, "only,1000,1024,1,T4")
        [machine] = alibaba2023.machines(directory, nodes="gpu_node")
        assert machine.capacity == Resources(1_000, 1_024 * MIB, {"gpu": 1_000})
        with pytest.raises(TraceError) as caught:
            alibaba2023.machines(directory, nodes="gpu")
        names = "openb_node_list_all_node.csv, openb_node_list_gpu_node.csv"
        assert said(caught.value) == (
            "no file openb_node_list_gpu.csv",
            f"one of {names}",
            "did you mean 'openb_node_list_gpu_node.csv'?",
        )
        assert caught.value.file == str(directory)
        with pytest.raises(TraceError) as caught:
            list(alibaba2023.jobs(tmp_path / "nowhere"))
        assert said(caught.value) == (
            "no file openb_pod_list_default.csv",
            "a list of Alibaba's GPU trace of 2023",
            None,
        )

    @pytest.mark.parametrize(
        ("node", "problem", "expected"),
        [
            ("n,1000,1024,1025,T4", "1025 is out of range", "0 to 1024"),
            ("n,-1,1024,0,", "-1 is out of range", f"0 to {LARGEST}"),
            (f"n,1,{LARGEST // MIB + 1},0,", None, f"0 to {LARGEST // MIB}"),
            (",1,1,0,", "is missing", "a name"),
        ],
    )
    def test_amounts_of_a_node_have_bounds(
        self, tmp_path: Path, node: str, problem: str | None, expected: str
    ) -> None:
        fine = f"a,{LARGEST},{LARGEST // MIB},1024,T4"
        with pytest.raises(TraceError) as caught:
            alibaba2023.machines(trace(tmp_path, nodes=(fine, node)))
        assert problem in (None, caught.value.problem)
        assert (caught.value.expected, caught.value.line) == (expected, 3)

    @pytest.mark.parametrize(
        ("line", "field", "problem", "expected"),
        [
            (pod("p", (5, 5, 4)), "deletion_time", "before the pod's creation", "a later time"),
            (
                pod("p", (5, 4, 9)),
                "scheduled_time",
                "not between the pod's creation and deletion",
                "5 to 9",
            ),
            (
                pod("p", (5, 10, 9)),
                "scheduled_time",
                "not between the pod's creation and deletion",
                "5 to 9",
            ),
            (pod("p", (0, 0, 1), gpus="0,1"), "gpu_milli", "1 of 0 GPUs", "both 0, or neither"),
            (pod("p", (0, 0, 1), gpus="1,0"), "gpu_milli", "0 of 1 GPUs", "both 0, or neither"),
            (
                pod("p", (0, 0, 1), gpus="2,999"),
                "gpu_milli",
                "999 of each of 2 GPUs",
                "1000 with several GPUs",
            ),
            (
                pod("p", (LARGEST, LARGEST, LARGEST)),
                "creation_time",
                f"{LARGEST} is out of range",
                f"0 to {LARGEST // SECOND}",
            ),
        ],
    )
    def test_each_mistake_of_a_pod(
        self, tmp_path: Path, line: str, field: str, problem: str, expected: str
    ) -> None:
        with pytest.raises(TraceError) as caught:
            list(alibaba2023.jobs(trace(tmp_path, line)))
        assert (caught.value.field, *said(caught.value)) == (field, problem, expected, None)

    def test_a_pod_whose_name_is_no_id_names_its_line(self, tmp_path: Path) -> None:
        with pytest.raises(ArgosyError) as caught:
            list(alibaba2023.jobs(trace(tmp_path, pod("a/b", (0, 0, 1)))))
        assert (caught.value.line, caught.value.problem) == (2, "job id 'a/b'")

    def test_pods_created_at_once_keep_their_order(self, tmp_path: Path) -> None:
        directory = trace(tmp_path, *(pod(name, (3, 3, 4)) for name in "bac"))
        assert [each.id for each in alibaba2023.jobs(directory)] == ["b", "a", "c"]


class TestEagle:
    def jobs(self, tmp_path: Path, text: str, **options: Any) -> list[Any]:
        path = tmp_path / "jobs.tr"
        path.write_text(text)
        return list(eagle.read(path, Random(1), **options))

    def test_times_are_rounded_and_no_task_takes_nothing(self, tmp_path: Path) -> None:
        lines = "0.0000004 2 0 0 0.0000016\n0.0000005 1 0.0000014 1e-6\n"
        first, second = self.jobs(tmp_path, lines)
        assert (first.submit, second.submit) == (0, 1)
        assert (first.groups[0].estimate, first.truth[0].durations) == (1, (1, 2))
        assert (second.groups[0].estimate, second.truth[0].durations) == (1, (1,))

    def test_jobs_are_numbered_by_their_lines_and_named_in_lists(self, tmp_path: Path) -> None:
        plain = self.jobs(tmp_path, "0 1 1 1\n\n  \n5 1 1 1\n5 1 2 2\n", kind="short")
        assert [each.id for each in plain] == ["job-1", "job-4", "job-5"]
        assert {each.kind for each in plain} == {"short"}
        heading = " job_id, submit_s, num_tasks, mean_task_s \n"
        named = self.jobs(tmp_path, heading + " a , 0 , 2 , 3 \n", request=Resources(1, 2))
        assert [(each.id, each.tasks, each.groups[0].estimate) for each in named] == [
            ("a", 2, 3 * SECOND)
        ]
        assert named[0].groups[0].request == Resources(1, 2)

    @pytest.mark.parametrize(("most", "count"), [(0, 0), (1, 1), (2, 2), (3, 2), (None, 2)])
    def test_so_many_jobs_are_read(self, tmp_path: Path, most: int | None, count: int) -> None:
        assert len(self.jobs(tmp_path, "0 1 1 1\n\n1 1 1 1\n", most=most)) == count

    def test_a_speed_up_shortens_the_time_between_jobs_alone(self, tmp_path: Path) -> None:
        [slow] = self.jobs(tmp_path, "9 1 4 5\n", speedup=0.5)
        [fast] = self.jobs(tmp_path, "9 1 4 5\n", speedup=4)
        assert (slow.submit, fast.submit) == (18 * SECOND, 2_250_000)
        assert fast.truth == slow.truth
        assert fast.job == slow.job

    @pytest.mark.parametrize(
        ("text", "line", "field", "problem", "expected"),
        [
            ("0 1\n", 1, None, "2 fields", "submit, tasks, mean, ..."),
            ("soon 1 1 1\n", 1, "submit", "'soon'", "a time in seconds, 0 or more"),
            ("-0.1 1 1 1\n", 1, "submit", "'-0.1'", "a time in seconds, 0 or more"),
            ("inf 1 1 1\n", 1, "submit", "'inf'", "a time in seconds, 0 or more"),
            ("0 1 1e10 1\n", 1, "mean", "'1e10'", "a time in seconds, 0 or more"),
            ("0 1 1 -1\n", 1, "durations", "'-1'", "a time in seconds, 0 or more"),
            ("0 0 1\n", 1, "tasks", "'0'", "1 to 16,777,216 tasks"),
            ("0 1.0 1 1\n", 1, "tasks", "'1.0'", "1 to 16,777,216 tasks"),
            ("0 16777217 1 1\n", 1, "tasks", "'16777217'", "1 to 16,777,216 tasks"),
            ("0 2 1 1\n", 1, "durations", "1 durations for 2 tasks", "one for each task"),
            ("0 1 1 1 1\n", 1, "durations", "2 durations for 1 tasks", "one for each task"),
            ("1 1 1 1\n\n0.9 1 1 1\n", 3, "submit", "before the job above", "jobs in order"),
            (f"{eagle.HEADING}\na,0,1,1,1\n", 2, None, "5 fields", eagle.HEADING),
            (f"{eagle.HEADING}\na,0,1\n", 2, None, "2 fields", "submit, tasks, mean, ..."),
        ],
    )
    def test_each_mistake_has_its_place_and_words(
        self, tmp_path: Path, text: str, line: int, field: str | None, problem: str, expected: str
    ) -> None:
        with pytest.raises(TraceError) as caught:
            self.jobs(tmp_path, text)
        error = caught.value
        assert (error.line, error.field, *said(error)) == (line, field, problem, expected, None)

    def test_what_is_no_trace_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(TraceError) as caught:
            list(eagle.read(tmp_path / "none", Random(1)))
        assert said(caught.value)[0].startswith("cannot be read: No such file")
        (tmp_path / "x").write_bytes(b"0 1 1 1\n\xff\n")
        with pytest.raises(TraceError, match="not plain text; expected a job trace"):
            list(eagle.read(tmp_path / "x", Random(1)))

    def test_a_guess_is_at_least_a_microsecond_and_never_too_long(self) -> None:
        class Middle:
            def uniform(self) -> float:
                return 0.5

            normal = uniform

        middle: Any = Middle()
        wrong = eagle.Draws(middle, middle, Estimates(low=0.5, high=2.5))
        assert [wrong.estimate(mean) for mean in (0, 1, 10, LARGEST)] == [1, 1, 15, LARGEST]
        assert eagle.Draws(middle, middle, None).estimate(7) == 7
        # All alike, so that each is the mean.
        assert wrong.durations(10, 3) == (10, 10, 10)


class TestOwnTraces:
    def test_jobs_at_the_same_time_are_in_order(self, tmp_path: Path) -> None:
        path = tmp_path / "t.jsonl"
        jobs = [job("a", submit=2), job("b", submit=2), job("c", submit=3)]
        write_trace(path, jobs)
        assert list(read_trace(path)) == jobs
        write_trace(path, [jobs[2], jobs[0]])
        with pytest.raises(TraceError) as caught:
            list(read_trace(path))
        assert said(caught.value) == (
            "submitted at 2000000 µs, but follows a job of 3000000 µs",
            "jobs in order of submission",
            "sort the lines by submit",
        )
        assert (caught.value.line, caught.value.field) == (2, "submit")

    def test_an_id_that_only_seems_to_be_there_is_looked_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(SeenNames, "add", lambda self, name: False)
        path = tmp_path / "t.jsonl"
        write_trace(path, [job("a"), job("b"), job("c")])
        path.write_bytes(b"\n" + path.read_bytes())
        assert [each.id for each in read_trace(path)] == ["a", "b", "c"]
        path.write_bytes(path.read_bytes() + path.read_bytes().splitlines()[2] + b"\n")
        with pytest.raises(TraceError) as caught:
            list(read_trace(path))
        assert said(caught.value) == ("job 'b' again", "each id once", None)
        assert (caught.value.line, caught.value.field) == (5, "id")

    def test_every_job_is_checked_with_whether_it_has_groups(self, tmp_path: Path) -> None:
        path, seen = tmp_path / "t.jsonl", list[tuple[str, bool]]()
        one = '{"id": "a", "request": {"cpu": 1}}\n'
        path.write_text(one + '{"id": "b", "groups": [{"request": {"cpu": 1}}]}\n')
        list(read_trace(path, check=lambda made, grouped: seen.append((made.id, grouped))))
        assert seen == [("a", False), ("b", True)]

    def test_a_speed_up_keeps_everything_else(self, tmp_path: Path) -> None:
        path = tmp_path / "t.jsonl"
        write_trace(path, [job("a", submit=9, seconds=4)])
        [fast] = read_trace(path, speedup=3.0)
        [same] = read_trace(path)
        assert (fast.submit, same.submit) == (3 * SECOND, 9 * SECOND)
        assert (fast.job, fast.truth) == (same.job, same.truth)

    @pytest.mark.parametrize(
        ("line", "problem", "expected"),
        [
            ('{"id": "a"', "not JSON: Expecting ',' delimiter at column 11", None),
            ('{"a": {"b": 1, "c": 2, "b": 3}}', "key 'b' twice in one object", None),
            ('{"a": -Infinity}', "not JSON: -Infinity is not a number", None),
            ("[1]", "an array is not a table", "a table"),
        ],
    )
    def test_a_line_that_is_no_job(
        self, tmp_path: Path, line: str, problem: str, expected: str | None
    ) -> None:
        path = tmp_path / "t.jsonl"
        path.write_text(f"{line}\n")
        with pytest.raises(TraceError) as caught:
            list(read_trace(path))
        assert said(caught.value) == (problem, expected or "one JSON object per line", None)

    def test_a_file_that_cannot_be_read_or_written_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(TraceError) as caught:
            list(read_trace(tmp_path))
        assert caught.value.file == str(tmp_path)
        assert caught.value.expected == "a trace of JSON lines"
        (tmp_path / "t").mkdir()
        with pytest.raises(TraceError, match="cannot be written: "):
            write_trace(tmp_path / "t", [job("a")])
        assert [each.name for each in tmp_path.iterdir()] == ["t"]

    def test_no_time_goes_beyond_what_times_may_be(self) -> None:
        assert traces._sooner(job("a", submit=1), 1e-12).submit == LARGEST


class TestFanOut:
    def test_the_longest_jobs_have_a_fan_out_of_their_own(self) -> None:
        spec = fanout.SHAPES["yahoo"]
        limits = [least for least, _ in spec.fanouts]

        class Recording:
            def __init__(self) -> None:
                self.random = Random(1)

            def below(self, bound: int) -> int:
                return 0

        random: Any = Recording()
        draw = fanout._fanouts(spec, random)
        smallest = [curve.steps[0] for _, curve in spec.fanouts]
        assert len(set(smallest)) > 1
        for at, limit in enumerate(limits[1:], 1):
            assert (draw(limit), draw(limit + 1)) == (smallest[at - 1], smallest[at])
        assert draw(0) == draw(1) == smallest[0]

    def test_jobs_beyond_any_size_are_refused(self) -> None:
        spec = fanout.shape("yahoo")
        with pytest.raises(ArgosyError) as caught:
            list(fanout.generate(spec, 50, Random(1), scale=1e9))
        assert caught.value.field == "scale"
        assert caught.value.expected == "at most 16,777,216"
        with pytest.raises(UnknownName, match="unknown workload 'yaho'"):
            fanout.shape("yaho")

    def test_ids_have_as_many_digits_as_the_count(self) -> None:
        spec = fanout.shape("yahoo")
        few = list(fanout.generate(spec, 9, Random(1), scale=0.001))
        assert [each.id for each in few] == [f"job-{at}" for at in range(9)]
        assert [each.id for each in fanout.generate(spec, 10, Random(1), scale=0.001)][-1] == (
            "job-09"
        )
        assert {each.tasks for each in few} == {1}

    def test_gaps_are_between_their_bounds_and_the_first_job_has_one(self) -> None:
        spec = fanout.shape("yahoo")

        class Bounds:
            def __init__(self, at: int) -> None:
                self.at = at

            def below(self, bound: int) -> int:
                assert bound == 560_001
                return self.at

        for at, gap in ((0, 7_200_000), (560_000, 7_760_000)):
            random: Any = Bounds(at)
            gaps = fanout._Gaps(spec, random)
            assert [gaps.after(tasks) for tasks in (1, 50)] == [gap, 2 * gap]

    def test_endless_tasks_stay_endless_one_by_one(self) -> None:
        made = [job("a", 2, seconds=None), job("b", 1, seconds=3)]
        found = list(fanout.one_by_one(made, "A", Random(1)))
        assert [(each.id, each.job.owner, each.truth[0].durations) for each in found] == [
            ("a.0", "a", ()),
            ("a.1", "a", ()),
            ("b.0", "b", (3 * SECOND,)),
        ]
