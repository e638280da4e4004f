"""The command line as its users meet it: results, mistakes, pipes, encodings, start-up."""

from __future__ import annotations

import csv
import errno
import importlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import click
import pytest
from command_line import QUICKSTART, Call, Result, process

from argosy import __version__
from argosy.cli import app, doctor


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("kept") / "run"
    done = process("run", QUICKSTART, "--out", directory)
    assert done.returncode == 0, done.stderr
    return directory


class TestStart:
    def test_help_lists_every_command(self, argosy: Call) -> None:
        result = argosy("--help")
        for name, line in app.COMMANDS.items():
            assert f"{name} " in result.out
            assert line.split(",")[0] in result.out

    def test_the_version_is_printed(self, argosy: Call) -> None:
        assert argosy("--version") == Result(0, f"argosy {__version__}\n", "")

    @pytest.mark.parametrize("name", app.COMMANDS)
    def test_every_command_helps_with_an_example(self, argosy: Call, name: str) -> None:
        command = importlib.import_module(f"argosy.cli.{name}").command
        parts: list[str | None] = []
        if isinstance(command, click.Group):
            parts += command.commands
        if not parts or command.invoke_without_command:
            parts.append(None)
        for part in parts:
            called = [name, part] if part else [name]
            result = argosy(*called, "--help")
            assert result.code == 0
            assert f"Example: argosy {' '.join(called)}" in result.out
            # Manifests have one form: that of `kubectl apply`.
            assert ("--output" in result.out) is (called != ["kubernetes", "guard"])

    def test_no_arguments_are_answered_with_help(self, argosy: Call) -> None:
        result = argosy()
        assert result.code == 2
        assert result.out.startswith("Usage: argosy")


class TestMistakes:
    def test_an_unknown_command_offers_the_nearest(self, argosy: Call) -> None:
        result = argosy("compair")
        assert result.code == 2
        assert result.complaint.startswith("argosy: error[unknown-name]: unknown command 'compair'")
        assert "did you mean 'compare'?" in result.complaint

    def test_an_unknown_option_offers_the_nearest(self, argosy: Call) -> None:
        result = argosy("run", QUICKSTART, "--sede", "1")
        assert result.code == 2
        assert result.complaint.startswith("argosy: error[usage]: ")
        assert "--seed" in result.complaint

    def test_a_missing_argument_is_named(self, argosy: Call) -> None:
        result = argosy("run")
        assert result.code == 2
        assert "SCENARIO" in result.complaint

    @pytest.mark.parametrize("command", ["run", "compare"])
    def test_a_missing_scenario_is_named(self, argosy: Call, command: str) -> None:
        result = argosy(command, "nowhere.toml")
        assert result.code == 2
        assert result.complaint.startswith("argosy: error[scenario]: nowhere.toml")

    @pytest.mark.parametrize("command", ["run", "compare"])
    def test_an_unknown_engine_offers_the_nearest(self, argosy: Call, command: str) -> None:
        result = argosy(command, QUICKSTART, "--engine", "omgea")
        assert result.code == 2
        assert result.complaint.startswith("argosy: error[unknown-engine]: ")
        assert "did you mean 'omega'?" in result.complaint

    @pytest.mark.parametrize("seed", ["-1", "many", str(2**63)])
    @pytest.mark.parametrize("command", ["run", "compare"])
    def test_a_bad_seed_is_refused(self, argosy: Call, command: str, seed: str) -> None:
        result = argosy(command, QUICKSTART, "--seed", seed)
        assert result.code == 2
        assert "--seed" in result.complaint

    def test_an_unknown_metric_offers_the_nearest(self, argosy: Call) -> None:
        result = argosy("compare", QUICKSTART, "--metric", "jtc")
        assert result.code == 2
        assert "did you mean 'jct'?" in result.complaint

    def test_options_that_contradict_each_other_are_refused(self, argosy: Call) -> None:
        both = argosy("compare", QUICKSTART, "--seeds", "3", "--seed", "1")
        assert (both.code, both.complaint.split(":")[1]) == (2, " error[command]")
        kept = argosy("run", QUICKSTART, "--no-save", "--out", "here")
        assert (kept.code, kept.complaint.split(":")[1]) == (2, " error[command]")

    @pytest.mark.parametrize("command", ["story", "why"])
    def test_a_run_directory_that_lost_something_says_so(
        self, argosy: Call, kept: Path, tmp_path: Path, command: str
    ) -> None:
        broken = tmp_path / "broken"
        shutil.copytree(kept, broken)
        with open(broken / "summary.json", "r+b") as file:
            file.truncate(10)
        result = argosy(command, "crawl/0", "--run", broken)
        assert result.code == 2
        assert result.complaint.startswith("argosy: error[run-directory]: ")
        assert "summary.json" in result.complaint

    @pytest.mark.parametrize("command", ["story", "why"])
    def test_a_missing_run_is_an_error_with_a_hint(self, argosy: Call, command: str) -> None:
        assert "no such run directory" in argosy(command, "crawl/0", "--run", "gone").complaint
        assert "--run" in argosy(command, "crawl/0").complaint

    @pytest.mark.parametrize("command", ["story", "why"])
    def test_an_unknown_task_offers_the_nearest(
        self, argosy: Call, kept: Path, command: str
    ) -> None:
        result = argosy(command, "crwal/0", "--run", kept)
        assert result.code == 2
        assert "did you mean 'crawl'?" in result.complaint
        assert argosy(command, "crawl/9999", "--run", kept).code == 2

    def test_a_directory_that_exists_is_not_overwritten(self, argosy: Call, kept: Path) -> None:
        before = (kept / "manifest.json").read_bytes()
        result = argosy("run", QUICKSTART, "--out", kept)
        assert result.code == 2
        assert (kept / "manifest.json").read_bytes() == before

    def test_a_directory_in_place_of_a_scenario_is_one_line(self, argosy: Call) -> None:
        assert argosy("run", ".").code == 2

    def test_a_bug_is_called_a_bug_and_shown_on_demand(
        self, argosy: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError("by zero")

        monkeypatch.setattr(app, "_called", broken)
        result = argosy("engines")
        assert result.code == 1
        assert result.complaint.endswith(
            "error[bug]: ZeroDivisionError: by zero; this is a bug in Argosy; argosy --debug shows where"
        )
        monkeypatch.setenv("ARGOSY_DEBUG", "1")
        result = argosy("engines")
        assert result.code == 1
        assert result.err.startswith("Traceback (most recent call last)")
        assert "in broken" in result.err
        assert result.err.endswith("ZeroDivisionError: by zero; this is a bug in Argosy\n")

    def test_debug_shows_where_a_mistake_was_found(self, argosy: Call) -> None:
        plain = argosy("run", "nowhere.toml")
        shown = argosy("--debug", "run", "nowhere.toml")
        assert shown.code == plain.code == 2
        assert shown.err.startswith("Traceback (most recent call last)")
        assert shown.err.endswith(plain.complaint + "\n")

    def test_an_interrupt_ends_with_130(
        self, argosy: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(app, "_called", interrupted)
        assert argosy("engines") == Result(130, "", "argosy: interrupted\n")

    def test_an_interrupt_while_importing_is_one_line(self) -> None:
        script = (
            "import sys\n"
            "class Impatient:\n"
            "    def find_spec(self, name, *_):\n"
            "        if name == 'click':\n"
            "            raise KeyboardInterrupt\n"
            "sys.meta_path.insert(0, Impatient())\n"
            "from argosy.cli import main\n"
            "main(['engines'])"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "argosy: interrupted\n")

    def test_sigterm_ends_cleanly_with_143(
        self, argosy: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import argosy.experiments.execute as execution

        def told_to_stop(*_: object) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            for _ in range(1000):  # A handler runs between two steps of the interpreter.
                pass

        monkeypatch.setattr(execution, "_simulate", told_to_stop)
        before = signal.getsignal(signal.SIGTERM)
        assert argosy("run", QUICKSTART, "--out", "kept") == Result(143, "", "argosy: terminated\n")
        assert signal.getsignal(signal.SIGTERM) is before
        assert not list(Path().iterdir())

    def test_a_closed_terminal_leaves_no_partial_run(
        self, argosy: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import argosy.experiments.execute as execution

        def hang_up(*_: object) -> None:
            os.kill(os.getpid(), signal.SIGHUP)
            for _ in range(1000):
                pass

        monkeypatch.setattr(execution, "_simulate", hang_up)
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # Ignored, if tests run under nohup.
        try:
            result = argosy("run", QUICKSTART, "--out", "kept")
            assert result == Result(129, "", "argosy: terminated\n")
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
        finally:
            signal.signal(signal.SIGHUP, before)
        assert not list(Path().iterdir())

    def test_a_run_that_cannot_be_kept_says_where(
        self, argosy: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import argosy.experiments.execute as execution

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(execution, "_simulate", full)
        result = argosy("run", QUICKSTART, "--out", "here")
        assert result.code == 2
        assert "the run cannot be saved in here: No space left on device" in result.complaint
        assert argosy("run", QUICKSTART, "--out", "x" * 300).code == 2

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_output_that_cannot_be_written_is_named(self) -> None:
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "argosy.cli", "engines"],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert line.startswith("argosy: error[output]: the output cannot be written: No space")


class TestRun:
    def test_a_file_may_begin_with_a_byte_order_mark(self, argosy: Call, tmp_path: Path) -> None:
        marked = tmp_path / "marked.toml"
        marked.write_bytes(b"\xef\xbb\xbf" + QUICKSTART.read_bytes())
        assert argosy("run", marked, "--no-save").code == 0

    @pytest.mark.parametrize("command", ["run", "compare"])
    def test_a_workload_without_jobs_is_noted(
        self, argosy: Call, tmp_path: Path, command: str
    ) -> None:
        text = QUICKSTART.read_text("utf-8")
        cell, fleet = text[: text.index("[[workload.jobs]]")], text[text.index("[[fleet]]") :]
        empty = tmp_path / "empty.toml"
        empty.write_text(f"{cell}\n[workload]\njobs = []\n{fleet}", "utf-8")
        some = ("--no-save",) if command == "run" else ("--seeds", "1", "--engine", "omega")
        done = argosy(command, empty, *some)
        assert (done.code, done.err) == (0, "note: the workload has no jobs\n")

    def test_a_run_prints_its_summary_and_keeps_a_directory(self, argosy: Call) -> None:
        result = argosy("run", QUICKSTART)
        assert result.code == 0
        for words in (
            "wait time",
            "placement latency",
            "JCT",
            "cpu used",
            "conflicts",
            "scheduler",
        ):
            assert words in result.out
        assert "saved in runs/quickstart-1" in result.err
        assert Path("runs/quickstart-1/summary.json").exists()
        assert argosy("story", "crawl/0").code == 0

    def test_a_run_with_another_engine_is_kept_under_its_name(self, argosy: Call) -> None:
        assert (
            "saved in runs/quickstart-sparrow-1"
            in argosy("run", QUICKSTART, "--engine", "sparrow").err
        )
        assert Path("runs/quickstart-sparrow-1/summary.json").exists()

    def test_json_is_one_document_and_repeats_to_the_byte(self, argosy: Call) -> None:
        first, second = (
            argosy("run", QUICKSTART, "--no-save", "--seed", "5", "-o", "json") for _ in range(2)
        )
        assert first == second
        document = json.loads(first.out)
        assert document["seed"] == 5
        assert document["directory"] is None
        assert not Path("runs").exists()

    def test_csv_is_a_header_and_a_row(self, argosy: Call) -> None:
        result = argosy("run", QUICKSTART, "--no-save", "-o", "csv")
        (row,) = csv.DictReader(io.StringIO(result.out))
        assert row["scenario"] == "quickstart"
        assert float(row["jct_p50"]) > 0

    @pytest.mark.parametrize("engine", ["omega", "murmuration"])
    def test_an_engine_can_replace_the_fleet(self, argosy: Call, engine: str) -> None:
        result = argosy("run", QUICKSTART, "--no-save", "--engine", engine, "-o", "json")
        schedulers = json.loads(result.out)["schedulers"]
        assert {scheduler["engine"] for scheduler in schedulers} == {engine}


class TestTasks:
    def test_a_story_goes_from_submission_to_the_end(self, argosy: Call, kept: Path) -> None:
        result = argosy("story", "crawl/0", "--run", kept)
        assert result.code == 0
        assert result.out.startswith(f"crawl/0 in {kept}")
        told = json.loads(argosy("story", "crawl/0", "--run", kept, "-o", "json").out)
        assert told[0]["what"] == "submitted"
        assert [line["at"] for line in told] == sorted(line["at"] for line in told)
        rows = list(
            csv.DictReader(io.StringIO(argosy("story", "crawl/0", "--run", kept, "-o", "csv").out))
        )
        assert [row["what"] for row in rows] == [line["what"] for line in told]
        assert [int(row["at"]) for row in rows] == [line["at"] for line in told]
        assert [json.loads(row["detail"]) for row in rows] == [line["detail"] for line in told]

    def test_why_answers_in_sentences(self, argosy: Call, kept: Path) -> None:
        result = argosy("why", "crawl/0", "--run", kept)
        heading, _, *sentences = result.out.splitlines()
        assert heading.startswith("crawl/0: ")
        assert sentences
        assert all(line.endswith(".") for line in sentences)
        answer = json.loads(argosy("why", "crawl/0", "--run", kept, "-o", "json").out)
        assert answer["task"] == "crawl/0"
        (row,) = csv.DictReader(
            io.StringIO(argosy("why", "crawl/0", "--run", kept, "-o", "csv").out)
        )
        assert row["sentence"] == answer["sentence"]


class TestEngines:
    def test_engines_are_listed_with_what_they_can_do(self, argosy: Call) -> None:
        listed = {
            engine["name"]: engine for engine in json.loads(argosy("engines", "-o", "json").out)
        }
        assert "transactions" in listed["omega"]["capabilities"]
        assert "gossip" in listed["murmuration"]["capabilities"]
        text = argosy("engines").out
        assert listed["omega"]["summary"] in text

    def test_an_engine_shows_its_settings(self, argosy: Call) -> None:
        document = json.loads(argosy("engines", "omega", "-o", "json").out)
        settings = {setting["name"]: setting for setting in document["settings"]}
        assert settings["t_job"]["type"] == "time"
        assert settings["t_job"]["default"] == "100ms"
        assert settings["t_job"]["default_text"] == '"100ms"'
        assert settings["preempt"]["default"] is False
        assert settings["attempts"]["default"] == 1000
        assert "t_job" in argosy("engines", "omega").out

    def test_an_unknown_engine_offers_the_nearest(self, argosy: Call) -> None:
        result = argosy("engines", "murmurtion")
        assert result.code == 2
        assert "did you mean 'murmuration'?" in result.complaint


class TestDoctor:
    def test_a_healthy_installation_has_no_problems(self, argosy: Call) -> None:
        result = argosy("doctor")
        assert result.code == 0, result.out
        assert "no problems found" in result.out

    def test_a_third_party_engine_that_does_not_load_is_a_problem(
        self, argosy: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        entry = metadata.EntryPoint("lost", "lost_package:Lost", "argosy.engines")
        monkeypatch.setattr(metadata, "entry_points", lambda group: [entry][: group == entry.group])
        result = argosy("doctor", "-o", "json")
        assert result.code == 1
        (problem,) = [f for f in json.loads(result.out) if f["status"] == "problem"]
        assert "lost_package" in problem["found"]
        assert problem["hint"]

    def test_a_broken_check_does_not_break_the_doctor(
        self, argosy: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(doctor, "FIRST_BITS", 0)
        result = argosy("doctor")
        assert result.code == 1
        assert "1 problem found" in result.out
        assert "native core" in result.out


class TestTerminals:
    def test_an_output_that_is_closed_is_one_clear_error(self) -> None:
        called = [sys.executable, "-m", "argosy.cli", "engines"]
        done = subprocess.run(
            ["sh", "-c", '"$@" >&-', "sh", *called], stderr=subprocess.PIPE, text=True, check=False
        )
        assert done.returncode == 2
        assert done.stderr == "argosy: error[output]: the output is closed\n"

    def test_an_encoding_without_unicode_gets_ascii(self) -> None:
        done = process(
            "compare", QUICKSTART, "--seeds", "2", "--jobs", "1", env={"PYTHONIOENCODING": "ascii"}
        )
        assert done.returncode == 0, done.stderr
        assert "####" in done.stdout
        assert done.stdout.isascii()

    def test_a_pipe_gets_neither_colour_nor_progress(self) -> None:
        done = process("engines")
        assert "\x1b" not in done.stdout + done.stderr

    def test_a_reader_that_leaves_is_not_an_error_message(self) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [sys.executable, "-m", "argosy.cli", "engines"],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        os.close(writing)
        assert (done.returncode, done.stderr) == (141, "")

    @pytest.mark.parametrize("no_color", ["", "1"])
    def test_a_terminal_gets_bold_headings_unless_no_color_is_set(self, no_color: str) -> None:
        pty = pytest.importorskip("pty")
        ours, theirs = pty.openpty()
        subprocess.run(
            [sys.executable, "-m", "argosy.cli", "engines"],
            stdout=theirs,
            check=True,
            env={**os.environ, "NO_COLOR": no_color, "TERM": "xterm"},
        )
        os.close(theirs)
        shown = os.read(ours, 65536).decode()
        os.close(ours)
        assert ("\x1b[1m" in shown) is (not no_color)
