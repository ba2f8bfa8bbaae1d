"""The `view` directive: which server block a client's query is for."""

from dataclasses import replace

from topodns.config.corefile import Directive
from topodns.config.directives.context import Context
from topodns.config.errors import shown
from topodns.config.values import fold_options, some_args, wrong
from topodns.resolve.view.compiler import compile_expression
from topodns.resolve.view.lexer import BadExpression
from topodns.settings.view import View


def parse_view(directive: Directive, context: Context) -> View:
    """`view NAME { expr EXPRESSION }`: expressions are compiled here, to find what is wrong with them, and again for
    each address that the block listens on."""
    if len(directive.args) != 1:
        raise wrong(directive, "one name")
    return fold_options(directive, View(directive.args[0]), {"expr": _expr})


def _expr(option: Directive, settings: View) -> View:
    """The words of the line are one expression, with one space between them as in CoreDNS."""
    text = " ".join(some_args(option, "an expression, such as type() in ['A', 'AAAA']"))
    try:
        compile_expression(text)
    except BadExpression as problem:
        raise option.error(f"{shown(text)} is no expression: {problem}") from None
    return replace(settings, expressions=(*settings.expressions, text))
