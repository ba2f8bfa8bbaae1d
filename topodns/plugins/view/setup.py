"""Settings and parser of the `view` directive, which selects the server block for a query."""

from dataclasses import dataclass, replace

from topodns.corefile.arguments import fold_options, some_args, wrong
from topodns.corefile.errors import shown
from topodns.corefile.parser import Directive
from topodns.plugins.context import Context
from topodns.plugins.view.compiler import compile_expression
from topodns.plugins.view.parser import BadExpression


@dataclass(frozen=True, slots=True)
class View:
    """A server block takes the queries for which every expression is true; without expressions, all queries."""

    name: str  # CoreDNS's metric label `view`
    expressions: tuple[str, ...] = ()  # in the language of `plugins.view`


def parse_view(directive: Directive, context: Context) -> View:
    """`view NAME { expr EXPRESSION }`: expressions are compiled here to report errors, and again for each address that
    the block listens on."""
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
