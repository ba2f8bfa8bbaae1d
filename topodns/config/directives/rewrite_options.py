"""The field `edns0` of `rewrite`: `local ACTION CODE [DATA|VARIABLE]`, `nsid ACTION`, `subnet ACTION IPV4 IPV6`."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from topodns.config.directives.rewrite_words import Words
from topodns.config.errors import hint, listed, shown
from topodns.dns.message import Option
from topodns.settings.rewrite import Action, OptionRule, Subnet, Variable

_REVERT: Final = "revert"
_CODE: Final = re.compile(r"0[xX][0-9A-Fa-f]{1,4}|0|[1-9][0-9]{0,4}")
_MAX_CODE: Final = 65_535
_BITS: Final = re.compile(r"[0-9]{1,3}")
_METADATA: Final = re.compile(r"\{[^/{}]+/[^{}]+\}")
_ACTIONS: Final = {action.value: action for action in Action}
_VARIABLES: Final = {variable.value: variable for variable in Variable}


def parse_option_rule(words: Words) -> OptionRule:
    kind = words.take("local, nsid or subnet").lower()
    if kind not in _KINDS:
        raise words.error(f"found {shown(kind)} after edns0{hint(kind, _KINDS)}")
    word = words.take(listed(_ACTIONS)).lower()
    if word not in _ACTIONS:
        raise words.error(f"found {shown(word)} after edns0 {kind}{hint(word, _ACTIONS)}")
    return _KINDS[kind](words, _ACTIONS[word])


def _parse_local(words: Words, action: Action) -> OptionRule:
    code = _take_code(words)
    if action is Action.UNSET:
        return OptionRule(action, code)
    data = _take_data(words)
    words.take_if(_REVERT)  # as if it were always there: nothing of it reaches clients
    return OptionRule(action, code, data)


def _parse_nsid(words: Words, action: Action) -> OptionRule:
    """Asks the steps below for their NSID (RFC 5001), with no data. Clients do not see the question: `nsid` answers."""
    return _hidden(words, OptionRule(action, Option.NSID))


def _parse_subnet(words: Words, action: Action) -> OptionRule:
    """Clients never see it, as they must not unless they sent one (RFC 7871 section 7.2.2)."""
    if action is Action.UNSET:
        return OptionRule(action, Option.CLIENT_SUBNET)
    subnet = Subnet(_take_bits(words, "IPv4", 32), _take_bits(words, "IPv6", 128))
    return _hidden(words, OptionRule(action, Option.CLIENT_SUBNET, subnet))


def _hidden(words: Words, rule: OptionRule) -> OptionRule:
    """`revert` says what is so anyway."""
    if rule.action is not Action.UNSET:
        words.take_if(_REVERT)
    return rule


_KINDS: Final[Mapping[str, Callable[[Words, Action], OptionRule]]] = {
    "local": _parse_local,
    "nsid": _parse_nsid,
    "subnet": _parse_subnet,
}


def _take_code(words: Words) -> int:
    text = words.take("the code of an option")
    if _CODE.fullmatch(text) and int(text, 0) <= _MAX_CODE:
        return int(text, 0)
    raise words.error(f"the option's code is {shown(text)}, expected 0 to {_MAX_CODE}, or 0x0 to 0xffff")


def _take_data(words: Words) -> bytes | Variable:
    text = words.take("the data of the option")
    if text.startswith("{") and text.endswith("}"):
        return _variable(words, text)
    if not text.startswith("0x"):
        return text.encode()
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        raise words.error(f"the option's data is {shown(text)}, expected pairs of hexadecimal digits") from None


def _variable(words: Words, text: str) -> Variable:
    if text in _VARIABLES:
        return _VARIABLES[text]
    if _METADATA.fullmatch(text):
        raise words.error(
            f"CoreDNS takes {shown(text)} from its metadata, topodns has none; expected {listed(_VARIABLES)}"
        )
    raise words.error(f"unknown variable {shown(text)}{hint(text, _VARIABLES)}")


def _take_bits(words: Words, family: str, most: int) -> int:
    text = words.take(f"the prefix length for {family}")
    if _BITS.fullmatch(text) and int(text) <= most:
        return int(text)
    raise words.error(f"the prefix length for {family} is {shown(text)}, expected 0 to {most}")
