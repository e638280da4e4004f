"""Servers come and go; tries stay. Reports may be lost; files are not."""

import asyncio
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from supervised import PATIENCE, Bench, await_exit, await_readable, sweep

from argosy.worlds.local import (
    EndCause,
    ReportSocket,
    StartFailure,
    SupervisedTry,
    SupervisorError,
    TryOutcome,
    TryReport,
    TrySpec,
    TryState,
    read_output,
)
from argosy.worlds.local.launcher import supervisor_program
from argosy.worlds.local.records import SupervisorIdentity, read_identity, write_claim

#: A server: launches one try in the directory it is given, says so, and lives on.
SERVER = """
import sys, time
from argosy.worlds.local import Launcher, TrySpec
directory, script, reports = sys.argv[1:]
spec = TrySpec(name="adopted", command=("/bin/sh", "-c", script), reports=reports)
Launcher().launch(directory, spec)
print("launched", flush=True)
time.sleep(600)
"""


@pytest.fixture
def directory(tmp_path):
    made = tmp_path / "try"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def reports(tmp_path):
    made = ReportSocket(tmp_path / "reports")
    yield made
    made.close()


def hear(reports):
    await_readable(reports.fileno())
    return reports.pending()


def killed_server(directory, script):
    """Has a try launched by a server that is killed once the supervisor has begun."""
    command = [sys.executable, "-c", SERVER, str(directory), script, ""]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout.readline() == b"launched\n"
        while read_identity(str(directory)) is None:
            assert server.poll() is None
        server.kill()


def test_a_try_outlives_a_server_that_is_killed_and_is_adopted(directory, reports, tmp_path):
    go = tmp_path / "go"
    os.mkfifo(go)
    script = f"read answer < {go}; echo $answer; exit 5"
    command = [sys.executable, "-c", SERVER, str(directory), script, reports.path]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert hear(reports) == [TryReport("adopted", TryState.RUNNING)]
        server.kill()
    adopted = SupervisedTry.adopt(directory)
    assert adopted.name == "adopted"
    assert adopted.status().state is TryState.RUNNING
    go.write_text("go\n")
    assert hear(reports) == [TryReport("adopted", TryState.ENDED)]
    assert adopted.status().end.code == 5
    assert read_output(adopted.directory, "stdout").data == b"go\n"


def test_an_adopted_try_can_be_stopped(directory):
    killed_server(directory, "exec sleep 600")
    adopted = SupervisedTry.adopt(directory)
    assert adopted.stop()
    end = await_exit(adopted).end
    assert end.cause is EndCause.STOP


def test_an_end_while_no_server_listens_is_found_by_a_sweep(directory):
    killed_server(directory, "exit 4")
    adopted = SupervisedTry.adopt(directory)
    await_exit(adopted)
    assert [(each.name, status.end.code) for each, status in sweep([adopted])] == [("adopted", 4)]


def test_a_sweep_passes_over_what_still_runs(bench):
    running = bench.running(bench.launch("sleep", "600"))
    ended = bench.launch("true")
    bench.ended(ended)
    assert [each for each, _ in sweep([running, ended])] == [ended]


def test_a_directory_whose_launcher_died_too_early_is_withdrawn(directory):
    (directory / "spec").write_bytes(b"format=1\0name=early\0arg=true\0")
    adopted = SupervisedTry.adopt(directory)
    assert adopted.status().state is TryState.WITHDRAWN
    assert [each for each, _ in sweep([adopted])] == [adopted]
    assert not adopted.stop()


def test_a_directory_without_a_try_cannot_be_adopted(directory):
    with pytest.raises(SupervisorError, match="no try was launched here"):
        SupervisedTry.adopt(directory)
    (directory / "spec").write_bytes(b"format=2\0name=other\0")
    with pytest.raises(SupervisorError, match="not a specification"):
        SupervisedTry.adopt(directory)


def test_only_the_first_claim_to_a_try_counts(directory):
    first = SupervisorIdentity(pid=0, start_ticks=1, boot="b", at=2)
    assert write_claim(str(directory), first)
    assert not write_claim(str(directory), msgspec.structs.replace(first, at=3))
    assert read_identity(str(directory)) == first
    assert [each.name for each in directory.iterdir()] == ["supervisor"]


@pytest.mark.parametrize("forged", ["start_ticks", "boot"])
def test_a_stranger_with_the_same_pid_is_never_signalled(directory, forged):
    """As if the supervisor were long dead, and its pid somebody else's."""
    (directory / "spec").write_bytes(b"format=1\0name=old\0arg=true\0")
    with subprocess.Popen(["sleep", "600"]) as stranger:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        fields = Path(f"/proc/{stranger.pid}/stat").read_text().rsplit(")", 1)[1].split()
        true = SupervisorIdentity(
            pid=stranger.pid, start_ticks=int(fields[19]), boot=boot, at=1_000_000
        )
        changed = {"start_ticks": true.start_ticks - 1, "boot": "another"}[forged]
        assert write_claim(str(directory), msgspec.structs.replace(true, **{forged: changed}))
        adopted = SupervisedTry.adopt(directory)
        assert adopted.status().state is TryState.LOST
        assert not adopted.stop()
        assert not adopted.kill()
        assert adopted.open_supervisor() is None
        assert adopted.clear_leftovers() == 0
        assert stranger.poll() is None
        # The check itself works: with the true identity the signal arrives.
        (directory / "supervisor").unlink()
        write_claim(str(directory), true)
        assert SupervisedTry.adopt(directory).stop()
        assert stranger.wait(PATIENCE) == -signal.SIGTERM


def test_a_supervisor_that_died_after_recording_the_end_is_not_lost(bench):
    each = bench.launch("true")
    bench.ended(each)
    await_exit(each)
    assert each.status().state is TryState.ENDED


def test_a_directory_is_used_for_one_try_only(bench):
    each = bench.launch("true")
    with pytest.raises(SupervisorError, match="launched here before"):
        bench.launcher.launch(each.directory, TrySpec(name="again", command=("true",)))


def test_a_second_supervisor_in_the_same_directory_does_nothing(bench):
    each = bench.running(bench.launch("sleep", "600"))
    program = os.readlink(f"/proc/{each.identity().pid}/exe")
    assert subprocess.run([program, each.directory], timeout=PATIENCE).returncode == 3
    assert each.status().state is TryState.RUNNING


def run_supervisor(directory, spec, before=None):
    """As a launcher runs it, but in the foreground."""
    (directory / "spec").write_bytes(spec)
    program = str(supervisor_program())
    with subprocess.Popen([program, directory], preexec_fn=before) as supervisor:
        assert supervisor.wait(PATIENCE) == 0
    return SupervisedTry.adopt(directory).status().end


def test_a_stop_before_the_start_keeps_the_command_from_running(directory, tmp_path):
    def stop_oneself():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        os.kill(os.getpid(), signal.SIGTERM)

    spec = TrySpec(name="a", command=("/bin/touch", str(tmp_path / "ran")))
    end = run_supervisor(directory, spec.encode(), before=stop_oneself)
    assert (end.outcome, end.cause) == (TryOutcome.NOT_STARTED, EndCause.STOP)
    assert end.sentence() == "stopped before it started"
    assert not (tmp_path / "ran").exists()


BAD_SPECS = {
    "unknown key": b"surprise=1\0",
    "key twice": b"grace=1\0grace=1\0",
    "no number": b"timeout=soon\0",
    "cut short": b"timeout=1",
}


@pytest.mark.parametrize("case", BAD_SPECS)
def test_a_specification_that_does_not_fit_starts_nothing(directory, tmp_path, case):
    good = b"format=1\0name=a\0arg=/bin/touch\0arg=%s\0segment_bytes=9\0segments=1\0"
    end = run_supervisor(directory, good % bytes(tmp_path / "ran") + BAD_SPECS[case])
    assert (end.outcome, end.failure) == (TryOutcome.NOT_STARTED, StartFailure.BAD_SPEC)
    assert end.sentence() == "could not start: its specification cannot be read"
    assert not (tmp_path / "ran").exists()


def test_reports_find_a_server_whose_directory_was_made_anew(bench, tmp_path):
    folder = tmp_path / "runtime"
    folder.mkdir()
    gone = ReportSocket(folder / "socket")
    later = bench.launch("sleep", "600", reports=str(folder / "socket"))
    await_readable(gone.fileno())
    gone.close()
    folder.rmdir()
    folder.mkdir()
    anew = ReportSocket(folder / "socket")
    later.stop()
    assert hear(anew) == [TryReport(later.name, TryState.ENDED)]
    anew.close()


def test_a_supervisor_that_cannot_run_says_so():
    program = str(supervisor_program())
    done = subprocess.run([program, "/no/such"], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (
        2,
        "argosy-supervisor: /no/such: No such file or directory\n",
    )


def test_the_launcher_reaps_its_supervisors(bench):
    each = bench.launch("true")
    bench.ended(each)
    pidfd = each.open_supervisor()
    if pidfd is not None:
        await_readable(pidfd)
        os.close(pidfd)
    assert bench.launcher.reap([each]) == 0
    with pytest.raises(ChildProcessError):
        os.waitpid(each.identity().pid, os.WNOHANG)


def test_reports_are_awaited_without_blocking(bench):
    async def first_two() -> list[TryReport]:
        heard: list[TryReport] = []
        while len(heard) < 2:
            heard += await asyncio.wait_for(bench.socket.receive(), PATIENCE)
        return heard

    bench.launch("true", name="one")
    assert asyncio.run(first_two()) == [
        TryReport("one", TryState.RUNNING),
        TryReport("one", TryState.ENDED),
    ]


def test_a_report_that_finds_the_queue_full_is_sent_later(bench):
    """The queue of such a socket is short. The reports wait for room instead of being dropped."""
    tries = [bench.launch("true") for _ in range(25)]
    waiting = {each.name for each in tries}
    while waiting:
        ready, _, _ = select.select([bench.socket], [], [], PATIENCE)
        assert ready
        ended = [x.name for x in bench.socket.pending() if x.state is TryState.ENDED]
        waiting -= set(ended)


def test_what_is_no_report_is_counted_and_ignored(bench):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        for text in (b"", b"\xff\n", b"format=1\n", b"format=1\ntry=a\nstate=odd\n", b"x"):
            stranger.sendto(text, bench.socket.path)
    assert bench.socket.pending() == []
    assert bench.socket.malformed == 5


def test_paths_may_be_longer_than_a_socket_address(tmp_path):
    deep = tmp_path / ("d" * 120)
    deep.mkdir(mode=0o700)
    bench = Bench(deep)
    assert bench.ended(bench.launch("true")).code == 0
    bench.close()


def test_a_directory_removed_meanwhile_harms_nobody(bench):
    each = bench.running(bench.launch("sleep", "600"))
    supervisor = each.open_supervisor()
    identity = each.identity()
    shutil.rmtree(each.directory)
    os.kill(identity.pid, signal.SIGTERM)
    await_readable(supervisor)
    os.close(supervisor)
    bench.tries.clear()
