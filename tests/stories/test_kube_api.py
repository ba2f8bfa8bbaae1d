"""Requests to an API server over real TLS, and what becomes of them when it or the way to it fails."""

import asyncio
import socket
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.api_client import connected, read, refused, trusting
from tests.support.certificates import Certificates, make_certificates, needs_openssl
from tests.support.event_loops import PATIENCE, SLOWNESS, either_loop, eventually, run
from tests.support.scripted_http_server import Seen, Served, replies, server_side, serving, silence, text_response
from topodns import __version__
from topodns.kube.client.contract import ApiError, ApiSettings, RequestDeadlines
from topodns.kube.client.credentials import ServiceAccount
from topodns.kube.client.http import open_socket

pytestmark = [needs_openssl, either_loop]

QUICK = RequestDeadlines(connect=0.2, response=0.4)
SOON = RequestDeadlines(connect=PATIENCE, response=SLOWNESS)
OK = text_response(200, "{}")
FORBIDDEN = '{"kind":"Status","message":"services is forbidden: User \\"dns\\" cannot list","code":403}'


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


class Pod:
    """The directory and the environment of a Pod whose API server is this one."""

    def __init__(self, directory: Path, ca: Path) -> None:
        self._directory = directory
        (directory / "ca.crt").write_bytes(ca.read_bytes())
        self.rotate("first")

    def rotate(self, token: str) -> None:
        (self._directory / "token").write_text(f"{token}\n")

    def account(self, served: Served) -> ServiceAccount:
        url = urlsplit(served.url)
        environment = {"KUBERNETES_SERVICE_HOST": str(url.hostname), "KUBERNETES_SERVICE_PORT": str(url.port)}
        return ServiceAccount(str(self._directory), environment)


@pytest.fixture
def pod(tmp_path: Path, certificates: Certificates) -> Pod:
    return Pod(tmp_path, certificates.ca)


async def test_a_pod_sends_its_token_and_a_user_agent(loop_name: str, certificates: Certificates, pod: Pod) -> None:
    async with (
        serving(replies(text_response(200, "body")), server_side(certificates)) as served,
        connected(ApiSettings(), pod.account(served)) as api,
    ):
        assert await read(api, limit="500", labelSelector="app in (web, db),!x") == b"body"
        (request,) = served.seen
    target = urlsplit(request.line.split(" ")[1])
    assert request.line.startswith("GET /api/v1/services?")
    assert parse_qs(target.query) == {"limit": ["500"], "labelSelector": ["app in (web, db),!x"]}
    assert request.headers["authorization"] == "Bearer first"
    assert request.headers["accept"] == "application/json"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["user-agent"].startswith(f"topodns/{__version__} (linux/")


async def test_k14_a_token_is_read_again_when_it_is_a_minute_old(
    loop_name: str, certificates: Certificates, pod: Pod
) -> None:
    async with serving(replies(OK), server_side(certificates)) as served:
        for login_age in (60.0, 0.0):
            pod.rotate("first")
            async with connected(ApiSettings(), pod.account(served), RequestDeadlines(login_age=login_age)) as api:
                await read(api)
                pod.rotate("second")
                await read(api)
    assert served.tokens() == ["first", "first", "first", "second"]


async def test_k14_a_token_that_is_refused_is_read_again_at_once(
    loop_name: str, certificates: Certificates, pod: Pod
) -> None:
    async with (
        serving(replies(OK, text_response(401), OK), server_side(certificates)) as served,
        connected(ApiSettings(), pod.account(served)) as api,
    ):
        await read(api)
        pod.rotate("second")
        assert await read(api) == b"{}"
    assert served.tokens() == ["first", "first", "second"]


async def test_k14_the_same_token_is_not_tried_twice(loop_name: str, certificates: Certificates, pod: Pod) -> None:
    async with (
        serving(
            replies(text_response(401, '{"kind":"Status","message":"Unauthorized"}')), server_side(certificates)
        ) as served,
        connected(ApiSettings(), pod.account(served)) as api,
    ):
        problem = await refused(api)
        assert (problem.status, str(problem)) == (401, "401: Unauthorized")
        assert served.tokens() == ["first"]
        pod.rotate("second")
        assert (await refused(api)).status == 401
    assert served.tokens() == ["first", "first", "second"]


def test_k14_a_token_file_that_is_gone_leaves_the_token_in_use(
    loop_name: str, certificates: Certificates, pod: Pod, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with (
            serving(replies(OK), server_side(certificates)) as served,
            connected(ApiSettings(), pod.account(served), RequestDeadlines(login_age=0)) as api,
        ):
            (tmp_path / "token").unlink()
            assert await read(api) == b"{}"
        assert served.tokens() == ["first"]

    run(loop_name, story())
    assert "cannot read the service account token" in caplog.text


async def test_k04_a_port_that_accepts_and_says_nothing(loop_name: str, pod: Pod) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hole:
        served = Served(f"https://127.0.0.1:{hole.getsockname()[1]}", silence)
        async with connected(ApiSettings(), pod.account(served), QUICK) as api:
            problem = await refused(api)
    assert (problem.status, str(problem)) == (0, f"{served.url}: no connection within 0.2 s")


@pytest.mark.parametrize("tls", [True, False])
async def test_k04_after_a_request_without_a_response_the_next_one_takes_a_new_connection(
    loop_name: str, tls: bool, certificates: Certificates
) -> None:
    async def answer_both(_: Seen, writer: asyncio.StreamWriter) -> None:
        await eventually(lambda: len(served.seen) == 2)
        writer.write(OK)

    async with serving(answer_both, server_side(certificates) if tls else None) as served:
        settings = trusting(served, certificates)
        async with connected(settings, deadlines=SOON) as api:
            await asyncio.gather(read(api), read(api))
            served.answer = replies(OK)
            await read(api)
            assert served.connections == 2  # now both idle
            served.answer = silence
            assert str(await refused(api)) == f"{served.url}: no response within {SOON.response:g} s"
            served.answer = replies(OK)
            await read(api)
    assert served.connections == served.seen[-1].connection == 3


async def test_k04_one_watch_that_fails_does_not_disturb_another(loop_name: str, certificates: Certificates) -> None:
    """Each is on a connection of its own, and only idle ones are given up."""

    async def answer(request: Seen, writer: asyncio.StreamWriter) -> None:
        if "silent" not in request.line:
            writer.write(text_response(200, "one two", Content_Length="7")[:-4])
            await asyncio.wait_for(released.wait(), PATIENCE)
            writer.write(b" two")

    released = asyncio.Event()
    async with serving(answer, server_side(certificates)) as served:
        settings = trusting(served, certificates)
        async with connected(settings, deadlines=QUICK) as api, api.stream("/watched", {}) as pieces:
            assert await anext(pieces) == b"one"
            with pytest.raises(ApiError):
                await read(api, "/silent")
            released.set()
            assert await anext(pieces) == b" two"


@pytest.mark.parametrize(
    ("response", "status", "text", "retry_after"),
    [
        (text_response(403, FORBIDDEN), 403, '403: services is forbidden: User "dns" cannot list', None),
        (text_response(429, "Too many requests", Retry_After="7"), 429, "429: Too many requests", 7.0),
        (text_response(503, "", Retry_After="Fri, 07 Aug 2020 00:00:00 GMT"), 503, "503: Service Unavailable", 0.0),
        (text_response(302, "", Location="http://elsewhere.invalid/"), 302, "302: Found", None),
        (text_response(500, "x" * 100_000), 500, f"500: {'x' * 494}…", None),
    ],
    ids=["403", "429", "503", "302", "500 and a long text"],
)
async def test_a_refusal_says_why_and_how_long_to_wait(
    loop_name: str,
    response: bytes,
    status: int,
    text: str,
    retry_after: float | None,
    certificates: Certificates,
    pod: Pod,
) -> None:
    async with (
        serving(replies(response), server_side(certificates)) as served,
        connected(ApiSettings(), pod.account(served)) as api,
    ):
        problem = await refused(api)
    assert (problem.status, str(problem), problem.retry_after) == (status, text, retry_after)
    assert len(served.seen) == 1


async def test_a_refusal_whose_text_does_not_come_is_one_all_the_same(
    loop_name: str, certificates: Certificates
) -> None:
    async with (
        serving(replies(text_response(410, "late", Content_Length="99"))) as served,
        connected(ApiSettings(endpoint=served.url), deadlines=QUICK) as api,
    ):
        problem = await refused(api)
    assert (problem.status, str(problem)) == (410, "410: Gone")


async def test_a_request_body_arrives_and_the_reply_comes_back(
    loop_name: str, certificates: Certificates, pod: Pod
) -> None:
    conflict = text_response(409, '{"kind":"Status","reason":"Conflict"}')
    async with (
        serving(replies(text_response(201, '{"made":1}'), OK, conflict), server_side(certificates)) as served,
        connected(ApiSettings(), pod.account(served)) as api,
    ):
        assert await api.send("POST", "/api/v1/namespaces/a/events", b'{"kind":"Event"}') == b'{"made":1}'
        await api.send("PATCH", "/api/v1/x", b"[]", "application/json-patch+json")
        with pytest.raises(ApiError, match="409: Conflict"):
            await api.send("PUT", "/api/v1/x", b"{}")
    lines = [(seen.line, seen.headers["content-type"], seen.body) for seen in served.seen]
    assert lines == [
        ("POST /api/v1/namespaces/a/events HTTP/1.1", "application/json", b'{"kind":"Event"}'),
        ("PATCH /api/v1/x HTTP/1.1", "application/json-patch+json", b"[]"),
        ("PUT /api/v1/x HTTP/1.1", "application/json", b"{}"),
    ]
    assert served.tokens() == ["first"] * 3


async def test_a_server_of_another_authority_never_gets_the_token(
    loop_name: str, certificates: Certificates, tmp_path: Path
) -> None:
    pod = Pod(tmp_path, certificates.other_ca)
    async with (
        serving(replies(OK), server_side(certificates)) as served,
        connected(ApiSettings(), pod.account(served)) as api,
    ):
        problem = await refused(api)
        assert problem.status == 0
        assert str(problem).startswith(f"{served.url}: its certificate is not trusted: ")
        (tmp_path / "ca.crt").write_bytes(certificates.ca.read_bytes())
        assert await read(api) == b"{}"  # an authority that was rotated is found with the next request
    assert len(served.seen) == 1


async def test_a_certificate_in_the_ca_file_is_trusted_without_the_one_that_signed_it(
    loop_name: str, certificates: Certificates, tmp_path: Path
) -> None:
    """As by Go: an intermediate authority, or the server's own certificate, is enough."""
    pod = Pod(tmp_path, certificates.server.certificate)
    async with (
        serving(replies(OK), server_side(certificates)) as served,
        connected(ApiSettings(), pod.account(served)) as api,
    ):
        assert await read(api) == b"{}"


async def test_a_port_without_a_listener_is_an_error(loop_name: str, pod: Pod) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        served = Served(f"https://127.0.0.1:{taken.getsockname()[1]}", silence)
    async with connected(ApiSettings(), pod.account(served)) as api:
        problem = await refused(api)
    assert problem.status == 0
    assert "refused" in str(problem)
    assert str(problem).startswith(served.url)


async def test_an_endpoint_is_asked_with_the_certificate_of_tls(loop_name: str, certificates: Certificates) -> None:
    files = (str(certificates.client.certificate), str(certificates.client.key), str(certificates.ca))
    async with serving(replies(OK), server_side(certificates, asks_for_clients=True)) as served:
        endpoint = served.url.replace("127.0.0.1", "localhost")
        async with connected(ApiSettings(endpoint=endpoint, tls=files)) as api:
            assert "Hostname mismatch" in str(await refused(api))
        async with connected(ApiSettings(endpoint=f"{served.url}/below", tls=files)) as api:
            await read(api)
    (request,) = served.seen
    assert (request.client, request.token) == ("reader", "")
    assert request.line == "GET /below/api/v1/services HTTP/1.1"


async def test_a_proxy_of_the_environment_is_not_used(
    loop_name: str, certificates: Certificates, pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with (
        serving(replies(OK), server_side(certificates)) as served,
        connected(ApiSettings(), pod.account(served)) as api,
    ):
        assert await read(api) == b"{}"


def test_k06_the_kernel_watches_over_silent_connections(loop_name: str) -> None:
    with open_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ())) as sock:
        found = [
            sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
            *(sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}")) for name in TCP_OPTIONS),
        ]
    assert found == [1, 15, 5, 3, 30_000]


TCP_OPTIONS = ("KEEPIDLE", "KEEPINTVL", "KEEPCNT", "USER_TIMEOUT")
