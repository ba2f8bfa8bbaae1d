"""From a parsed server block to its settings: each directive by its own parser, then what must hold between them."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

from topodns.config.coredns_directives import DIRECTIVES as ROWS
from topodns.config.coredns_directives import ELSEWHERE
from topodns.config.corefile import Block, Directive
from topodns.config.directives import COREDNS_ONLY, DIRECTIVES, Context
from topodns.config.errors import ConfigError, nearest, shown
from topodns.config.lexer import Token
from topodns.dns.names import name_text
from topodns.settings.autopath import Autopath
from topodns.settings.server import BlockKey, ServerBlock


def build_block(block: Block, keys: Iterable[BlockKey], context: Context) -> ServerBlock:
    """The settings of one block. Raises ConfigError for the first directive that is wrong."""
    first: dict[str, Directive] = {}
    values: dict[str, Any] = {}
    for directive in block.directives:
        value = _value(directive, first, context)
        values[directive.name] = values[directive.name] + value if directive.name in first else value
        first.setdefault(directive.name, directive)
    _check_companions(first, values)
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
        instead = ROWS[directive.name].text
        return directive.error(f"CoreDNS has the directive '{directive.name}', topodns does not: {instead}")
    if directive.name in ELSEWHERE:
        return directive.error(f"topodns has no directive '{directive.name}': {ELSEWHERE[directive.name]}")
    near = nearest(directive.name, (*DIRECTIVES, *COREDNS_ONLY))
    guess = f", did you mean '{near}'?" if near else ", expected one of those that 'topodns -plugins' lists"
    return directive.error(f"unknown directive {shown(directive.name)}{guess}")


def _check_companions(directives: dict[str, Directive], values: dict[str, Any]) -> None:
    """Refuse what means nothing without `kubernetes` in the same block."""
    if "kubernetes" in directives:
        return
    for name, directive in directives.items():
        if name in ("topology", "k8s_external"):
            raise directive.error(f"found '{name}' in a server block without 'kubernetes', expected both")
    if "autopath" in directives and values["autopath"].kubernetes:
        _check_distant(directives["autopath"], values["autopath"], forwards="forward" in directives)


def _check_distant(directive: Directive, autopath: Autopath, forwards: bool) -> None:
    """Refuse `autopath @kubernetes` where there is no cluster, and no way to the DNS of one."""
    if not forwards:
        raise directive.error(
            "found 'autopath' in a server block without 'kubernetes' and 'forward', expected one of these"
        )
    if not autopath.cluster_domains:
        raise directive.error(
            "'autopath' has no domain of a cluster, expected one, as in 'autopath cluster.local @kubernetes'"
        )


def check_overlaps(served: Iterable[tuple[Token, BlockKey, ServerBlock]]) -> None:
    """Refuses two keys of one zone and port, unless `bind` or `view` sets them apart.

    Raises ConfigError at the later of the two.
    """
    by_key: dict[BlockKey, list[tuple[Token, ServerBlock]]] = {}
    for token, key, block in served:
        by_key.setdefault(key, []).append((token, block))
    for key, users in by_key.items():
        for (earlier, one), (later, other) in combinations(users, 2):
            if _overlap(one, other):
                where = f"{earlier.file}:{earlier.line}"
                raise later.error(f"found {name_text(key.origin)}:{key.port} again, first at {where}")


def _overlap(one: ServerBlock, other: ServerBlock) -> bool:
    """Whether a block must not follow another of its zone and port. One without `bind` has every address.

    A view sets them apart; only behind a block without one, `bind` has to stand in both or in neither, as in CoreDNS.
    """
    if one is other:
        return True
    if one.view is not None:
        return False
    if other.view is not None:
        return bool(one.bind) != bool(other.bind)
    return not one.bind or not other.bind or not set(one.bind).isdisjoint(other.bind)
