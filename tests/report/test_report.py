"""Tables, plots, comparisons and their sentences, from summaries made up for the purpose."""

from __future__ import annotations

import csv
import io
from typing import Annotated, ClassVar, Literal

import msgspec
import pytest
from made_up import JCT, summary

from argosy.engines.api import Capabilities, Engine, Finishes, Settings
from argosy.engines.registry import ENGINES
from argosy.model.answers import WhyAnswer
from argosy.model.units import Micros, Time
from argosy.records.summary import (
    Distribution,
    Timeline,
)
from argosy.report import comparison, plots, summaries
from argosy.report.answers import sentences
from argosy.report.catalogue import capabilities, settings
from argosy.report.comparison import compare
from argosy.report.tables import Column, Table, Unit, plain


class TestTables:
    table = Table(
        (Column("name", "engine"), Column("took", "took", Unit.TIME), Column("n", "n", Unit.COUNT)),
        (("omega", 1_500_000, 12_000), ("murmuration", None, 3)),
    )

    def test_text_json_and_csv_come_from_the_same_rows(self) -> None:
        assert self.table.lines() == [
            "engine        took       n",
            "omega        1.5 s  12,000",
            "murmuration              3",
        ]
        assert self.table.records()[0] == {"name": "omega", "took": 1_500_000, "n": 12_000}
        assert self.table.csv().splitlines() == [
            "name,took,n",
            "omega,1500000,12000",
            "murmuration,,3",
        ]

    def test_a_narrow_terminal_cuts_text_but_never_numbers(self) -> None:
        table = Table(
            (Column("name", "name"), Column("n", "n", Unit.COUNT)), (("a" * 60, 123_456_789),)
        )
        (_, row) = table.lines(40)
        assert len(row) == 40
        assert row.endswith("…  123,456,789")

    def test_a_narrow_terminal_wraps_the_last_text_where_asked(self) -> None:
        told = " ".join(["looked"] * 20)
        table = Table(
            (Column("at", "at", Unit.TIME), Column("text", "")),
            ((1_000_000, told), (2_000_000, "x")),
        )
        lines = table.wrapped(40)
        assert max(map(len, lines)) <= 40
        assert " ".join(" ".join(lines[1:-1]).split()) == f"1 s {told}"
        assert lines[-1] == "2 s  x"
        assert table.wrapped() == table.lines()

    def test_only_the_last_column_is_wrapped(self) -> None:
        columns = (Column("a", "first"), Column("b", "second"), Column("c", "third"))
        table = Table(columns, (("x", "y", "some words that are too wide"), ("z", "w", "")))
        assert table.wrapped(30) == [
            "first  second  third",
            "x      y       some words that",
            "               are too wide",
            "z      w",
        ]

    @pytest.mark.parametrize(
        ("unit", "value", "text"),
        [
            (Unit.SHARE, 0.0, "0 %"),
            (Unit.SHARE, 0.00123, "0.12 %"),
            (Unit.SHARE, 0.00999, "1 %"),
            (Unit.SHARE, 0.01234, "1.23 %"),
            (Unit.SHARE, 0.5, "50 %"),
            (Unit.SHARE, 0.9994, "99.9 %"),
            (Unit.SHARE, 0.9996, "100 %"),
            (Unit.SHARE, 1.2345, "123 %"),
            (Unit.SHARE, 12.345, "1234 %"),
            (Unit.NUMBER, 0.12345, "0.123"),
            (Unit.NUMBER, 999.4, "999"),
            (Unit.NUMBER, -1_234.5, "-1,234"),
            (Unit.COUNT, 12_345, "12,345"),
            (Unit.TIME, None, ""),
        ],
    )
    def test_values_are_written_as_people_read_them(
        self, unit: Unit, value: float | None, text: str
    ) -> None:
        assert Column("x", "x", unit).text(value) == text

    def test_every_glyph_has_an_ascii_counterpart(self) -> None:
        drawn = "µ±…" + plots.SHADES + plots.MARKS + "├─┤"
        assert "?" not in plain(drawn)
        assert plain("1.5 µs ± 2") == "1.5 us +/- 2"


class TestSummaries:
    def test_a_summary_fits_eighty_columns(self) -> None:
        lines = [line for section in summaries.sections(summary(), 80) for line in section]
        assert max(map(len, lines)) <= 80
        text = "\n".join(lines)
        for word in ("wait time", "placement latency", "JCT", "response time", "cpu used", "busy"):
            assert word in text

    def test_a_run_that_finished_nothing_leaves_its_times_empty(self) -> None:
        row = next(r for r in summaries.times(summary(finished=0)).rows if r[0] == "JCT")
        assert set(row[1:]) == {None}

    def test_the_lives_of_tasks_are_shown_in_parts_with_their_drift(self) -> None:
        assert summaries.lives(summary()).rows == (), "not kept"
        one = Distribution(count=2, mean=3.0, p50=3.0, p90=3.0, p99=3.0, largest=3.0)
        kept = msgspec.structs.replace(
            summary(), timeline=Timeline(w2x=one, tct=one, spread={"started": one})
        )
        parts = [row[0] for row in summaries.lives(kept).rows]
        assert parts == [
            "w2x, waiting at the machine",
            "TCT, total",
            "spread of a job when started",
        ]
        assert any("life of tasks" in section[0] for section in summaries.sections(kept))

    def test_states_without_tasks_are_not_listed(self) -> None:
        states = [row[0] for row in summaries.counts(summary(finished=90)).rows]
        assert states == ["submitted", "finished", "pending"]

    def test_what_all_schedulers_share_is_not_a_column(self) -> None:
        names = [column.name for column in summaries.schedulers(summary()).columns]
        assert "engine" not in names
        assert "crashes" not in names

    def test_the_flat_row_is_plain_values(self) -> None:
        row = summaries.flat(summary())
        assert row["jct_p50"] == 8e6
        assert row["utilisation_cpu"] == 0.61
        assert all(isinstance(value, str | int | float) for value in row.values())

    def test_messages_are_counted_alike_in_every_form(self) -> None:
        row, document = summaries.flat(summary()), summaries.document(summary())
        compared = compare({"omega": [summary()]}, JCT)
        (cause,) = comparison.causes(compared.standings).records()
        for counted in (row, document, cause):
            assert (counted["messages"], counted["notices"]) == (1200, 300)
        assert row["network_lost"] == document["network"]["lost"] == 7
        assert "messages_sent" not in row
        shown = dict(summaries.totals(summary()).rows)["messages"]
        assert shown == "by schedulers 1,200, notices from machines 300, lost 7"


class TestPlots:
    def test_bars_are_proportional_and_carry_whiskers(self) -> None:
        rows = [plots.Bar("a", 50, 40, 60, "50"), plots.Bar("b", 100, 100, 100, "100")]
        assert plots.bars(rows, 28) == [
            "a  ████████├───┤         50",
            "b  ████████████████████  100",
        ]

    def test_bars_of_nothing_are_empty(self) -> None:
        assert plots.bars([plots.Bar("a", 0, 0, 0, "0")], 30)[0].split() == ["a", "0"]
        assert plots.bars([], 30) == []

    def test_stacked_parts_fill_the_longest_bar(self) -> None:
        long, short, legend = plots.stacked(
            {"a": (10, 20, 70), "b": (10, 0, 0)}, ("x", "y", "z"), "{:g}".format, 60
        )
        drawn = long.split()[1]
        assert drawn.count("░") == pytest.approx(len(drawn) / 10, abs=1)
        assert drawn.count("▓") == pytest.approx(len(drawn) / 5, abs=1)
        assert set(short.split()[1]) == {"░"}
        assert legend.split() == ["░", "x", "▓", "y", "█", "z"]

    def test_quantiles_far_apart_are_drawn_on_a_log_scale(self) -> None:
        near = plots.quantiles({"a": (1, 2, 3, 4)}, ("m",), "{:g}".format, 60)
        far = plots.quantiles({"a": (1, 2, 30, 4000)}, ("m",), "{:g}".format, 60)
        assert "log scale" not in "\n".join(near)
        assert "log scale" in "\n".join(far)
        assert max(map(len, far)) <= 60

    def test_quantiles_of_zeros_draw_nothing(self) -> None:
        assert plots.quantiles({"a": (0, 0, 0, 0)}, ("m",), "{:g}".format, 60) == []


class TunedSettings(Settings, frozen=True):
    """Settings for the test."""

    #: How many machines to look at,
    #: at most.
    looks: int = 10
    mode: Annotated[Literal["fine", "coarse"], msgspec.Meta(description="What counts.")] = "fine"
    limit: int | None = None
    names: tuple[str, ...] = ()
    pause: Micros = Micros(1_500_000)
    beat: Time = 0


class Tuned:
    name: ClassVar[str] = "tuned"
    summary: ClassVar[str] = "An engine for the test."
    settings_type: ClassVar[type[Settings]] = TunedSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        gossip=True, machine_events=True, finishes=Finishes.OWN
    )


def test_settings_are_described_by_type_default_and_comment() -> None:
    engine: type[Engine] = Tuned  # type: ignore[assignment]
    described = [(s.name, s.type, s.default_text, s.doc) for s in settings(engine)]
    assert described == [
        ("looks", "int", "10", "How many machines to look at, at most."),
        ("mode", '"fine" | "coarse"', '"fine"', "What counts."),
        ("limit", "int | none", "none", ""),
        ("names", "tuple of str", "[]", ""),
        ("pause", "time", '"1500ms"', ""),
        ("beat", "time", '"0s"', ""),
    ]
    assert [s.default for s in settings(engine)] == [10, "fine", None, (), "1500ms", "0s"]
    assert capabilities(engine) == ["gossip", "finishes: own", "machine events"]


def test_inherited_settings_and_tables_by_name_are_listed_like_others():
    known = {setting.name: setting for setting in settings(ENGINES["mesos"])}
    assert known["frameworks"].type == "tables by name"
    inner = known["frameworks.NAME.refuse"]
    assert (inner.type, inner.default_text) == ("time", "none")
    assert known["frameworks.NAME.t_job"].default == "100ms"
    inherited = {setting.name: setting.doc for setting in settings(ENGINES["omega"])}
    assert "attempts" in inherited["attempts"]


def test_an_unplaced_task_answers_with_the_nearest_miss_and_the_remedy() -> None:
    answer = WhyAnswer(
        task="train/0",
        state="pending",
        sentence="train/0 has no machine: the cell is full.",
        looked_at=1200,
        ruled_out={"arch=arm": 200, "cpu": 1000},
        nearest_miss="m-7 lacks 2 cores",
        remedy="2 more cores on any machine",
    )
    assert sentences(answer) == [
        "train/0 has no machine: the cell is full.",
        "Ruled out: 1,000 lack cpu, 200 lack arch=arm.",
        "What would help: 2 more cores on any machine.",
    ]


def test_further_sentences_are_left_as_they_are() -> None:
    answer = WhyAnswer(
        task="web/1",
        state="running",
        sentence="web/1 is on m-3.",
        details=("m-3 runs web/0.", "It waited 3 s for its turn."),
        ruled_out={"cpu": 3},
        violated=("'web -> {web, 0, 0} in machine' is broken there",),
    )
    assert sentences(answer) == [
        "web/1 is on m-3.",
        "m-3 runs web/0.",
        "It waited 3 s for its turn.",
        "'web -> {web, 0, 0} in machine' is broken there.",
    ]


def test_csv_quotes_what_needs_it() -> None:
    table = Table((Column("text", "text"),), (('say "a, b"',),))
    assert list(csv.DictReader(io.StringIO(table.csv()))) == [{"text": 'say "a, b"'}]
