import pytest

from tests.support.in_memory_server import dig
from tests.support.model_builders import packed
from topodns.dns.wire_reader import read_query
from topodns.plugins.view.handler import ViewFilter
from topodns.plugins.view.settings import View
from topodns.query.plugin import Client

CLIENT = Client(packed("10.244.1.7"), 40212, "udp")


def takes(expressions: tuple[str, ...], listens_on: str = "") -> bool:
    view = ViewFilter(View("v", expressions), listens_on)
    return view(read_query(dig("www.example.com. A")), CLIENT)


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ((), True),
        (("type() == 'A'",), True),
        (("type() == 'A'", "name() == 'www.example.com.'"), True),
        (("type() == 'A'", "name() == 'example.com.'"), False),
        (("name() == 'example.com.'", "type() == 'A'"), False),
        (("type() == 'A'", "not incidr('', server_ip())"), False),
    ],
)
def test_a_view_takes_the_queries_that_all_its_expressions_are_true_of(
    expressions: tuple[str, ...], expected: bool
) -> None:
    assert takes(expressions) is expected


@pytest.mark.parametrize(
    ("listens_on", "server_ip"), [("192.0.2.53", "192.0.2.53"), ("2001:db8::53", "2001:db8::53"), ("", "::")]
)
def test_the_servers_address_is_the_one_it_is_bound_to(listens_on: str, server_ip: str) -> None:
    assert takes((f"server_ip() == '{server_ip}'",), listens_on)


def test_a_view_rests_on_the_client_where_one_expression_does() -> None:
    assert ViewFilter(View("v", ("type() == 'A'", "port() == '1'")), "").of_client
    assert not ViewFilter(View("v", ("type() == 'A'",)), "").of_client
    assert not ViewFilter(View("v"), "").of_client
