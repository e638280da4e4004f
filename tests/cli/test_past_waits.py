"""Why a finished task had to wait, told in the past."""

from __future__ import annotations

from pathlib import Path

from command_line import Call

SCENARIO = """\
name = "narrow"
horizon = "1min"
[[cell.machines]]
name = "m"
count = 1
capacity = { cpu = 1000, memory = "1GiB" }
[[workload.jobs]]
id = "first"
duration = "10s"
request = { cpu = 1000 }
[[workload.jobs]]
id = "second"
submit = "1s"
duration = "1s"
request = { cpu = 1000 }
[[fleet]]
name = "s"
engine = "omega"
"""


def test_the_only_machine_did_not_have_room(argosy: Call, tmp_path: Path) -> None:
    (tmp_path / "narrow.toml").write_text(SCENARIO, "utf-8")
    run = str(tmp_path / "run")
    assert argosy("run", str(tmp_path / "narrow.toml"), "--out", run).code == 0
    told = argosy("why", "second/0", "--run", run).out
    assert "the only machine did not have 1 core free" in told
