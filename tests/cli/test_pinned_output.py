"""What commands print about one small scenario, word by word."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from golden_log import require_golden

from argosy.cli import app
from argosy.cli.app import run

JOBS = "".join(
    f"""
[[workload.jobs]]
id = "j{i}"
count = {1 + i % 3}
submit = "{i * 700}ms"
duration = "{2 + i % 4}s"
request = {{ cpu = {500 * (1 + i % 4)}, memory = "{1 + i % 2}GiB" }}
"""
    for i in range(12)
)
SCENARIO = f"""\
name = "pinned"
horizon = "1min"

[[cell.machines]]
name = "m"
count = 3
capacity = {{ cpu = 4000, memory = "8GiB" }}

[cell.groups]
rack = {{ size = 2 }}
{JOBS}
[[workload.jobs]]
id = "web"
kind = "service"
count = 2
precedence = 2
request = {{ cpu = 500 }}
tags = ["w"]
constraints = ["w -> {{w, 0, 0}} in machine hard", "w -> {{db, 1, inf}} in rack"]

[[workload.jobs]]
id = "gang"
count = 3
gang = true
duration = "3s"
submit = "1s"
request = {{ cpu = 2500 }}

[[workload.jobs]]
id = "giant"
duration = "3s"
submit = "2s"
request = {{ cpu = 64000 }}

[[fleet]]
name = "s"
engine = "omega"
replicas = 2

[[faults]]
kind = "machine-crash"
at = "4s"
machine = "m-1"
down = "3s"
"""
#: Schedulers that send each other messages, and crash; some messages are lost.
CHATTY = (
    SCENARIO.replace('engine = "omega"', 'engine = "murmuration"')
    + """
[[faults]]
kind = "scheduler-crash"
at = "5s"
scheduler = "s-1"
down = "2s"

[network]
loss = 0.1
duplication = 0.1
"""
)
RUN = ("--run", "done")
COMPARED = ("compare", "pinned.toml", "--seeds", "2", "--jobs", "1")
ENGINES = ("--engine", "omega", "--engine", "sparrow", "--engine", "jkube")
CALLS = [
    ("run", "pinned.toml", "--out", "done"),
    ("summary", "done", "-o", "csv"),
    ("run", "chatty.toml", "--out", "chatty", "--seed", "7"),
    ("story", "j5/0", "--run", "chatty"),
    ("audit", *RUN),
    ("audit", *RUN, "-o", "csv"),
    ("audit", *RUN, "-o", "json"),
    ("why", "giant/0", *RUN),
    ("why", "giant/0", *RUN, "-o", "json"),
    ("why", "j3/0", *RUN),
    ("why", "web/1", *RUN, "-o", "csv"),
    ("story", "gang/1", *RUN),
    ("story", "web/0", *RUN, "-o", "csv"),
    ("replay", "done"),
    ("replay", "done", "-o", "json"),
    ("replay", "done", "--engine", "sparrow"),
    ("replay", "done", "--engine", "sparrow", "-o", "csv"),
    (*COMPARED, *ENGINES),
    (*COMPARED, *ENGINES, "--metric", "wait.p90", "--metric", "conflicts", "-o", "csv"),
    (*COMPARED, "--engine", "omega", "--engine", "spread", "-o", "json"),
    (
        "compare",
        "pinned.toml",
        *ENGINES,
        *("--seed", "4", "--seed", "9", "--seed", "4"),
        "-o",
        "csv",
    ),
    ("engines",),
    ("engines", "-o", "csv"),
    ("engines", "sparrow"),
    ("engines", "eagle", "-o", "json"),
    ("constraints", "lint", "pinned.toml"),
    ("constraints", "lint", "pinned.toml", "-o", "csv"),
]
SUBCOMMANDS = (
    *("flow solve", "flow gen", "flow check", "fleet set"),
    *("machines add", "machines resize", "machines remove"),
    *("kubernetes guard", "kubernetes demo", "kubernetes plan"),
)


def steady(text: str) -> str:
    """Without how long a check took, and with as many digits as every computer agrees on."""
    text = re.sub(r'("seconds": |replayed in )[\d.]+', r"\1...", text)
    return re.sub(r"\d+\.\d{5,}(e-?\d+)?", lambda digits: f"{float(digits[0]):.6g}", text)


def printed(capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    for arguments in CALLS:
        code = run(list(arguments))
        out, err = capsys.readouterr()
        yield f"$ argosy {' '.join(arguments)}\n{steady(out)}"
        yield "".join(f"! {line}\n" for line in err.splitlines())
        yield f"= {code}\n\n"


def test_help_is_pinned_word_by_word(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = []
    for command in ("", *app.COMMANDS, *SUBCOMMANDS):
        assert run([*command.split(), "--help"]) == 0
        told.append(capsys.readouterr().out)
    for command in ("", "why", "story", "ps", "top", "plan"):
        assert run([*command.split(), "--help"], is_plugin=True) == 0
        told.append(capsys.readouterr().out)
    update = request.config.getoption("--update-golden")
    require_golden("help", "\n".join(told), update=update, folder=Path(__file__).parent)


def test_output_is_pinned_word_by_word(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pinned.toml").write_text(SCENARIO)
    Path("chatty.toml").write_text(CHATTY)
    text = "".join(printed(capsys))
    update = request.config.getoption("--update-golden")
    require_golden("output", text, update=update, folder=Path(__file__).parent)


def test_a_run_remembers_the_command_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pinned.toml").write_text(SCENARIO)
    arguments = ["run", "pinned.toml", "--out", "done"]
    monkeypatch.setattr("sys.argv", ["/somewhere/bin/argosy", *arguments])
    assert run(None) == 0
    assert json.loads(Path("done/provenance.json").read_text())["command"] == ["argosy", *arguments]
