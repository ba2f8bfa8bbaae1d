"""Errors and bodies of requests to an API server."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodns.kube.client.contract import (
    BUCKETS,
    MAX_BODY,
    MAX_READ,
    NO_RESPONSE,
    ApiError,
    RequestCounters,
    api_error,
    read_body,
)


class Api:
    """A client whose every response has this body, piece by piece."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.asked: list[tuple[str, Mapping[str, str]]] = []

    @asynccontextmanager
    async def stream(self, path: str, parameters: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        self.asked.append((path, parameters))

        async def body() -> AsyncIterator[bytes]:
            for piece in self._pieces:
                yield piece

        yield body()

    async def send(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> bytes:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


def test_a_body_is_read_whole() -> None:
    api = Api(b"ab", b"", b"c")
    assert asyncio.run(read_body(api, "/version", {"a": "b"})) == b"abc"
    assert api.asked == [("/version", {"a": "b"})]


def test_a_body_beyond_the_limit_is_an_error() -> None:
    piece = b"x" * (MAX_READ // 2)
    assert len(asyncio.run(read_body(Api(piece, piece), "/a"))) == MAX_READ
    with pytest.raises(ApiError, match="longer than"):
        asyncio.run(read_body(Api(piece, piece, b"x"), "/a"))


@pytest.mark.parametrize(("status", "text"), [(0, "a b"), (403, "403: a b")])
def test_an_error_is_one_line_whatever_the_server_says(status: int, text: str) -> None:
    error = ApiError(status, "a\nb", 1.5)
    assert (str(error), error.status, error.retry_after) == (text, status, 1.5)


def test_requests_are_counted_by_result_and_timed_by_server() -> None:
    socket_counters = RequestCounters()
    socket_counters.count("GET", "10.96.0.1:443", "200", 0.003)
    socket_counters.count("GET", "10.96.0.1:443", "403", 0.005)
    socket_counters.count("PUT", "10.96.0.1:443", NO_RESPONSE, 30.0)
    assert socket_counters.results == {
        ("200", "GET", "10.96.0.1:443"): 1,
        ("403", "GET", "10.96.0.1:443"): 1,
        ("<error>", "PUT", "10.96.0.1:443"): 1,
    }
    read, written = socket_counters.durations["GET", "10.96.0.1:443"], socket_counters.durations["PUT", "10.96.0.1:443"]
    assert (read.counts[0], read.count(), round(read.sum, 6)) == (2, 2, 0.008)
    assert (written.counts[len(BUCKETS)], written.sum) == (1, 30.0)


NOW = 1_596_758_400.0  # Fri, 07 Aug 2020 00:00:00 GMT


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (403, '{"kind":"Status","message":"pods is forbidden"}', "403: pods is forbidden"),
        (410, '{"kind":"Status","reason":"Expired","message":""}', "410: Expired"),
        (500, '{"kind":"Status"}', '500: {"kind":"Status"}'),
        (500, '{"kind":"Pod","message":"me"}', '500: {"kind":"Pod","message":"me"}'),
        (500, '{"kind":"Status","message":["a"]}', '500: {"kind":"Status","message":["a"]}'),
        (429, "Too many requests, please try again later.\n", "429: Too many requests, please try again later."),
        (502, "<html><body>Bad Gateway", "502: Bad Gateway"),
        (504, "", "504: Gateway Timeout"),
        (599, "", "599: refused without a reason"),
        (400, "one\r\ntwo\x1b[31m three\x00", r"400: one two\x1b[31m three\x00"),
        (400, "[" * 60_000, f"400: {'[' * 494}…"),
        (400, "é" * 495, f"400: {'é' * 495}"),
    ],
)
def test_the_text_is_the_status_object_s_or_the_proxy_s(status: int, body: str, text: str) -> None:
    assert str(api_error(status, "", body.encode(), NOW)) == text


@pytest.mark.parametrize(
    ("header", "body", "seconds"),
    [
        ("", "", None),
        ("0", "", 0.0),
        ("1", "", 1.0),
        (" 120 ", "", 120.0),
        ("Fri, 07 Aug 2020 00:00:30 GMT", "", 30.0),
        ("Thu, 06 Aug 2020 23:59:59 GMT", "", 0.0),
        ("-1", "", None),
        ("1.5", "", None),
        ("soon", "", None),
        ("9" * 40, "", None),
        ("", '{"kind":"Status","details":{"retryAfterSeconds":3}}', 3.0),
        ("", '{"kind":"Status","details":{"retryAfterSeconds":0}}', None),
        ("", '{"kind":"Status","details":{"retryAfterSeconds":1e999}}', None),
        ("", '{"kind":"Status","details":[]}', None),
        ("2", '{"kind":"Status","details":{"retryAfterSeconds":3}}', 2.0),
    ],
)
def test_how_long_to_wait_is_said_by_the_header_or_by_the_status_object(
    header: str, body: str, seconds: float | None
) -> None:
    assert api_error(429, header, body.encode(), NOW).retry_after == seconds


@given(st.integers(300, 599), st.text(max_size=40), st.binary(max_size=200))
def test_any_response_is_one_short_line(status: int, header: str, body: bytes) -> None:
    found = api_error(status, header, body, NOW)
    assert found.status == status
    assert str(found).isprintable()
    assert len(str(found)) <= 500
    assert found.retry_after is None or found.retry_after >= 0


def test_a_long_body_is_looked_at_no_further_than_it_is_shown() -> None:
    assert len(str(api_error(500, "", b"x" * MAX_BODY, NOW))) == 500
