"""`bind INTERFACE` on this machine."""

from topodns.netlink.route import addresses_of


def test_the_loopback_interface_has_the_loopback_address() -> None:
    assert "127.0.0.1" in (addresses_of("lo") or ())


def test_an_interface_that_is_not_there_is_none() -> None:
    assert addresses_of("none-such0") is None
    assert addresses_of("not\0a name") is None
