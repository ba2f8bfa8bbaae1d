"""Parser of the `template` directive."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from topodns.corefile.arguments import choice, fold_options, no_body, only_arg, record_type, some_args, whole, wrong
from topodns.corefile.errors import shown
from topodns.corefile.parser import Directive
from topodns.corefile.zones import fallthrough, parse_origins
from topodns.dns.rrtype import QCLASSES, RCODES, RRClass
from topodns.plugins.compatibility import Effect, differs, unsupported
from topodns.plugins.context import Context
from topodns.plugins.plugin import Plugin, Reads, all_origins
from topodns.plugins.setup import BlockListener, BlockSetup, Install
from topodns.plugins.template.engine.lexer import BadTemplate
from topodns.plugins.template.handler import TemplateCounts, Templates
from topodns.plugins.template.metrics import readings
from topodns.plugins.template.rule import RecordTemplate
from topodns.plugins.template.settings import Template
from topodns.query.plugin import ChainPart
from topodns.query.regex import BadPattern, compile_pattern

_CLASSES: Final = {name: qclass for name, qclass in QCLASSES.items() if qclass != RRClass.NONE}
_RCODES: Final = {name: rcode for name, rcode in RCODES.items() if rcode < 16}  # those without EDNS
_ELSEWHERE: Final = frozenset({"var", "expr"})  # options of CoreDNS after 1.14.7


def parse_template(directive: Directive, context: Context) -> tuple[Template, ...]:
    """`template CLASS TYPE [ZONES...] { ... }`: templates and patterns are compiled here to report errors, and again by
    the plugin. Raises ConfigError."""
    if len(directive.args) < 2:
        raise wrong(directive, "a class, a type, and perhaps zones, such as IN A example.org")
    qclass, qtype, *origins = directive.args
    settings = Template(
        choice(directive, qclass.upper(), _CLASSES),
        record_type(qtype, directive.error),
        parse_origins(directive, origins) or context.origins,
    )
    return (fold_options(directive, settings, _OPTIONS, _ELSEWHERE),)


def _match(option: Directive, settings: Template) -> Template:
    patterns = some_args(option, "one or more regular expressions")
    for pattern in patterns:
        try:
            compile_pattern(pattern)
        except BadPattern as problem:
            raise option.error(f"{shown(pattern)} is no regular expression: {problem}") from None
    return replace(settings, patterns=settings.patterns + patterns)


def _answer(option: Directive, settings: Template) -> Template:
    return replace(settings, answer=settings.answer + _records(option))


def _additional(option: Directive, settings: Template) -> Template:
    return replace(settings, additional=settings.additional + _records(option))


def _authority(option: Directive, settings: Template) -> Template:
    return replace(settings, authority=settings.authority + _records(option))


def _records(option: Directive) -> tuple[str, ...]:
    texts = some_args(option, "a record, in double quotes")
    for text in texts:
        try:
            RecordTemplate(option.name, text)
        except BadTemplate as problem:
            raise option.error(f"{shown(option.name)}: {problem}") from None
    return texts


def _rcode(option: Directive, settings: Template) -> Template:
    return replace(settings, rcode=choice(option, only_arg(option, "a response code").upper(), _RCODES))


def _ederror(option: Directive, settings: Template) -> Template:
    code, *text = some_args(option, "a code and perhaps a text")
    if len(text) > 1:
        raise wrong(option, "a code and perhaps a text in double quotes")
    return replace(settings, ede=(whole(option, code, 0, 0xFFFF), "".join(text)))


def _fallthrough(option: Directive, settings: Template) -> Template:
    return replace(settings, fallthrough=fallthrough(option))


def _upstream(option: Directive, settings: Template) -> Template:
    """Accepted with any arguments and without effect, as in CoreDNS: targets of CNAMEs are always looked up."""
    no_body(option)
    return settings


_OPTIONS: Final[Mapping[str, Callable[[Directive, Template], Template]]] = {
    "match": _match,
    "answer": _answer,
    "additional": _additional,
    "authority": _authority,
    "rcode": _rcode,
    "ederror": _ederror,
    "fallthrough": _fallthrough,
    "upstream": _upstream,
}


def _setup(settings: tuple[Template, ...], block: BlockSetup) -> Install:
    def install(listener: BlockListener) -> tuple[ChainPart]:
        counts = block.process.shared.get(TemplateCounts, listener.server, block.block.view_name)
        return (ChainPart(step=Templates(settings, listener.chase, counts)),)

    return install


PLUGIN: Final = Plugin(
    name="template",
    coredns=differs(
        Effect.ANSWER,
        "functions are parseInt and Go's own but for call, html, js and urlquery, .Meta is empty, and define, template "
        "and block are refused",
        var=unsupported("write the value into the templates"),
        expr=unsupported("use `match`, or `view` for what depends on the client"),
    ),
    parse=parse_template,
    zones=all_origins,
    setup=_setup,
    adds_up=True,
    reads=Reads.SPELLING,
    metrics=readings,
)
