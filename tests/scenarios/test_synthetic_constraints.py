"""Kinds of synthetic jobs have placement constraints."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.model.constraints.text import format_constraint
from argosy.model.errors import UnknownName
from argosy.scenarios.loader import load

SCENARIO = """\
name = "drawn"
horizon = "1h"
[[cell.machines]]
name = "m"
count = 10
capacity = { cpu = 8000, memory = "32GiB" }
[workload.synthetic]
span = "10min"
utilisation = 0.5
[workload.synthetic.kinds.service]
tasks = { shape = "constant", value = 4 }
requests = [{ request = { cpu = 1000 } }]
tags = ["web"]
constraints = ["appID:self -> {appID:self, 0, 0} in GROUP hard"]
[[fleet]]
name = "s"
engine = "medea"
"""


def test_every_job_of_the_kind_has_them(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO.replace("GROUP", "machine"), "utf-8")
    loaded = load(path)
    assert loaded.jobs
    wanted = ["appID:self -> {appID:self, 0, 0} in machine hard"]
    assert all(list(map(format_constraint, made.job.constraints)) == wanted for made in loaded.jobs)


def test_an_unknown_group_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO.replace("GROUP", "rack"), "utf-8")
    with pytest.raises(UnknownName, match="rack") as refused:
        load(path)
    assert refused.value.field == "workload.synthetic.kinds.service.constraints[0]"
    assert refused.value.line == 14
