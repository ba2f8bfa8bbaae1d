"""`persist` of `cache`: a node that restarts while the cluster DNS is away answers what it answered before.

N22: the node cache ends while no upstream answers. N23: it is killed while it writes.
"""

import random
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.dns_messages import EDE, Opt, Reply
from tests.support.faulty_upstream import ANSWER, BadUpstream, bad_upstream
from tests.support.node_cache_process import node_cache_alone
from tests.support.reply_faults import compose, record, wire_name
from tests.support.server_process import Server, serving, until
from tests.support.upstream_faults import answers, reply_to, says
from topodns.plugins.cache.answer_file import KIND

PERSIST = "persist {} interval 1s"
STALE, STALE_NXDOMAIN = b"\0\3", b"\0\x13"  # RFC 8914 sections 4.4 and 4.20


def known_or_not(message: bytes) -> bytes:
    """NXDOMAIN for names that begin with `no`, else an address."""
    if not message[13:].startswith(b"no"):
        return reply_to(message)
    numbers = b"".join(number.to_bytes(4, "big") for number in (1, 7200, 1800, 86400, 30))
    soa = record(wire_name("example.org"), 6, wire_name("ns.example.org") + wire_name("a.example.org") + numbers)
    return compose(message, authority=[soa], rcode=3)


def shown(reply: Reply) -> tuple[object, ...]:
    """rcode, data, the TTLs of all records, and the code of the extended error."""
    ttls = {int(line.split()[1]) for line in (*reply.answer, *reply.authority)}
    return reply.rcode, reply.data, ttls, (reply.options or {}).get(EDE, b"")[:2]


def asked(server: Server, name: str) -> tuple[object, ...]:
    return shown(server.ask(f"{name}.example.org A", opt=Opt()))


@contextmanager
def node(directory: Path, upstream: BadUpstream, file: Path) -> Iterator[Server]:
    with node_cache_alone(directory, upstream, options=PERSIST.format(file)) as server:
        yield server


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL"])
def test_n22_a_node_cache_that_restarts_while_no_upstream_answers_gives_the_answers_of_before(
    tmp_path: Path, end: str
) -> None:
    file = tmp_path / "answers"
    with bad_upstream(says(known_or_not)) as upstream:
        with node(tmp_path, upstream, file) as server:
            assert asked(server, "www") == ("NOERROR", [ANSWER], {30}, b"")
            assert asked(server, "no")[0] == "NXDOMAIN"
            if end == "SIGKILL":
                until(lambda: server.metric("topodns_cache_persist_answers") == 2, "the file")
            server.signal(signal.Signals[end])
            server.wait()
        upstream.behaviour = lambda asked: []
        with node(tmp_path, upstream, file) as server:
            server.wait_for_line(f"plugin/cache: 2 answers of '{file}', written")
            assert asked(server, "www") == ("NOERROR", [ANSWER], {30}, STALE)
            assert asked(server, "no") == ("NXDOMAIN", [], {30}, STALE_NXDOMAIN)
            assert asked(server, "other")[:2] == ("SERVFAIL", [])
            assert server.metric("topodns_cache_persist_restored_total") == 2
    assert file.stat().st_mode & 0o777 == 0o600


COREFILE = """
.:0 {{
    bind HERE
    cache 30 {{
        serve_stale 1h verify
        {options}
    }}
    forward . {upstream}
    {directives}
}}
"""


@contextmanager
def caching(directory: Path, upstream: BadUpstream, options: str, directives: str = "") -> Iterator[Server]:
    at = f"{upstream.host}:{upstream.port}"
    with serving(directory, COREFILE.format(options=options, upstream=at, directives=directives)) as server:
        yield server


def test_n23_killed_at_any_moment_of_a_writing_the_file_is_whole_the_old_or_the_new_one(tmp_path: Path) -> None:
    file, chance = tmp_path / "answers", random.Random()
    restored, old, new = 1000, 0, 0
    with bad_upstream(answers) as upstream:
        with caching(tmp_path, upstream, PERSIST.format(file)) as server:
            for number in range(restored):
                server.ask(f"n{number}.example.org A")
        longest = 0.1  # seconds: a clean end takes about half of that
        for number in range(30):
            with caching(tmp_path, upstream, f"persist {file} interval 1h") as server:
                line = server.wait_for_line("plugin/cache: ")
                found = re.fullmatch(r".* ([0-9]+) answers of .*, written [0-9]+ s ago", line)
                assert found is not None, line
                assert int(found[1]) in (restored, restored + 1)
                old, new = old + (int(found[1]) == restored), new + (int(found[1]) > restored)
                restored = int(found[1])
                server.ask(f"more{number}.example.org A")
                server.signal(signal.SIGTERM)
                time.sleep(chance.uniform(0, longest))
                server.signal(signal.SIGKILL)
                server.wait()
        assert file.read_bytes().startswith(KIND.magic)
    print(f"of 30 writings that were killed, {old - 1} had not replaced the file, {new} had")


def test_a_reload_keeps_the_answers_for_an_outage_too(tmp_path: Path) -> None:
    file = tmp_path / "answers"
    with bad_upstream(answers) as upstream, caching(tmp_path, upstream, f"persist {file} interval 1h") as server:
        assert server.ask("www.example.org A", opt=Opt()).data == [ANSWER]
        upstream.behaviour = lambda asked: []
        (tmp_path / "Corefile").write_text((tmp_path / "Corefile").read_text().replace("cache 30", "cache 20"))
        server.signal(signal.SIGUSR1)
        server.wait_for_line("Reloading complete")
        server.wait_for_line(f"plugin/cache: 1 answers of '{file}', written")
        assert asked(server, "www") == ("NOERROR", [ANSWER], {30}, STALE)


def test_every_process_of_a_server_has_the_answers_and_one_writes_them(tmp_path: Path) -> None:
    file = tmp_path / "answers"
    with bad_upstream(answers) as upstream:
        with caching(tmp_path, upstream, f"persist {file} interval 1h", "multisocket 2") as server:
            until(lambda: server.ask("www.example.org A").data == [ANSWER], "an answer")
            for _ in range(40):
                server.ask("www.example.org A")
        upstream.behaviour = lambda asked: []
        with caching(tmp_path, upstream, f"persist {file} interval 1h", "multisocket 2") as server:
            until(lambda: len(server.lines("answers of")) >= 1, "the file")
            until(lambda: asked(server, "www") == ("NOERROR", [ANSWER], {30}, STALE), "a stale answer")
            for _ in range(40):
                assert asked(server, "www") == ("NOERROR", [ANSWER], {30}, STALE), server.output()
