"""Which EDNS options of a query go to upstreams."""

from topodns.dns.message import Edns
from topodns.query.plugin import ForwardedOption, forwarded_options


def test_options_of_clients_are_not_forwarded() -> None:
    assert forwarded_options(None) == ()
    assert forwarded_options(Edns(1232, 0, False, ((9, b"client"),))) == ()


def test_options_of_rules_are_forwarded_in_their_order() -> None:
    options = (ForwardedOption(9, b"b"), (9, b"client"), ForwardedOption(8, b"a"))
    assert forwarded_options(Edns(1232, 0, False, options)) == (options[0], options[2])
