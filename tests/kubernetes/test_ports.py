"""Ports that are held for servers that start later."""

from __future__ import annotations

import socket

import pytest

from argosy.kubernetes.control_plane.ports import HeldPorts


def test_a_held_port_refuses_connections_until_its_server_listens() -> None:
    held = HeldPorts(1)
    (port,) = held.numbers
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind(("127.0.0.1", port))
        server.listen()
        with socket.create_connection(("127.0.0.1", port)) as client, server.accept()[0] as other:
            client.sendall(b"hello")
            assert other.recv(5) == b"hello"
    held.close()


def test_nobody_else_gets_a_held_port() -> None:
    held = HeldPorts(3)
    assert len(set(held.numbers)) == 3
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", held.numbers[0]))
    held.close()
    with socket.socket() as other:
        other.bind(("127.0.0.1", held.numbers[0]))
