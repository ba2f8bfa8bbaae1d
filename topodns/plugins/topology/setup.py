"""The parser of `topology`. Each option may be given once; docs/reference/topology.md has them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from ipaddress import ip_address
from itertools import takewhile
from typing import Final, TypeVar

from topodns.cluster.annotations import DOMAIN, GUARDS
from topodns.cluster.api_names import is_dns_label
from topodns.cluster.label_selector import BadSelector, parse_selector
from topodns.cluster.model import InvalidPolicy, KeySource, Policy
from topodns.corefile.arguments import (
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
from topodns.plugins.compatibility import OURS, Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import FastPath, Plugin
from topodns.plugins.topology.settings import DEFAULT_PAGE, PageSettings, TopologySettings
from topodns.topology.client_locator import Method
from topodns.topology.keys import NAMED_SOURCES, DefaultKeys, parse_list
from topodns.topology.select import OnInvalid, UnknownClient

_PAGE_WORDS: Final = ("public", "queries")
_DEFAULT_WORDS: Final = ("namespaces", "labels")
_DEFAULT_FORM: Final = "default KEYS [namespaces NAMESPACE...] [labels SELECTOR]"
MAX_TTL: Final = 3600  # seconds; as in `kubernetes`

E = TypeVar("E", bound=Enum)


def parse_topology(directive: Directive, context: Context) -> TopologySettings:
    no_args(directive)
    once_each(directive, adding_up=("default",))
    settings = fold_options(directive, TopologySettings(), _READERS)
    _warn_of_shadowed(settings.defaults, context)
    return settings


def _spellings(values: Iterable[E]) -> dict[str, E]:
    return {value.value: value for value in values}


def _ordered(option: Directive, values: Iterable[E]) -> tuple[E, ...]:
    """The members of `values` in the order of the arguments, their names.

    Raises ConfigError for no argument, and for an unknown or a repeated one.
    """
    known = _spellings(values)
    chosen = tuple(choice(option, text, known) for text in some_args(option, f"some of {listed(known)}"))
    if len(set(chosen)) < len(chosen):
        raise option.error(f"'{option.name}' has a word twice, expected each once: {' '.join(option.args)}")
    return chosen


def _keys(option: Directive, settings: TopologySettings) -> TopologySettings:
    return replace(settings, keys=_ordered(option, NAMED_SOURCES))


def _default(option: Directive, settings: TopologySettings) -> TopologySettings:
    """`default KEYS [namespaces NAMESPACE...] [labels SELECTOR]`."""
    no_body(option)
    keys, *rest = some_args(option, "topology keys, separated by commas")
    policy = _default_policy(option, keys, rest)
    if rest and rest[0] not in _DEFAULT_WORDS:
        raise option.error(f"'default' has {shown(rest[0])}{_guard(rest[0]) or hint(rest[0], _DEFAULT_WORDS)}")
    at = rest.index("labels") if "labels" in rest else len(rest)
    namespaces, words = rest[1:at], rest[at + 1 :]
    bare = "namespaces" if at and not namespaces else "labels" if at < len(rest) and not words else ""
    if bare:
        raise option.error(f"'default' has nothing behind '{bare}', expected {_DEFAULT_FORM}")
    for behind, name in enumerate(namespaces):
        _check_namespace(option, name, behind > 0)
    try:
        labels = parse_selector(" ".join(words))
    except BadSelector as problem:
        if "namespaces" in words:
            raise option.error(f"'default' has 'namespaces' behind 'labels', expected {_DEFAULT_FORM}") from None
        raise option.error(f"'default' has no label selector: {problem}") from None
    default = DefaultKeys(policy, tuple(namespaces), labels, option.place)
    return replace(settings, defaults=(*settings.defaults, default))


def _default_policy(option: Directive, keys: str, rest: Sequence[str]) -> Policy:
    """The policy of KEYS; `rest` are the words after them. Raises ConfigError."""
    if keys.endswith(",") or "".join(rest[:1]).startswith(","):
        written = " ".join((keys, *takewhile(lambda word: word not in _DEFAULT_WORDS, rest)))
        raise option.error(f"'default' has blanks in its keys {shown(written)}, expected one word such as zone,*")
    policy = parse_list(keys, KeySource.DEFAULT)
    if isinstance(policy, InvalidPolicy):
        raise option.error(f"'default' has invalid topology keys: {policy.problem}")
    if policy is None or policy.is_empty:
        raise option.error(f"'default' has {shown(keys)}, expected topology keys, separated by commas")
    if policy.warnings:
        raise option.error(f"'default': {policy.warnings[0]}")
    return policy


def _check_namespace(option: Directive, name: str, behind: bool) -> None:
    """Raises ConfigError for a name that no namespace can have, and for a guard `behind` another namespace."""
    advice = _guard(name) if behind else ""
    if not is_dns_label(name) or advice:
        expected = ", expected a namespace: lower-case letters, digits and '-', at most 63, with blanks between several"
        raise option.error(f"'default' has {shown(name)}{advice or expected}")


def _guard(word: str) -> str:
    """The end of a message about a guard on the line `default`; "" for another word."""
    name = f"{DOMAIN}{word.removeprefix(DOMAIN)}"
    return f": guards are annotations of Services, here {name}" if name in GUARDS else ""


def _warn_of_shadowed(defaults: Sequence[DefaultKeys], context: Context) -> None:
    for at, default in enumerate(defaults):
        before = next((each for each in defaults[:at] if each.covers(default)), None)
        if before is not None:
            context.warn(
                f"plugin/topology: this 'default' has no effect, since that at {before.place} holds for the same "
                f"Services ({default.place})"
            )


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
    "default": _default,
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
    coredns=differs(Effect.ANSWER, OURS),
    parse=parse_topology,
    fast_path=FastPath.PASSED,
    requires=("kubernetes",),
)
