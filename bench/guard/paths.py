"""The paths that a query and a change can take, each with its tape, and the calls that they cost."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from bench.cluster import (
    MANY,
    NODES,
    NODES_WITH_ONE,
    POLICY,
    Object,
    client_on,
    cluster_ip_names,
    headless_names,
    service,
    slices,
    write_cluster,
)
from bench.guard.counting import Calls
from bench.guard.server import Asked, MemoryServer
from bench.guard.sockets import Upstream
from bench.questions import Question, hot_questions
from topodns.app.load import load_settings, settings_from_text
from topodns.dns.rrtype import Rcode, RRType

_TIMES: Final = 3  # that a tape is sent before its queries are hot
_EACH: Final = 128  # queries of a tape
_CHANGES: Final = 100
_SIZES: Final = (1, 10, 100, 1_000)  # endpoints of a slice that changes
_UNUSED: Final = 20_000  # the first place of endpoints that no other Service has
_EXPECTED: Final = frozenset({Rcode.NOERROR, Rcode.NXDOMAIN})
_ANY_TYPE: Final = (RRType.A, RRType.AAAA)

_RESOLVER: Final = """\
. {{
    errors
    cache 30
    loop
    forward . 127.0.0.1:{port}
    loadbalance
    prometheus 127.0.0.1:0
}}
"""

_NODE_CACHE: Final = """\
cluster.local {{
    errors
    cache {{
        success 9984 30
        denial 9984 5
    }}
    reload
    loop
    forward . 127.0.0.1:{port} {{
        force_tcp
    }}
    prometheus 127.0.0.1:0
}}
"""


class Counted(NamedTuple):
    """A path, the calls that it made, and the number of queries or changes that made them."""

    path: str
    calls: Calls
    queries: int

    @property
    def per_query(self) -> float:
        return round(self.calls.total / self.queries, 2)


def count_all(directory: Path) -> Iterator[Counted]:
    """All paths, in a fixed order. Files of the cluster are written to `directory`."""
    yield from count_server(directory)
    yield from count_forwarding()


def count_forwarding() -> Iterator[Counted]:
    """The paths of queries to an upstream: of a server for names outside of the cluster, and of a node cache."""
    yield from _of_forwarding("server, forwarded over UDP", _RESOLVER, "host{}.example.org")
    yield from _of_forwarding("node cache, forwarded over TCP", _NODE_CACHE, "host{}.example.svc.cluster.local")


def count_server(directory: Path) -> Iterator[Counted]:
    """The paths of a server's queries for names of the cluster."""
    settings = load_settings(str(write_cluster(directory)), 0, {})
    with closing(MemoryServer(settings)) as server:
        _let_clients_be_known(server)
        hot = _tape(hot_questions(Random(1))[:_EACH])
        yield _counted("first: A or AAAA of a Service with keys", server.ask, _tape(_services(headless_names(), 0)))
        yield _counted("first: SRV of a Service with keys", server.ask, _tape(_srv(headless_names())))
        yield _counted("first: A or AAAA of a ClusterIP", server.ask, _tape(_services(cluster_ip_names(), 0)))
        yield _counted("first: a name that does not exist", server.ask, _tape(_nonexistent()))
        yield _counted("first: A of a Pod", server.ask, _tape(_pods()))
        yield _counted("first: 250 of 5,000 endpoints, cut", server.ask, _tape(_many(RRType.A)))
        yield _counted("first: SRV of 250 of 5,000 endpoints, cut", server.ask, _tape(_many(RRType.SRV)))
        yield _counted(
            "first, TCP: A or AAAA of a Service with keys",
            server.ask_over_tcp,
            _tape(_services(headless_names(), _EACH)),
        )
        yield _counted("first, TCP: A of a Pod, of a node cache", server.ask_over_tcp, _tape(_of_node_caches()))
        yield _counted("hot: Services and names that do not exist", server.ask, hot, _TIMES)
        yield _counted("hot, TCP: the same", server.ask_over_tcp, hot, _TIMES)
        for endpoints in _SIZES:
            yield _changed(server, endpoints)


def _of_forwarding(subject: str, corefile: str, name: str) -> Iterator[Counted]:
    with ExitStack() as stack:
        upstream = stack.enter_context(closing(Upstream()))
        text = corefile.format(port=upstream.port)
        server = stack.enter_context(closing(MemoryServer(settings_from_text(text, "Corefile", 0, {}), upstream)))
        tape = _tape([_question(number, name.format(number)) for number in range(2 * _EACH)])
        _expect(tape[:1], server.ask(tape[:1]))  # opens the upstream
        _expect(tape[1:_EACH], server.ask(tape[1:_EACH]))  # over TCP, opens its second connection
        yield _counted(f"{subject}: never asked", server.ask, tape[_EACH:])
        yield _counted(f"{subject}: in the cache", server.ask, tape[_EACH:])
        yield _counted(f"{subject}: hot", server.ask, tape[_EACH:], _TIMES)


def _counted(
    path: str, ask: Callable[[Sequence[Asked], Calls], list[bytes]], tape: Sequence[Asked], times: int = 0
) -> Counted:
    """The calls for this tape, once it was sent so many times."""
    calls = Calls()
    for _ in range(times):
        _expect(tape, ask(tape, Calls()))
    _expect(tape, ask(tape, calls))
    return Counted(path, calls, len(tape))


def _changed(server: MemoryServer, endpoints: int) -> Counted:
    """The calls for changes of one endpoint, each time another one, of a slice with so many."""
    name = f"changed{endpoints}"
    first, *others = slices("ns0", name, [at % NODES for at in range(endpoints)], _UNUSED)
    first["endpoints"] += [each for one in others for each in one["endpoints"]]
    lines = []
    for number in range(2 * _CHANGES):
        first["metadata"]["resourceVersion"] = str(number + 1)
        first["endpoints"][number % endpoints]["addresses"] = [f"10.250.0.{number + 1}"]
        lines.append(_line(first))
    server.watch("Service", [_line(service("ns0", name, "None", POLICY))], Calls())
    server.watch("EndpointSlice", lines[:_CHANGES], Calls())
    calls = Calls()
    server.watch("EndpointSlice", lines[_CHANGES:], calls)
    return Counted(f"change of one of {endpoints:,} endpoints", calls, _CHANGES)


def _line(value: Object) -> bytes:
    """The line of a watch that says that this object has changed."""
    return json.dumps({"type": "MODIFIED", "object": value}, separators=(",", ":")).encode()


def _expect(tape: Sequence[Asked], replies: Sequence[bytes]) -> None:
    assert len(replies) == len(tape), f"{len(replies)} replies to {len(tape)} queries"
    assert all(reply[3] & 0x0F in _EXPECTED for reply in replies), "a reply with another rcode"


def _tape(questions: Sequence[Question]) -> list[Asked]:
    """Messages that differ in their ids."""
    return [(each.client, number.to_bytes(2, "big") + each.message[2:]) for number, each in enumerate(questions, 1)]


def _let_clients_be_known(server: MemoryServer) -> None:
    """Locate the clients and import what the first query imports: no part of any path."""
    names = headless_names()[-NODES:]
    questions = [
        Question(client_on(node), name, rtype) for node, name in enumerate(names) for rtype in (*_ANY_TYPE, RRType.SRV)
    ]
    questions += [Question(client_on(node), MANY, RRType.SRV) for node in range(NODES)]
    server.ask(_tape(questions))
    server.ask_over_tcp(_tape(questions))


def _question(number: int, name: str, rtype: int = RRType.A) -> Question:
    return Question(client_on(number % NODES), name, rtype)


def _services(names: Sequence[str], first: int) -> list[Question]:
    return [_question(at, name, _ANY_TYPE[at % 2]) for at, name in enumerate(names[first : first + _EACH])]


def _srv(names: Sequence[str]) -> list[Question]:
    return [_question(at, name, RRType.SRV) for at, name in enumerate(names[-2 * _EACH : -_EACH])]


def _nonexistent() -> list[Question]:
    forms = ("svc.cluster.local", "cluster.local", "ns0.svc.cluster.local")
    return [_question(at, f"host{at}.example.{forms[at % len(forms)]}") for at in range(_EACH)]


def _pods() -> list[Question]:
    return [_question(at, f"10-244-{at % NODES}-{at // NODES + 1}.ns0.pod.cluster.local") for at in range(_EACH)]


def _of_node_caches() -> list[Question]:
    return [each._replace(edns_size=1232, node=f"node{at % NODES}") for at, each in enumerate(_pods())]


def _many(rtype: int) -> list[Question]:
    """One name in messages that differ in their UDP payload size, which is at least the server's maximum."""
    elsewhere = range(NODES_WITH_ONE, NODES)
    return [Question(client_on(elsewhere[at % len(elsewhere)]), MANY, rtype, 1232 + at) for at in range(_EACH)]
