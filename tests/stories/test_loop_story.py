"""A forwarding loop: noticed, broken, said, and over when it is over; nothing a packet says ends the process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.dns_messages import Opt
from tests.support.faulty_upstream import ANSWER, BadUpstream, bad_upstream
from tests.support.forwarding_loop import Relay
from tests.support.server_process import METRICS, Server, own_address, serving, until
from tests.support.stub_resolvers import Stub, ask_together

COREFILE = """
.:{at} {{
    bind HERE
    prometheus HERE:{metrics}
    errors
    {loop}
    forward . 127.0.0.1:{port}
}}
"""
PORT = 5353


@contextmanager
def circle(directory: Path, loop: str) -> Iterator[tuple[Server, BadUpstream, Relay]]:
    """A server whose upstream asks the server."""
    address = own_address()
    relay = Relay((address, PORT))
    with bad_upstream(relay) as upstream:
        corefile = COREFILE.format(at=PORT, metrics=METRICS, loop=loop, port=upstream.port)
        with serving(directory, corefile, address=address, port=PORT) as server:
            yield server, upstream, relay


def test_n16_a_loop_is_broken_and_forwarding_goes_on_when_it_is_gone(tmp_path: Path) -> None:
    with circle(tmp_path, "loop") as (server, upstream, relay):
        line = server.wait_for_line("Loop detected for .")
        assert line.startswith("[ERROR] plugin/loop: ")
        asked = len(upstream.asked)
        for tcp in (False, True):
            reply = server.ask("www.example.org A", opt=Opt(), tcp=tcp)
            assert reply.rcode == "SERVFAIL"
            assert "circle" in reply.ede
        assert server.metric("topodns_loop_detected_total") == 1
        assert server.metric("topodns_loop_refused_total") == 1 + 2  # the probe is refused, too
        assert len(upstream.asked) == asked
        assert server.process.poll() is None
        relay.to = None
        until(lambda: server.lines("No loop any more for ."), "the end of the loop")
        assert server.ask("www.example.org A").data == [ANSWER]


def test_a_loop_without_the_directive_ends_with_each_question(tmp_path: Path) -> None:
    """The query comes back while it is in flight, and waits for itself until time is up."""
    with circle(tmp_path, "") as (server, upstream, relay):
        stubs = [Stub(f"www-{number}.example.org A", tcp=False) for number in range(50)]
        assert {str(got) for got in ask_together(server, stubs)} == {"SERVFAIL"}
        assert len(upstream.asked) <= 6 * len(stubs)
        relay.to = None
        assert server.ask("www.example.org A").data == [ANSWER]
