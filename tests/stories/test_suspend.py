"""A machine that is suspended: TTLs that clients were given run out meanwhile (RFC 1035 section 3.2.1).

The suspend is played: CLOCK_BOOTTIME, the only clock that counts it and that no one sets, goes ahead; timers and
CLOCK_MONOTONIC do not.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.dns_messages import EDE, Opt
from tests.support.faulty_upstream import ANSWER, BadUpstream, bad_upstream
from tests.support.reply_faults import servfail
from tests.support.server_process import ROOT, Server, serving
from tests.support.upstream_faults import answers, reply_to, says

PLAYED = """
import os, time

def ahead(read, unit):
    def clock(which):
        slept = os.stat({path!r}).st_size if which == time.CLOCK_BOOTTIME else 0
        return read(which) + slept * unit
    return clock

time.clock_gettime = ahead(time.clock_gettime, 1)
time.clock_gettime_ns = ahead(time.clock_gettime_ns, 10**9)
"""
COREFILE = """
.:0 {{
    bind HERE
    {options}
    forward . 127.0.0.1:{port}
}}
"""
NAME = "www.example.org A"
NEWS = "192.0.2.2"


class Machine:
    """A server on a machine that can be suspended."""

    def __init__(self, server: Server, slept: Path) -> None:
        self.server = server
        self._slept = slept

    def suspend(self, seconds: int) -> None:
        with self._slept.open("a") as file:
            file.write("." * seconds)

    def address(self, tcp: bool = False) -> list[str]:
        return self.server.ask(NAME, tcp=tcp).data

    def ttl(self) -> int:
        return int(self.server.ask(NAME).answer[0].split()[1])


@contextmanager
def machine(directory: Path, upstream: BadUpstream, *options: str) -> Iterator[Machine]:
    slept = directory / "slept"
    slept.touch()
    (directory / "sitecustomize.py").write_text(PLAYED.format(path=str(slept)))
    text = COREFILE.format(options="\n    ".join(options), port=upstream.port)
    command = ("env", f"PYTHONPATH={directory}:{ROOT}", sys.executable, "-m", "topodns")
    with serving(directory, text, command=command) as server:
        yield Machine(server, slept)


def kept(machine: Machine, *expected: str) -> None:
    """Both from the cache and from the packet cache, over UDP and TCP."""
    for _ in range(3):
        assert machine.address() == machine.address(tcp=True) == list(expected)


@pytest.mark.parametrize("workers", ["", "multisocket 2"])
def test_an_answer_whose_ttl_ran_out_in_suspend_is_asked_for_again(tmp_path: Path, workers: str) -> None:
    with bad_upstream(answers) as upstream, machine(tmp_path, upstream, "cache 30", workers) as host:
        for _ in range(20):  # so that each worker keeps it
            kept(host, ANSWER)
        upstream.behaviour = says(partial(reply_to, address=NEWS))
        host.suspend(31)
        for _ in range(20):
            kept(host, NEWS)


def test_the_ttl_of_an_answer_that_is_still_good_has_counted_the_suspend(tmp_path: Path) -> None:
    with bad_upstream(answers) as upstream, machine(tmp_path, upstream, "cache 30") as host:
        kept(host, ANSWER)
        upstream.behaviour = says(partial(reply_to, address=NEWS))
        host.suspend(20)
        kept(host, ANSWER)
        assert 1 <= host.ttl() <= 10
        host.suspend(10)
        kept(host, NEWS)


def test_a_failure_is_forgotten_in_suspend(tmp_path: Path) -> None:
    with bad_upstream(says(servfail)) as upstream, machine(tmp_path, upstream, "cache 30 {\nservfail 5m\n}") as host:
        assert host.server.ask(NAME).rcode == "SERVFAIL"
        upstream.behaviour = answers
        assert host.server.ask(NAME).rcode == "SERVFAIL"
        host.suspend(301)
        kept(host, ANSWER)


def test_an_answer_that_ran_out_in_suspend_is_at_most_served_as_stale(tmp_path: Path) -> None:
    options = "cache 30 {\nserve_stale 1h immediate\n}"
    with bad_upstream(answers) as upstream, machine(tmp_path, upstream, options) as host:
        kept(host, ANSWER)
        upstream.behaviour = says(servfail)
        host.suspend(60)
        assert EDE in (host.server.ask(NAME, opt=Opt()).options or {})
        host.suspend(3600)
        assert host.server.ask(NAME).rcode == "SERVFAIL"
