"""Shared settings: property tests are deterministic and never judged by the clock. Fixtures that read
scenarios written into a test."""

import sys

import pytest
from browser import MISSING_BROWSER
from control_planes import MISSING
from hypothesis import settings
from outside import Install, forget_modules, install_into
from small_scenario import ALSO

from argosy.model.errors import ArgosyError, ScenarioError
from argosy.scenarios.loader import load


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="Write the texts and digests that tests keep anew instead of comparing with them.",
    )
    parser.addoption(
        "--golden-texts",
        metavar="DIRECTORY",
        help="Also write the texts there of which the tests keep only digests.",
    )


def pytest_terminal_summary(terminalreporter):
    """Whoever runs the tests without the Kubernetes tools or a browser is told what was not tested."""
    skipped = [report.longrepr[2] for report in terminalreporter.getreports("skipped")]
    for what, missing in (("Kubernetes", MISSING), ("the page", MISSING_BROWSER)):
        reasons = [reason.partition(missing)[2] for reason in skipped if missing in reason]
        if reasons:
            terminalreporter.write_line(f"{len(reasons)} tests of {what} skipped: {reasons[0]}")


settings.register_profile("argosy", derandomize=True, deadline=None)
settings.load_profile("argosy")


@pytest.fixture
def read(tmp_path):
    def read_text(text, **options):
        path = tmp_path / "scenario.toml"
        path.write_text(text)
        return load(path, also=ALSO, **options)

    return read_text


@pytest.fixture
def refused(read, tmp_path):
    """The error of a text, having checked that it names the file."""

    def refuse(text, kind=ScenarioError):
        with pytest.raises(kind) as caught:
            read(text)
        assert isinstance(caught.value, ArgosyError)
        assert caught.value.file == str(tmp_path / "scenario.toml")
        return caught.value

    return refuse


@pytest.fixture
def fresh_modules(tmp_path, monkeypatch):
    """An empty directory for modules called `roomiest` and `unfinished`, which are forgotten afterwards;
    so is what was added to the path."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    forget_modules("roomiest", "unfinished")
    yield tmp_path
    forget_modules("roomiest", "unfinished")


@pytest.fixture
def install(fresh_modules, monkeypatch) -> Install:
    def install_text(text, *, package="roomiest", entry_points=None):
        directory = fresh_modules / "site"
        directory.mkdir(exist_ok=True)
        declared = entry_points or {"roomiest": "roomiest:Roomiest"}
        install_into(directory, text, package, declared)
        if str(directory) not in sys.path:
            monkeypatch.syspath_prepend(str(directory))
        return directory

    return install_text
