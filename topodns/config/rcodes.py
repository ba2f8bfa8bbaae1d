"""The response codes an operator may name, as CoreDNS spells them (the IANA registry's mnemonics)."""

from typing import Final

_REGISTRY: Final = """
    NOERROR 0  FORMERR 1  SERVFAIL 2  NXDOMAIN 3  NOTIMP 4  NOTIMPL 4  REFUSED 5  YXDOMAIN 6  YXRRSET 7  NXRRSET 8
    NOTAUTH 9  NOTZONE 10  DSOTYPENI 11  BADVERS 16  BADKEY 17  BADTIME 18  BADMODE 19  BADNAME 20  BADALG 21
    BADTRUNC 22  BADCOOKIE 23
"""
_WORDS: Final = _REGISTRY.split()

RCODES: Final[dict[str, int]] = {name: int(code) for name, code in zip(_WORDS[::2], _WORDS[1::2], strict=True)}


def parse_rcode(text: str) -> int | None:
    """The code that `text` names, in any case; None when it names none."""
    return RCODES.get(text.upper())
