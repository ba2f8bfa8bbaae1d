"""The `bind` directive: the addresses that a server block listens on, given as such or by interface name.

Tentative addresses (IPv6 duplicate address detection): `net.sockets`, which opens the sockets.
"""

from collections.abc import Callable, Collection, Iterator
from ipaddress import IPv4Address, ip_address
from typing import Final

from topodns.corefile.arguments import some_args, unknown_option, wrong
from topodns.corefile.errors import shown
from topodns.corefile.parser import Directive
from topodns.dns.addresses import is_of_machine, packed_address
from topodns.plugins.block import Settings
from topodns.plugins.compatibility import same
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin


def parse_bind(directive: Directive, context: Context) -> tuple[str, ...]:
    """The addresses of one `bind`, those of its interfaces included, without those under `except`.

    Under `except`, a link-local address without its interface is that of every interface. Raises ConfigError if none is
    left, or for a word that is neither an address nor an interface.
    """
    if not directive.args:
        raise wrong(directive, "addresses or interfaces")
    excepted: set[str] = set()
    for option in directive.body:
        if option.name != "except":
            raise unknown_option(option, "bind", ("except",))
        excepted.update(_addresses(option, some_args(option, "addresses or interfaces"), context))
    bound = tuple(
        address
        for address in _addresses(directive, directive.args, context)
        if excepted.isdisjoint((address, address.partition("%")[0]))
    )
    if not bound:
        raise directive.error("'bind' has no address left, expected at least one that is not under 'except'")
    return bound


def _addresses(directive: Directive, words: tuple[str, ...], context: Context) -> list[str]:
    return list(dict.fromkeys(address for word in words for address in _resolve(directive, word, context)))


def _resolve(directive: Directive, word: str, context: Context) -> tuple[str, ...]:
    try:
        address = ip_address(word)
    except ValueError:
        pass
    else:
        if isinstance(address, IPv4Address):
            return (str(address),)
        if address.is_link_local and address.scope_id is None and directive.name == "bind":
            # The same address may be on several links, so the kernel refuses it (RFC 4007 section 6).
            raise directive.error(f"'bind' has {shown(word)}, expected its interface behind it, as in {word}%eth0")
        return (str(address.ipv4_mapped or address),)
    try:
        addresses = context.interface_addresses(word)
    except OSError as problem:
        raise directive.error(f"cannot list the addresses of the interface {shown(word)}: {problem}") from None
    if addresses is None:
        raise directive.error(
            f"'{directive.name}' has {shown(word)}, expected an IP address or an interface of this machine"
        )
    return addresses


def foreign_warnings(settings: Settings, own_addresses: Callable[[], Collection[bytes]]) -> Iterator[str]:
    """A log line for each address of a `bind` that this machine, which has `own_addresses` (packed), cannot listen on.

    `own_addresses` is called only if there is a `bind`.
    """
    bound = [(block, host) for block in settings.blocks if "bind" in block.settings for host in block.bound_hosts]
    own = own_addresses() if bound else ()
    for block, host in bound:
        if not is_of_machine(packed_address(host), own):
            yield f"{host} is no address of this machine, which cannot serve the block at {block.source}:{block.line}"


PLUGIN: Final = Plugin(
    name="bind",
    coredns=same(),
    parse=parse_bind,
    adds_up=True,
    in_chain=False,
    fast_path=FastPath.ABSENT,
)
