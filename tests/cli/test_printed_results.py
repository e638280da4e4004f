"""How results are printed: in which form, in which encoding, how wide, and what if they cannot be."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from command_line import Call

from argosy import cli
from argosy.cli import app, output
from argosy.cli.forecast import Forecast
from argosy.cli.output import OutputError
from argosy.engines.registry import ENGINES
from argosy.model.errors import CommandError, EngineFault


class TestForms:
    SECTIONS = (["one", "a", "b"], ["two"], ["three", "c"])

    def printed(self, form: str, capsys: pytest.CaptureFixture[str], **parts: Any) -> str:
        def unused(*_: object) -> Any:
            raise AssertionError("only the form that is chosen is computed")

        known: dict[str, Any] = {"sections": unused, "document": unused, "csv": unused}
        output.emit(form, **known | parts)
        out, err = capsys.readouterr()
        assert err == ""
        return out

    def test_text_has_an_empty_line_between_sections(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        widths: list[int | None] = []

        def sections(width: int | None) -> Any:
            widths.append(width)
            return self.SECTIONS

        out = self.printed("table", capsys, sections=sections)
        assert out == "one\na\nb\n\ntwo\n\nthree\nc\n"
        assert widths == [None]

    def test_csv_ends_with_one_line_break_and_json_is_indented(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.printed("csv", capsys, csv=lambda: "a,b\n1,2\n\n") == "a,b\n1,2\n"
        document = {"a": [1, float("-inf"), {"b": float("nan")}], "c": (2.5, "x", None, True)}
        told = self.printed("json", capsys, document=lambda: document)
        assert (
            told
            == json.dumps({"a": [1, None, {"b": None}], "c": [2.5, "x", None, True]}, indent=2)
            + "\n"
        )

    def test_headings_are_bold(self, monkeypatch: pytest.MonkeyPatch) -> None:
        told: list[str] = []
        monkeypatch.setattr(output, "write", told.append)
        output.emit("table", sections=lambda _: self.SECTIONS, document=dict, csv=str)
        assert told == [
            "\x1b[1mone\x1b[0m",
            "a\nb",
            "\n\x1b[1mtwo\x1b[0m",
            "\n\x1b[1mthree\x1b[0m",
            "c",
        ]

    def test_only_a_terminal_has_a_width(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "77")
        monkeypatch.setattr("sys.stdout.isatty", lambda: False, raising=False)
        assert output.width() is None
        monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
        assert output.width() == 77


class TestEncodings:
    @pytest.mark.parametrize(
        ("encoding", "speaks"),
        [
            ("utf-8", True),
            ("UTF8", True),
            ("utf-16", True),
            ("ascii", False),
            ("iso-8859-1", False),
            (None, False),
        ],
    )
    def test_some_encodings_have_all_letters(
        self, monkeypatch: pytest.MonkeyPatch, encoding: str | None, speaks: bool
    ) -> None:
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(encoding=encoding))
        assert output.speaks_unicode() is speaks

    def test_other_encodings_get_plain_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", stream)
        output.write("1 µs ██░")
        stream.flush()
        told = stream.buffer.getvalue()  # type: ignore[attr-defined]
        assert told.endswith(b"\n")
        assert b"1 us" in told


class TestFailures:
    class Broken(io.StringIO):
        def __init__(self, error: OSError) -> None:
            super().__init__()
            self.error = error

        def flush(self) -> None:
            raise self.error

    def test_what_cannot_be_written_is_named_and_a_reader_that_left_is_not(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "stdout", self.Broken(OSError(errno.EIO, "Input/output error")))
        with pytest.raises(OutputError, match="the output cannot be written: Input/output error"):
            output.flush()
        with pytest.raises(OutputError, match="the output cannot be written: Input/output error"):
            output.write("text")
        monkeypatch.setattr(sys, "stdout", self.Broken(BrokenPipeError(errno.EPIPE, "gone")))
        with pytest.raises(BrokenPipeError):
            output.flush()

    def test_a_page_is_written_or_its_option_named(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "p"
        output.write_page(path, "é")
        assert (path.read_bytes(), capsys.readouterr().err) == ("é".encode(), f"wrote {path}\n")
        for options, name in (((), "--html"), (("--markdown",), "--markdown")):
            with pytest.raises(CommandError) as caught:
                output.write_page(tmp_path, "x", *options)
            assert caught.value.problem == f"{name} {tmp_path}: Is a directory"
        assert capsys.readouterr().err == ""

    def test_an_error_is_one_line_whatever_its_text(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def fail(*_: object, **__: object) -> int:
            raise CommandError("one\n  two\tthree")

        monkeypatch.setattr(app, "_called", fail)
        assert app.run([]) == 2
        assert capsys.readouterr().err == "argosy: error[command]: one two three\n"

    def test_without_standard_error_nobody_complains(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "stderr", None)
        assert app.run(["compair"]) == 2
        assert capsys.readouterr().out == ""
        sys.stderr.close()

    def test_debugging_is_asked_for_before_the_command_or_by_the_environment(
        self, argosy: Call
    ) -> None:
        assert "Traceback" in argosy("--debug", "run", "none.toml").err
        assert "Traceback" not in argosy("run", "none.toml").err


class TestColour:
    @pytest.mark.parametrize(("no_color", "expected"), [("", None), ("1", False)])
    def test_no_color_turns_it_off(
        self, monkeypatch: pytest.MonkeyPatch, no_color: str, expected: bool | None
    ) -> None:
        seen: list[Any] = []

        def invoke(context: click.Context) -> None:
            seen.append((context.info_name, context.color))

        monkeypatch.setenv("NO_COLOR", no_color)
        monkeypatch.setattr(app.app, "invoke", invoke)
        assert app.run(["engines"]) == 0
        assert seen == [("argosy", expected)]


class TestSignals:
    def test_a_signal_that_is_ignored_stays_ignored(self) -> None:
        before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            with cli._terminable():
                assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        finally:
            signal.signal(signal.SIGTERM, before)

    def test_a_second_signal_does_not_cut_the_cleaning_short(self) -> None:
        before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
        cleaned = []

        def work() -> None:
            with cli._terminable():
                try:
                    os.kill(os.getpid(), signal.SIGTERM)
                    for _ in range(1000):  # A handler runs between two steps of the interpreter.
                        pass
                finally:
                    os.kill(os.getpid(), signal.SIGTERM)
                    cleaned.append(signal.getsignal(signal.SIGTERM))

        try:
            with pytest.raises(cli.Terminated):
                work()
            assert cleaned == [signal.SIG_IGN]
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        finally:
            signal.signal(signal.SIGTERM, before)

    def test_threads_have_no_signals(self) -> None:
        done: list[bool] = []

        def work() -> None:
            with cli._terminable():
                done.append(True)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert done == [True]

    @pytest.mark.parametrize(
        ("stop", "code", "word"),
        [
            (KeyboardInterrupt(), 130, "interrupted"),
            (click.Abort(), 130, "interrupted"),
            (cli.Terminated(), 143, "terminated"),
            (cli.HungUp(), 129, "terminated"),
        ],
    )
    def test_what_ended_a_command_is_told_with_its_code(
        self, capsys: pytest.CaptureFixture[str], stop: BaseException, code: int, word: str
    ) -> None:
        assert cli.ended_by(stop) == code
        assert capsys.readouterr() == ("", f"argosy: {word}\n")

    @pytest.mark.parametrize("is_collecting", [True, False])
    def test_garbage_is_collected_again_after_imports(self, is_collecting: bool) -> None:
        import gc

        def fail() -> None:
            with cli._collecting_later():
                assert not gc.isenabled()
                raise KeyError

        before = gc.isenabled()
        (gc.enable if is_collecting else gc.disable)()
        try:
            with pytest.raises(KeyError):
                fail()
            assert gc.isenabled() is is_collecting
        finally:
            (gc.enable if before else gc.disable)()


class TestForecasts:
    def told(self, *looks: tuple[float, float]) -> list[str | None]:
        clock = SimpleNamespace(now=0.0)
        forecast = Forecast("go", lambda: clock.now)
        found = []
        for now, share in looks:
            clock.now = now
            found.append(forecast.line(share))
        return found

    def test_three_seconds_of_work_are_enough_to_foretell(self) -> None:
        told = "note: about 1.83 min left; go"
        assert self.told((5.0, 0.25), (7.9, 0.27), (8.0, 0.27)) == [None, None, told]

    def test_half_a_minute_is_long(self) -> None:
        # What is left takes twice as long as what was seen: nothing counts before the first results.
        assert self.told((-50.0, 0.0), (0.0, 0.25), (10.0, 0.5)) == [None, None, None]
        assert self.told((0.0, 0.25), (15.0, 0.5)) == [None, "note: about 30 s left; go"]
        assert self.told((0.0, 0.25), (14.9, 0.5)) == [None, None]

    def test_a_short_rest_is_never_a_long_one_later(self) -> None:
        assert self.told((0.0, 0.25), (10.0, 0.5), (500.0, 0.51)) == [None] * 3

    def test_without_progress_nothing_can_be_foretold(self) -> None:
        assert self.told((0.0, 0.25), (10.0, 0.25), (20.0, 0.2)) == [None] * 3


class TestEngines:
    @pytest.fixture
    def known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from argosy.engines import plugins
        from argosy.report import catalogue

        engines = {name: ENGINES[name] for name in ("omega", "sparrow")}
        broken = {"lost": EngineFault("no module"), "omega": EngineFault("a built-in name")}
        entries = {"omega": [SimpleNamespace(value="other:Omega")]}
        monkeypatch.setattr("argosy.engines.registry.survey", lambda: (engines, broken))
        monkeypatch.setattr(plugins, "entry_points", lambda: entries)
        monkeypatch.setattr(catalogue, "capabilities", lambda engine: ["one", "two"])
        monkeypatch.setattr(
            catalogue, "lacking", lambda engine: "no solver" if engine.name == "sparrow" else ""
        )

    def test_engines_that_are_broken_are_listed_with_what_is_wrong(
        self, argosy: Call, known: None
    ) -> None:
        omega, sparrow = ENGINES["omega"].summary, ENGINES["sparrow"].summary
        shown = [line.strip() for line in argosy("engines").out.splitlines()]
        assert [" ".join(line.split()) for line in shown] == [
            "engine capabilities",
            "omega one, two",
            omega,
            "sparrow one, two",
            sparrow,
            "not as it is set by default: no solver",
            "lost",
            "broken: no module",
            "other:Omega",
            "broken: a built-in name",
        ]
        document = json.loads(argosy("engines", "-o", "json").out)
        plain = {"summary": "", "capabilities": [], "lacking": ""}
        assert document == [
            {
                "name": "omega",
                "summary": omega,
                "capabilities": ["one", "two"],
                "lacking": "",
                "broken": "",
            },
            {
                "name": "sparrow",
                "summary": sparrow,
                "capabilities": ["one", "two"],
                "lacking": "no solver",
                "broken": "",
            },
            {"name": "lost", **plain, "broken": "no module"},
            {"name": "other:Omega", **plain, "broken": "a built-in name"},
        ]
        rows = argosy("engines", "-o", "csv").out.splitlines()
        assert rows[0] == "name,capabilities,summary,lacking,broken"
        assert rows[-2:] == ["lost,,,,no module", "other:Omega,,,,a built-in name"]

    def test_one_engine_is_described_with_its_settings(self, argosy: Call, known: None) -> None:
        lines = argosy("engines", "sparrow").out.splitlines()
        assert lines[:6] == [
            "sparrow",
            f"  {ENGINES['sparrow'].summary}",
            "  not as it is set by default: no solver",
            "",
            "capabilities",
            "  one, two",
        ]
        document = json.loads(argosy("engines", "sparrow", "-o", "json").out)
        assert list(document) == ["name", "summary", "capabilities", "lacking", "settings"]
        assert document["lacking"] == "no solver"
        assert argosy("engines", "sparrow", "-o", "csv").out.startswith(
            "name,type,default_text,doc\n"
        )

    def test_sentences_are_as_wide_as_the_terminal(self) -> None:
        from argosy.cli.engines import _wrapped

        assert _wrapped("", 10) == []
        assert _wrapped("one two three", None) == ["  one two three"]
        assert _wrapped("one two three", 9) == ["  one two", "  three"]


def test_commands_are_found_by_their_whole_names(argosy: Call) -> None:
    complaint = argosy("engine").complaint
    assert complaint.startswith("argosy: error[unknown-name]: unknown command 'engine'")
    assert "did you mean 'engines'?" in complaint
    assert "No such option" in argosy("--engines").complaint
