"""The `acl` directive: who may ask what, decided by source address and query type."""

from collections.abc import Sequence
from typing import Final

from topodns.dns.message import Ede, EdeCode, Query, Rcode, Response
from topodns.dns.names import is_subdomain
from topodns.resolve.address_match import NetworkList
from topodns.resolve.step import Client, Dropped, Resolution, Scope
from topodns.settings.steps import Acl, AclAction, AclRule

_REFUSALS: Final = {
    AclAction.BLOCK: (Rcode.REFUSED, Ede(EdeCode.BLOCKED, "")),
    AclAction.FILTER: (Rcode.NOERROR, Ede(EdeCode.FILTERED, "")),
}


class AccessControl:
    """All `acl` directives of one server block, in order; one step, because an `allow` ends the search in all of them.

    `client_dependent`: some rule looks at the source, so that no answer below this step is the same for everyone.
    """

    def __init__(self, directives: Sequence[Acl]) -> None:
        self._directives = [(acl.origins, [_CompiledRule(rule) for rule in acl.rules]) for acl in directives]
        self.client_dependent = any(rule.networks for acl in directives for rule in acl.rules)
        self._scope = Scope.CLIENT if self.client_dependent else Scope.EVERYONE

    def __call__(self, query: Query, client: Client) -> Resolution | None:
        """None: allowed. `block` is REFUSED, `filter` an empty NOERROR, both without AA. `drop` raises Dropped."""
        action = self._verdict(query, client)
        if action is AclAction.ALLOW:
            return None
        if action is AclAction.DROP:
            raise Dropped("acl")
        rcode, ede = _REFUSALS[action]
        return Resolution(Response(rcode, flags=0, ede=ede), "acl", self._scope)

    def _verdict(self, query: Query, client: Client) -> AclAction:
        for origins, rules in self._directives:
            if not any(is_subdomain(query.qname, origin) for origin in origins):
                continue
            for rule in rules:
                if rule.matches(query.qtype, client.address):
                    return rule.action
        return AclAction.ALLOW


class _CompiledRule:
    def __init__(self, rule: AclRule) -> None:
        self.action = rule.action
        self._qtypes = rule.qtypes
        self._networks = NetworkList(rule.networks) if rule.networks else None

    def matches(self, qtype: int, address: bytes) -> bool:
        if self._qtypes and qtype not in self._qtypes:
            return False
        return self._networks is None or address in self._networks
