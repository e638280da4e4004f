"""Files are read strictly, specifications are checked, and a computer says what it can enforce."""

import os
import sys

import msgspec
import pytest

from argosy.worlds.local import (
    CaptureLimits,
    CgroupParent,
    Isolation,
    Launcher,
    ProcessLimits,
    SupervisorError,
    TryEnd,
    TrySpec,
    detect_isolation,
)
from argosy.worlds.local.records import read_end, read_identity, read_start

END = """format=1
outcome=signalled
code=0
signal=9
cause=none
failure=none
errno=0
out_of_memory=yes
started_at=5
ended_at=9
ran=4
user_cpu=1
system_cpu=2
max_rss=4096
left_behind=0
output_bytes=10
output_first=3
output_lost=1
"""


def read(tmp_path, text):
    (tmp_path / "end").write_text(text)
    return read_end(str(tmp_path))


def test_an_end_is_read(tmp_path):
    end = read(tmp_path, END)
    assert (end.signal, end.out_of_memory, end.max_rss) == (9, True, 4096)
    assert msgspec.structs.asdict(end.streams["output"]) == {"written": 10, "first": 3, "lost": 1}
    assert end.sentence() == "killed by signal 9, out of memory"


@pytest.mark.parametrize(
    ("name", "reader"), [("supervisor", read_identity), ("started", read_start)]
)
def test_records_that_are_there_but_empty_are_cut_short(tmp_path, name, reader):
    assert reader(str(tmp_path)) is None
    (tmp_path / name).write_text("")
    with pytest.raises(SupervisorError, match="cut short"):
        reader(str(tmp_path))


MISTAKES = {
    "cut short": (END[:-1], "cut short"),
    "empty": ("", "cut short"),
    "another format": (END.replace("format=1", "format=2"), "expected format 1"),
    "missing key": (END.replace("ran=4\n", ""), "ran"),
    "unknown key": (END + "extra=1\n", "unknown key extra"),
    "twice": (END + "ran=4\n", "every key once"),
    "no number": (END.replace("ran=4", "ran=x"), "ran"),
    "unknown word": (END.replace("signalled", "vanished"), "vanished"),
    "unknown memory": (END.replace("=yes", "=perhaps"), "yes, no or unknown"),
    "no streams": (END[: END.index("output_")], "streams"),
    "half a stream": (END.replace("output_lost=1\n", ""), "lost"),
    "no line": (END + "nonsense\n", "line 19|:19:"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_damaged_end_is_refused(tmp_path, mistake):
    text, said = MISTAKES[mistake]
    with pytest.raises(SupervisorError, match=said) as caught:
        read(tmp_path, text)
    assert caught.value.file == str(tmp_path / "end")


def test_records_that_are_not_there_are_none(tmp_path):
    readers = (read_identity, read_start, read_end)
    assert [reader(str(tmp_path)) for reader in readers] == [None, None, None]


def test_every_failure_has_its_words(tmp_path):
    from argosy.worlds.local.records import FAILURES, StartFailure

    assert set(FAILURES) == set(StartFailure) - {StartFailure.NONE}
    end = msgspec.structs.replace(read(tmp_path, END), outcome="not-started")
    assert isinstance(end, TryEnd)


WRONG = {
    "command": {"command": ()},
    "name": {"name": "two\nlines"},
    "directory": {"directory": "here"},
    "input": {"input": "here"},
    "environment": {"environment": {"A=B": "c"}},
    "timeout": {"timeout": -1},
    "capture.segments": {"capture": CaptureLimits(segments=0)},
    "limits.memory_bytes": {"limits": ProcessLimits(memory_bytes=-5)},
    "limits.cpu_weight": {"limits": ProcessLimits(cpu_weight=20_000)},
    "limits.cpus": {"limits": ProcessLimits(cpus=(0, -1))},
}


@pytest.mark.parametrize("field", WRONG)
def test_a_specification_that_makes_no_sense_is_refused(field):
    with pytest.raises(SupervisorError) as caught:
        TrySpec(**{"name": "a", "command": ("true",), **WRONG[field]})
    assert caught.value.field == field
    assert caught.value.expected


def test_a_null_character_is_refused():
    with pytest.raises(SupervisorError, match="null character"):
        TrySpec(name="a", command=("echo", "a\0b")).encode()


def test_text_that_cannot_be_encoded_is_refused():
    with pytest.raises(SupervisorError, match="text that this system can encode"):
        TrySpec(name="a", command=("echo", "\ud800")).encode()


def test_the_directory_of_a_try_must_be_private(tmp_path):
    directory = tmp_path / "try"
    directory.mkdir(mode=0o755)
    directory.chmod(0o755)
    spec = TrySpec(name="a", command=("true",))
    with pytest.raises(SupervisorError, match=r"not private.*0700"):
        Launcher().launch(directory, spec)
    with pytest.raises(SupervisorError, match="No such file"):
        Launcher().launch(tmp_path / "nowhere", spec)
    assert os.listdir(directory) == []


def test_elsewhere_than_on_linux_there_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SupervisorError) as caught:
        Launcher()
    assert str(caught.value) == (
        "tasks cannot be run on darwin; expected Linux; simulations run everywhere"
    )
    said = "Tasks cannot be run on darwin; simulations can."
    assert detect_isolation().sentence() == said


def test_a_kernel_that_is_too_old_is_named(monkeypatch):
    monkeypatch.setattr("platform.release", lambda: "5.8.0-63-generic")
    with pytest.raises(SupervisorError) as caught:
        Launcher()
    assert str(caught.value) == (
        "tasks cannot be run on Linux 5.8.0-63-generic; expected Linux 5.9 or newer"
    )


def test_a_missing_supervisor_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(SupervisorError, match="argosy-supervisor: the task supervisor is missing"):
        Launcher()


def test_a_supervisor_that_cannot_be_started_leaves_nothing_behind(tmp_path):
    directory = tmp_path / "try"
    directory.mkdir(mode=0o700)
    program = tmp_path / "program"
    program.write_text("")
    with pytest.raises(SupervisorError, match="no supervisor can be started: Permission denied"):
        Launcher(program).launch(directory, TrySpec(name="a", command=("true",)))
    assert os.listdir(directory) == []


SENTENCES = {
    (): (
        "Memory is limited per process (RLIMIT_DATA); CPU and the number of processes are not "
        "limited; processes left behind are killed one by one."
    ),
    ("memory", "cpu", "pids"): (
        "Cgroups limit memory, CPU and the number of processes of each task; "
        "processes left behind are killed by cgroup."
    ),
    ("memory", "pids"): (
        "Cgroups limit memory and the number of processes of each task; CPU is not limited; "
        "processes left behind are killed by cgroup."
    ),
}


@pytest.mark.parametrize("controllers", SENTENCES)
def test_isolation_is_told_in_one_sentence(controllers):
    parent = "/sys/fs/cgroup" if controllers else ""
    isolation = Isolation(platform="linux", parent=parent, controllers=controllers)
    assert isolation.sentence() == SENTENCES[controllers]


def test_a_cgroup_that_cannot_be_made_is_refused(tmp_path):
    with pytest.raises(SupervisorError, match="expected a cgroup that can be made"):
        CgroupParent("below", tmp_path / "nowhere")


def test_what_this_computer_offers_is_found_by_reading_only():
    assert detect_isolation() == detect_isolation()
    assert detect_isolation().sentence().endswith(".")
