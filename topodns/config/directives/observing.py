"""What a server block shows of itself: `errors`, `log`, `health`, `ready`, `prometheus`."""

from dataclasses import replace
from typing import Final

from topodns.config.corefile import Directive
from topodns.config.directives.context import Context
from topodns.config.errors import listed, shown
from topodns.config.keys import parse_origins
from topodns.config.values import (
    choice,
    duration,
    flag,
    fold_options,
    listen_address,
    no_body,
    only_arg,
    only_choice,
    some_args,
    wrong,
)
from topodns.dns.names import ROOT
from topodns.settings.errors import Consolidation, Errors
from topodns.settings.pattern import BadPattern, compile_pattern
from topodns.settings.server import Health, Prometheus, Ready
from topodns.settings.steps import LogRule

COMMON_FORMAT: Final = (
    '{remote}:{port} - {>id} "{type} {class} {name} {proto} {size} {>do} {>bufsize}" '
    "{rcode} {>rflags} {rsize} {duration}"
)
COMBINED_FORMAT: Final = f'{COMMON_FORMAT} "{{>opcode}}"'
_LEVELS: Final = ("debug", "info", "warning", "error")
_SHOW_FIRST: Final = "show_first"
_CLASSES: Final = {name: name for name in ("success", "denial", "error", "all")}


def parse_errors(directive: Directive, _: Context) -> Errors:
    """`errors { stacktrace; consolidate DURATION REGEXP [LEVEL] [show_first] }`; `errors stdout` is an old spelling."""
    if directive.args not in ((), ("stdout",)):
        raise wrong(directive, "none")

    def stacktrace(option: Directive, errors: Errors) -> Errors:
        flag(option)
        return errors

    def consolidate(option: Directive, errors: Errors) -> Errors:
        return Errors((*errors.consolidations, _consolidation(option)))

    return fold_options(directive, Errors(), {"stacktrace": stacktrace, "consolidate": consolidate})


def _consolidation(option: Directive) -> Consolidation:
    no_body(option)
    if len(option.args) < 2:
        raise wrong(option, "a duration and a regular expression")
    period, text, *rest = option.args
    try:
        compile_pattern(text)
    except BadPattern as problem:
        raise option.error(f"'consolidate' has the regular expression {shown(text)}: {problem}") from None
    level = rest.pop(0) if rest and rest[0] in _LEVELS else "error"
    if rest not in ([], [_SHOW_FIRST]):
        raise option.error(f"'consolidate' has {shown(' '.join(rest))}, expected {listed(_LEVELS)}, then show_first")
    return Consolidation(duration(option, period), period, text, level, bool(rest))


def parse_log(directive: Directive, _: Context) -> tuple[LogRule, ...]:
    """`log [NAMES...] [FORMAT]`: of two or more arguments, a last one with a brace is the format, as in CoreDNS."""
    names, form = directive.args, COMMON_FORMAT
    if len(names) > 1 and "{" in names[-1]:
        names, form = names[:-1], names[-1]
    for name in names:
        if "{" in name:
            raise directive.error(f"'log' has {shown(name)}, expected names and then one format: log . {shown(name)}")
    form = form.replace("{common}", COMMON_FORMAT).replace("{combined}", COMBINED_FORMAT)
    classes = fold_options(directive, frozenset[str](), {"class": _classes}) or frozenset({"all"})
    return (LogRule(parse_origins(directive, names) or (ROOT,), form, classes),)


def _classes(option: Directive, classes: frozenset[str]) -> frozenset[str]:
    words = some_args(option, "success, denial, error or all")
    return classes | {choice(option, word, _CLASSES) for word in words}


def parse_health(directive: Directive, _: Context) -> Health:
    def lameduck(option: Directive, health: Health) -> Health:
        return replace(health, lameduck=duration(option, only_arg(option, "a duration")))

    return fold_options(directive, Health(listen_address(directive, Health().listen)), {"lameduck": lameduck})


def parse_ready(directive: Directive, _: Context) -> Ready:
    def monitor(option: Directive, ready: Ready) -> Ready:
        continuously = only_choice(option, {"until-ready": False, "continuously": True})
        return replace(ready, continuously=continuously)

    return fold_options(directive, Ready(listen_address(directive, Ready().listen)), {"monitor": monitor})


def parse_prometheus(directive: Directive, _: Context) -> Prometheus:
    prometheus = Prometheus(listen_address(directive, Prometheus().listen))
    return fold_options(directive, prometheus, {}, elsewhere=("tls", "runtime_metrics"))
