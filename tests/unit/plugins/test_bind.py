"""Addresses and interfaces of `bind`."""

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.corefile.errors import ConfigError
from topodns.corefile.parser import Directive
from topodns.plugins.bind import parse_bind
from topodns.plugins.context import Context

INTERFACES = {
    "eth0": ("10.0.0.5", "fd00::5", "fe80::5%eth0"),
    "eth1": ("fe80::5%eth1",),
    "lo": ("127.0.0.1", "::1"),
    "down0": (),
}

MACHINE = Context(((),), interface_addresses=INTERFACES.get)


def bind(arguments: str, excepted: str = "") -> tuple[str, ...]:
    """The addresses of `bind ARGUMENTS { except EXCEPTED }` on a machine with INTERFACES."""
    body = (Directive("except", tuple(excepted.split()), (), "Corefile", 3),) if excepted else ()
    return parse_bind(Directive("bind", tuple(arguments.split()), body, "Corefile", 2), MACHINE)


@pytest.mark.parametrize(
    ("arguments", "excepted", "addresses"),
    [
        ("127.0.0.1", "", ["127.0.0.1"]),
        ("127.0.0.1 ::1", "", ["127.0.0.1", "::1"]),
        ("0:0::1", "", ["::1"]),
        ("::ffff:127.0.0.1", "", ["127.0.0.1"]),
        ("fe80::1%eth0", "", ["fe80::1%eth0"]),
        ("lo", "", ["127.0.0.1", "::1"]),
        ("lo 127.0.0.1", "", ["127.0.0.1", "::1"]),
        ("lo eth0", "::1 fe80::5%eth0", ["127.0.0.1", "10.0.0.5", "fd00::5"]),
        ("eth0 eth1", "fe80::5%eth0", ["10.0.0.5", "fd00::5", "fe80::5%eth1"]),
        ("eth0 eth1", "fe80::5", ["10.0.0.5", "fd00::5"]),
        ("lo 10.0.0.9", "lo", ["10.0.0.9"]),
        ("down0 lo", "", ["127.0.0.1", "::1"]),
    ],
)
def test_bind_takes_addresses_and_interfaces(arguments: str, excepted: str, addresses: list[str]) -> None:
    assert bind(arguments, excepted) == tuple(addresses)


@pytest.mark.parametrize(
    ("arguments", "excepted", "expected"),
    [
        ("eth9", "", "Corefile:2: 'bind' has 'eth9', expected an IP address or an interface of this machine"),
        (
            "10.0.0.256",
            "",
            "Corefile:2: 'bind' has '10.0.0.256', expected an IP address or an interface of this machine",
        ),
        ("fe80::5", "", "Corefile:2: 'bind' has 'fe80::5', expected its interface behind it, as in fe80::5%eth0"),
        ("lo", "eth9", "Corefile:3: 'except' has 'eth9', expected an IP address or an interface of this machine"),
        ("lo", "lo", "Corefile:2: 'bind' has no address left, expected at least one that is not under 'except'"),
        ("down0", "", "Corefile:2: 'bind' has no address left, expected at least one that is not under 'except'"),
    ],
)
def test_bind_to_nothing_is_refused(arguments: str, excepted: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        bind(arguments, excepted)
    assert str(caught.value) == expected


def test_interfaces_that_the_kernel_does_not_report_are_refused() -> None:
    def silent(_: str) -> tuple[str, ...]:
        raise OSError("not permitted")

    with pytest.raises(
        ConfigError, match=r"^Corefile:2: cannot list the addresses of the interface 'lo': not permitted"
    ):
        parse_bind(Directive("bind", ("lo",), (), "Corefile", 2), Context((), interface_addresses=silent))


def test_several_binds_add_up() -> None:
    assert only_block("bind 127.0.0.1\nwhoami\nbind ::1 127.0.0.1").bound_hosts == ("127.0.0.1", "::1")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("bind", "Corefile:2: 'bind' has no argument, expected addresses or interfaces"),
        ("bind ::1 {\n except\n}", "Corefile:3: 'except' has no argument, expected addresses or interfaces"),
        ("bind ::1 {\n exept ::1\n}", "Corefile:3: unknown option 'exept' of 'bind', did you mean 'except'?"),
    ],
)
def test_a_wrong_bind_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == expected
