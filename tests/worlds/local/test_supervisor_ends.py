"""How commands end, or why they do not start."""

import errno
import fcntl
import os
import signal
import time

import pytest

from argosy.worlds.local import (
    EndCause,
    Enforcement,
    Launcher,
    ProcessLimits,
    StartFailure,
    SupervisedTry,
    TryOutcome,
    TrySpec,
    TryState,
    read_output,
)
from argosy.worlds.local.launcher import LaunchHelper
from argosy.worlds.local.processes import stat_of

SECOND = 1_000_000


def output_of(each, stream="stdout"):
    return read_output(each.directory, stream).data


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_the_exit_code_is_recorded(bench, code):
    end = bench.ended(bench.shell(f"exit {code}"))
    assert (end.outcome, end.code, end.signal) == (TryOutcome.EXITED, code, 0)
    assert end.cause is EndCause.NONE
    assert end.sentence() == f"exited with code {code}"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_the_signal_that_killed_it_is_recorded(bench, number):
    end = bench.ended(bench.shell(f"kill -{number:d} $$"))
    assert (end.outcome, end.code, end.signal) == (TryOutcome.SIGNALLED, 0, number)
    assert end.cause is EndCause.NONE


def test_times_and_usage_are_recorded(bench):
    before = time.time_ns() // 1_000
    burn = "import time\nwhile time.process_time() < 0.1: pass\nbytearray(50 << 20)"
    end = bench.ended(bench.python(burn))
    after = time.time_ns() // 1_000
    assert before <= end.started_at <= end.ended_at <= after
    assert 100_000 <= end.user_cpu + end.system_cpu <= 2 * end.ran
    assert end.max_rss > 50 << 20


FAILURES = {
    "not found": (("no-such-command-here",), {}, StartFailure.NOT_FOUND, errno.ENOENT),
    "no such file": (("/no/such/file",), {}, StartFailure.NOT_FOUND, errno.ENOENT),
    "a directory": (("/usr",), {}, StartFailure.NOT_EXECUTABLE, errno.EACCES),
    "bad directory": (
        ("true",),
        {"directory": "/no/such"},
        StartFailure.BAD_DIRECTORY,
        errno.ENOENT,
    ),
    "bad input": (("cat",), {"input": "/no/such"}, StartFailure.BAD_INPUT, errno.ENOENT),
    "bad cgroup": (("true",), {"cgroup": "/no/such/group"}, StartFailure.BAD_CGROUP, errno.ENOENT),
    "bad limits": (
        ("true",),
        {"limits": ProcessLimits(cpus=(1023,))},
        StartFailure.BAD_LIMITS,
        errno.EINVAL,
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_command_that_cannot_start_says_why(bench, case):
    command, fields, failure, number = FAILURES[case]
    each = bench.launch(*command, **fields)
    end = bench.ended(each)
    assert (end.outcome, end.failure, end.errno) == (TryOutcome.NOT_STARTED, failure, number)
    assert (end.started_at, end.ran, end.user_cpu) == (0, 0, 0)
    assert end.sentence().startswith("could not start: ")
    assert os.strerror(number) in end.sentence()
    assert not os.path.exists(f"{each.directory}/started")


def test_a_file_without_permission_to_execute_is_not_executable(bench, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o600)
    assert bench.ended(bench.launch(str(script))).failure is StartFailure.NOT_EXECUTABLE


def test_the_environment_is_exactly_what_was_given(bench, monkeypatch):
    monkeypatch.setenv("OF_THE_SERVER", "secret")
    given = {"PATH": os.environ["PATH"], "EMPTY": "", "LINES": "a\nb=c"}
    each = bench.launch("env", "-0", environment=given)
    bench.ended(each)
    entries = output_of(each).decode().split("\0")[:-1]
    assert sorted(entries) == sorted(f"{name}={value}" for name, value in given.items())


def test_arguments_arrive_as_given(bench):
    arguments = ("", "two words", "line\nbreak", "é", "--")
    script = "import sys; print(ascii(sys.argv[1:]))"
    each = bench.python(script, *arguments)
    bench.ended(each)
    assert output_of(each).decode().strip() == ascii(list(arguments))


def test_the_working_directory_input_and_umask_are_the_specified_ones(bench, tmp_path):
    text = tmp_path / "input"
    text.write_text("from a file\n")
    script = "pwd; umask; cat"
    each = bench.shell(script, directory="/usr", input=str(text), umask=0o027)
    bench.ended(each)
    assert output_of(each) == b"/usr\n0027\nfrom a file\n"


def test_without_an_input_the_command_reads_nothing(bench):
    each = bench.launch("cat")
    assert bench.ended(each).code == 0
    assert output_of(each) == b""


def test_the_command_has_a_session_of_its_own_and_no_descriptor_but_three(bench):
    held, kept_open = os.pipe()
    os.set_inheritable(held, True)
    try:
        script = (
            "import os; "
            "print(os.getsid(0) == os.getpgid(0) == os.getpid(), sorted(os.listdir('/proc/self/fd')))"
        )
        each = bench.running(bench.python(script))
        bench.ended(each)
    finally:
        os.close(held)
        os.close(kept_open)
    # The fourth is the listing's own.
    assert output_of(each) == b"True ['0', '1', '2', '3']\n"


def test_the_supervisor_keeps_no_descriptor_of_the_server(bench, tmp_path):
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(lock, True)
    each = bench.running(bench.launch("sleep", "60"))
    os.close(lock)
    pid = each.identity().pid
    links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    assert str(tmp_path / "lock") not in links
    assert links.count("/dev/null") == 3
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/cwd") == "/"


def test_signals_are_neither_blocked_nor_ignored_in_the_command(bench):
    each = bench.launch("grep", "-E", "Sig(Blk|Ign)", "/proc/self/status")
    bench.ended(each)
    assert {line.split()[1] for line in output_of(each).splitlines()} == {b"0" * 16}


def test_a_command_that_runs_too_long_is_stopped(bench):
    end = bench.ended(bench.launch("sleep", "60", timeout=SECOND // 20))
    assert end.cause is EndCause.TIMEOUT
    assert (end.outcome, end.signal) == (TryOutcome.SIGNALLED, signal.SIGTERM)
    assert SECOND // 20 <= end.ran < 30 * SECOND
    assert end.sentence() == "killed by signal 15 after its time was up"


def test_a_stop_lets_the_command_finish_in_its_own_way(bench):
    script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    each = bench.running(bench.shell(script))
    while output_of(each) != b"ready\n":
        assert not each.status().state.is_over
    assert each.stop()
    end = bench.ended(each)
    assert (end.outcome, end.code, end.cause) == (TryOutcome.EXITED, 7, EndCause.STOP)
    assert output_of(each) == b"ready\nbye\n"


IGNORES = (
    "import signal; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
)


def test_a_command_that_ignores_the_stop_is_killed_after_the_grace(bench):
    each = bench.running(bench.python(IGNORES, grace=SECOND // 10))
    while output_of(each) != b"deaf\n":
        assert not each.status().state.is_over
    each.stop()
    end = bench.ended(each)
    assert (end.signal, end.cause) == (signal.SIGKILL, EndCause.STOP)
    assert end.ran >= SECOND // 10


def test_a_kill_waits_for_no_grace(bench):
    each = bench.running(bench.python(IGNORES, grace=600 * SECOND))
    assert each.kill()
    end = bench.ended(each)
    assert (end.signal, end.cause) == (signal.SIGKILL, EndCause.KILL)


def test_a_kill_cuts_the_grace_of_a_stop_short(bench):
    each = bench.running(bench.python(IGNORES, grace=600 * SECOND))
    while output_of(each) != b"deaf\n":
        assert not each.status().state.is_over
    each.stop()
    each.kill()
    assert bench.ended(each).signal == signal.SIGKILL


def test_the_first_cause_counts(bench):
    script = (
        "import signal; signal.signal(15, lambda *_: print('asked', flush=True))\n"
        "while True: signal.pause()"
    )
    each = bench.running(bench.python(script, timeout=SECOND // 2, grace=600 * SECOND))
    while output_of(each) != b"asked\n":
        assert not each.status().state.is_over
    each.kill()
    end = bench.ended(each)
    assert (end.signal, end.cause) == (signal.SIGKILL, EndCause.TIMEOUT)


def test_a_stopped_process_can_be_stopped(bench):
    each = bench.running(bench.shell("kill -STOP $$", grace=600 * SECOND))
    while stat_of(each.status().start.pid).state != "T":
        assert not each.status().state.is_over
    each.stop()
    assert bench.ended(each).signal == signal.SIGTERM


def test_a_stop_before_the_supervisor_begins_keeps_the_command_from_running(bench, tmp_path):
    ran = tmp_path / "ran"
    each = bench.launch("touch", str(ran))
    each.stop()
    bench.reap_all()
    status = each.status()
    assert status.state in (TryState.WITHDRAWN, TryState.ENDED)
    if status.state is TryState.WITHDRAWN:
        assert not ran.exists()
        assert status.sentence() == "stopped before it started"
    else:
        assert status.end.cause in (EndCause.STOP, EndCause.NONE)
    assert not each.stop()
    assert not each.kill()


def test_nothing_happens_in_a_directory_that_was_withdrawn(bench, tmp_path, monkeypatch):
    """As above, but surely before the supervisor begins."""
    ran = tmp_path / "ran"
    real = os.posix_spawn

    def late(*arguments, **options):
        adopted = SupervisedTry.adopt(tmp_path / "try-0")
        assert adopted.status().state is TryState.WITHDRAWN
        return real(*arguments, **options)

    monkeypatch.setattr(os, "posix_spawn", late)
    each = bench.launch("touch", str(ran))
    bench.reap_all()
    assert each.status().state is TryState.WITHDRAWN
    assert not ran.exists()
    assert sorted(os.listdir(each.directory)) == ["spec", "supervisor"]


def test_memory_is_limited(bench):
    script = "try: bytearray(1 << 30)\nexcept MemoryError: print('no')"
    limits = ProcessLimits(memory_bytes=256 << 20, open_files=64)
    each = bench.python(script + "\nimport resource; print(resource.getrlimit(7))", limits=limits)
    bench.running(each)
    assert each.status().start is None or each.status().start.memory_by is Enforcement.RLIMIT
    assert bench.ended(each).code == 0
    assert output_of(each) == b"no\n(64, 64)\n"


def test_priority_and_processors_are_the_specified_ones(bench):
    limits = ProcessLimits(nice=7, cpus=(min(os.sched_getaffinity(0)),))
    script = (
        "import os; print(os.nice(0), len(os.sched_getaffinity(0))); "
        "path = '/proc/self/autogroup'; "
        "print(open(path).read().split()[-1] if os.path.exists(path) else 7)"
    )
    each = bench.python(script, limits=limits)
    bench.ended(each)
    assert output_of(each) == b"7 1\n7\n"


def test_a_try_that_is_launched_twice_runs_once_and_is_not_withdrawn(bench):
    path = str(bench.root / "lock")
    held = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    helper = LaunchHelper(lock=held)
    launcher = Launcher(helper=helper)
    spec = TrySpec(name="twice", command=("/bin/sleep", "600"), reports=bench.socket.path)
    directory = str(bench.root / "twice")
    bench.tries["twice"] = launcher.launch_new(directory, spec)
    each = bench.running(bench.tries["twice"])
    pid = each.identity().pid
    launcher.launch_new(directory, spec)
    # The lock is free when both supervisors have claimed the try or failed to.
    helper.close()
    os.close(held)
    with open(path) as free:
        fcntl.flock(free, fcntl.LOCK_EX)
    bench.heard += bench.socket.pending()
    assert [report.state for report in bench.heard] == [TryState.RUNNING]
    assert each.identity().pid == pid
