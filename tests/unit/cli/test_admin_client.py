"""Replies of a server as objects and as text: foreign text is checked and made printable."""

import json
import socket
from collections.abc import Mapping

import pytest

from topodns.cli import admin_client
from topodns.cli.admin_client import AdminError, fetch_object, object_text


def name_of(found: Mapping[str, object]) -> str:
    return f"name {found['name']}\nend"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'"name"', b"[" * 100_000, b"\xff"])
def test_a_reply_that_is_no_such_object_is_refused(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    monkeypatch.setattr(admin_client, "fetch", lambda *arguments: body)
    with pytest.raises(
        AdminError, match=r"^a:1 does not answer /who; expected the `ready` address of a topodns, which has port 8181"
    ):
        fetch_object("a:1", "/who", {}, "name")


def test_control_characters_of_a_server_do_not_reach_the_terminal() -> None:
    found = {"name": "\x1b[2Jweb\r"}
    assert object_text(found, False, name_of) == "name \\x1b[2Jweb\\r\nend"
    assert json.loads(object_text(found, True, name_of)) == found
    assert "\x1b" not in object_text(found, True, name_of)


def test_a_reply_of_another_version_is_said_to_be() -> None:
    with pytest.raises(AdminError, match="the server is of another version: its reply has no 'name'"):
        object_text({}, False, name_of)


@pytest.mark.parametrize(
    ("server", "at"),
    [
        ("127.0.0.1:5381", ("127.0.0.1", 5381)),
        ("127.0.0.1", ("127.0.0.1", 8181)),
        ("topodns.example", ("topodns.example", 8181)),
        (":5381", ("127.0.0.1", 5381)),
        ("[::1]:5381", ("::1", 5381)),
        ("[::1]", ("::1", 8181)),
    ],
)
def test_host_and_port_may_be_left_out(monkeypatch: pytest.MonkeyPatch, server: str, at: tuple[str, int]) -> None:
    asked: list[tuple[str, int]] = []

    def connected(host: str, port: int, _end: float) -> socket.socket:
        asked.append((host, port))
        raise ConnectionRefusedError

    monkeypatch.setattr(admin_client, "_connected", connected)
    with pytest.raises(AdminError):
        admin_client.fetch(server, "/who", {})
    assert asked == [at]


def test_a_port_alone_is_no_address() -> None:
    with pytest.raises(AdminError, match=r"^no answer from 5381: found '5381', expected HOST:PORT; expected the"):
        admin_client.fetch("5381", "/who", {})
