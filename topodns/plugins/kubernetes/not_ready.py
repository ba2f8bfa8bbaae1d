"""SERVFAIL with the extended error Not Ready (RFC 8914 section 4.15), in place of an answer that may be wrong.

While the watches are incomplete or denied, the objects that are not known may exist: NXDOMAIN would be cached by
clients, and may be false. The same goes for names of Services of which objects are left out (`cluster.left_out`).
"""

from topodns.cluster.model import Kind, ObjectKey
from topodns.cluster.state import ClusterState
from topodns.dns.message import Ede, EdeCode, Response
from topodns.dns.rrtype import Rcode
from topodns.plugins.kubernetes.records import PLUGIN, Facts
from topodns.query.plugin import Resolution


def not_ready(facts: Facts = ()) -> Resolution:
    """SERVFAIL: the watches are incomplete or denied, so that the name may exist."""
    ede = Ede(EdeCode.NOT_READY, "the state of the cluster is not complete yet")
    return Resolution(Response(Rcode.SERVFAIL, ede=ede), PLUGIN, facts=facts)


def confirmed(name_error: Resolution, state: ClusterState) -> Resolution:
    """`name_error`, an NXDOMAIN, if the state is complete; else SERVFAIL with the same dependencies."""
    return name_error if state.synced else not_ready(name_error.facts)


def lacks_objects(state: ClusterState, key: ObjectKey, imported: bool = False) -> bool:
    """Whether objects are left out that answers for names of this Service may depend on, ClusterIPs apart."""
    if key.namespace not in state.left_out.namespaces:
        return False
    kind: Kind = "ServiceImport" if imported else "Service"
    return state.left_out.may_have(kind, key) or state.backends(key, imported).partial


def left_out(facts: Facts) -> Resolution:
    """SERVFAIL: objects of the name's namespace are left out."""
    ede = Ede(EdeCode.NOT_READY, "objects of this namespace are left out: it has too many or too large ones")
    return Resolution(Response(Rcode.SERVFAIL, ede=ede), PLUGIN, facts=facts)
