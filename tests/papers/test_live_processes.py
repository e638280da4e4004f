"""Programs of the Vela paper's live part: which answers count."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.errors import CommandError
from argosy.papers.vela import processes
from argosy.papers.vela.processes import LiveProcess


@pytest.mark.parametrize("status", [200, 201, 202, 204, 302, 400, 409, 500])
def test_only_what_a_server_grants_counts_as_done(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Connection:
        def __init__(self, place: str, timeout: float) -> None:
            self.status = status

        def request(self, *asked: Any) -> None:
            pass

        def getresponse(self) -> Connection:
            return self

        def read(self) -> bytes:
            return b"{}"

        def close(self) -> None:
            pass

    monkeypatch.setattr(processes, "HTTPConnection", Connection)
    process = LiveProcess.__new__(LiveProcess)
    process.url, process._what = "http://127.0.0.1:9", "argosy agent"
    if status in (200, 201):
        assert process.get("/v1/jobs") == b"{}"
    else:
        with pytest.raises(CommandError, match=f"argosy agent answers GET /v1/jobs with {status}"):
            process.get("/v1/jobs")
