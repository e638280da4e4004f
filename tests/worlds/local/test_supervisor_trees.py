"""Nothing a command started outlives its try."""

import os
import select
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest
from supervised import PATIENCE, await_exit, processes_with

from argosy.worlds.local import (
    CgroupParent,
    EndCause,
    Enforcement,
    ProcessLimits,
    SupervisorError,
    TryOutcome,
    TryState,
    read_output,
)
from argosy.worlds.local.processes import kill_session, stat_of
from argosy.worlds.local.records import CommandStart

SECOND = 1_000_000

#: Leaves the session, its parent, its output and its directory, and ignores what can be ignored.
DAEMON = """
import os, signal, sys, time
ready, ready_writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        null = os.open("/dev/null", os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        os.write(ready_writer, b"x")
        time.sleep(600)
    os._exit(0)
os.read(ready, 1)
if sys.argv[1:] == ["stay"]:
    print("ready", flush=True)
    time.sleep(600)
"""


def environment(marker):
    return {"PATH": os.environ["PATH"], "MARKER": marker}


def states_with(marker):
    """The states of the processes that have the marker in their environment, as the kernel has them."""
    found = [stat_of(pid) for pid in processes_with(marker)]
    return [stat.state for stat in found if stat is not None]


def await_output(each, text):
    while read_output(each.directory, "stdout").data != text:
        assert not each.status().state.is_over


def test_a_daemon_that_outlives_its_command_is_killed(bench, marker):
    each = bench.python(DAEMON, environment=environment(marker), grace=SECOND // 20)
    end = bench.ended(each)
    assert (end.outcome, end.code, end.left_behind) == (TryOutcome.EXITED, 0, 1)
    assert processes_with(marker) == []


def test_a_daemon_is_killed_when_the_try_is_stopped(bench, marker):
    each = bench.python(DAEMON, "stay", environment=environment(marker), grace=SECOND // 20)
    await_output(bench.running(each), b"ready\n")
    each.stop()
    end = bench.ended(each)
    assert (end.signal, end.cause) == (signal.SIGTERM, EndCause.STOP)
    assert processes_with(marker) == []


def test_processes_left_behind_may_end_in_their_own_way(bench, marker, tmp_path):
    script = (
        "(trap 'echo bye > $OUT; exit' TERM; echo up; while :; do sleep 0.02; done) & "
        "while ! grep -q up $UP; do :; done"
    )
    variables = {**environment(marker), "OUT": str(tmp_path / "out")}
    directory = tmp_path / "try-0"
    each = bench.shell(script, environment={**variables, "UP": str(directory / "stdout.0")})
    end = bench.ended(each)
    assert (end.code, end.left_behind >= 1) == (0, True)
    assert (tmp_path / "out").read_text() == "bye\n"


#: A child in a session of its own, below another, that ends in its own way.
POLITE = """
import os, signal, sys, time
def leave(*_):
    open(sys.argv[1], "w").write("bye")
    os._exit(0)
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, leave)
        print("ready", flush=True)
        if sys.argv[2] == "stands still":
            os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(600)
    signal.signal(signal.SIGTERM, lambda *_: None)
    os.wait()
    os._exit(0)
signal.signal(signal.SIGTERM, lambda *_: None)
os.wait()
"""


@pytest.mark.parametrize("how", ["runs", "stands still"])
def test_a_stop_reaches_processes_in_other_sessions(bench, marker, tmp_path, how):
    said = tmp_path / "said"
    polite = bench.python(
        POLITE, str(said), how, environment=environment(marker), grace=600 * SECOND
    )
    each = bench.running(polite)
    await_output(each, b"ready\n")
    while how == "stands still" and "T" not in states_with(marker):
        assert not each.status().state.is_over
    each.stop()
    end = bench.ended(each)
    assert (end.outcome, end.code, end.cause) == (TryOutcome.EXITED, 0, EndCause.STOP)
    assert said.read_text() == "bye"


#: A process forks another and goes, as fast as it can, each in a group of its own every third time.
STORM = """
import os, sys
deadline = 3_000
if os.fork() == 0:
    print("on", flush=True)
    for turn in range(deadline):
        if os.fork():
            os._exit(0)
        if turn % 3 == 0:
            os.setpgid(0, 0)
    os._exit(0)
os.wait()
import time
time.sleep(600)
"""

#: Every process forks until there are many; all ignore SIGTERM.
CROWD = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("on", flush=True)
for depth in range(6):
    os.fork()
    if depth == 3:
        os.setpgid(0, 0) if os.getpid() != os.getsid(0) else None
time.sleep(600)
"""


@pytest.mark.parametrize("script", [STORM, CROWD], ids=["relay", "crowd"])
def test_a_storm_of_forks_is_killed(bench, marker, script):
    each = bench.python(script, environment=environment(marker), grace=0)
    await_output(bench.running(each), b"on\n")
    each.stop()
    assert bench.ended(each).cause is EndCause.STOP
    assert processes_with(marker) == []


#: Each level in a session of its own, with the next one as its child.
DEEP = """
if [ "$1" -gt 0 ]; then setsid sh "$0" $(($1 - 1)) & wait; else echo deep; exec sleep 600; fi
"""


def test_a_deep_tree_in_sessions_of_their_own_is_killed(bench, marker, tmp_path):
    script = tmp_path / "deep"
    script.write_text(DEEP)
    each = bench.launch("sh", str(script), "220", environment=environment(marker), grace=0)
    await_output(bench.running(each), b"deep\n")
    each.stop()
    bench.ended(each)
    assert processes_with(marker) == []


def test_orphans_that_end_are_reaped_while_the_command_runs(bench):
    script = "for i in $(seq 20); do (true &) ; done; echo done; exec sleep 600"
    each = bench.running(bench.shell(script))
    await_output(each, b"done\n")
    supervisor = each.identity().pid
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children")
    if not children.exists():
        pytest.skip("this kernel does not list children")
    while len(children.read_text().split()) != 1:
        assert not each.status().state.is_over
    assert children.read_text().split() == [str(each.status().start.pid)]


def test_a_lost_supervisor_takes_its_command_along(bench, marker):
    each = bench.running(bench.launch("sleep", "600", environment=environment(marker)))
    command = os.pidfd_open(each.status().start.pid)
    os.kill(each.identity().pid, signal.SIGKILL)
    status = await_exit(each)
    assert status.state is TryState.LOST
    assert status.end is None
    assert status.sentence() == "its supervisor died, so how it ended is unknown"
    ready, _, _ = select.select([command], [], [], PATIENCE)
    os.close(command)
    assert ready
    assert not each.stop()


def test_what_a_lost_supervisor_left_in_the_session_can_be_cleared(bench, marker):
    script = "sleep 600 & echo up; wait"
    each = bench.running(bench.shell(script, environment=environment(marker)))
    await_output(each, b"up\n")
    start = each.status().start
    os.kill(each.identity().pid, signal.SIGKILL)
    await_exit(each)
    left = [pid for pid in processes_with(marker) if pid != start.pid]
    assert left
    pidfds = [os.pidfd_open(pid) for pid in left]
    assert each.clear_leftovers() >= 1
    for pidfd in pidfds:
        select.select([pidfd], [], [], PATIENCE)
        os.close(pidfd)


@pytest.mark.parametrize("is_leader_gone", [False, True])
def test_a_session_is_cleared_whether_or_not_its_leader_is_there(marker, is_leader_gone):
    script = "sleep 600 & echo up; " + ("exit" if is_leader_gone else "wait")
    with subprocess.Popen(
        ["/bin/sh", "-c", script],
        stdout=subprocess.PIPE,
        env=environment(marker),
        start_new_session=True,
    ) as leader:
        begin = stat_of(leader.pid).start_ticks
        assert leader.stdout.readline() == b"up\n"
        none = Enforcement.NONE
        start = CommandStart(
            pid=leader.pid, start_ticks=begin, at=0, memory_by=none, cpu_by=none, processes_by=none
        )
        if is_leader_gone:
            leader.wait(PATIENCE)
        else:
            # A later process with the leader's pid leads another session.
            later = msgspec.structs.replace(start, start_ticks=begin + 1)
            assert kill_session(later) == 0
        assert kill_session(start) == (1 if is_leader_gone else 2)
        # At the end of the pipe, all of them are dead.
        assert leader.stdout.read() == b""


def test_a_try_that_runs_has_no_leftovers(bench):
    each = bench.running(bench.launch("sleep", "600"))
    assert each.clear_leftovers() == 0
    assert each.status().state is TryState.RUNNING


@pytest.fixture
def cgroups():
    try:
        parent = CgroupParent(f"argosy-test-{os.getpid()}")
    except SupervisorError as error:
        pytest.skip(str(error))
    yield parent
    assert parent.remove()


def test_a_cgroup_holds_all_of_a_try_and_is_removed(bench, marker, cgroups):
    group = cgroups.path / "try"
    each = bench.python(DAEMON, "stay", environment=environment(marker), grace=0, cgroup=str(group))
    await_output(bench.running(each), b"ready\n")
    members = {int(pid) for pid in (group / "cgroup.procs").read_text().split()}
    assert members == set(processes_with(marker))
    assert each.identity().pid not in members
    each.stop()
    assert bench.ended(each).cause is EndCause.STOP
    assert not group.exists()


def test_limits_without_a_controller_are_left_to_others(bench, cgroups):
    group = cgroups.path / "try"
    limits = ProcessLimits(memory_bytes=256 << 20, cpu_milli=500, processes=50)
    each = bench.running(bench.launch("sleep", "600", cgroup=str(group), limits=limits))
    start = each.status().start
    for file, told, otherwise in (
        ("memory.max", start.memory_by, Enforcement.RLIMIT),
        ("cpu.max", start.cpu_by, Enforcement.NONE),
        ("pids.max", start.processes_by, Enforcement.NONE),
    ):
        assert told is (Enforcement.CGROUP if (group / file).exists() else otherwise)
    each.stop()
    assert bench.ended(each).cause is EndCause.STOP


def test_what_a_lost_supervisor_left_in_a_cgroup_can_be_cleared(bench, marker, cgroups):
    group = cgroups.path / "try"
    each = bench.python(DAEMON, "stay", environment=environment(marker), cgroup=str(group))
    await_output(bench.running(each), b"ready\n")
    pidfds = [os.pidfd_open(pid) for pid in processes_with(marker)]
    os.kill(each.identity().pid, signal.SIGKILL)
    await_exit(each)
    assert each.clear_leftovers() >= 1
    for pidfd in pidfds:
        select.select([pidfd], [], [], PATIENCE)
        os.close(pidfd)
    assert processes_with(marker) == []
    if group.exists():
        group.rmdir()


def test_a_cgroup_that_exists_is_not_used(bench, cgroups):
    group = cgroups.path / "taken"
    group.mkdir()
    end = bench.ended(bench.launch("true", cgroup=str(group)))
    assert end.outcome is TryOutcome.NOT_STARTED
    assert group.exists()
    group.rmdir()


def own_children() -> set[int]:
    found = ((int(pid), stat_of(int(pid))) for pid in os.listdir("/proc") if pid.isdigit())
    return {pid for pid, stat in found if stat and stat.parent == os.getpid()}


def test_two_hundred_tries_at_once_all_end_and_leave_nothing(bench, marker):
    script = "sleep 600 & (setsid sleep 600 &); exit $((N % 7))"
    others = own_children()
    shared = {**environment(marker)}
    tries = [
        bench.shell(script, environment={**shared, "N": str(n)}, grace=10 * SECOND)
        for n in range(200)
    ]
    over = bench.all_over(tries)
    assert [over[each.name].end.code for each in tries] == [n % 7 for n in range(200)]
    bench.reap_all()
    assert processes_with(marker) == []
    assert own_children() <= others
