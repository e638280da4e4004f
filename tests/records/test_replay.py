"""A journal replayed: the same decisions byte for byte, or the line where they part."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from outside import EXAMPLE, Install
from scripted_engine import Scripted

from argosy.cell import View
from argosy.cli.app import app
from argosy.engines.registry import ENGINES
from argosy.experiments.execute import execute
from argosy.host.host import Host
from argosy.host.journal import Journal
from argosy.host.protocols import DirectLinks
from argosy.host.setup import HostSetup
from argosy.model.effects import Effect, Think, WakeMe
from argosy.model.errors import ReplayDiverged, RunDirectoryError
from argosy.model.events import Event, JobSubmitted
from argosy.model.scenario import (
    MachineCrash,
    MachineDrain,
    Measured,
    Network,
    Output,
    Scenario,
    SchedulerCrash,
)
from argosy.records import directory
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay, ToldMachines
from argosy.testing import conformance
from argosy.testing.builders import SECOND, cell, job, scenario, shared_job
from argosy.worlds.sim import SimulatedWorld

ROOMIEST = (EXAMPLE / "roomiest.py").read_text()


def record(spec: Scenario) -> bytes:
    stream = io.BytesIO()
    journal = Journal(stream, everything=spec.output.log == "everything")
    SimulatedWorld(spec, ENGINES, journal).run()
    journal.flush()
    return stream.getvalue()


def stormy(engine: str, **fields: Any) -> Scenario:
    jobs = [*conformance.workload(50, spacing=0.03), shared_job("shared", 2, (6, 2), (0.5, 1.0))]
    return scenario(
        engine,
        jobs,
        replicas=3,
        network=Network(loss=0.05, duplication=0.05, reordering=0.1, extra_delay=SECOND),
        faults=(
            SchedulerCrash(at=SECOND, scheduler="s-1", down=6 * SECOND),
            MachineCrash(at=2 * SECOND, machine="m3", down=6 * SECOND),
            MachineDrain(at=3 * SECOND, machine="m4", lasts=SECOND),
        ),
        **fields,
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_decides_the_same_again(engine: str) -> None:
    data = record(stormy(engine))
    done = Replay(JournalFile(data), ENGINES).run()
    assert done.lines == data.count(b"\n")
    assert 0 < done.inputs < done.lines
    assert done.ended_at == JournalFile(data).reached()


def test_a_journal_of_everything_is_replayed_with_messages_and_timers() -> None:
    data = record(stormy("murmuration", output=Output(log="everything")))
    assert b'{"what":"sent"' in data
    Replay(JournalFile(data), ENGINES).run()


def test_decisions_take_as_long_as_they_were_measured_to_take() -> None:
    spec = stormy("omega")
    entry = msgspec.structs.replace(spec.fleet[0], decision_time=Measured(factor=100.0))
    data = record(msgspec.structs.replace(spec, fleet=(entry,)))
    assert b'{"what":"measured"' in data
    Replay(JournalFile(data), ENGINES).run()


def test_another_decision_is_named_with_its_line() -> None:
    lines = record(stormy("omega")).splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if line.startswith(b'{"what":"placed"'))
    lines[at] = lines[at].replace(b'"machines":[', b'"machines":[7,', 1)
    with pytest.raises(ReplayDiverged) as caught:
        Replay(JournalFile(b"".join(lines)), ENGINES).run()
    assert caught.value.line == at + 1
    assert caught.value.expected == lines[at].decode().strip()


def test_however_much_is_written_at_once_is_compared() -> None:
    """The header of a large cell, and the places of a large job, exceed the journal's buffer."""
    spec = scenario("omega", [job("wide", 20_000, cpu=10)], cell=cell(2_000), audit=False)
    data = record(spec)
    assert max(map(len, data.splitlines())) > 1 << 16
    assert Replay(JournalFile(data), ENGINES).run().lines == data.count(b"\n")


class Napping(Scripted):
    """Wakes up after a while that is not part of its settings."""

    name = "napping"
    nap = SECOND

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted():
                return [WakeMe(now + self.nap, "nap")] if self.wakes else [Think(self.nap, 1)]
        return ()

    wakes = True


@pytest.mark.parametrize("wakes", [True, False], ids=["WakeMe", "Think"])
@pytest.mark.parametrize("other", [SECOND // 2, 99 * SECOND])
def test_a_timer_set_for_another_time_is_a_divergence(wakes: bool, other: int) -> None:
    run = type("Run", (Napping,), {"wakes": wakes})
    again = type("Again", (Napping,), {"wakes": wakes, "nap": other})
    stream = io.BytesIO()
    journal = Journal(stream)
    spec = scenario("napping", [job("a")], horizon=10 * SECOND)
    SimulatedWorld(spec, {"napping": run}, journal).run()
    journal.flush()
    recorded = JournalFile(stream.getvalue())
    Replay(recorded, {"napping": run}).run()
    with pytest.raises(ReplayDiverged, match=f'"planned":{other}') as caught:
        Replay(recorded, {"napping": again}).run()
    assert f'"at":{SECOND},' in str(caught.value.expected)


def test_a_timer_that_came_late_is_replayed_late() -> None:
    spec = scenario("napping", [], replicas=1)
    stream = io.BytesIO()
    journal = Journal(stream)
    host = Host(
        msgspec.structs.replace(HostSetup.of(spec), network=None),
        {"napping": Napping},
        ToldMachines(),
        DirectLinks(),
        journal,
    )
    host.start()
    host.run_until(0)
    host.submit(job("a").job)
    host.run_until(0)
    host.runtime.advance(3 * SECOND)
    host.run_until(3 * SECOND)
    journal.flush()
    assert stream.getvalue().endswith(b'{"what":"due","at":3000000,"ticket":3,"planned":1000000}\n')
    Replay(JournalFile(stream.getvalue()), {"napping": Napping}).run()


def test_of_a_long_line_only_what_differs_is_shown() -> None:
    data = record(scenario("omega", [job("wide", 2_000, cpu=10)], cell=cell(100)))
    changed = data.replace(b"[1999]", b"[1998]").replace(b"1998,1999],", b"1998,1998],")
    assert changed != data
    with pytest.raises(ReplayDiverged) as caught:
        Replay(JournalFile(changed), ENGINES).run()
    assert len(str(caught.value)) < 1_500
    assert "1998,1999]" in caught.value.problem
    assert "1998,1998]" in str(caught.value.expected)


def test_a_decision_that_is_missing_is_a_divergence_unless_the_run_goes_on() -> None:
    lines = record(stormy("omega")).splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if line.startswith(b'{"what":"placed"'))
    cut = JournalFile(b"".join(lines[:last]))
    with pytest.raises(ReplayDiverged, match="otherwise") as caught:
        Replay(cut, ENGINES).run()
    assert caught.value.expected == "the end of the journal"
    assert Replay(cut, ENGINES, finished=False).run().lines == last


@pytest.mark.parametrize("share", [0.1, 0.37, 0.62, 0.9])
def test_a_run_that_goes_on_is_replayed_as_far_as_it_has_come(share: float) -> None:
    data = record(stormy("murmuration"))
    part = JournalFile(data[: int(len(data) * share)])
    Replay(part, ENGINES, finished=False).run()


def test_an_input_of_a_later_version_ends_a_replay() -> None:
    data = record(scenario("omega", [job("a", 2)]))
    newer = data + b'{"what":"moved-house","at":99000000}\n'
    with pytest.raises(ReplayDiverged, match="does not know") as caught:
        Replay(JournalFile(newer), ENGINES).run()
    assert caught.value.line == newer.count(b"\n")


def test_a_journal_of_decisions_alone_cannot_be_replayed() -> None:
    data = record(stormy("omega", output=Output(log="decisions")))
    with pytest.raises(RunDirectoryError, match=r"without all inputs.*replayable"):
        Replay(JournalFile(data), ENGINES)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    jobs = [job("a", 3, seconds=10), job("b", 1, seconds=5, submit=1)]
    execute(scenario("omega", jobs, replicas=1), tmp_path / "run")
    return tmp_path / "run"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["replay", *arguments])


def test_the_command_says_that_decisions_are_the_same(kept: Path) -> None:
    shown = call(str(kept))
    assert shown.exit_code == 0
    assert "same decisions" in shown.stdout
    found = json.loads(call(str(kept / directory.JOURNAL), "-o", "json").stdout)
    assert found["same"] is True
    assert found["lines"] == (kept / directory.JOURNAL).read_bytes().count(b"\n")
    assert found["reached"] > 10 * SECOND


def test_the_command_names_the_first_line_that_differs_and_exits_with_1(
    kept: Path, tmp_path: Path
) -> None:
    changed = tmp_path / "changed.jsonl"
    data = (kept / directory.JOURNAL).read_bytes()
    needle = b'"scheduler":"s","takes":'
    changed.write_bytes(data.replace(needle, needle + b"9", 1))
    shown = call(str(changed))
    assert shown.exit_code == 1
    line = data[: data.index(needle)].count(b"\n") + 1
    assert f"changed.jsonl:{line}: decisions differ from here on" in shown.stdout
    found = json.loads(call(str(changed), "-o", "json").stdout)
    assert (found["same"], found["line"]) == (False, line)


def test_a_file_that_is_not_a_journal_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    shown = call(str(tmp_path / "notes.txt"))
    # The one place that turns errors into lines is `run`; here the error itself comes out.
    assert isinstance(shown.exception, RunDirectoryError)
    assert "notes.txt:1: not a journal" in str(shown.exception)


def test_other_engines_stand_beside_the_recorded_run(kept: Path) -> None:
    found = json.loads(
        call(str(kept), "--engine", "murmuration", "--engine", "omega", "-o", "json").stdout
    )
    rows = {row["engine"]: row for row in found["runs"]}
    assert list(rows) == ["recorded", "murmuration", "omega"]
    assert all(row["tasks_finished"] == 4 for row in rows.values())
    assert rows["omega"]["jct_mean"] == rows["recorded"]["jct_mean"]
    shown = call(str(kept), "--engine", "murmuration", "--metric", "wait")
    assert "recorded" in shown.stdout
    assert "wait time" in shown.stdout


class TestEnginesGivenAsClasses:
    @pytest.fixture(autouse=True)
    def _here(self, fresh_modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(fresh_modules)

    def test_a_class_runs_on_the_recorded_jobs(self, kept: Path) -> None:
        Path("roomiest.py").write_text(ROOMIEST)
        shown = call(str(kept), "--engine", "roomiest:Roomiest", "-o", "json")
        rows = {row["engine"]: row for row in json.loads(shown.stdout)["runs"]}
        assert list(rows) == ["recorded", "roomiest:Roomiest"]
        assert rows["roomiest:Roomiest"]["fleet"] == "roomiest:Roomiest"

    def test_a_class_with_the_name_of_a_built_in_engine_is_not_mistaken_for_it(
        self, kept: Path
    ) -> None:
        Path("roomiest.py").write_text(ROOMIEST.replace('name = "roomiest"', 'name = "omega"'))
        shown = call(
            str(kept), *("--engine", "roomiest:Roomiest", "--engine", "omega"), "-o", "json"
        )
        fleets = {row["engine"]: row["fleet"] for row in json.loads(shown.stdout)["runs"]}
        assert fleets["roomiest:Roomiest"] == "roomiest:Roomiest"
        assert fleets["omega"] == "omega"

    def test_no_plug_in_is_imported_unless_it_is_named(self, kept: Path, install: Install) -> None:
        install(ROOMIEST)
        assert call(str(kept), "--engine", "omega").exit_code == 0
        assert "roomiest" not in sys.modules


def test_a_replay_that_fails_shows_no_recorded_line(kept: Path, tmp_path: Path) -> None:
    data = (kept / directory.JOURNAL).read_bytes()
    wrong = b'{"what":"crashed","at":0,"scheduler":"nobody"}\n'
    head = data.index(b"\n") + 1
    (tmp_path / "failing.jsonl").write_bytes(data[:head] + wrong + data[head:])
    shown = call(str(tmp_path / "failing.jsonl"))
    assert shown.exit_code == 1
    assert "replayed: the replay failed" in shown.stdout
    assert "recorded:" not in shown.stdout


def test_one_line_is_not_lines(kept: Path, tmp_path: Path) -> None:
    data = (kept / directory.JOURNAL).read_bytes()
    (tmp_path / "short.jsonl").write_bytes(data[: data.index(b"\n") + 1])
    assert "0 inputs, 1 line, " in call(str(tmp_path / "short.jsonl")).stdout
