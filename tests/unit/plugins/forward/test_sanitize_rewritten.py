"""A forwarder in front of a server with `rewrite name`: whatever names that leaves on records, their data arrives."""

import pytest

from tests.support.chains import chain_of
from tests.support.corefile_settings import only_block
from tests.support.forward_with_upstreams import ForwardScene
from tests.support.query_builders import ask, client
from tests.support.scripted_upstream import Behaviour
from topodns.dns.message import RRset
from topodns.dns.rrtype import RRType
from topodns.dns.wire_reader import read_query
from topodns.dns.wire_writer import write_response
from topodns.query.plugin import Resolution

HOSTS = """
hosts {
    10.96.10.20 web.shop.svc.cluster.local
    10.96.10.21 web.shop.svc.cluster.local
    fd00::20 web.shop.svc.cluster.local
}
template IN TXT svc.cluster.local {
    answer "{{ .Name }} 60 IN CNAME text.example."
    answer "text.example. 60 IN TXT words"
}
"""
RULES = {
    "prefix web. web.shop.": "web.svc.cluster.local",
    "suffix .test.io .shop.svc.cluster.local": "web.test.io",
    "substring .front. .shop.": "web.front.svc.cluster.local",
    r"regex (.*)\.test\.io {1}.shop.svc.cluster.local": "web.test.io",
    r"regex ^(web)\.(shop)\.example\.$ {1}.{2}.svc.cluster.local": "web.shop.example",
    "exact web.test.io web.shop.svc.cluster.local": "web.test.io",
}
ANSWERS = (
    "",
    "answer auto",
    r"answer name (.*)\.svc\.cluster\.local {1}.elsewhere.example",
    "answer value web y.example",
)


def server(lines: str) -> Behaviour:
    """A server block as an upstream."""
    chain = chain_of(only_block(lines))

    def reply(message: bytes) -> bytes:
        query = read_query(message)
        resolution = chain.resolve(query, client())
        assert isinstance(resolution, Resolution)
        return write_response(query, resolution.response, 1232, 1232)

    return reply


def data(rrsets: tuple[RRset, ...], qtype: int) -> list[bytes]:
    return sorted(rdata for rrset in rrsets if rrset.rtype == qtype for rdata in rrset.rdatas)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("qtype", [RRType.A, RRType.AAAA, RRType.TXT])
def test_the_data_of_a_server_that_rewrites_names_arrives(rule: str, answer: str, qtype: int) -> None:
    direct = chain_of(only_block(HOSTS)).resolve(ask("web.shop.svc.cluster.local", qtype), client())
    assert isinstance(direct, Resolution)
    scene = ForwardScene(server(f"rewrite name {rule} {answer}\n{HOSTS}"))
    for name in (RULES[rule], RULES[rule].upper()):
        answered = scene.asked_and_answered(ask(name, qtype)).resolution.response
        assert data(answered.answer, qtype) == data(direct.response.answer, qtype) != []
        assert answered.answer[0].owner == b"", "a stub resolver that compares names ignores it"
