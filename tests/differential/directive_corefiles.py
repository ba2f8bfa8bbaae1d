"""The Corefiles with other directives beside `kubernetes`; see corefiles.py."""

from collections.abc import Mapping
from typing import Final

from tests.differential.corefiles import CLUSTER_SORTS, Corefile, names_of
from tests.differential.upstream import LIES, WORDS

_OUTSIDE: Final = names_of(*(f"{word}.example.org" for word in (*WORDS, *LIES)), "a.missing.example.org", "example.com")
_ZONE: Final = names_of(
    *("example.org", "www.example.org", "alias.example.org", "x.wild.example.org", "a.b.wild.example.org"),
    *("wild.example.org", "deep.down.example.org", "down.example.org", "sub.example.org", "x.sub.example.org"),
    *("chain.example.org", "outside.example.org", "mail.example.org", "_http._tcp.example.org", "no-such.example.org"),
    *("long.example.org", "lines.example.org", "number010.example.org", "number012.example.org"),
)
_ALIASES: Final = names_of(
    *(f"{name}.example.org" for name in ("outside", "absent", "empty", "dangling", "broken", "refused", "round")),
    *(f"c{number}.example.org" for number in range(1, 6)),  # 11, 10, 9, 8 and 7 aliases of an address
)
_SEARCHED: Final = names_of(  # by a Pod of namespace `red`
    *(f"{word}.example.org.red.svc.cluster.local" for word in WORDS),
    *("web-4.red.svc.cluster.local", "web-4.default.red.svc.cluster.local", "db.blue.svc.red.svc.cluster.local"),
    *("no-such.red.svc.cluster.local", "www.example.org.svc.cluster.local", "www.example.org.blue.svc.cluster.local"),
)
_EXTERNAL: Final = names_of(
    *("k8s.example.org", "public.red.k8s.example.org", "_http._tcp.public.red.k8s.example.org"),
    *("web-4.red.k8s.example.org", "db.red.k8s.example.org", "red.k8s.example.org", "x.y.z.k8s.example.org"),
    *("dns.k8s.example.org", "ns1.dns.k8s.example.org", "_udp.public.red.k8s.example.org"),
)

_ACTIONS: Final = ("set", "append", "replace", "unset", "reverted", "stopping")
_OPTION_BLOCK: Final = """\
ZONE.example.org {
    bind HERE
    rewrite continue edns0 local ACTION 65001 DATA REVERT
    rewrite continue edns0 local ACTION 4242 VARIABLE REVERT
    rewrite continue edns0 nsid ACTION REVERT
    rewrite MODE edns0 subnet ACTION LENGTHS REVERT
    rewrite edns0 local append 65001 0x0102
    forward . UPSTREAM
}
"""


def _option_block(zone: str) -> str:
    """A block whose rules name all options that the upstream repeats, with one action."""
    unset, action = zone == "unset", {"reverted": "set", "stopping": "append"}.get(zone, zone)
    words = {"ZONE": zone, "ACTION": action, "MODE": "stop" if zone in ("stopping", "set") else "continue"}
    words |= {
        "DATA": "" if unset else "abcd",
        "VARIABLE": "" if unset else "{qtype}",
        "LENGTHS": "" if unset else "20 50",
    }
    words["REVERT"] = "revert" if zone == "reverted" else ""
    text = _OPTION_BLOCK
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    return text


DIRECTIVES: Final[Mapping[str, Corefile]] = {
    "refinements": Corefile(
        """\
. {
    BLOCK
    nsid here-i-am
    local
    any
    chaos "some version" someone
    loadbalance round_robin
    header {
        response set ra
        response clear aa
    }
    kubernetes ALL {
        endpoint API
        pods insecure
    }
}
""",
        2000,
        {"local": names_of("localhost", "1.0.0.127.in-addr.arpa", "a.localhost", "127.in-addr.arpa")},
    ),
    "acl": Corefile(
        """\
. {
    BLOCK
    acl svc.cluster.local {
        block type TXT
        filter type SRV CNAME
        allow net 127.0.0.0/8 type A
        block
    }
    kubernetes ALL {
        endpoint API
        pods insecure
    }
}
"""
    ),
    "hosts": Corefile(
        """\
. {
    BLOCK
    hosts {
        192.0.2.1 one.example.org one
        2001:db8::1 one.example.org
        192.0.2.2 web-4.default.svc.cluster.local
        ttl 60
        fallthrough
    }
    kubernetes ALL {
        endpoint API
        pods insecure
    }
}
""",
        names={
            "hosts": names_of("one.example.org", "one", "two.example.org", "web-4.default.svc.cluster.local"),
            "hosts reversed": names_of("1.2.0.192.in-addr.arpa", "2.2.0.192.in-addr.arpa"),
        },
    ),
    "rewrite": Corefile(
        """\
. {
    BLOCK
    rewrite stop name exact web.example.org web-46.default.svc.cluster.local
    rewrite stop name suffix .in.example.org .default.svc.cluster.local answer auto
    rewrite continue name regex (.*)[.](red|blue)[.]local {1}.{2}.svc.cluster.local answer auto
    rewrite type ANY A
    rewrite class CH IN
    kubernetes ALL {
        endpoint API
        pods insecure
    }
}
""",
        names={
            "rewritten": names_of(
                *("web.example.org", "db.in.example.org", "_http._tcp.db.in.example.org", "no-such.in.example.org"),
                *("web-4.red.local", "cache.blue.local", "_http._tcp.cache.blue.local", "out.red.local"),
            )
        },
    ),
    "rewrite edns0": Corefile(
        """\
. {
    BLOCK
    template ANY ANY {
        rcode NXDOMAIN
    }
}
"""
        + "".join(map(_option_block, _ACTIONS)),
        3000,
        {"options": names_of(*(f"options.{zone}.example.org" for zone in _ACTIONS))},
        sorts=(),
    ),
    "template": Corefile(
        """\
. {
    BLOCK
    template IN A example.org {
        match "^ip-(?P<a>[0-9]+)-(?P<b>[0-9]+)[.]example[.]org[.]$"
        answer "{{ .Name }} 60 IN A 10.0.{{ .Group.a }}.{{ .Group.b }}"
        fallthrough
    }
    template IN AAAA example.org {
        rcode NOERROR
        authority "example.org. 60 IN SOA ns.example.org. root.example.org. (1 60 60 60 60)"
    }
    template ANY ANY nothing.example.net {
        rcode NXDOMAIN
    }
    kubernetes ALL {
        endpoint API
        pods insecure
    }
}
""",
        names={
            "template": names_of("ip-1-2.example.org", "ip-300-2.example.org", "x.example.org", "nothing.example.net")
        },
    ),
    "forward": Corefile(
        """\
. {
    BLOCK
    kubernetes ALL {
        endpoint API
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    forward . UPSTREAM
}
""",
        2500,
        {"outside": _OUTSIDE, "outside too": _OUTSIDE},
    ),
    "cache": Corefile(
        """\
. {
    BLOCK
    kubernetes ALL {
        endpoint API
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    cache 3600
    forward . UPSTREAM
}
""",
        2500,
        {"outside": _OUTSIDE, "outside too": _OUTSIDE},
    ),
    "view": Corefile(
        """\
. {
    view tcp {
        expr proto() == 'tcp'
    }
    BLOCK
    kubernetes ALL {
        endpoint API
        pods insecure
    }
}
. {
    bind HERE
    header {
        response set ra
    }
    kubernetes ALL {
        endpoint API
        ttl 7
    }
}
"""
    ),
    "metadata": Corefile(  # of the Pod that asks, and of the name; test_metadata.py has several Pods
        """\
. {
    view own {
        expr metadata('kubernetes/client-namespace') == metadata('kubernetes/namespace')
    }
    BLOCK
    metadata
    kubernetes ALL {
        endpoint API
        pods verified
        ttl 7
    }
}
. {
    view port {
        expr metadata('kubernetes/client-pod-name') == 'asker' && metadata('kubernetes/port-name') == 'http'
    }
    bind HERE
    metadata
    header {
        response set ra
    }
    kubernetes ALL {
        endpoint API
        pods verified
    }
}
. {
    view others {
        expr metadata('kubernetes/endpoint') != '' || metadata('kubernetes/kind') == 'pod'
    }
    bind HERE
    metadata
    kubernetes ALL {
        endpoint API
        pods verified
        ttl 9
    }
}
. {
    bind HERE
    kubernetes ALL {
        endpoint API
        pods verified
    }
}
""",
        each=("services", "ports", "endpoints", "pods"),
    ),
    "file": Corefile(
        """\
. {
    BLOCK
    kubernetes ALL {
        endpoint API
        pods insecure
    }
    file FILE example.org
    forward . UPSTREAM
}
""",
        names={"zone": _ZONE, "zone too": _ZONE, "aliases": _ALIASES, "types": names_of("types.example.org")},
        count=5_000,
    ),
    "dns64": Corefile(
        """\
. {
    BLOCK
    dns64 {
        allow_ipv4
        translate_all
    }
    kubernetes ALL {
        endpoint API
    }
    forward . UPSTREAM
}
""",
        names={"outside": _OUTSIDE},
    ),
    "autopath": Corefile(
        """\
. {
    BLOCK
    autopath @kubernetes
    kubernetes ALL {
        endpoint API
        pods verified
    }
    forward . UPSTREAM
}
""",
        names={"searched": _SEARCHED, "searched too": _SEARCHED},
    ),
    "external": Corefile(
        """\
. {
    BLOCK
    k8s_external k8s.example.org {
        ttl 7
    }
    kubernetes ALL {
        endpoint API
        fallthrough
    }
}
""",
        names={"some external": _EXTERNAL},
        sorts=(*CLUSTER_SORTS, "external", "external"),
        each=(*CLUSTER_SORTS, "external"),
    ),
    "external headless": Corefile(
        """\
. {
    BLOCK
    k8s_external k8s.example.org {
        headless
    }
    kubernetes cluster.local {
        endpoint API
    }
}
""",
        sorts=("external",),
        each=("external",),
    ),
}
