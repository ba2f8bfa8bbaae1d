"""The parser of the `view` directive, which selects the server block for a query."""

from dataclasses import replace
from typing import Final

from topodns.corefile.arguments import fold_options, some_args, wrong
from topodns.corefile.errors import shown
from topodns.corefile.parser import Directive
from topodns.dns.rrtype import Rcode
from topodns.plugins.compatibility import Effect, differs
from topodns.plugins.context import Context
from topodns.plugins.plugin import Plugin, Reads
from topodns.plugins.setup import BlockSetup, Install
from topodns.plugins.view.expression import compile_expression
from topodns.plugins.view.handler import ViewFilter
from topodns.plugins.view.parser import BadExpression
from topodns.plugins.view.settings import View
from topodns.query.metadata import VIEW_NAME, MetadataSource
from topodns.query.plugin import ChainPart


def parse_view(directive: Directive, context: Context) -> View:
    """`view NAME { expr EXPRESSION }`: expressions are compiled here to report errors, and again for each address that
    the block listens on. Raises ConfigError."""
    if len(directive.args) != 1:
        raise wrong(directive, "one name")
    return fold_options(directive, View(directive.args[0]), {"expr": _expr})


def _expr(option: Directive, settings: View) -> View:
    """The words of the line, joined by one space as in CoreDNS, are one expression."""
    text = " ".join(some_args(option, "an expression, such as type() in ['A', 'AAAA']"))
    try:
        compile_expression(text)
    except BadExpression as problem:
        raise option.error(f"{shown(text)} is no expression: {problem}") from None
    return replace(settings, expressions=(*settings.expressions, text))


def labels(settings: View) -> frozenset[str]:
    """The labels of metadata that the view reads."""
    return frozenset[str]().union(*(compile_expression(text).labels for text in settings.expressions))


def _setup(settings: View, block: BlockSetup) -> Install:
    block.provide(MetadataSource({VIEW_NAME: lambda query, client: settings.name}.get))
    scope = block.vary_by_labels(labels(settings))
    return lambda listener: (ChainPart(selects=ViewFilter(settings, listener.host, block.reader_of, scope)),)


PLUGIN: Final = Plugin(
    name="view",
    coredns=differs(
        Effect.ANSWER, "expressions are on one query and its client: no variables, predicates or computed labels"
    ),
    parse=parse_view,
    setup=_setup,
    labels=labels,
    unanswered=Rcode.SERVFAIL,
    reads=Reads.EVERYTHING,  # a view may read the size of a message
)
