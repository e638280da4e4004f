"""Where a client looks for its server, and with which token."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from argosy.api.sockets import short_path
from argosy.client.endpoints import Endpoint, find_endpoint, find_token, state_directory
from argosy.model.errors import CommandError


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("http://localhost:99", Endpoint("localhost", 99)),
        ("http://localhost", Endpoint("localhost", 7464)),
        ("http://localhost/", Endpoint("localhost", 7464)),
        ("https://cluster.example", Endpoint("cluster.example", 443, True)),
        ("http://[::1]:8000", Endpoint("::1", 8000)),
        ("unix:/run/argosy.sock", Endpoint(socket="/run/argosy.sock")),
        ("unix:///run/argosy.sock", Endpoint(socket="/run/argosy.sock")),
        ("unix:argosy.sock", Endpoint(socket="argosy.sock")),
    ],
)
def test_a_url_names_a_server(url: str, endpoint: Endpoint) -> None:
    assert find_endpoint(url, environ={"ARGOSY_URL": "http://elsewhere"}) == endpoint


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:99",
        "ftp://x",
        "http://",
        "http://x:port",
        "http://x/v1",
        "unix:",
        "http://[x",
    ],
)
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(CommandError, match="expected http://HOST:PORT"):
        find_endpoint(url, environ={})


def test_an_address_prints_as_it_is_given() -> None:
    for url in ("http://[::1]:8000", "https://a.example:443", "unix:/run/argosy.sock"):
        assert str(find_endpoint(url)) == url


def test_without_a_server_the_environment_decides(tmp_path: Path) -> None:
    assert find_endpoint(environ={"ARGOSY_URL": "http://h:1"}) == Endpoint("h", 1)
    given = {"ARGOSY_URL": "http://h:1", "ARGOSY_DIR": "/elsewhere"}
    assert find_endpoint(directory=tmp_path, environ=given).socket == str(tmp_path / "argosy.sock")
    assert find_endpoint(environ={"ARGOSY_DIR": "/a"}).socket == "/a/argosy.sock"
    assert find_endpoint(environ={"XDG_STATE_HOME": "/s"}).socket == "/s/argosy/argosy.sock"


def test_a_relative_state_home_is_ignored() -> None:
    home = Path.home() / ".local" / "state" / "argosy"
    assert state_directory(environ={"XDG_STATE_HOME": "state"}) == home
    assert state_directory(environ={}) == home


def test_a_server_and_a_directory_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="both a server and a directory"):
        find_endpoint("http://localhost", tmp_path)


def test_the_token_comes_from_the_argument_then_the_file_then_the_environment(
    tmp_path: Path,
) -> None:
    file = tmp_path / "token"
    file.write_text("of-file\n")
    given = {"ARGOSY_TOKEN": "of-environment"}
    assert find_token("given", file, given) == "given"
    assert find_token(None, file, given) == "of-file"
    assert find_token(None, None, given) == "of-environment"
    assert find_token(None, None, {}) == ""


def test_a_token_that_cannot_be_sent_is_not_quoted(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as caught:
        find_token("secret\r\nX: y", None, {})
    assert "secret" not in str(caught.value)
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        find_token(None, tmp_path / "none", {})


@pytest.mark.parametrize(
    "url", ["http://x?a=b", "http://x#a", "http://me@x", "https://x:1/a", "http:"]
)
def test_a_url_with_more_than_an_address_is_refused(url: str) -> None:
    with pytest.raises(CommandError) as caught:
        find_endpoint(url, environ={})
    assert caught.value.problem == f"the server's URL is '{url}'"
    with pytest.raises(CommandError, match="ARGOSY_URL is"):
        find_endpoint(environ={"ARGOSY_URL": url})


def test_a_server_on_a_socket_is_called_localhost() -> None:
    assert Endpoint(socket="/s").authority == "localhost"
    assert Endpoint("::1", 5).authority == "[::1]:5"
    assert Endpoint("h", 0).authority == "h:0"


def test_tokens_are_one_line_of_ascii(tmp_path: Path) -> None:
    file = tmp_path / "token"
    for text in (b"\xff\xff", "ü".encode(), b"a b", b"a\tb"):
        file.write_bytes(text)
        with pytest.raises(CommandError, match=r"the token in .*token"):
            find_token(None, file, {})
    with pytest.raises(CommandError, match="ARGOSY_TOKEN has characters that no token has"):
        find_token(None, None, {"ARGOSY_TOKEN": "a b"})
    assert find_token(" spaced ", None, {}) == "spaced"


@pytest.fixture
def short_directory() -> Iterator[Path]:
    with TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


@pytest.mark.parametrize(("length", "is_short"), [(106, True), (107, True), (108, False)])
def test_a_path_that_no_socket_can_have_is_made_shorter(
    short_directory: Path, length: int, is_short: bool
) -> None:
    folder = short_directory / ("d" * (length - len(str(short_directory)) - len("//ü") - 1))
    folder.mkdir()
    path = str(folder / "ü")
    # Bytes count, not characters.
    assert len(path.encode()) == length
    with short_path(path) as short, socket.socket(socket.AF_UNIX) as listening:
        assert (short == path) is is_short
        listening.bind(short)
        assert Path(path).is_socket()
        descriptors = short.split("/")
    if not is_short:
        assert descriptors[:4] == ["", "proc", "self", "fd"]
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(int(descriptors[4]))


def test_a_shorter_path_is_given_back_though_its_use_fails(short_directory: Path) -> None:
    folder = short_directory / ("d" * 120)
    folder.mkdir()
    used: list[int] = []

    def refused() -> None:
        with short_path(str(folder / "s")) as short:
            used.append(int(short.split("/")[4]))
            raise ConnectionRefusedError

    with pytest.raises(ConnectionRefusedError):
        refused()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(used[0])
