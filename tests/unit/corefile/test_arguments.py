"""Values that directives share, and bodies, which are refused with their line where a directive or option has none.

The options that a directive has are read from the error about one that it does not have.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from tests.support.certificates import self_signed, web_config
from tests.support.corefile_settings import block_problem
from topodns.corefile.arguments import duration, parse_network, switch
from topodns.corefile.errors import ConfigError, hint, listed, nearest
from topodns.corefile.parser import Directive
from topodns.dns.rrtype import parse_qtype
from topodns.plugins.order import ORDER

LINE = Directive("lameduck", (), (), "Corefile", 7)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("0s", 0.0),
        ("5s", 5.0),
        ("1m30s", 90.0),
        ("1h0.5m", 3630.0),
        ("500ms", 0.5),
        ("700ms", 0.7),
        (".5s", 0.5),
        ("5.s", 5.0),
        ("10us", 0.00001),
        ("10µs", 0.00001),
        ("3ns", 0.000000003),
    ],
)
def test_durations_are_those_of_go(text: str, seconds: float) -> None:
    assert duration(LINE, text) == seconds


@pytest.mark.parametrize(
    "text", ["", "5", "s", ".s", "-5s", "+5s", "5 s", "5sec", "1e3s", "5d", "\u0665s", "9" * 400 + "h"]
)
def test_other_text_is_no_duration(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^Corefile:7: 'lameduck' has ('.*'|an empty word), expected a duration"):
        duration(LINE, text)


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("10.1.2.3", "10.1.2.3/32"),
        ("FD00::1", "fd00::1/128"),
        ("fd00::1/8", "fd00::/8"),
        ("::ffff:10.0.0.1", "10.0.0.1/32"),
        ("::ffff:10.1.2.3/104", "10.0.0.0/8"),
        ("10.0.0.0/33", None),
        ("10.0.0.0/", None),
        ("10.0.0.0/255.0.0.0", None),
        ("10.0.0", None),
        ("fe80::1%eth0", None),
        ("", None),
    ],
)
def test_networks(text: str, network: str | None) -> None:
    found = parse_network(text)
    assert (None if found is None else str(found)) == network


@pytest.mark.parametrize(
    ("text", "qtype"),
    [("A", 1), ("aaaa", 28), ("NSAP-PTR", 23), ("TYPE65280", 65280), ("TYPE65536", None), ("TYPE", None), ("B", None)],
)
def test_record_types(text: str, qtype: int | None) -> None:
    assert parse_qtype(text) == qtype


def test_wording_of_lists_and_guesses() -> None:
    assert (listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])) == ("a", "a or b", "a, b or c")
    assert nearest("LOCALE", ["local", "locate"]) in ("local", "locate")
    assert nearest("x" * 10_000, ["x" * 9_999]) is None
    assert hint("zzz", ["b", "a"]) == ", expected b or a"
    assert hint("zzz", []) == ", expected none"


@dataclass(frozen=True)
class Lamp:
    lit: bool = False
    ttl: int = 5


def test_a_switch_sets_one_field_and_has_neither_arguments_nor_a_body() -> None:
    option = Directive("lit", (), (), "Corefile", 7)
    assert switch("lit")(option, Lamp()) == Lamp(lit=True)
    assert switch("lit", to=False)(option, Lamp(lit=True, ttl=9)) == Lamp(ttl=9)
    with pytest.raises(ConfigError, match=r"^Corefile:7: 'lit' has the arguments 'yes', expected none"):
        switch("lit")(Directive("lit", ("yes",), (), "Corefile", 7), Lamp())
    with pytest.raises(ConfigError, match=r"^Corefile:7: found 'lameduck', but 'lit' has no options"):
        switch("lit")(Directive("lit", (), (LINE,), "Corefile", 6), Lamp())


UNKNOWN: Final = "zzzzzz"  # similar to no option, so that the error lists all of them
NESTED: Final = f" {{\n  {UNKNOWN}\n }}"

ARGUMENTS: Final = {
    "bufsize": ("512",),
    "cancel": ("1s",),
    "bind": ("127.0.0.1",),
    "file": ("zone",),
    "forward": (". 10.0.0.1",),
    "loadbalance": ("round_robin", f"weighted {__file__}"),
    "multisocket": ("2",),
    "nsid": ("name",),
    "rewrite": ("",),
    "template": ("IN A",),
    "tls": (self_signed(),),
    "view": ("name",),
}
"""Arguments of directives that need some, one string for each of their forms."""

OPTIONS: Final = {
    "acl": {"allow": "", "block": "", "filter": "", "drop": ""},
    "bind": {"except": "127.0.0.2"},
    "cache": {
        "success": "1024",
        "denial": "1024",
        "prefetch": "1",
        "serve_stale": "",
        "serve_stale_policy": "prefer_positive",
        "servfail": "1s",
        "disable": "success",
        "keepttl": "",
        "push": "1",
        "persist": "answers",
    },
    "dns64": {"prefix": "64:ff9b::/96", "translate_all": "", "allow_ipv4": ""},
    "errors": {"stacktrace": "", "consolidate": "1s x"},
    "file": {"reload": "1s", "reload_by_mtime": "", "fallthrough": "", "upstream": ""},
    "forward": {
        "except": "example",
        "force_tcp": "",
        "prefer_udp": "",
        "expire": "1s",
        "max_age": "1m",
        "max_idle_conns": "1",
        "read_timeout": "1s",
        "max_fails": "1",
        "max_connect_attempts": "1",
        "tls": "",
        "tls_servername": "name",
        "policy": "random",
        "health_check": "1s",
        "max_concurrent": "1",
        "next": "SERVFAIL",
        "next_on_nodata": "",
        "failfast_all_unhealthy_upstreams": "",
        "failover": "SERVFAIL",
        "source_address": "127.0.0.1",
        "resolver": "127.0.0.1",
        "doh_method": "GET",
    },
    "header": {"query": "set rd", "response": "set rd"},
    "health": {"lameduck": "1s"},
    "hosts": {"ttl": "1", "no_reverse": "", "reload": "0", "fallthrough": "", "fallthrough_unsupported": ""},
    "k8s_external": {"apex": "dns", "ttl": "1", "headless": "", "fallthrough": ""},
    "kubernetes": {
        "apiserver_qps": "1",
        "apiserver_burst": "1",
        "apiserver_max_inflight": "1",
        "namespaces": "shop",
        "namespace_labels": "a=b",
        "labels": "a=b",
        "pods": "verified",
        "endpoint_pod_names": "",
        "ttl": "1",
        "noendpoints": "",
        "fallthrough": "",
        "ignore": "empty_service",
        "multicluster": ".",
        "cluster_id": "east",
        "zonal": "",
        "startup_timeout": "1s",
        "snapshot": "state",
        "manifests": __file__,
        "endpoint": "https://10.0.0.1",
        "tls": '"" "" ""',
        "kubeconfig": __file__,
    },
    "loadbalance": {"prefer": "10.0.0.0/8", "reload": "1s"},
    "local": {"localhost_prefix": "on"},
    "log": {"class": "all"},
    "pprof": {"block": ""},
    "prometheus": {"tls": web_config()},
    "push": {"sessions": "1", "subscriptions": "1", "memory": "1"},
    "ready": {"monitor": "continuously"},
    "rewrite": {
        "name": "a b",
        "type": "A AAAA",
        "class": "IN CH",
        "ttl": "a 1",
        "cname": "a b",
        "rcode": "a NXDOMAIN NOERROR",
        "edns0": "nsid set",
    },
    "template": {
        "match": ".",
        "answer": '"x. 1 IN A 10.0.0.1"',
        "additional": '"x. 1 IN A 10.0.0.1"',
        "authority": '"x. 1 IN A 10.0.0.1"',
        "rcode": "NXDOMAIN",
        "ederror": "1",
        "fallthrough": "",
        "upstream": "",
    },
    "tls": {"client_auth": "nocert"},
    "timeouts": {"read": "1s", "write": "1s", "idle": "1s", "maxtcpqueries": "1"},
    "topology": {
        "keys": "annotation",
        "default": "zone",
        "locate": "nodes",
        "trust": "10.0.0.0/8",
        "unknown_client": "strict",
        "on_invalid": "ignore",
        "ttl": "1",
        "filter_hostnames": "",
        "terminating_fallback": "",
        "srv_priority": "",
        "page": "",
    },
    "view": {"expr": "true"},
}
"""Options with arguments that are accepted, by directive."""


def heads() -> Iterator[tuple[str, str]]:
    """Each directive in each of its forms: its name and the line without a body."""
    for name in ORDER:
        for arguments in ARGUMENTS.get(name, ("",)):
            yield name, f"{name} {arguments}"


def at_any_path(text: str) -> str:
    """The name of a case, without the directory of a certificate, which is another one in each process."""
    return re.sub(r"/\S*/", "", text)


def options_of(head: str) -> set[str]:
    """The options listed by the error about an unknown one; none if there are no options at all."""
    listed = re.search(r", expected (?:an address and its names, or an option: )?(.*)", unknown_option(head))
    return set(re.split(", | or ", listed[1])) - {"none"} if listed else set()


def unknown_option(head: str) -> str:
    return last_problem(f"{head} {{\n {UNKNOWN}\n}}")


def last_problem(lines: str) -> str:
    """The error of the last line; another may be that the block has no `kubernetes`."""
    return block_problem(lines).splitlines()[-1]


@pytest.mark.parametrize("head", [head for _, head in heads()], ids=at_any_path)
def test_an_unknown_line_in_the_body_of_a_directive_is_refused(head: str) -> None:
    assert re.match(rf"Corefile:3: (found|unknown \w+) '{UNKNOWN}'", unknown_option(head))


def test_all_options_of_all_directives_are_in_the_table() -> None:
    options = {(name, option) for name, head in heads() for option in options_of(head)}
    assert options == {(name, option) for name, of in OPTIONS.items() for option in of}


@pytest.mark.parametrize(
    ("head", "option"),
    [(head, option) for name, head in heads() for option in OPTIONS.get(name, {}) if option in options_of(head)],
    ids=at_any_path,
)
def test_a_body_of_an_option_is_refused(head: str, option: str) -> None:
    line = f"{option} {OPTIONS[head.split()[0]][option]}"
    assert (
        last_problem(f"{head} {{\n {line}{NESTED}\n}}")
        == f"Corefile:4: found '{UNKNOWN}', but '{option}' has no options"
    )


def test_a_body_of_an_entry_of_hosts_is_refused() -> None:
    assert block_problem(f"hosts {{\n 10.0.0.1 a{NESTED}\n}}").startswith(f"Corefile:4: found '{UNKNOWN}', but ")
