"""The example policy, installed as a package would be: found by entry point and used by Firmament."""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from argosy.cli.app import run as argosy
from argosy.engines.families.flow import policies
from argosy.engines.registry import ENGINES
from argosy.host.records import PlacedRecord
from argosy.model.errors import SettingError
from argosy.model.scenario import GroupSpec
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun

EXAMPLE = Path(__file__).parents[2] / "examples" / "06_a_flow_policy_of_your_own"
ENTRY = "even-racks = even_racks:EvenRacks"


def install(directory: Path, text: str, entry: str = ENTRY) -> None:
    (directory / "even_racks.py").write_text(text)
    info = directory / "even_racks-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: even-racks\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[{policies.ENTRY_POINTS}]\n{entry}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("even_racks", None)
    yield tmp_path
    sys.modules.pop("even_racks", None)


def examined(capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, str]]]:
    """The doctor's exit code, and what it says of policies."""
    code = argosy(["doctor", "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    return code, [each for each in found if each["what"] == "flow policy"]


def test_the_entry_point_tested_here_is_the_one_that_the_example_declares() -> None:
    declared = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    points = declared["project"]["entry-points"]
    assert points == {policies.ENTRY_POINTS: {"even-racks": "even_racks:EvenRacks"}}


def test_an_installed_policy_gives_tasks_to_racks_in_turn(site: Path) -> None:
    """Of eight machines, two are in the second rack. Jobs with different requests have pools of their
    own, and the second one comes when the first runs."""
    install(site, (EXAMPLE / "even_racks.py").read_text())
    plain = cell(8)
    machines = tuple(
        structs.replace(machine, joins={"rack": ("small" if number > 5 else "large",)})
        for number, machine in enumerate(plain.machines)
    )
    racks = GroupSpec(name="rack", sets=("large", "small"))
    spec = scenario(
        "firmament",
        [
            job("first", 5, cpu=100, seconds=None),
            job("second", 5, cpu=200, submit=1, seconds=None),
        ],
        cell=structs.replace(plain, machines=machines, groups=(racks,)),
        settings={"policy": "even-racks"},
        horizon=5 * SECOND,
    )
    run = ConformanceRun(ENGINES["firmament"], spec)

    def in_racks(*jobs: str) -> Counter[str]:
        return Counter(
            "small" if machine > 5 else "large"
            for name in jobs
            for record in run.of(PlacedRecord, name)
            for machine in record.machines
        )

    assert sorted(in_racks("first").values()) == [2, 3]
    assert in_racks("first", "second") == {"large": 5, "small": 5}


@pytest.mark.parametrize(
    ("text", "entry", "says"),
    [
        ("raise RuntimeError('broken')", ENTRY, "cannot be imported"),
        ("class EvenRacks: name = 'even-racks'", ENTRY, "is no policy of that name"),
        ((EXAMPLE / "even_racks.py").read_text(), "even = even_racks:EvenRacks", "is no policy of"),
    ],
)
def test_a_broken_policy_is_an_error_that_names_it(
    site: Path, text: str, entry: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site, text, entry)
    name = entry.split(" ")[0]
    with pytest.raises(SettingError, match=rf"'{name}'.*{says}"):
        policies.find_policy(name)
    code, (finding,) = examined(capsys)
    assert (code, finding["status"]) == (1, "problem")
    assert says in finding["found"]


def test_the_doctor_lists_installed_policies(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site, (EXAMPLE / "even_racks.py").read_text())
    code, (finding,) = examined(capsys)
    assert (code, finding["status"]) == (0, "ok")
    assert finding["found"] == "even-racks from even_racks:EvenRacks"
