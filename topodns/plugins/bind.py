"""Where a server block listens, and how the process follows its Corefile: `bind`, `reload`."""

from ipaddress import ip_address
from typing import Final

from topodns.config.corefile import Directive
from topodns.config.directives.context import Context
from topodns.config.errors import shown
from topodns.config.values import duration, no_body, some_args, unknown_option, wrong
from topodns.settings.server import Reload

_MIN_INTERVAL: Final = 2.0  # seconds; CoreDNS's limits
_MIN_JITTER: Final = 1.0


def parse_bind(directive: Directive, context: Context) -> tuple[str, ...]:
    """The addresses of one `bind`: those named and those of the interfaces named, without the `except`ed ones."""
    if not directive.args:
        raise wrong(directive, "addresses or interfaces")
    excepted: set[str] = set()
    for option in directive.body:
        if option.name != "except":
            raise unknown_option(option, "bind", ("except",))
        excepted.update(_addresses(option, some_args(option, "addresses or interfaces"), context))
    bound = tuple(address for address in _addresses(directive, directive.args, context) if address not in excepted)
    if not bound:
        raise directive.error("'bind' has no address left, expected at least one that is not under 'except'")
    return bound


def _addresses(directive: Directive, words: tuple[str, ...], context: Context) -> list[str]:
    return list(dict.fromkeys(address for word in words for address in _resolve(directive, word, context)))


def _resolve(directive: Directive, word: str, context: Context) -> tuple[str, ...]:
    try:
        return (str(ip_address(word)),)
    except ValueError:
        pass
    try:
        addresses = context.interface_addresses(word)
    except OSError as problem:
        raise directive.error(f"cannot list the addresses of the interface {shown(word)}: {problem}") from None
    if addresses is None:
        raise directive.error(f"'{directive.name}' has {shown(word)}, expected an IP address or an interface's name")
    return addresses


def parse_reload(directive: Directive, _: Context) -> Reload | None:
    """`reload [INTERVAL] [JITTER]`; a jitter is at most half the interval. None: `reload off`."""
    no_body(directive)
    if directive.args == ("off",):
        return None
    if len(directive.args) > 2:
        raise wrong(directive, "an interval and a jitter at most, or off")
    times = [duration(directive, text) for text in directive.args]
    interval, jitter = (*times, *(Reload().interval, Reload().jitter)[len(times) :])
    if interval < _MIN_INTERVAL:
        raise directive.error(f"'reload' has the interval {directive.args[0]}, expected at least 2s")
    if 0 < jitter < _MIN_JITTER:
        raise directive.error(f"'reload' has the jitter {directive.args[1]}, expected 0 or at least 1s")
    return Reload(interval, min(jitter, interval / 2))
