"""The Corefiles that both servers get, word for word; here those of `kubernetes` alone.

HERE is the server's own address, API the URL of the fake API server, UPSTREAM the server of other names (upstream.py),
FILE the path of a zone file (zone.db). BLOCK has the directives of every server block, ALL the origins of a cluster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.differential.names import CLUSTER, Labels, text_labels

CLUSTER_SORTS: Final = ("nodes", "services", "ports", "endpoints", "pods", "reverse")


@dataclass(frozen=True, slots=True)
class Corefile:
    """`count` questions are asked: for names of the cluster of these sorts (see names.py), and for its own `names`.

    Plain questions for each name of the sorts `each` come before. `origin` is in place of CLUSTER in all names.
    SOURCE is the API server for CoreDNS, and files with the same objects for topodns.
    """

    text: str
    count: int = 1500
    names: Mapping[str, Sequence[Labels]] = field(default_factory=dict)
    sorts: Sequence[str] = CLUSTER_SORTS
    each: Sequence[str] = ()
    origin: Labels = CLUSTER

    def filled(self, words: Mapping[str, str]) -> str:
        text = self.text.replace("BLOCK", _BLOCK).replace("ALL", _ALL)
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        return text


def names_of(*texts: str) -> list[Labels]:
    return [text_labels(text) for text in texts]


_BLOCK: Final = "bind HERE\n    ready HERE:8181"
_ALL: Final = "cluster.local in-addr.arpa ip6.arpa"

_LONG: Final = f"{'y' * 60}.{'z' * 60}.{'w' * 34}.cluster.local"
LONG_ORIGIN: Final = text_labels(_LONG)  # names of endpoints below it have 240 to 310 octets

KUBERNETES: Final[Mapping[str, Corefile]] = {
    "kubeadm": Corefile(
        """\
. {
    BLOCK
    errors
    kubernetes ALL {
        endpoint API
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    loadbalance
    bufsize 4096
}
""",
        6000,
        sorts=(*CLUSTER_SORTS, "zonal"),
        each=CLUSTER_SORTS,
    ),
    "endpoint_pod_names": Corefile(
        """\
. {
    BLOCK
    bufsize 4096
    kubernetes ALL {
        endpoint API
        endpoint_pod_names
    }
}
""",
        each=CLUSTER_SORTS,
    ),
    "manifests": Corefile(
        """\
. {
    BLOCK
    bufsize 4096
    kubernetes ALL {
        SOURCE
        pods insecure
    }
}
""",
        each=CLUSTER_SORTS,
    ),
    "long zone": Corefile(
        """\
. {
    BLOCK
    bufsize 4096
    kubernetes LONG in-addr.arpa ip6.arpa {
        endpoint API
    }
}
""".replace("LONG", _LONG),
        each=CLUSTER_SORTS,
        origin=LONG_ORIGIN,
    ),
    "defaults": Corefile(
        """\
. {
    BLOCK
    kubernetes ALL {
        endpoint API
    }
}
""",
        3000,
    ),
    "pods verified": Corefile(
        """\
. {
    BLOCK
    bufsize 512
    kubernetes ALL {
        endpoint API
        pods verified
        endpoint_pod_names
        ttl 0
    }
}
""",
        3000,
    ),
    "some namespaces": Corefile(
        """\
. {
    BLOCK
    kubernetes ALL {
        endpoint API
        namespaces red blue ghost 10-0-0-1
        ignore empty_service
        pods insecure
    }
}
""",
        2500,
    ),
    "some labels": Corefile(
        """\
. {
    BLOCK
    kubernetes ALL {
        endpoint API
        labels tier in (t0)
        namespace_labels tenant notin (red)
        pods verified
        ttl 3600
    }
}
""",
        2500,
    ),
    "no endpoints": Corefile(
        """\
. {
    BLOCK
    minimal
    kubernetes ALL {
        endpoint API
        noendpoints
        fallthrough
    }
}
"""
    ),
    "zonal": Corefile(
        """\
. {
    BLOCK
    minimal
    kubernetes ALL {
        endpoint API
        zonal
        fallthrough cluster.local
    }
}
""",
        2000,
        sorts=("zonal", "zonal", "services", "ports"),
        each=("zonal",),
    ),
    "multicluster": Corefile(
        """\
. {
    BLOCK
    kubernetes ALL clusterset.local {
        endpoint API
        multicluster clusterset.local
    }
}
""",
        2500,
        sorts=(*CLUSTER_SORTS, "imports"),
        each=(*CLUSTER_SORTS, "imports"),
    ),
    "several blocks": Corefile(
        """\
cluster.local {
    BLOCK
    loadbalance
    kubernetes cluster.local {
        endpoint API
        pods insecure
    }
}
svc.cluster.local 10.0.0.0/8 {
    bind HERE
    kubernetes svc.cluster.local 10.in-addr.arpa {
        endpoint API
    }
}
"""
    ),
}
