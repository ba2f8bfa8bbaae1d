"""What the `kubernetes` step can say about a name, before the SOA of negative answers is added."""

from typing import Final

from topodns.cluster.facts import Fact
from topodns.dns.message import Ede, EdeCode, Rcode, Response, RRset
from topodns.resolve.step import Resolution

PLUGIN: Final = "kubernetes"

_NOERROR: Final = int(Rcode.NOERROR)
NXDOMAIN: Final = int(Rcode.NXDOMAIN)

Facts = tuple[Fact, ...]


def found(facts: Facts, answer: tuple[RRset, ...], additional: tuple[RRset, ...] = ()) -> Resolution:
    """The name has these records of the type asked for."""
    return Resolution(Response(_NOERROR, answer, (), additional), PLUGIN, facts=facts)


def no_data(facts: Facts = ()) -> Resolution:
    """The name exists and has nothing of the type asked for (RFC 2308 section 2.2)."""
    return Resolution(Response(), PLUGIN, facts=facts)


def name_error(facts: Facts = ()) -> Resolution:
    """The name does not exist."""
    return Resolution(Response(NXDOMAIN), PLUGIN, facts=facts)


def not_ready(facts: Facts = ()) -> Resolution:
    """The watches have not shown enough of the cluster to say."""
    ede = Ede(EdeCode.NOT_READY, "the state of the cluster is not complete yet")
    return Resolution(Response(Rcode.SERVFAIL, ede=ede), PLUGIN, facts=facts)
