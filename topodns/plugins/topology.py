"""The `topology` directive: docs/topology.md has what each option means. An option may stand there once."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Final, TypeVar

from topodns.cluster.locate import Method
from topodns.cluster.policy import KeySource
from topodns.cluster.topology import OnInvalid, UnknownClient
from topodns.config.corefile import Directive
from topodns.config.directives.context import Context
from topodns.config.errors import listed
from topodns.config.values import (
    choice,
    flag,
    fold_options,
    networks,
    no_args,
    once_each,
    only_arg,
    only_choice,
    some_args,
    whole,
)
from topodns.settings.topology import TopologySettings

MAX_TTL: Final = 3600  # seconds; as in `kubernetes`

E = TypeVar("E", bound=Enum)


def parse_topology(directive: Directive, _: Context) -> TopologySettings:
    no_args(directive)
    once_each(directive)
    return fold_options(directive, TopologySettings(), _READERS)


def _spellings(values: type[E]) -> dict[str, E]:
    return {value.value: value for value in values}


def _ordered(option: Directive, values: type[E]) -> tuple[E, ...]:
    """The arguments in their order; at least one, none twice."""
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


def _filter_hostnames(option: Directive, settings: TopologySettings) -> TopologySettings:
    flag(option)
    return replace(settings, filter_hostnames=True)


def _terminating_fallback(option: Directive, settings: TopologySettings) -> TopologySettings:
    flag(option)
    return replace(settings, terminating_fallback=True)


_READERS: Final[Mapping[str, Callable[[Directive, TopologySettings], TopologySettings]]] = {
    "keys": _keys,
    "locate": _locate,
    "trust": _trust,
    "unknown_client": _unknown_client,
    "on_invalid": _on_invalid,
    "ttl": _ttl,
    "filter_hostnames": _filter_hostnames,
    "terminating_fallback": _terminating_fallback,
}
