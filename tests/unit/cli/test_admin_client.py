"""Replies of a server as objects and as text: foreign text is checked and made printable."""

import json
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
