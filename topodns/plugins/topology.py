"""The `topology` directive: settings and parser. Each option may be given once; docs/reference/topology.md has them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from ipaddress import ip_address
from typing import Final, TypeVar

from topodns.cluster.model import KeySource, Kind
from topodns.corefile.arguments import (
    Address,
    Network,
    choice,
    fold_options,
    listen_address,
    networks,
    no_args,
    no_body,
    once_each,
    only_arg,
    only_choice,
    some_args,
    switch,
    whole,
    wrong,
)
from topodns.corefile.errors import hint, listed, shown
from topodns.corefile.parser import Directive
from topodns.plugins.compatibility import OURS, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin
from topodns.topology.client_locator import Method
from topodns.topology.select import OnInvalid, UnknownClient

DEFAULT_PAGE: Final = Address("127.0.0.1", 8182)
_PAGE_WORDS: Final = ("public", "queries")


@dataclass(frozen=True, slots=True)
class PageSettings:
    """The topology page, an HTTP server for browsers."""

    listen: Address = DEFAULT_PAGE  # of loopback unless `public`
    public: bool = False  # serves clients that are not on loopback, too
    queries: bool = False  # explains any name for any client's address, and shows prefixes of unlocated clients


@dataclass(frozen=True, slots=True)
class TopologySettings:
    keys: tuple[KeySource, ...] = (KeySource.ANNOTATION, KeySource.FIELD, KeySource.OPENYURT)
    locate: tuple[Method, ...] = (Method.NODES, Method.PODCIDR, Method.PODS, Method.SLICES)
    trust: tuple[Network, ...] = ()  # sources whose node identity and ECS are trusted
    unknown_client: UnknownClient = UnknownClient.STRICT
    on_invalid: OnInvalid = OnInvalid.IGNORE
    ttl: int | None = None  # seconds, 0..3600; None: min(5, ttl of kubernetes)
    filter_hostnames: bool = False
    terminating_fallback: bool = False
    srv_priority: bool = False
    page: PageSettings | None = None  # None: there is no page

    @property
    def placing_kinds(self) -> frozenset[Kind]:
        """The kinds needed to locate clients and for the values of keys, which are Nodes' labels.

        NodeLocators have the labels, too: with them Nodes are needed only by the methods that read Nodes.
        """
        kinds = {kind for method, kind in _KINDS.items() if method in self.locate}
        return frozenset(kinds if "NodeLocator" in kinds else {*kinds, "Node"})


_KINDS: Final[Mapping[Method, Kind]] = {
    Method.NODES: "Node",
    Method.PODCIDR: "Node",
    Method.PODCIDR_UNVERIFIED: "Node",
    Method.PODS: "Pod",
    Method.NODELOCATOR: "NodeLocator",
    Method.PODLOCATOR: "PodLocator",
}
"""The kinds that methods read; `slices` reads what every cluster has."""

MAX_TTL: Final = 3600  # seconds; as in `kubernetes`

E = TypeVar("E", bound=Enum)


def parse_topology(directive: Directive, _: Context) -> TopologySettings:
    no_args(directive)
    once_each(directive)
    return fold_options(directive, TopologySettings(), _READERS)


def _spellings(values: type[E]) -> dict[str, E]:
    return {value.value: value for value in values}


def _ordered(option: Directive, values: type[E]) -> tuple[E, ...]:
    """The members of `values` in the order of the arguments, their names.

    Raises ConfigError for no argument, and for an unknown or a repeated one.
    """
    known = _spellings(values)
    chosen = tuple(choice(option, text, known) for text in some_args(option, f"some of {listed(known)}"))
    if len(set(chosen)) < len(chosen):
        raise option.error(f"'{option.name}' has a word twice, expected each once: {' '.join(option.args)}")
    return chosen


def _keys(option: Directive, settings: TopologySettings) -> TopologySettings:
    return replace(settings, keys=_ordered(option, KeySource))


def _locate(option: Directive, settings: TopologySettings) -> TopologySettings:
    return replace(settings, locate=_ordered(option, Method))


def _trust(option: Directive, settings: TopologySettings) -> TopologySettings:
    return replace(settings, trust=networks(option))


def _unknown_client(option: Directive, settings: TopologySettings) -> TopologySettings:
    return replace(settings, unknown_client=only_choice(option, _spellings(UnknownClient)))


def _on_invalid(option: Directive, settings: TopologySettings) -> TopologySettings:
    return replace(settings, on_invalid=only_choice(option, _spellings(OnInvalid)))


def _ttl(option: Directive, settings: TopologySettings) -> TopologySettings:
    return replace(settings, ttl=whole(option, only_arg(option, "seconds"), 0, MAX_TTL))


def _page(option: Directive, settings: TopologySettings) -> TopologySettings:
    """`page [HOST:PORT] [public] [queries]`. Raises ConfigError for an address beyond loopback without `public`."""
    no_body(option)
    words = [arg for arg in option.args if arg in _PAGE_WORDS]
    if len(set(words)) < len(words):
        raise option.error(f"'page' has a word twice, expected each once: {' '.join(option.args)}")
    others = tuple(arg for arg in option.args if arg not in _PAGE_WORDS)
    for other in others:
        if ":" not in other:
            raise option.error(f"'page' has {shown(other)}{hint(other, ('HOST:PORT', *_PAGE_WORDS))}")
    listen = listen_address(replace(option, args=others), DEFAULT_PAGE)
    page = PageSettings(listen, "public" in words, "queries" in words)
    if not page.public and not _is_loopback(listen.host):
        expected = (
            f"an address of loopback such as {DEFAULT_PAGE.host}:{DEFAULT_PAGE.port}, or the word 'public' behind it"
        )
        raise wrong(option, f"{expected}, as the page shows Nodes and addresses to all who can reach it")
    return replace(settings, page=page)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


_READERS: Final[Mapping[str, Callable[[Directive, TopologySettings], TopologySettings]]] = {
    "keys": _keys,
    "locate": _locate,
    "trust": _trust,
    "unknown_client": _unknown_client,
    "on_invalid": _on_invalid,
    "ttl": _ttl,
    "filter_hostnames": switch("filter_hostnames"),
    "terminating_fallback": switch("terminating_fallback"),
    "srv_priority": switch("srv_priority"),
    "page": _page,
}


PLUGIN: Final = Plugin(
    name="topology",
    coredns=differs(OURS),
    parse=parse_topology,
    fast_path=FastPath.PASSED,
    requires=("kubernetes",),
)
