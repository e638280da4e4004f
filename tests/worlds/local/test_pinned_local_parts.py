"""Specifications, records, outputs and runners of tries, with drawn inputs: all that comes of them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pinned_digests import require_digests

from argosy.campaign.dice import Dice
from argosy.model.errors import ArgosyError
from argosy.model.jobs import Execution, Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.worlds.local import isolation, launcher, processes, records, runner
from argosy.worlds.local.handover import Handover, StoppingTry
from argosy.worlds.local.isolation import CONTROLLERS, CgroupParent, Isolation
from argosy.worlds.local.outputs import read_output, segment_starts
from argosy.worlds.local.records import SupervisorIdentity, read_end, read_identity, read_start
from argosy.worlds.local.spec import (
    CaptureLimits,
    ProcessLimits,
    SupervisorError,
    TrySpec,
    spec_values,
)
from argosy.worlds.local.supervised import SupervisedTry
from argosy.worlds.local.turn import PlannedLaunch, TryResult

PINNED = Path(__file__).parent / "pinned"
BOOT = "boot-boot"
ROUNDS = 40


@pytest.fixture(autouse=True)
def same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run of the computer, at one time, with no process that a record could mean."""
    monkeypatch.setattr(processes, "boot_id", lambda: BOOT)
    monkeypatch.setattr(processes, "stat_of", lambda pid: None)
    monkeypatch.setattr(time, "time_ns", lambda: 5_000_000)


def dice_of(name: str, seed: int) -> Dice:
    return Dice(Random(seed).child(name))


def tried(action: Callable[[], Any], folder: Path | None = None) -> str:
    """What it gives, or how it fails."""
    try:
        text = repr(action())
    except ArgosyError as error:
        text = f"{type(error).__name__} {error} {error.field} {error.expected} {error.hint}"
    except OSError as error:
        text = f"{type(error).__name__} {error.errno}"
    return text if folder is None else text.replace(str(folder), "FOLDER")


def drawn_spec(dice: Dice) -> TrySpec:
    numbers = (0, 0, 1, 5, 10_000, 10_001, -1, 1 << 40)
    limits = ProcessLimits(
        memory_bytes=dice.one_of(numbers),
        cpu_milli=dice.one_of(numbers[:5]),
        cpu_weight=dice.one_of(numbers[:6]),
        processes=dice.one_of(numbers[:5]),
        open_files=dice.one_of(numbers[:5]),
        nice=dice.one_of((0, 5, -5)),
        cpus=dice.one_of(((), (0,), (3, 1), (0, -1))) if dice.chance(0.5) else (),
    )
    return TrySpec(
        name=dice.one_of(("1", "1", "17", "ü", "", "a\nb")) if dice.chance(0.4) else "1",
        command=dice.one_of(
            (("sort", "-u"), ("a b", "", "\t"), ("x",), (), ("",), ("a\0",), ("\udc80",))
        ),
        environment=dice.one_of(({}, {"A": "1", "B": "x=y"}, {"": "1"}, {"A=": ""}, {"ü": "\ud800"})),
        directory=dice.one_of(("/", "/tmp/x", "here", "")) if dice.chance(0.3) else "/",
        input=dice.one_of(("/dev/null", "in")) if dice.chance(0.2) else "/dev/null",
        capture=CaptureLimits(
            segment_bytes=dice.one_of((8, 1, 1 << 20, 0)) if dice.chance(0.4) else 9,
            segments=dice.one_of((1, 4, 0)) if dice.chance(0.3) else 4,
            merged=dice.chance(0.3),
        ),
        limits=limits if dice.chance(0.6) else ProcessLimits(),
        timeout=dice.one_of((0, 1, 1_000_000, -1)) if dice.chance(0.3) else 0,
        grace=dice.one_of((0, 10_000_000, -1)) if dice.chance(0.3) else 1,
        reports=dice.one_of(("", "/r.sock")),
        reports_start=dice.chance(0.5),
        cgroup=dice.one_of(("", "/cg/try-1")),
        umask=dice.one_of((0o022, 0, -1)) if dice.chance(0.2) else 0o077,
    )  # fmt: skip


def changed(dice: Dice, data: bytes) -> bytes:
    """With a piece left out, doubled or replaced."""
    if not data or dice.chance(0.4):
        return data
    at = dice.among(0, len(data) - 1)
    to = min(len(data), at + dice.among(1, 6))
    piece = dice.one_of((b"", data[at:to] * 2, b"=", b"\n", b"\0", b"x", b"\xff", b"-1"))
    return data[:at] + piece + data[to:]


def test_specifications(pytestconfig: pytest.Config) -> None:
    found = {}
    for seed in range(ROUNDS):
        dice, lines = dice_of("spec", seed), []
        for _ in range(20):
            text = tried(lambda: drawn_spec(dice).encode())  # noqa: B023
            lines.append(text)
            data = b"format=1\0name=5\0arg=a\0env=A=b\0timeout=3\0"
            lines.append(tried(lambda: spec_values(changed(dice, data))))  # noqa: B023
        found[f"round {seed}"] = "\n".join(lines)
    require_digests(PINNED / "specifications.txt", found, pytestconfig)


def drawn_records(dice: Dice) -> dict[str, bytes]:
    """Files of a try as its supervisor writes them, some of them damaged."""
    pid = dice.one_of((0, 77, -1))
    boot = dice.one_of((BOOT, BOOT, "other"))
    claim = f"format=1\npid={pid}\nstart_ticks=9\nboot={boot}\nat=100\n"
    ways = ("none", "cgroup", "rlimit")
    start = f"format=1\npid=88\nstart_ticks=11\nat=200\nmemory_by={dice.one_of(ways)}\n"
    start += f"cpu_by={dice.one_of(ways)}\nprocesses_by={dice.one_of((*ways, 'magic'))}\n"
    outcome = dice.one_of(list(records.TryOutcome))
    cause, failure = dice.one_of(list(records.EndCause)), dice.one_of(list(records.StartFailure))
    streams = dice.one_of((("stdout", "stderr"), ("output",), ("stdout",), ()))
    end = f"format=1\noutcome={outcome}\ncode={dice.one_of((0, 0, 1, 127))}\n"
    end += f"signal={dice.one_of((0, 9, 15))}\ncause={cause}\nfailure={failure}\n"
    end += f"errno={dice.one_of((0, 2, 28))}\nstarted_at=200\nended_at={dice.among(200, 900)}\n"
    end += f"out_of_memory={dice.one_of(('yes', 'no', 'unknown', 'unknown', 'maybe'))}\n"
    end += "ran=5\nuser_cpu=1\nsystem_cpu=2\nmax_rss=3\nleft_behind=0\n"
    for name in streams:
        end += f"{name}_bytes={dice.among(0, 99)}\n{name}_first=0\n{name}_lost=1\n"
    files = {"supervisor": claim.encode(), "started": start.encode(), "end": end.encode()}
    spec = f"format=1\0name={dice.among(1, 9)}\0arg=x\0cgroup=/nowhere/try\0".encode()
    files["spec"] = spec
    kept = {name: data for name, data in files.items() if dice.chance(0.75)}
    return {name: changed(dice, data) if dice.chance(0.3) else data for name, data in kept.items()}


def write_records(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


def test_records_and_tries(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    found = {}
    for seed in range(ROUNDS):
        dice, lines = dice_of("records", seed), []
        for at in range(12):
            folder = tmp_path / f"{seed}-{at}"
            write_records(folder, drawn_records(dice))
            path = str(folder)
            for read in (read_identity, read_start, read_end):
                lines.append(tried(lambda: read(path), folder))  # noqa: B023, PERF401
            lines.append(tried(lambda: read_end(path).sentence(), folder) if (  # type: ignore[union-attr] # noqa: B023
                "TryEnd(" in lines[-1]) else "")  # fmt: skip
            identity = SupervisorIdentity(pid=5, start_ticks=6, boot=BOOT, at=7)
            known = SupervisedTry(path, "n", str(folder / "none"))
            for action in (
                lambda: known.status(),  # noqa: B023
                lambda: known.status().sentence(),  # noqa: B023
                lambda: runner._result(known.status()),  # noqa: B023
                lambda: vars(SupervisedTry.adopt(path)),  # noqa: B023
                lambda: known.stop(),  # noqa: B023
                lambda: known.kill(),  # noqa: B023
                lambda: known.open_supervisor(),  # noqa: B023
                lambda: known.clear_leftovers(),  # noqa: B023
                lambda: records.write_claim(path, identity),  # noqa: B023
                lambda: read_identity(path),  # noqa: B023
                lambda: known.withdraw(),  # noqa: B023
            ):
                lines.append(tried(action, folder))  # noqa: PERF401
            lines.append(repr(sorted(file.name for file in folder.iterdir())))
        found[f"round {seed}"] = "\n".join(lines)
    require_digests(PINNED / "records.txt", found, pytestconfig)


def test_outputs(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    found = {}
    for seed in range(ROUNDS):
        dice, lines = dice_of("outputs", seed), []
        folder = tmp_path / str(seed)
        folder.mkdir()
        position = dice.one_of((0, 0, 30))
        for _ in range(dice.among(0, 5)):
            length = dice.one_of((0, 1, 7, 20))
            text = bytes(33 + (position + at) % 90 for at in range(length))
            (folder / f"stdout.{position}").write_bytes(text)
            position += length + dice.one_of((0, 0, 0, 5))
        (folder / "stdout.tmp").write_bytes(b"no segment")
        (folder / "stdouts.0").write_bytes(b"nor this")
        lines.append(repr(segment_starts(str(folder), "stdout")))
        for start in range(0, 80, 3):
            limit = dice.one_of((1, 5, 7, 30, 1 << 20))
            part = read_output(str(folder), "stdout", start, limit)
            lines.append(f"{start} {limit} {part} {part.end}")
        lines.append(repr(read_output(str(folder / "none"), "stdout")))
        found[f"round {seed}"] = "\n".join(lines)
    require_digests(PINNED / "outputs.txt", found, pytestconfig)


def test_isolation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).exists())
    lines = []
    for platform in ("linux", "darwin"):
        for parent in ("", "/cg"):
            for count in range(len(CONTROLLERS) + 1):
                for some in combinations(CONTROLLERS, count):
                    told = Isolation(platform=platform, parent=parent, controllers=some)
                    lines.append(f"{told} {told.sentence()}")
    found = {"sentences": "\n".join(lines)}
    for seed in range(ROUNDS):
        dice = dice_of("isolation", seed)
        base = tmp_path / str(seed)
        base.mkdir()
        for name, texts in (
            ("cgroup.procs", ("", "12\n")),
            ("cgroup.type", ("domain\n",)),
            ("cgroup.controllers", ("cpu io memory pids\n", "memory", "")),
            ("cgroup.subtree_control", ("", "memory pids\n", "cpu")),
        ):
            if dice.chance(0.7):
                (base / name).write_text(dice.one_of(texts))
        monkeypatch.setattr(isolation, "own_cgroup", lambda base=base: base)
        said = [tried(isolation.detect_isolation, tmp_path)]
        (base / "made").mkdir() if dice.chance(0.3) else None
        made = CgroupParent("made", dice.one_of((None, base)))
        said += [repr(made.isolation).replace(str(tmp_path), "FOLDER"), made.isolation.sentence()]
        said += [repr(made.remove()), repr(sorted(each.name for each in base.iterdir()))]
        said.append(tried(partial(CgroupParent, "a/b/c", base), tmp_path))
        found[f"round {seed}"] = "\n".join(said)
    monkeypatch.setattr(isolation, "own_cgroup", lambda: None)
    found["without"] = tried(isolation.detect_isolation) + tried(lambda: CgroupParent("x"))
    require_digests(PINNED / "isolation.txt", found, pytestconfig)


class PlayedHelper:
    """In place of a process that forks supervisors: does at once what they would do, or nothing."""

    def __init__(self, lock: int) -> None:
        self.asked: list[tuple[str, bytes]] = []
        self.error: SupervisorError | None = None

    def start(self, path: str, spec: bytes = b"") -> None:
        if self.error is not None:
            raise self.error
        self.asked.append((path, spec))

    def close(self) -> None:
        """There is no process."""


class RunnerBench:
    def __init__(self, folder: Path, dice: Dice) -> None:
        self.folder, self.dice = folder, dice
        self.lines: list[str] = []
        self.now = 0.0
        self.numbers = iter(range(998, 100_000))
        self.made: list[int] = []
        self.start()

    def start(self) -> None:
        environment = {"PATH": "/bin", "A": "server"}
        self.runner = runner.ProcessRunner(self.folder, self._ended, environment=environment)
        self.helper: Any = self.runner._helper
        if self.dice.chance(0.5):
            cgroups: Any = SimpleNamespace(path="/cgroups")
            self.runner._cgroups = cgroups

    def _ended(self, number: int, result: TryResult | None) -> None:
        self.lines.append(f"ended {number} {result}")

    def launch(self) -> None:
        dice, number = self.dice, next(self.numbers)
        execution = Execution(
            command=dice.one_of((("sort", "x"), ("y",))),
            environment=dice.one_of(({}, {"A": "job"})),
            working_directory=dice.one_of(("/tmp", "/")),
            stdin=dice.one_of(("", "", "some\ntext")),
            image="busybox" if dice.chance(0.1) else "",
            timeout=dice.one_of((0, 3)),
            grace=dice.one_of((0, 9)),
            output_limit=dice.one_of((0, 3, 4_000)),
        )
        request = Resources.of({"cpu": dice.one_of((0, 5, 500, 999_999)), "memory": 7})
        group = TaskGroup(2, request, execution=None if dice.chance(0.1) else execution)
        job = Job(dice.one_of(("j", "ü")), (group,))
        if dice.chance(0.15):
            why = SupervisorError("no supervisor can be started: gone")
            why.__cause__ = dice.one_of((OSError(28, "full"), OSError(2, "none"), None))
            self.helper.error = why
        self.runner.launch(number, job, dice.among(0, 1), Machine("m", request))
        self.helper.error = None
        self.made.append(number)

    def supervise(self) -> None:
        """A supervisor writes what it has to say, or something else does."""
        if self.made:
            number = self.dice.one_of(self.made[-6:])
            write_records(Path(self.runner.directory_of(number)), drawn_records(self.dice))
            self.report(number)

    def report(self, number: int) -> None:
        state = self.dice.one_of(("started", "ended", "ended", "withdrawn", "asleep"))
        text = f"format=1\ntry={number}\nstate={state}\nerrno={self.dice.one_of((0, 28, 2))}\n"
        data = changed(self.dice, text.encode()) if self.dice.chance(0.3) else text.encode()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
            # By way of the descriptor's directory: the path may be long.
            self.lines.append(f"report {data!r}")
            try:
                sending.sendto(data, self.runner.reports.path)
            except OSError:
                self.runner.reports.malformed += len(self.runner.reports._parsed(data))

    def step(self) -> None:
        dice = self.dice
        number = dice.one_of((*self.made[-6:], 5, 998))
        steps: tuple[tuple[str, Callable[[], Any]], ...] = (
            ("launch", self.launch), ("launch", self.launch), ("supervise", self.supervise),
            ("supervise", self.supervise), (f"stop {number}", lambda: self.runner.stop(number)),
            (f"adopt {number}", lambda: self.runner.adopt(number)), ("hear", self.runner.hear),
            ("sweep", self.runner.sweep),
            (f"is running {number}", lambda: self.runner.is_running(number)),
            ("later", self.later), ("discard", lambda: self.runner.discard_after(number)),
            ("again", self.again),
        )  # fmt: skip
        name, action = dice.one_of(steps)
        self.lines.append(f"{name}: {tried(action, self.folder)}")
        made = self.runner
        self.lines.append(f"{made.is_idle} {made.has_stillborn} {made.reports.malformed}")
        for path, spec in self.helper.asked:
            self.lines.append(f"asked {path} {spec!r}".replace(str(self.folder), "FOLDER"))
        self.helper.asked.clear()

    def later(self) -> None:
        self.now += 20.0

    def again(self) -> None:
        self.runner.close()
        self.start()


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(runner, "LaunchHelper", PlayedHelper)
    monkeypatch.setattr(launcher, "supervisor_program", lambda: Path("/supervisor"))
    listed = os.listdir
    # In an order that does not depend on the disk.
    monkeypatch.setattr(os, "listdir", lambda path=".": sorted(listed(path)))
    return monkeypatch


def test_runners(played: pytest.MonkeyPatch, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    found = {}
    for seed in range(12):
        folder = tmp_path / f"r{seed}"
        folder.mkdir()
        bench = RunnerBench(folder, dice_of("runner", seed))
        played.setattr(time, "monotonic", lambda bench=bench: bench.now)
        for _ in range(120):
            bench.step()
        bench.runner.close()
        found[f"round {seed}"] = "\n".join(bench.lines)
    require_digests(PINNED / "runners.txt", found, pytestconfig)


def test_handovers(pytestconfig: pytest.Config) -> None:
    job = Job("j", (TaskGroup(3, Resources.of({"cpu": 1})),))
    found = {}
    for seed in range(ROUNDS):
        dice, handover, lines = dice_of("handover", seed), Handover(), list[str]()
        for number in range(1, 61):
            seq, index, some = dice.among(1, 2), dice.among(0, 2), dice.among(1, number)
            match dice.among(0, 6):
                case 0 | 1:
                    handover.stop(StoppingTry(some, seq, index, dice.chance(0.7)))
                case 2:
                    ends = (
                        None,
                        TryResult(0),
                        TryResult(3, "x"),
                        TryResult(-15, "s", was_stopped=True),
                    )
                    handover.ended(some, dice.one_of(ends))
                case 3:
                    handover.disown(seq, index)
                case 4:
                    machine = Machine("m", Resources.of({"cpu": 1}))
                    handover.hold({number: PlannedLaunch(seq, job, index, machine)})
                case 5:
                    lines.append(repr(handover.drop(some)))
                case _:
                    ready = [(a, b.seq, b.index, c, d) for a, b, c, d in handover.ready()]
                    lines.append(f"{ready} {list(handover.take_gone())}")
        found[f"round {seed}"] = "\n".join(lines)
    require_digests(PINNED / "handovers.txt", found, pytestconfig)
