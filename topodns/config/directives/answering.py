"""Directives that answer or change answers: `loadbalance`, `acl`, `header`, `chaos`, `nsid`, `bufsize`, `local`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from topodns.config.corefile import Directive
from topodns.config.directives.context import Context
from topodns.config.errors import hint, nearest, shown
from topodns.config.qtypes import QTYPES, parse_qtype
from topodns.config.values import (
    choice,
    duration,
    fold_options,
    network,
    networks,
    no_args,
    no_body,
    only_arg,
    only_choice,
    whole,
    wrong,
)
from topodns.dns.message import Flag
from topodns.settings.server import DEFAULT_UDP_SIZE
from topodns.settings.steps import Acl, AclAction, AclRule, Chaos, Header, Loadbalance, LoadbalancePolicy

_MIN_BUFSIZE: Final = 512  # RFC 6891 section 6.2.3
_MAX_BUFSIZE: Final = 4096  # CoreDNS's limit
_MAX_STRING: Final = 255  # octets of a TXT record's string, RFC 1035 section 3.3
_MAX_NSID: Final = 255  # octets
_ANY_WORD: Final = "*"

_HEADER_FLAGS: Final[Mapping[str, int]] = {"aa": Flag.AA, "ra": Flag.RA, "rd": Flag.RD}
_ACL_ACTIONS: Final = {action.value: action for action in AclAction}


def parse_local(directive: Directive, _: Context) -> bool:
    """CoreDNS's `localhost_prefix off` is not available; `on` is the default."""

    def localhost_prefix(option: Directive, _: bool) -> bool:
        if only_choice(option, {"on": True, "off": False}):
            return True
        raise option.error("CoreDNS has 'localhost_prefix off', topodns does not")

    no_args(directive)
    return fold_options(directive, True, {"localhost_prefix": localhost_prefix})


def parse_bufsize(directive: Directive, _: Context) -> int:
    no_body(directive)
    if not directive.args:
        return DEFAULT_UDP_SIZE
    return whole(directive, only_arg(directive, "one size at most"), _MIN_BUFSIZE, _MAX_BUFSIZE)


def parse_nsid(directive: Directive, _: Context) -> str:
    """All the arguments. A longer text would be left out of most UDP replies, and nobody would know why."""
    no_body(directive)
    text = " ".join(directive.args)
    if len(text.encode()) > _MAX_NSID:
        raise directive.error(f"'nsid' has {len(text.encode())} octets, expected at most {_MAX_NSID}")
    return text


def parse_chaos(directive: Directive, _: Context) -> Chaos:
    """`chaos [VERSION] [AUTHORS...]`, cut to what a TXT string holds; authors once each and sorted, as in CoreDNS."""
    no_body(directive)
    if not directive.args:
        return Chaos()
    version, *authors = map(_text_string, directive.args)
    return Chaos(version, tuple(sorted(set(authors))))


def _text_string(text: str) -> str:
    return text.encode("utf-8", "replace")[:_MAX_STRING].decode("utf-8", "ignore")


def parse_loadbalance(directive: Directive, context: Context) -> Loadbalance:
    """`loadbalance [round_robin | weighted FILE]`."""
    policies = {policy.value: policy for policy in LoadbalancePolicy}
    policy = choice(directive, directive.args[0], policies) if directive.args else LoadbalancePolicy.ROUND_ROBIN
    if policy is LoadbalancePolicy.ROUND_ROBIN:
        if len(directive.args) > 1:
            raise wrong(directive, "round_robin, or weighted FILE")
        return fold_options(directive, Loadbalance(), {"prefer": _prefer})
    if len(directive.args) != 2:
        raise wrong(directive, "weighted and one file")
    weighted = Loadbalance(policy, context.readable_file(directive, directive.args[1]))
    return fold_options(directive, weighted, {"prefer": _prefer, "reload": _weights_reload})


def _prefer(option: Directive, settings: Loadbalance) -> Loadbalance:
    return replace(settings, prefer=settings.prefer + networks(option))


def _weights_reload(option: Directive, settings: Loadbalance) -> Loadbalance:
    return replace(settings, reload=duration(option, only_arg(option, "a duration")))


def parse_header(directive: Directive, _: Context) -> Header:
    """Lines `query|response set|clear FLAGS...`; of two that name a flag, the later one counts."""
    no_args(directive)
    if not directive.body:
        raise directive.error("'header' has no line, expected query or response, set or clear, and flags")
    header = Header()
    for line in directive.body:
        header = _header_line(line, header)
    return header


def _header_line(line: Directive, header: Header) -> Header:
    no_body(line)
    selector = line.name.lower()
    if selector not in ("query", "response"):
        raise line.error(f"unknown option {shown(line.name)} of 'header'{hint(selector, ('query', 'response'))}")
    if len(line.args) < 2:
        raise wrong(line, "set or clear, and then flags: aa, ra or rd")
    setting = choice(line, line.args[0].lower(), {"set": True, "clear": False})
    bits = 0
    for word in line.args[1:]:
        bits |= choice(line, word.lower(), _HEADER_FLAGS)
    if selector == "query":
        chosen, cleared = _with_bits(header.query_set, header.query_clear, bits, setting)
        return replace(header, query_set=chosen, query_clear=cleared)
    chosen, cleared = _with_bits(header.response_set, header.response_clear, bits, setting)
    return replace(header, response_set=chosen, response_clear=cleared)


def _with_bits(chosen: int, cleared: int, bits: int, setting: bool) -> tuple[int, int]:
    if setting:
        return chosen | bits, cleared & ~bits
    return chosen & ~bits, cleared | bits


def parse_acl(directive: Directive, context: Context) -> tuple[Acl, ...]:
    """`acl [ZONES...] { ACTION [type QTYPE...] [net SOURCE...] }`; the keywords in any case."""
    rules = tuple(_acl_rule(line) for line in directive.body)
    return (Acl(context.origins_of(directive), rules),)


def _acl_rule(line: Directive) -> AclRule:
    no_body(line)
    action = _ACL_ACTIONS.get(line.name.lower())
    if action is None:
        raise line.error(f"unknown action {shown(line.name)} of 'acl'{hint(line.name, _ACL_ACTIONS)}")
    sections = _acl_sections(line)
    qtypes, sources = sections["type"], sections["net"]
    return AclRule(
        action,
        frozenset() if _ANY_WORD in qtypes else frozenset(_qtype(line, word) for word in qtypes),
        () if _ANY_WORD in sources else tuple(network(line, word) for word in sources),
    )


def _acl_sections(line: Directive) -> dict[str, list[str]]:
    """The words after each `type` and each `net`."""
    sections: dict[str, list[str]] = {"type": [], "net": []}
    section, words = "", 0
    for word in line.args:
        if word.lower() in sections:
            _refuse_empty_section(line, section, words)
            section, words = word.lower(), 0
        elif not section:
            raise line.error(f"'{line.name}' has {shown(word)}, expected type or net")
        else:
            sections[section].append(word)
            words += 1
    _refuse_empty_section(line, section, words)
    return sections


def _refuse_empty_section(line: Directive, section: str, words: int) -> None:
    if section and not words:
        raise line.error(f"'{section}' of '{line.name}' has nothing after it, expected at least one word")


def _qtype(line: Directive, word: str) -> int:
    qtype = parse_qtype(word)
    if qtype is None:
        raise line.error(f"unknown record type {shown(word)}{_qtype_hint(word)}")
    return qtype


def _qtype_hint(word: str) -> str:
    near = nearest(word, [name.lower() for name in QTYPES])
    return f", did you mean '{near.upper()}'?" if near else ", expected a name such as AAAA or a number such as TYPE65"
