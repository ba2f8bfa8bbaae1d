"""SERVFAIL with the extended error Not Ready (RFC 8914 section 4.15), in place of an answer that may be wrong.

While the watches are incomplete or denied, the objects that are not known may exist: NXDOMAIN would be cached by
clients, and may be false. The same goes for names of Services of which objects are left out (`cluster.left_out`).
"""

from typing import Final

from topodns.cluster.model import Kind, ObjectKey
from topodns.cluster.state import ClusterState
from topodns.dns.message import Ede, EdeCode
from topodns.dns.rrtype import Rcode
from topodns.plugins.kubernetes.question import Answer

_INCOMPLETE: Final = Ede(EdeCode.NOT_READY, "the state of the cluster is not complete yet")
_LEFT_OUT: Final = Ede(EdeCode.NOT_READY, "objects of this namespace are left out: it has too many or too large ones")

NOT_READY: Final = Answer(Rcode.SERVFAIL, ede=_INCOMPLETE)  # the watches are incomplete or denied
LEFT_OUT: Final = Answer(Rcode.SERVFAIL, ede=_LEFT_OUT)  # objects of the name's namespace are left out


def confirmed(answer: Answer) -> Answer:
    """The answer while the state is incomplete: SERVFAIL instead of NXDOMAIN, with the same dependencies."""
    if answer.rcode != Rcode.NXDOMAIN:
        return answer
    return NOT_READY._replace(missing=answer.missing, facts=answer.facts)


def lacks_objects(state: ClusterState, key: ObjectKey, imported: bool = False) -> bool:
    """Whether objects are left out that answers for names of this Service may depend on, ClusterIPs apart."""
    if key.namespace not in state.left_out.namespaces:
        return False
    kind: Kind = "ServiceImport" if imported else "Service"
    return state.left_out.may_have(kind, key) or state.backends(key, imported).partial
