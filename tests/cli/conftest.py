from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Call, Result

from argosy import cli


@pytest.fixture
def argosy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """Calls the command line in an empty directory, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARGOSY_DEBUG", raising=False)

    def call(*arguments: str | Path) -> Result:
        with pytest.raises(SystemExit) as stop:
            cli.main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return Result(stop.value.code, out, err)

    return call
