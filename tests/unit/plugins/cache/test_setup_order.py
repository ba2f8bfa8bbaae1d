"""The place of `cache` in a server block: below all directives but `forward`."""

import pytest

from tests.support.chains import chain_of
from tests.support.corefile_settings import only_block
from tests.support.forward_with_upstreams import ForwardScene
from tests.support.query_builders import ask, client
from tests.support.scripted_upstream import whatever
from topodns.dns.message import Flag
from topodns.query.deferred import pursue
from topodns.query.plugin import ChainPart, Resolution, settled

LOCAL = """
cache 30
hosts {
    192.0.2.1 www.example
    fallthrough
}
template IN A example.org {
    answer "{{ .Name }} 7200 IN A 192.0.2.2"
}
"""


@pytest.mark.parametrize(("name", "ttl"), [("www.example", 3600), ("www.example.org", 7200)])
def test_ttls_of_hosts_and_templates_are_their_own(name: str, ttl: int) -> None:
    chain = chain_of(only_block(LOCAL))
    for _ in range(2):
        resolution = chain.resolve(ask(name), client())
        assert isinstance(resolution, Resolution)
        assert [rrset.ttl for rrset in resolution.response.answer] == [ttl]


@pytest.mark.parametrize(
    ("change", "flags", "asked"),
    [("set", Flag.RD, 1), ("set", 0, 1), ("clear", Flag.RD, 2), ("clear", 0, 2)],
)
def test_with_header_the_rd_bit_of_the_corefile_decides_what_is_cached(change: str, flags: int, asked: int) -> None:
    scene = ForwardScene(whatever)
    block = only_block(f"header {{\nquery {change} rd\n}}\ncache\nforward . 192.0.2.1")
    chain = chain_of(block, {"forward": (ChainPart(step=scene.forwarding),)})
    answers = list[Resolution]()
    for _ in range(2):
        pursue(settled(chain.resolve(ask("www.example", flags=flags), client())), answers.append)
    assert [len(each.response.answer) for each in answers] == [1, 1]
    assert scene.asked == [asked]
