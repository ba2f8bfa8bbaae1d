"""The client of the kubernetes package against a real server over HTTP: reads, writes, and their faults."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.certificates import SERVER_NAME, Certificates, make_certificates, needs_openssl
from tests.support.event_loops import either_loop, run
from tests.support.scripted_http_server import Answer, Seen, Served, replies, server_side, serving, text_response
from topodns.kube.client.contract import ApiError
from topodns.kube.client.credentials import ServiceAccount
from topodns.kube.client.kubeconfig import connect
from topodns.kube.client.official_client import (
    OfficialClient,
    delete,
    read_object,
    server_side_apply,
)

pytestmark = either_loop

PODS = "/api/v1/pods"
OUTSIDE = ServiceAccount(environment={})


def page(names: str, token: str = "", version: str = "7") -> bytes:
    items = [{"metadata": {"name": name}} for name in names]
    return text_response(200, json.dumps({"metadata": {"resourceVersion": version, "continue": token}, "items": items}))


def status(code: int, message: str) -> str:
    return json.dumps({"kind": "Status", "code": code, "reason": "Reason", "message": message})


def refused(code: int, message: str, **headers: str) -> bytes:
    return text_response(code, status(code, message), **headers)


def query(seen: Seen) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(seen.line.split()[1]).query).items()}


def path(seen: Seen) -> str:
    return urlsplit(seen.line.split()[1]).path


@asynccontextmanager
async def client_of(answer: Answer, directory: Path) -> AsyncIterator[tuple[OfficialClient, Served]]:
    async with serving(answer) as served:
        file = directory / "config"
        file.write_text(
            json.dumps(
                {
                    "current-context": "c",
                    "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                    "clusters": [{"name": "c", "cluster": {"server": served.url}}],
                }
            )
        )
        async with connect(str(file)) as client:
            yield client, served


Story = Callable[[OfficialClient, Served], Any]


def played(loop_name: str, directory: Path, answer: Answer, story: Story) -> None:
    async def play() -> None:
        async with client_of(answer, directory) as (client, served):
            await story(client, served)

    run(loop_name, play())


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (refused(403, 'pods is forbidden: User "x"'), '403: pods is forbidden: User "x"'),
        (text_response(503, "<html>"), "503: Service Unavailable"),
        (text_response(200, "{"), "an unreadable response"),
        (text_response(200, "[1]"), "the response is no JSON object"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "the API server"),
    ],
)
def test_a_refusal_and_a_useless_response_are_an_api_error(
    loop_name: str, tmp_path: Path, response: bytes, problem: str
) -> None:
    async def answer(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(response)
        writer.close()

    async def story(client: OfficialClient, _: Served) -> None:
        with pytest.raises(ApiError) as raised:
            await read_object(client, PODS)
        assert str(raised.value).startswith(problem)

    played(loop_name, tmp_path, answer, story)


def test_a_refusal_says_when_to_come_again(loop_name: str, tmp_path: Path) -> None:
    async def story(client: OfficialClient, _: Served) -> None:
        with pytest.raises(ApiError) as raised:
            await read_object(client, PODS)
        assert (raised.value.status, raised.value.retry_after) == (429, 3.0)

    played(loop_name, tmp_path, replies(refused(429, "too many requests", Retry_After="3")), story)


async def test_an_unreachable_server_is_an_api_error(loop_name: str, tmp_path: Path) -> None:
    async with client_of(replies(page("a")), tmp_path) as (client, _):
        pass
    async with connect(str(tmp_path / "config")) as client:
        with pytest.raises(ApiError, match="the API server"):
            await read_object(client, PODS)


def test_an_object_is_applied_by_its_field_manager(loop_name: str, tmp_path: Path) -> None:
    stored = {"metadata": {"name": "a", "resourceVersion": "9"}}

    async def story(client: OfficialClient, served: Served) -> None:
        body = {"metadata": {"name": "a"}, "spec": {"podIPs": []}}
        assert await server_side_apply(client, f"{PODS}/a", body, "me") == stored
        (seen,) = served.seen
        assert (seen.line.split()[0], path(seen), query(seen)) == (
            "PATCH", f"{PODS}/a", {"fieldManager": "me", "force": "true"}
        )  # fmt: skip
        assert seen.headers["content-type"] == "application/apply-patch+yaml"
        assert json.loads(seen.body) == body

    played(loop_name, tmp_path, replies(text_response(200, json.dumps(stored))), story)


def test_an_object_is_deleted_only_as_it_was_seen(loop_name: str, tmp_path: Path) -> None:
    async def story(client: OfficialClient, served: Served) -> None:
        await delete(client, f"{PODS}/a", uid="u", resource_version="4")
        with pytest.raises(ApiError) as raised:
            await delete(client, f"{PODS}/a")
        assert raised.value.status == 404
        assert [json.loads(seen.body)["preconditions"] for seen in served.seen] == [
            {"uid": "u", "resourceVersion": "4"}, {}
        ]  # fmt: skip

    played(loop_name, tmp_path, replies(text_response(200, "{}"), refused(404, "not found")), story)


@needs_openssl
async def test_a_token_that_was_rotated_is_read_again_after_a_refusal(loop_name: str, tmp_path: Path) -> None:
    certificates: Certificates = make_certificates(tmp_path)
    token, file = tmp_path / "token", tmp_path / "config"
    token.write_text("old\n")

    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(page("a") if seen.token == "new" else refused(401, "Unauthorized"))

    async with serving(answer, server_side(certificates)) as served:
        cluster = {"server": served.url, "certificate-authority": str(certificates.ca)}
        content = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster | {"tls-server-name": SERVER_NAME}}],
            "users": [{"name": "u", "user": {"tokenFile": "token"}}],
        }
        file.write_text(json.dumps(content))
        async with connect(str(file)) as client:
            with pytest.raises(ApiError, match="401"):
                await read_object(client, PODS)
            token.write_text("new\n")
            await read_object(client, PODS)
        assert served.tokens() == ["old", "old", "new"]
        assert served.connections == 1  # so watches go on


async def test_the_kubeconfig_is_found_as_by_kubectl(
    loop_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def problem() -> str:
        try:
            async with connect(account=OUTSIDE):
                return ""
        except ApiError as error:
            return str(error)

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert (await problem()).startswith(f"cannot read {tmp_path}/.kube/config: ")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    assert (await problem()).startswith(f"cannot read {tmp_path}/absent: ")
    for name in ("a", "b"):
        (tmp_path / name).write_text("kind: Config\n")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'a'}:{tmp_path / 'absent'}")
    assert (await problem()).startswith(f"{tmp_path}/a: no current-context, expected one")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'a'}:{tmp_path / 'b'}")
    assert await problem() == "KUBECONFIG names 2 files, expected one: choose it by --kubeconfig"
