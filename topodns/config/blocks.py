"""From a parsed server block to its settings: each directive by its own parser, then what must hold between them."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

from topodns.config.corefile import Block, Directive
from topodns.config.directives import COREDNS_ONLY, DIRECTIVES, Context
from topodns.config.errors import ConfigError, nearest, shown
from topodns.config.lexer import Token
from topodns.dns.names import name_text
from topodns.settings.server import BlockKey, ServerBlock


def build_block(block: Block, keys: Iterable[BlockKey], context: Context) -> ServerBlock:
    """The settings of one block. Raises ConfigError for the first directive that is wrong."""
    first: dict[str, Directive] = {}
    values: dict[str, Any] = {}
    for directive in block.directives:
        value = _value(directive, first, context)
        values[directive.name] = values[directive.name] + value if directive.name in first else value
        first.setdefault(directive.name, directive)
    _check_topology(first)
    if "bind" in values:
        values["bind"] = tuple(dict.fromkeys(values["bind"]))
    names = tuple(name for name in DIRECTIVES if name in first)
    return ServerBlock(tuple(keys), block.file, block.line, **values, directives=names)


def _value(directive: Directive, first: dict[str, Directive], context: Context) -> Any:
    kind = DIRECTIVES.get(directive.name)
    if kind is None:
        raise _unknown(directive)
    if not kind.adds_up and (earlier := first.get(directive.name)) is not None:
        raise directive.error(f"found '{directive.name}' again, first at {earlier.file}:{earlier.line}")
    return kind.parse(directive, context)


def _unknown(directive: Directive) -> ConfigError:
    if directive.name in COREDNS_ONLY:
        return directive.error(f"CoreDNS has the directive '{directive.name}', topodns does not")
    near = nearest(directive.name, (*DIRECTIVES, *COREDNS_ONLY))
    guess = f", did you mean '{near}'?" if near else ", expected one of those that 'topodns -plugins' lists"
    return directive.error(f"unknown directive {shown(directive.name)}{guess}")


def _check_topology(directives: dict[str, Directive]) -> None:
    if "topology" in directives and "kubernetes" not in directives:
        raise directives["topology"].error("found 'topology' in a server block without 'kubernetes', expected both")


def check_overlaps(served: Iterable[tuple[Token, BlockKey, ServerBlock]]) -> None:
    """Refuses two keys of one zone and port, unless `bind` sets them apart: one without `bind` has every address.

    Raises ConfigError at the later of the two.
    """
    by_key: dict[BlockKey, list[tuple[Token, ServerBlock]]] = {}
    for token, key, block in served:
        by_key.setdefault(key, []).append((token, block))
    for key, users in by_key.items():
        for (earlier, one), (later, other) in combinations(users, 2):
            if one is other or not one.bind or not other.bind or set(one.bind) & set(other.bind):
                where = f"{earlier.file}:{earlier.line}"
                raise later.error(f"found {name_text(key.origin)}:{key.port} again, first at {where}")
