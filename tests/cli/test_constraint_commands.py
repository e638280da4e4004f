"""`argosy constraints` and `argosy flow`: each form of their output."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from command_line import Call

GOOD = "a -> {b, 1, inf} in rack\nc -> {c, 0, 0} in machine hard\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "good.txt").write_text(GOOD)
    (tmp_path / "bad.txt").write_text("a -> {b, 1\n" + GOOD + "-> x\n")
    return tmp_path


class TestLint:
    def test_a_file_without_findings_has_a_heading_alone(self, argosy: Call, files: Path) -> None:
        assert argosy("constraints", "lint", "good.txt") == (0, "2 constraints, 0 findings\n", "")
        assert argosy("constraints", "lint", "good.txt", "-o", "csv").out == (
            "severity,code,place,problem\n"
        )
        assert json.loads(argosy("constraints", "lint", "good.txt", "-o", "json").out) == {
            "constraints": 2,
            "errors": 0,
            "findings": [],
        }

    def test_mistakes_are_findings_with_their_lines(self, argosy: Call, files: Path) -> None:
        told = argosy("constraints", "lint", "bad.txt")
        assert (told.code, told.err) == (1, "")
        heading, _, titles, *rows = told.out.splitlines()
        assert heading == "2 constraints, 2 findings"
        assert titles.split() == ["severity", "code", "place", "problem"]
        assert [row.split()[:4] for row in rows] == [
            ["error", "syntax", "line", "1"],
            ["error", "syntax", "line", "4"],
        ]
        document = json.loads(argosy("constraints", "lint", "bad.txt", "-o", "json").out)
        assert (document["constraints"], document["errors"]) == (2, 2)
        assert [list(each) for each in document["findings"]] == [
            ["severity", "code", "place", "problem"]
        ] * 2


class TestTranslation:
    def test_a_specification_of_yarn_counts_containers_by_tag(
        self, argosy: Call, files: Path
    ) -> None:
        (files / "c.txt").write_text(
            "appID:self & zk -> {appID:self & hb, 1, inf} in machine hard\n"
        )
        given = (
            "constraints",
            "translate",
            "c.txt",
            "--to",
            "yarn",
            "--tag",
            "zk=3",
            "--tag",
            "hb=12",
        )
        text = argosy(*given).out
        assert text.startswith("zk=3,")
        assert json.loads(argosy(*given, "-o", "json").out) == {"specification": text.rstrip("\n")}
        assert argosy(*given, "-o", "csv").out == text
        for wrong in ("zk=-1", "zk=", "zk", "zk=1.5"):
            told = argosy(*given[:5], "--tag", wrong).complaint
            assert told.endswith(f"--tag {wrong}; expected TAG=COUNT, such as zk=3")

    def test_a_pod_s_affinity_is_one_document(self, argosy: Call, files: Path) -> None:
        (files / "c.txt").write_text("web -> {web, 0, 0} in machine hard\n")
        given = ("constraints", "translate", "c.txt", "--to", "kubernetes", "--tag", "web")
        document = json.loads(argosy(*given, "-o", "json").out)
        assert "podAntiAffinity" in json.dumps(document)
        assert argosy(*given).out == json.dumps(document, indent=2) + "\n"

    def test_a_mistake_in_a_specification_names_its_file(self, argosy: Call, files: Path) -> None:
        (files / "spec").write_text("\n zk=3,NOTIN,NODE,zk \n\n")
        told = argosy("constraints", "translate", "spec", "--from", "yarn", "-o", "csv")
        assert (told.code, told.out.splitlines()[0]) == (0, "constraint")
        (files / "spec").write_text("zk=3,NEAR,NODE,zk")
        told = argosy("constraints", "translate", "spec", "--from", "yarn").complaint
        assert "]: spec: " in told

    def test_all_mistakes_of_a_file_are_told_before_it_is_translated(
        self, argosy: Call, files: Path
    ) -> None:
        told = argosy("constraints", "translate", "bad.txt", "--to", "yarn", "--tag", "a=1")
        later, first = told.err.splitlines()
        assert (told.code, told.out) == (2, "")
        assert later.startswith("bad.txt: line 4: ")
        assert first.startswith("argosy: error[command]: bad.txt: line 1: ")


NETWORK = """\
p min 4 5
n 1 4
n 4 -4
a 1 2 1 4 2
a 1 3 1 2 2
a 2 3 0 2 1
a 2 4 0 3 3
a 3 4 0 5 1
"""


class TestFlow:
    @pytest.fixture(autouse=True)
    def network(self, tmp_path: Path) -> None:
        (tmp_path / "n.min").write_text(NETWORK)

    @pytest.mark.parametrize("algorithm", ["relaxation", "cost-scaling", "shortest-paths"])
    def test_the_algorithm_is_the_one_that_was_named(self, argosy: Call, algorithm: str) -> None:
        [row] = csv.DictReader(
            io.StringIO(argosy("flow", "solve", "n.min", "--algorithm", algorithm, "-o", "csv").out)
        )
        seconds = float(row.pop("seconds"))
        assert 0 <= seconds < 60
        # What must flow costs too.
        assert row == {
            "status": "optimal", "cost": "14", "algorithm": algorithm, "vertices": "4", "arcs": "5",
        }  # fmt: skip

    def test_a_solution_is_checked_with_what_must_flow(self, argosy: Call, tmp_path: Path) -> None:
        assert argosy("flow", "solve", "n.min", "--solution", "n.sol").err == ""
        assert argosy("flow", "check", "n.min", "n.sol", "-o", "csv").out == (
            "right,cost,faults\nTrue,14,\n"
        )
        text = (tmp_path / "n.sol").read_text()
        (tmp_path / "lie.sol").write_text(text.replace("s 14", "s 15"))
        told = argosy("flow", "check", "n.min", "lie.sol", "-o", "csv")
        assert (told.code, told.out) == (
            1,
            "right,cost,faults\nFalse,15,its cost is not the cost of its flow\n",
        )

    def test_every_fault_of_a_flow_is_told(self, argosy: Call, tmp_path: Path) -> None:
        (tmp_path / "odd.sol").write_text("s 0\nf 1 2 1\nf 1 3 1\nf 2 3 0\nf 2 4 0\nf 3 4 0\n")
        told = argosy("flow", "check", "n.min", "odd.sol")
        assert told.code == 1
        document = json.loads(argosy("flow", "check", "n.min", "odd.sol", "-o", "json").out)
        faults = document["faults"]
        assert not document["right"]
        assert len(faults) == 2
        assert faults[-1] == "its cost is not the cost of its flow"
        assert "; ".join(faults) in told.out

    def test_a_problem_says_how_it_was_made(self, argosy: Call) -> None:
        text = argosy("flow", "gen", "random", "--size", "5", "--seed", "0").out
        assert "random, size 5, seed 0" in text.splitlines()[0]
        other = argosy("flow", "gen", "random", "--size", "5").out
        assert "random, size 5, seed 1" in other.splitlines()[0]
        same = argosy("flow", "gen", "ties", "--size", "9", "--utilisation", "0.9").out
        assert same == argosy("flow", "gen", "ties", "--size", "9").out


def test_no_constraints_are_no_specification(argosy: Call, tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text("# nothing yet\n")
    called = argosy("constraints", "translate", "none.txt", "--to", "yarn")
    assert (called.code, called.out, called.err) == (0, "\n", "")
