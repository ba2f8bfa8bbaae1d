"""An impostor of the API server that answers without end: it costs little memory, and no client of DNS waits."""

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import pytest

from tests.support.background_threads import accepting
from tests.support.server_process import serving, until
from tests.support.steady_client import victim

COREFILE = """
.:0 {{
    bind HERE
    hosts {{
        192.0.2.1 local.example
        fallthrough
    }}
    kubernetes cluster.local {{
        endpoint http://127.0.0.1:{port}
    }}
}}
"""
CPU = 0.02  # seconds of the server between a question of the victim and its reply
MEMORY = 80 << 20  # octets of the process more than at rest: a page of a list may have 16 MiB
ASKED = 100  # questions of the victim

Response = Callable[[], Iterator[bytes]]
"""The pieces of one response, without end."""

CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def again(piece: bytes) -> Iterator[bytes]:
    many = piece * (65536 // len(piece) + 1)
    while True:
        yield many


def interim_responses() -> Iterator[bytes]:
    yield from again(b"HTTP/1.1 100 Continue\r\n\r\n")


def early_hints() -> Iterator[bytes]:
    yield from again(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")


def headers() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    yield from again(b"A: b\r\n")


def one_header() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nA: "
    yield from again(b"b")


def reason_phrase() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 "
    yield from again(b"OK ")


def chunks_of_an_octet() -> Iterator[bytes]:
    yield CHUNKED
    yield from again(b"1\r\n \r\n")


def chunk_extensions() -> Iterator[bytes]:
    yield CHUNKED
    yield from again(b"1;" + 4000 * b"a" + b"\r\n \r\n")


def one_chunk_extension() -> Iterator[bytes]:
    yield CHUNKED + b"1;"
    yield from again(b"a")


def chunk_size_of_zeros() -> Iterator[bytes]:
    yield CHUNKED
    yield from again(b"0" * 64)


def trailers() -> Iterator[bytes]:
    yield CHUNKED + b"0\r\n"
    yield from again(b"A: b\r\n")


def one_line() -> Iterator[bytes]:
    yield CHUNKED
    yield from again(b"1000\r\n" + 4096 * b"x" + b"\r\n")


def one_line_without_a_length() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    yield from again(b"x")


def compressed() -> Iterator[bytes]:
    yield CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    yield from again(b"1000\r\n" + 4096 * b"\0" + b"\r\n")


def refusal_without_end() -> Iterator[bytes]:
    yield CHUNKED.replace(b"200 OK", b"403 Forbidden")
    yield from again(b"1000\r\n" + 4096 * b"x" + b"\r\n")


RESPONSES: dict[str, tuple[Response, ...]] = {
    "heads": (interim_responses, early_hints, headers, one_header, reason_phrase),
    "framing": (chunks_of_an_octet, chunk_extensions, one_chunk_extension, chunk_size_of_zeros, trailers),
    "bodies": (one_line, one_line_without_a_length, compressed, refusal_without_end),
}


class Impostor:
    """Answers requests so, in turns."""

    def __init__(self, responses: Sequence[Response]) -> None:
        self._responses = cycle(responses)
        self.requests = 0
        self.port = 0

    def converse(self, connection: socket.socket) -> None:
        if connection.recv(65536):
            self.requests += 1
            for piece in next(self._responses)():
                connection.sendall(piece)


@contextmanager
def impostor(responses: Sequence[Response]) -> Iterator[Impostor]:
    one = Impostor(responses)
    with accepting(one.converse) as one.port:
        yield one


@pytest.fixture(scope="module")
def at_rest(tmp_path_factory: pytest.TempPathFactory) -> int:
    """The memory of a server that gets no answer of its API server at all."""
    with serving(tmp_path_factory.mktemp("rest"), COREFILE.format(port=1)) as server:
        until(lambda: server.lines("connection refused"), "the refusal in the log")
        return server.peak_resident_bytes()


@pytest.mark.parametrize("kind", RESPONSES)
def test_responses_without_end_cost_little_memory_and_delay_no_answer(tmp_path: Path, kind: str, at_rest: int) -> None:
    responses = RESPONSES[kind]
    with impostor(responses) as api, serving(tmp_path, COREFILE.format(port=api.port)) as server:
        with victim(server, "local.example A", "192.0.2.1", per_second=100) as fate:
            tried = 2 * len(responses)
            until(lambda: api.requests >= tried and fate.asked >= ASKED, "requests, and questions of the victim", 30)
        assert (fate.lost, fate.wrong) == (0, []), fate
        assert fate.cpu(99) < CPU, fate
        assert server.peak_resident_bytes() < at_rest + MEMORY
