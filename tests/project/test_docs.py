"""The documentation is executed: its commands, its code, its examples, its links and its names."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec
import pytest
from control_planes import skip_without_kube_tools

from argosy.campaign.dice import FEATURES
from argosy.campaign.findings import CHECKS
from argosy.campaign.worlds import WORLDS
from argosy.cli.app import COMMANDS
from argosy.engines.api import Capabilities
from argosy.engines.registry import ENGINES
from argosy.host.records import DecisionRecord, Input
from argosy.model.effects import Effect
from argosy.model.events import Event
from argosy.model.explanations import Explanation, Why
from argosy.model.transactions import MachineChange
from argosy.records import directory as layout
from argosy.records.record import JOB_COLUMNS, TASK_COLUMNS
from argosy.records.summary import Counts, Distribution, Provenance, SchedulerSummary, Summary

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted(DOCS.rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9][0-9]_*.py"))

BLOCK = re.compile(
    r"(?:^<!-- (?P<file>\S+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
#: Text and target, of links and pictures alike.
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
EXIT = re.compile(r"#\s*exits with (\d+)\s*$")


class Block(NamedTuple):
    page: Path
    number: int
    text: str
    #: The file that it shows, if a comment before it names one.
    file: str | None = None

    def __str__(self) -> str:
        return f"{name_of(self.page)}-{self.number}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(language: str = "") -> list[Block]:
    return [
        Block(page, number, match["text"], match["file"])
        for page in PAGES
        for number, match in enumerate(BLOCK.finditer(page.read_text("utf-8")), 1)
        if language in ("", match["language"])
    ]


class ShownCommand(NamedTuple):
    """A command, and the output that the documentation shows below it, which may be none."""

    line: str
    output: list[str]


def shown_commands(page: Path) -> list[ShownCommand]:
    """Lines after a prompt, with those that continue them, but those that build or version this
    repository."""
    found: list[ShownCommand] = []
    for block in blocks("console"):
        for line in block.text.splitlines() if block.page == page else ():
            if line.startswith("$ "):
                found.append(ShownCommand(line.removeprefix("$ "), []))
            elif line.startswith(">") and not found[-1].output:
                continued = found[-1].line + "\n" + line.removeprefix(">").removeprefix(" ")
                found[-1] = ShownCommand(continued, [])
            else:
                found[-1].output.append(line)
    return [each for each in found if each.line.split()[0] not in ("make", "git")]


def is_as_shown(shown: list[str], printed: str) -> bool:
    """In what is shown, ``…`` stands for any text and a line ``...`` for any lines."""
    parts = []
    for line in shown:
        pattern = ".*".join(map(re.escape, line.split("…")))
        parts.append("(?:.*\n)*" if line == "..." else f"{pattern} *\n")
    return re.fullmatch("".join(parts), printed.rstrip("\n") + "\n") is not None


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """A directory that looks like the repository to someone who follows the documentation."""
    for name in ("scenarios", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    yield tmp_path
    if (tmp_path / "state" / "argosy" / "argosy.sock").exists():
        # A page that fails halfway leaves its cluster behind.
        shell("argosy down --stop-tasks", tmp_path)


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {
        name: text for name, text in os.environ.items() if not name.startswith("ARGOSY_")
    }
    # Live clusters of the documentation are not those of whoever runs the tests.
    environment |= {"PATH": path, "XDG_STATE_HOME": str(cwd / "state")}
    return subprocess.run(
        line, shell=True, cwd=cwd, env=environment, capture_output=True, text=True
    )


@pytest.mark.parametrize("page", [page for page in PAGES if shown_commands(page)], ids=name_of)
def test_every_command_shown_works_and_prints_what_is_shown(page: Path, scratch: Path) -> None:
    for line, output in shown_commands(page):
        expected = EXIT.search(line)
        done = shell(line, scratch)
        code = int(expected[1]) if expected else 0
        assert done.returncode == code, f"{line}\n{done.stdout}{done.stderr}"
        if output:
            # Errors are shown, notes beside results are not.
            printed = done.stdout or done.stderr
            assert is_as_shown(output, printed), f"{line}\n{printed}"


def test_shown_output_is_compared_to_the_letter() -> None:
    assert is_as_shown(["a  1", "", "b"], "a  1\n\nb\n")
    assert not is_as_shown(["a  1", "", "b"], "a  2\n\nb\n")
    assert not is_as_shown(["a"], "a\nb\n")
    assert is_as_shown(["a …", "...", "c"], "a 3.14\nb\nb\nc\n")
    assert not is_as_shown(["a …", "...", "c"], "a 3.14\nb\nb\n")
    assert sum(bool(each.output) for page in PAGES for each in shown_commands(page)) > 5


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_every_piece_of_code_shown_runs(block: Block, scratch: Path) -> None:
    if "find_tools" in block.text:
        skip_without_kube_tools()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.text],
        # A file may import its neighbours.
        cwd=scratch if block.file is None else (scratch / block.file).parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", [each for each in blocks() if each.file], ids=str)
def test_every_file_shown_is_the_file(block: Block) -> None:
    assert block.file is not None
    assert block.text == (ROOT / block.file).read_text("utf-8")


def test_the_documentation_shows_the_whole_example_engine_and_policy() -> None:
    shown = {block.file for block in blocks() if block.page.name == "engines.md"} - {None}
    assert shown == {
        path.relative_to(ROOT).as_posix()
        for name in ("01_an_engine_of_your_own", "06_a_flow_policy_of_your_own")
        for path in (ROOT / "examples" / name).iterdir()
        if path.is_file()
    }


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_prints_what_its_docstring_shows(example: Path, tmp_path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(example.read_text("utf-8")))
    assert docstring is not None
    _, marker, shown = docstring.partition("Output:\n\n")
    assert marker, "an example's docstring ends with its output"
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    # Indented by four; `ast` removed the docstring's own indentation, which is none.
    assert done.stdout.splitlines() == [line[4:] for line in shown.splitlines()]


def test_examples_are_listed() -> None:
    listed = (ROOT / "examples" / "README.md").read_text("utf-8")
    for path in sorted((ROOT / "examples").glob("[0-9][0-9]_*")):
        assert path.name in listed


def anchors(page: Path) -> set[str]:
    """The anchor of a heading, as in common Markdown viewers."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text("utf-8"))
    for target in LINK.findall(text):
        assert "://" not in target, f"{target}: the documentation stands alone"
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), f"{name_of(page)} links to {target}"
        assert there.is_relative_to(ROOT)
        if anchor:
            assert anchor in anchors(there), f"{name_of(page)} links to {target}"


def test_every_page_can_be_reached() -> None:
    reached, fresh = set(), {ROOT / "README.md"}
    while fresh:
        page = fresh.pop()
        reached.add(page)
        for target in LINK.findall(page.read_text("utf-8")):
            there = (page.parent / target.partition("#")[0]).resolve()
            if there.suffix == ".md" and there not in reached:
                fresh.add(there)
    assert [name_of(page) for page in PAGES if page not in reached] == []


def test_pictures_need_nothing_from_elsewhere() -> None:
    pictures = sorted((DOCS / "pictures").glob("*.svg"))
    assert pictures
    for picture in pictures:
        text = picture.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text
        assert "@import" not in text


def fields(*structs: type[msgspec.Struct]) -> list[str]:
    return [field.name for struct in structs for field in msgspec.structs.fields(struct)]


def journal_records() -> list[type[msgspec.Struct]]:
    return [*get_args(Input), *get_args(DecisionRecord)]


def tag(record: type[msgspec.Struct]) -> str:
    return str(record.__struct_config__.tag)


MENTIONED = {
    "campaign.md": [*CHECKS, *FEATURES, *WORLDS],
    "cli.md": list(COMMANDS),
    "engines.md": [
        *ENGINES,
        *(event.__name__ for event in get_args(Event)),
        *(effect.__name__ for effect in get_args(Effect)),
        *(name for each in (*get_args(Event), *get_args(Effect)) for name in fields(each)),
        *fields(Capabilities),
    ],
    "library.md": [
        *(f"result.{name}" for name in ("summary", "scenario")),
        *("tasks_columns()", "jobs_columns()", "tasks_frame()", "jobs_frame()"),
        *("comparison.frame()", "comparison.columns()", "MissingLibrary", "argosy.ArgosyError"),
    ],
    "runs.md": [
        *map(tag, journal_records()),
        *fields(*journal_records()),
        *(change.__name__ for change in get_args(MachineChange)),
        *(why.name.lower() for why in Why if why is not Why.NONE),
        *fields(Explanation, Distribution, Summary, SchedulerSummary, Provenance),
        *TASK_COLUMNS,
        *JOB_COLUMNS,
        *(
            layout.JOURNAL,
            layout.RUNNING,
            layout.TASKS,
            layout.JOBS,
            layout.SCENARIO,
            layout.SUMMARY,
            layout.PROVENANCE,
        ),
        layout.MANIFEST,
    ],
}


@pytest.mark.parametrize("page", MENTIONED)
def test_every_name_is_explained(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    quoted = set(re.findall(r"`([^`\n]+)`", text)) | {"what"}
    assert [name for name in dict.fromkeys(MENTIONED[page]) if name not in quoted] == []


def test_every_count_is_explained() -> None:
    text = (DOCS / "runs.md").read_text("utf-8")
    for name in fields(Counts):
        assert f"`counts.{name}`" in text or f"`{name.removeprefix('tasks')}`" in text, name


def test_every_record_is_documented_with_its_fields() -> None:
    text = (DOCS / "runs.md").read_text("utf-8")
    for kind in journal_records():
        row = next(
            line
            for line in text.splitlines()
            if line.startswith("| `") and f"`{tag(kind)}`" in line.split("|")[1]
        )
        as_others = re.search(r"as `(\w+)`", row)
        if as_others:
            row += next(x for x in text.splitlines() if x.startswith(f"| `{as_others[1]}` |"))
        for field in fields(kind):
            assert field == "at" or f"`{field}`" in row, f"{tag(kind)}: {field}"


def test_the_table_of_reason_codes_is_the_enumeration() -> None:
    text = (DOCS / "runs.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", text, flags=re.MULTILINE)
    assert [(int(code), name) for code, name in rows] == [
        (int(why), why.name.lower()) for why in Why if why is not Why.NONE
    ]


def test_every_engine_and_command_is_documented() -> None:
    everything = "\n".join(page.read_text("utf-8") for page in PAGES)
    for engine in ENGINES:
        assert f"`{engine}`" in everything
    for command in COMMANDS:
        assert f"argosy {command}" in everything
