"""Random requests made from the OpenAPI description. `bench/api_fuzz.py` makes many more."""

from __future__ import annotations

from pathlib import Path

from api_fuzzing import Fuzzer, fuzzed_server, harmless, leftovers


def test_what_is_generated_executes_nothing_but_true() -> None:
    evil = {"jobs": [{"command": "rm -rf /", "groups": [{"command": ["/bin/sh", "-c", "x"]}]}]}
    assert harmless(evil) == {
        "jobs": [{"command": "true", "groups": [{"command": ["true", "-c", "x"]}]}]
    }


def test_random_requests_are_answered_as_described(tmp_path: Path) -> None:
    with fuzzed_server(tmp_path) as server:
        fuzzer = Fuzzer(server, 1)
        fuzzer.run(200)
        server.clean_up()
        assert leftovers(server) == []
        assert "internal error" not in server.log()
        assert server.ask("GET", "/v1/health").json()["status"] == "ok"
    assert sum(fuzzer.answers.values()) >= 200
    accepted = {route for route, status in fuzzer.answers if status < 300}
    assert {"POST /v1/jobs", "GET /v1/jobs/{job}", "GET /v1/events"} <= accepted
