"""What both clients give their callers, over connections that break and servers that come and go."""

from __future__ import annotations

from pathlib import Path

import pytest
from client_sessions import ClientSession, bench_for_clients, run_client
from drawn_sessions import split
from memory_loop import memory_loop
from memory_sockets import memory_sockets
from pinned_digests import require_digests

PINNED = Path(__file__).parent / "pinned"
STEPS = 250
CLIENTS = {
    "blocking": {"is_beside": False, "over": "unix"},
    "blocking over the network": {"is_beside": False, "over": "tcp"},
    "asynchronous": {"is_beside": True, "over": "unix"},
}


@pytest.mark.parametrize("name", CLIENTS)
def test_clients_give_what_they_gave(
    name: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    seed = 1 + list(CLIENTS).index(name)
    with memory_loop() as loop, memory_sockets(loop) as weather:
        # Always the same port, so that clients find a server that starts again.
        bench = bench_for_clients(loop, tmp_path / "s", seed, port=7_464).start()
        session = ClientSession(bench, seed, weather, **CLIENTS[name])  # type: ignore[arg-type]
        lines = run_client(session, STEPS)
    found = {f"part {at}": text for at, text in enumerate(split(lines, "-- at ", 10))}
    require_digests(PINNED / f"{name.replace(' ', '-')}.txt", found, pytestconfig)
