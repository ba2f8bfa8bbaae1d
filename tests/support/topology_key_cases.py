"""Values of the annotation topodns.io/topology-keys of a headless Service: one table for the server's parser and for
the chart's ValidatingAdmissionPolicy, which has the same rules in CEL.
"""

from typing import Final, NamedTuple

from topodns.cluster.model import ZONE_LABEL


class Case(NamedTuple):
    """`problem`: the message about it, "" where it is valid; None where the two quote differently, but both refuse."""

    annotation: str
    problem: str | None = ""


_COMMA: Final = "a comma too many"
_COMMAS: Final = "keys are separated by commas"
_LONGEST_LABEL: Final = "a" * 63
_LONGEST_PREFIX: Final = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])  # 253
_LONGEST_LIST: Final = [f"{_LONGEST_PREFIX}/{n:x}{'a' * 62}" for n in range(16)]


def _no_key(found: str, advice: str = "") -> str:
    expected = "KEY, !KEY or *" if "!" in found else "a label key or *"
    return f"expected {expected}, found {repr(found) if found else 'nothing'}{f' ({advice})' if advice else ''}"


def _no_array(found: str) -> str:
    return f"expected a JSON array of strings, found '{found}'"


ACCEPTED: Final = (
    "kubernetes.io/hostname",
    "kubernetes.io/hostname, topology.kubernetes.io/zone, *",
    "kubernetes.io/hostname,topology.kubernetes.io/zone",
    "  kubernetes.io/hostname\t,\n topology.kubernetes.io/zone ",
    "\u00a0zone\u2003,\u3000rack\u0085",
    "*",
    "none",
    "none, zone",
    "",
    " \t\n",
    "[]",
    " [ ] ",
    "zone, zone",
    "*, zone",
    "A-1_b.C",
    "0",
    _LONGEST_LABEL,
    f"{_LONGEST_PREFIX}/zone",
    f"  {_LONGEST_PREFIX}/{_LONGEST_LABEL}",
    ",".join(f"key{n}" for n in range(16)),
    '["kubernetes.io/hostname", "*"]',
    '\n[ "kubernetes.io/hostname"\t,\r\n"topology.kubernetes.io/zone" ]\n',
    '["none"]',
    '["example.com\\/rack"]',
    '["\\u0061.\\u0062\\u002fzone\\u002d\\u0031"]',
    '["\\u002A"]',
    '["\\u005a\\u005F\\u007a"]',
    f'["{_LONGEST_PREFIX}/zone"]',
    f'["{_LONGEST_PREFIX}\\u002fzone"]',
    str([f"key{n}" for n in range(16)]).replace("'", '"'),
    " , ".join(_LONGEST_LIST),
    str(_LONGEST_LIST).replace("'", '"'),
    "zone" + " " * 8188,
    "!topology.kubernetes.io/zone",
    "zone, !zone, *",
    f"!{_LONGEST_PREFIX}/zone",
    f'["!{_LONGEST_PREFIX}/zone", "\\u0021rack"]',
    f'["\\u0021{_LONGEST_PREFIX}/zone"]',
)
REFUSED: Final = (
    Case("no such key!", _no_key("no such key!")),
    Case("zone, no such key, a b", _no_key("no such key", _COMMAS)),
    Case("zone rack", _no_key("zone rack", _COMMAS)),
    Case(
        "kubernetes.io/hostname; example.com/rack ;*", _no_key("kubernetes.io/hostname; example.com/rack ;*", _COMMAS)
    ),
    Case("zone;", _no_key("zone;", _COMMAS)),
    Case(";zone", _no_key(";zone", _COMMAS)),
    Case(";", _no_key(";")),
    Case("zone\u2003rack", None),
    Case("zone; a b!", _no_key("zone; a b!")),
    Case("zone " * 17, _no_key("zone " * 16 + "...")),
    Case("zone|rack", _no_key("zone|rack")),
    Case("zone,", _no_key("", _COMMA)),
    Case(",", _no_key("", _COMMA)),
    Case("zone,,rack", _no_key("", _COMMA)),
    Case("Kubernetes.io/Hostname", _no_key("Kubernetes.io/Hostname", "did you mean 'kubernetes.io/hostname'?")),
    Case("TOPOLOGY.KUBERNETES.IO/ZONE,*", _no_key("TOPOLOGY.KUBERNETES.IO/ZONE", f"did you mean '{ZONE_LABEL}'?")),
    Case("!Topology.Kubernetes.io/Zone", _no_key("!Topology.Kubernetes.io/Zone", f"did you mean '!{ZONE_LABEL}'?")),
    Case("Example.com/Rack", _no_key("Example.com/Rack", "did you mean 'example.com/Rack'?")),
    Case("Example.com/Rack/1", _no_key("Example.com/Rack/1")),
    Case("\u212aubernetes.io/hostname", _no_key("\u212aubernetes.io/hostname")),
    Case("-zone", _no_key("-zone")),
    Case("zone-", _no_key("zone-")),
    Case("Example.com/zone", _no_key("Example.com/zone", "did you mean 'example.com/zone'?")),
    Case("example..com/zone", _no_key("example..com/zone")),
    Case("example.com/", _no_key("example.com/")),
    Case("/zone", _no_key("/zone")),
    Case("a/b/c", _no_key("a/b/c")),
    Case("under_score/zone", _no_key("under_score/zone")),
    Case("zöne", _no_key("zöne")),
    Case("**", _no_key("**")),
    Case("!", _no_key("!")),
    Case("!*", _no_key("!*", "did you mean '*'?")),
    *(
        Case(key, _no_key(key, "did you mean '!zone'?"))
        for key in ("!!zone", "! zone", "zone!", "zone !", "!zone!", "! !zone")
    ),
    Case("x/!zone", _no_key("x/!zone", "did you mean '!x/zone'?")),
    Case("!zone rack!", _no_key("!zone rack!")),
    Case('["!*"]', _no_key("!*", "did you mean '*'?")),
    Case('["! zone"]', _no_key("! zone", "did you mean '!zone'?")),
    Case(f"!{_LONGEST_PREFIX}d/zone", _no_key(f"!{_LONGEST_PREFIX}d/zone"[:80] + "...")),
    Case(f'["!{_LONGEST_PREFIX}d/zone"]', _no_key(f"!{_LONGEST_PREFIX}d/zone"[:80] + "...")),
    Case("zone\x00", None),
    Case("zo\nne", None),
    Case("'zone'", None),
    Case(_LONGEST_LABEL + "a", _no_key(_LONGEST_LABEL + "a")),
    Case("a" * 100, _no_key("a" * 80 + "...")),
    Case(f"{_LONGEST_PREFIX}d/zone", _no_key(f"{_LONGEST_PREFIX}d/zone"[:80] + "...")),
    Case(f"rack, {_LONGEST_PREFIX}d/zone", _no_key(f"{_LONGEST_PREFIX}d/zone"[:80] + "...")),
    Case(",".join(f"key{n}" for n in range(17)), "expected at most 16 keys, found 17"),
    Case(",".join("*" * 17), "expected at most 16 keys, found 17"),
    Case(",".join(["a b"] * 17), "expected at most 16 keys, found 17"),
    Case("[", _no_array("[")),
    Case('["zone"', _no_array('["zone"')),
    Case('["zone",]', _no_array('["zone",]')),
    Case('["zone" "rack"]', _no_array('["zone" "rack"]')),
    Case("[zone]", _no_array("[zone]")),
    Case("[1]", _no_array("[1]")),
    Case('["zone", null]', _no_array('["zone", null]')),
    Case('[["zone"]]', _no_array('[["zone"]]')),
    Case('{"zone": "*"}', _no_array('{"zone": "*"}')),
    Case('"zone"', _no_array('"zone"')),
    Case('["zone"] x', _no_array('["zone"] x')),
    Case('["zo\tne"]', None),
    Case('["zone\\q"]', None),
    Case('["\\u00"]', None),
    Case("\u00a0[\u00a0]", None),
    Case('["no such key"]', _no_key("no such key")),
    Case('[""]', _no_key("")),
    Case('["zone rack"]', _no_key("zone rack")),
    Case('["Example.com/rack"]', _no_key("Example.com/rack", "did you mean 'example.com/rack'?")),
    Case('[" zone"]', _no_key(" zone")),
    Case('["zone", "a/b/c"]', _no_key("a/b/c")),
    Case('["zone\\n"]', None),
    Case('["\\u0041.b/zone"]', None),
    Case('["z\\u00f6ne"]', None),
    Case('["a\\u002fb\\/c"]', None),
    Case(f'["{_LONGEST_PREFIX}d/zone"]', _no_key(f"{_LONGEST_PREFIX}d/zone"[:80] + "...")),
    Case(f'["{_LONGEST_PREFIX}d\\u002Fzone"]', None),
    Case(f'["{_LONGEST_PREFIX}d\\/zone"]', None),
    Case(str(["key"] * 17).replace("'", '"'), "expected at most 16 keys, found 17"),
    Case("zone" + " " * 8189, "expected at most 8192 characters"),
    Case("no such key," * 1000, "expected at most 8192 characters"),
    Case("[" * 8193, "expected at most 8192 characters"),
)
CASES: Final = (*map(Case, ACCEPTED), *REFUSED)
