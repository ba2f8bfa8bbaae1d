"""A DNS server outside of the cluster, where /etc/resolv.conf of the nodes leads: CoreDNS in the control plane's
network, which has no way out.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.kubelab.lab import Lab
from tests.kubelab.machine import IN

OUTSIDE: Final = "www.example.org"
OUTSIDE_ADDRESS: Final = "192.0.2.80"  # RFC 5737
PUBLIC_DNS, PUBLIC_DNS_ADDRESS = "dns.google", "8.8.8.8"  # which Kubernetes' own tests look for on the Internet

_SERVICE: Final = "upstream"
_COREFILE: Final = f"""\
{OUTSIDE}:53 {{
    errors
    hosts {{
        {OUTSIDE_ADDRESS} {OUTSIDE}
    }}
}}
{PUBLIC_DNS}:53 8.in-addr.arpa:53 {{
    errors
    hosts {{
        {PUBLIC_DNS_ADDRESS} {PUBLIC_DNS}
    }}
}}
.:53 {{
    errors
    template ANY ANY {{
        rcode NXDOMAIN
        authority ". 60 IN SOA ns.example. hostmaster.example. 1 60 60 60 60"
    }}
}}
"""


@contextmanager
def upstream(lab: Lab) -> Iterator[None]:
    """It knows two names, and the second by its address as well; every other name does not exist."""
    lab.control.write("upstream.corefile", _COREFILE)
    lab.control.define(_SERVICE, ["coredns", "-conf", f"{IN}/upstream.corefile"])
    lab.control.start(_SERVICE)
    try:
        yield
    finally:
        lab.control.stop(_SERVICE)
