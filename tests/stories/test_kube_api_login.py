"""The identity that a kubeconfig gives, as a real server over TLS sees it, and the part of an exec plugin in it."""

import asyncio
import base64
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.certificates import SERVER_NAME, Certificates, make_certificates, needs_openssl
from tests.support.event_loops import either_loop, eventually, run
from tests.support.scripted_http_server import Seen, Served, replies, server_side, serving, text_response
from topodns.kube.client import connect
from topodns.kube.client.contract import DEADLINES, ApiError, ApiSettings, KubeApi, RequestDeadlines
from topodns.kube.client.credentials import OURS

pytestmark = [needs_openssl, either_loop]

OK = text_response(200, "{}")
VERSION = "client.authentication.k8s.io/v1"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


class Files:
    """A directory with a kubeconfig, and with a plugin that prints what `printed` holds and counts its runs."""

    def __init__(self, directory: Path, ca: Path) -> None:
        self.directory = directory
        self._ca = str(ca)
        self.kubeconfig = directory / "config"
        self._plugin = directory / "plugin"
        self._plugin.write_text(f'#!/bin/sh\ncd "{directory}"\necho run >> runs\ncat printed\n. ./more\n')
        self._plugin.chmod(0o755)
        self.plugin_goes_on("")

    def write(self, served: Served, user: dict[str, Any], **cluster: object) -> ApiSettings:
        """The settings for a kubeconfig with this user and, beside what it takes to reach the server, this cluster."""
        fields = {"server": served.url, "certificate-authority": self._ca} | {
            name.replace("_", "-"): value for name, value in cluster.items()
        }
        content = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {name: value for name, value in fields.items() if value}}],
            "users": [{"name": "u", "user": user}],
        }
        self.kubeconfig.write_text(json.dumps(content))
        return ApiSettings(kubeconfig=str(self.kubeconfig))

    def plugin_prints(self, **status: str) -> None:
        credential = {"kind": "ExecCredential", "apiVersion": VERSION, "status": status}
        (self.directory / "printed").write_text(json.dumps(credential))

    def plugin_goes_on(self, script: str) -> None:
        (self.directory / "more").write_text(script)

    def plugin(self, **fields: object) -> dict[str, Any]:
        """A user who is whom the plugin says."""
        return {"exec": {"apiVersion": VERSION, "command": "./plugin", "args": ["login"], **fields}}

    @property
    def runs(self) -> int:
        path = self.directory / "runs"
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def files(tmp_path: Path, certificates: Certificates) -> Files:
    return Files(tmp_path, certificates.ca)


@asynccontextmanager
async def connected(settings: ApiSettings, deadlines: RequestDeadlines = DEADLINES) -> AsyncIterator[KubeApi]:
    api = await connect(settings, OURS, deadlines)
    try:
        yield api
    finally:
        await api.close()


async def read(api: KubeApi) -> bytes:
    async with api.stream("/version", {}) as pieces:
        return b"".join([piece async for piece in pieces])


async def problem_of(settings: ApiSettings, deadlines: RequestDeadlines = DEADLINES) -> str:
    with pytest.raises(ApiError) as caught:
        async with connected(settings, deadlines) as api:
            await read(api)
    assert caught.value.status == 0
    return str(caught.value)


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


UserOf = Callable[[Certificates], dict[str, Any]]
USERS: dict[str, tuple[UserOf, str, str]] = {
    "a token": (lambda _: {"token": "abc"}, "", "abc"),
    "files": (
        lambda c: {"client-certificate": str(c.client.certificate), "client-key": str(c.client.key)},
        "reader",
        "",
    ),
    "data": (
        lambda c: {
            "client-certificate-data": encoded(c.client.certificate),
            "client-key-data": encoded(c.client.key),
        },
        "reader",
        "",
    ),
    "a certificate and a token": (
        lambda c: {"client-certificate": str(c.client.certificate), "client-key": str(c.client.key), "token": "abc"},
        "reader",
        "abc",
    ),
}


@pytest.mark.parametrize("name", USERS)
async def test_the_server_sees_the_user_of_the_kubeconfig(
    loop_name: str, name: str, certificates: Certificates, files: Files
) -> None:
    user, client, token = USERS[name]
    async with serving(replies(OK), server_side(certificates, asks_for_clients=True)) as served:
        data = {"certificate_authority_data": encoded(certificates.ca), "certificate_authority": ""}
        for cluster in ({}, data):
            async with connected(files.write(served, user(certificates), **cluster)) as api:
                assert await read(api) == b"{}"
    assert [(request.client, request.token) for request in served.seen] == [(client, token)] * 2


async def test_a_certificate_that_was_rotated_is_presented_after_the_old_one_was_refused(
    loop_name: str, certificates: Certificates, files: Files
) -> None:
    pair = [files.directory / "me.crt", files.directory / "me.key"]

    def present(certificate: Path, key: Path) -> None:
        pair[0].write_bytes(certificate.read_bytes())
        pair[1].write_bytes(key.read_bytes())

    async def answer(request: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(OK if request.client == "reader" else text_response(401))

    present(certificates.server.certificate, certificates.server.key)
    async with serving(answer, server_side(certificates, asks_for_clients=True)) as served:
        user = {"client-certificate": "me.crt", "client-key": "me.key"}
        async with connected(files.write(served, user)) as api:
            with pytest.raises(ApiError, match="401"):
                await read(api)
            present(certificates.client.certificate, certificates.client.key)
            assert await read(api) == b"{}"
    assert [request.client for request in served.seen] == ["server", "server", "reader"]


async def test_the_name_in_the_certificate_may_be_another_than_the_url_s(
    loop_name: str, certificates: Certificates, files: Files
) -> None:
    async with serving(replies(OK), server_side(certificates)) as served:
        served.url = served.url.replace("127.0.0.1", "localhost")
        assert "Hostname mismatch" in await problem_of(files.write(served, {}))
        async with connected(files.write(served, {}, tls_server_name=SERVER_NAME)) as api:
            assert await read(api) == b"{}"


@pytest.mark.parametrize("number", range(6))
async def test_the_server_is_never_identified_by_its_common_name(
    loop_name: str, number: int, certificates: Certificates, files: Files
) -> None:
    """RFC 9525 section 2; client-go refuses such a certificate too."""
    server = certificates.unnamed[number]
    async with serving(replies(OK), server_side(certificates, server=server)) as served:
        settings = files.write(served, {}, tls_server_name=server.common_name)
        assert "its certificate is not trusted" in await problem_of(settings)
        assert served.seen == []


async def test_a_server_is_believed_unseen_where_the_kubeconfig_says_so(
    loop_name: str, certificates: Certificates, files: Files
) -> None:
    async with serving(replies(OK), server_side(certificates)) as served:
        unknown = {"certificate_authority": str(certificates.other_ca)}
        assert "its certificate is not trusted" in await problem_of(files.write(served, {}, **unknown))
        settings = files.write(served, {}, insecure_skip_tls_verify=True, certificate_authority="")
        async with connected(settings) as api:
            assert await read(api) == b"{}"


@asynccontextmanager
async def tunnelling(asked: list[bytes]) -> AsyncIterator[str]:
    """A proxy that connects to whatever it is asked for, after `asked` has got the line."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        host, _, port = asked[0].split()[1].decode().rpartition(":")
        while await reader.readline() != b"\r\n":
            pass
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(pump(reader, back), pump(there, writer))

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65536):
                writer.write(piece)
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_requests_go_through_the_proxy_of_the_kubeconfig(
    loop_name: str, certificates: Certificates, files: Files
) -> None:
    asked: list[bytes] = []
    async with serving(replies(OK), server_side(certificates)) as served, tunnelling(asked) as proxy:
        async with connected(files.write(served, {"token": "abc"}, proxy_url=proxy)) as api:
            assert await read(api) == b"{}"
        await eventually(lambda: served.closed == 1)
    assert asked == [f"CONNECT {served.url.removeprefix('https://')} HTTP/1.1\r\n".encode()]
    assert served.tokens() == ["abc"]


async def test_a_proxy_that_refuses_is_blamed_without_its_password(
    loop_name: str, certificates: Certificates, files: Files
) -> None:
    async with serving(replies(OK)) as served, serving(replies(text_response(407))) as proxy:
        served.url = served.url.replace("http:", "https:")
        url = proxy.url.replace("http://", "http://me:secret@")
        problem = await problem_of(files.write(served, {}, proxy_url=url))
        assert problem == f"{served.url}: the proxy refused with 407"
    problem = await problem_of(files.write(served, {}, proxy_url=url))
    assert problem == f"{served.url}: the proxy cannot be reached: connection refused"


@pytest.mark.parametrize("wrong", ["certificate_authority", "client-certificate", "client-key"])
async def test_certificates_that_are_none_are_named(
    loop_name: str, wrong: str, certificates: Certificates, files: Files
) -> None:
    garbage = files.directory / "garbage"
    garbage.write_text("no certificate")
    user = {"client-certificate": str(certificates.client.certificate), "client-key": str(certificates.client.key)}
    cluster: dict[str, str] = {}
    (cluster if "_" in wrong else user)[wrong] = str(garbage)
    async with serving(replies(OK), server_side(certificates)) as served:
        problem = await problem_of(files.write(served, user, **cluster))
    assert problem.startswith("cannot use the certificates in ")
    assert str(garbage) in problem


async def test_a_plugin_s_token_is_kept_until_it_ends_or_is_refused(
    loop_name: str, certificates: Certificates, files: Files
) -> None:
    accepted = {"one", "two", "three"}

    async def answer(request: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(OK if request.token in accepted else text_response(401))

    async with serving(answer, server_side(certificates)) as served:
        files.plugin_prints(token="one", expirationTimestamp="2999-01-01T00:00:00Z")
        async with connected(files.write(served, files.plugin()), RequestDeadlines(login_age=0)) as api:
            await read(api)
            files.plugin_prints(token="two", expirationTimestamp="2020-01-01T00:00:00Z")
            await read(api)
            assert files.runs == 1
            accepted.discard("one")
            await read(api)  # refused, so that the plugin runs again; its token ended in 2020
            assert files.runs == 2
            files.plugin_prints(token="three")  # for ever
            await read(api)
            await read(api)
            assert files.runs == 3
    assert served.tokens() == ["one", "one", "one", "two", "three", "three"]


async def test_a_plugin_runs_once_for_all_that_wait_for_it(
    loop_name: str, certificates: Certificates, files: Files
) -> None:
    async def answer(request: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(OK if request.token == "new" else text_response(401))

    async with serving(answer, server_side(certificates)) as served:
        files.plugin_prints(token="old")
        async with connected(files.write(served, files.plugin())) as api:
            files.plugin_prints(token="new")
            assert await asyncio.gather(*(read(api) for _ in range(5))) == [b"{}"] * 5
    assert files.runs == 2
    assert sorted(served.tokens()) == ["new"] * 5 + ["old"] * 5


async def test_a_plugin_may_give_a_certificate(loop_name: str, certificates: Certificates, files: Files) -> None:
    async with serving(replies(OK), server_side(certificates, asks_for_clients=True)) as served:
        files.plugin_prints(
            clientCertificateData=certificates.client.certificate.read_text(),
            clientKeyData=certificates.client.key.read_text(),
        )
        async with connected(files.write(served, files.plugin())) as api:
            await read(api)
    assert [(request.client, request.token) for request in served.seen] == [("reader", "")]


async def test_a_plugin_gets_the_arguments_and_environment_of_the_kubeconfig(
    loop_name: str, certificates: Certificates, files: Files
) -> None:
    async with serving(replies(OK), server_side(certificates)) as served:
        script = (
            "import json, os, sys\n"
            "got = [sys.argv[1:], os.environ['REGION'], json.loads(os.environ['KUBERNETES_EXEC_INFO'])]\n"
            "got.append(sys.stdin.read())\n"
            "got = {'token': json.dumps(got).encode().hex()}\n"
            f"print(json.dumps({{'kind': 'ExecCredential', 'apiVersion': '{VERSION}', 'status': got}}))"
        )
        user = files.plugin(command=sys.executable, args=["-c", script, "a b"], env=[{"name": "REGION", "value": "x"}])
        async with connected(files.write(served, user)) as api:
            await read(api)
    info = {"kind": "ExecCredential", "apiVersion": VERSION, "spec": {"interactive": False}}
    assert json.loads(bytes.fromhex(served.tokens()[0])) == [["a b"], "x", info, ""]


@pytest.mark.parametrize(
    ("script", "fields", "problem"),
    [
        ("echo no such profile >&2; exit 3", {}, "ended with status 3: no such profile"),
        ("exit 1", {}, "ended with status 1: no word on stderr"),
        (
            "echo",
            {"command": "/nowhere/aws", "installHint": "apt install aws"},
            "cannot run /nowhere/aws: No such file or directory. apt install aws",
        ),
        ("echo", {"command": "no-such-program"}, "cannot run no-such-program: No such file or directory"),
        ("echo", {"interactiveMode": "Always"}, "wants a terminal"),
        ("echo", {"provideClusterInfo": True}, "the cluster's description"),
        ("echo", {"args": "login"}, "args is 'login', expected a list"),
        ("echo '{}'", {}, "printed is no ExecCredential"),
        (
            f'printf \'{{"kind":"ExecCredential","apiVersion":"{VERSION}","status":{{}}}}\'',
            {},
            "printed neither a token nor a certificate",
        ),
        (
            'printf \'{"kind":"ExecCredential","apiVersion":"v9","status":{"token":"a"}}\'',
            {},
            "did not print an ExecCredential of",
        ),
    ],
)
async def test_a_plugin_that_fails_says_why(
    loop_name: str, script: str, fields: dict[str, object], problem: str, certificates: Certificates, files: Files
) -> None:
    (files.directory / "printed").touch()
    files.plugin_goes_on(script)
    async with serving(replies(OK), server_side(certificates)) as served:
        found = await problem_of(files.write(served, files.plugin(**fields)))
    assert found.startswith(f"{files.kubeconfig}: exec: ")
    assert problem in found


async def test_a_plugin_that_hangs_is_ended_with_its_children(
    loop_name: str, certificates: Certificates, files: Files
) -> None:
    (files.directory / "printed").touch()
    files.plugin_goes_on("sleep 600 & echo $! > child; echo $$ > parent; wait")

    def alive(name: str) -> bool:
        number = int((files.directory / name).read_text())
        try:
            return "\nState:\tZ" not in Path(f"/proc/{number}/status").read_text()
        except FileNotFoundError:
            return False

    async with serving(replies(OK), server_side(certificates)) as served:
        problem = await problem_of(files.write(served, files.plugin()), RequestDeadlines(login=0.3))
    assert problem.endswith("took longer than 0.3 s")
    await eventually(lambda: not alive("parent") and not alive("child"))


def test_while_a_plugin_fails_the_last_token_stays_in_use(
    loop_name: str, certificates: Certificates, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with serving(replies(OK), server_side(certificates)) as served:
            files.plugin_prints(token="one", expirationTimestamp="2020-01-01T00:00:00Z")
            async with connected(files.write(served, files.plugin())) as api:
                files.plugin_goes_on("exit 1")
                assert await read(api) == b"{}"
        assert served.tokens() == ["one"]

    run(loop_name, story())
    assert "ended with status 1" in caplog.text


async def test_modules_that_cost_memory_are_imported_only_where_they_are_needed(loop_name: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a")
    code = f"""
import asyncio, sys
from topodns.kube.client import connect
from topodns.kube.client.credentials import ServiceAccount
from topodns.kube.client.contract import ApiSettings

def loaded():
    return [name for name in ("aiohttp", "kubernetes") if name in sys.modules]

async def main():
    print(loaded())
    account = ServiceAccount({str(tmp_path)!r}, {{"KUBERNETES_SERVICE_HOST": "::1", "KUBERNETES_SERVICE_PORT": "1"}})
    await (await connect(ApiSettings(), account)).close()
    print(loaded())

asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.getcwd()}
    )
    printed, _ = await process.communicate()
    assert printed.decode().splitlines() == ["[]", "['aiohttp']"]
