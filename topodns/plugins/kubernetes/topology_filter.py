"""The topology filter of one query: finds the policy, locates the client if the policy needs it, chooses endpoints.

The resolution records the result: the answer's scope, dependencies and TTL, and the reason if it is empty.
"""

from collections.abc import Callable, Iterable
from typing import Final

from topodns.cluster.endpoints import EMPTY_GROUP, Group, Pool
from topodns.cluster.model import ANY_KEY, InvalidPolicy, Kind, ObjectKey, Policy
from topodns.cluster.state import ClusterState
from topodns.dependency import node_fact
from topodns.dns.message import Ede, EdeCode, Edns, Option, Response, RRset
from topodns.dns.rrtype import Rcode
from topodns.plugins.kubernetes.records import PLUGIN, Facts, not_ready
from topodns.plugins.kubernetes.zones import ZoneQuestion
from topodns.plugins.topology import TopologySettings
from topodns.query.client_claim import read_claim
from topodns.query.label_limiter import LabelLimiters
from topodns.query.plugin import Client, Resolution, Scope
from topodns.topology.client_locator import Locator
from topodns.topology.select import Location, OnInvalid, Reason, Selection, UnknownClient, select, select_while_denied

MAX_MISS_TTL: Final = 5  # seconds that a topology miss may be cached: a Pod on the client's Node may start any moment

_UNKNOWN: Final = Location()
_MISSES: Final = frozenset({Reason.NO_MATCH, Reason.UNKNOWN_CLIENT, Reason.DENIED})
_STRANGERS: Final = frozenset({Reason.UNKNOWN_CLIENT, Reason.UNKNOWN_CLIENT_ALL})
_STRANGER_TOLD_ALL: Final = Reason.UNKNOWN_CLIENT_ALL
_UNLOCATED: Final = Ede(EdeCode.OTHER, "client location unknown")
_EVERYONE, _NODE, _CLIENT = Scope.EVERYONE, Scope.NODE, Scope.CLIENT  # reading an Enum's member costs 0.1 us
_NOERROR: Final = int(Rcode.NOERROR)
_CLAIM_OPTIONS: Final = frozenset({int(Option.NODE_IDENTITY), int(Option.CLIENT_SUBNET)})


class Choice:
    """The topology decision for one answer about one Service."""

    __slots__ = (
        *("_chooser", "_claimed", "_filtered", "_key", "_policy", "_question", "_varies"),
        *("location", "selection", "ttl"),
    )

    def __init__(
        self,
        chooser: "Chooser",
        policy: Policy | InvalidPolicy | None,
        filtered: bool,
        question: ZoneQuestion,
        ttl: int,
        key: ObjectKey | None = None,
    ) -> None:
        self._key = key  # of the Service
        self._filtered = filtered
        self._chooser = chooser
        self._policy = policy
        self._varies = policy is not None and depends_on_client(policy)
        self._question = question
        self._claimed = False
        self.ttl = ttl  # seconds, of the records chosen
        self.location: Location | None = None  # None: not needed
        self.selection: Selection | None = None  # the first with endpoints, else the first

    def objection(self, pools: Callable[[], Iterable[Pool]], facts: Facts) -> Resolution | None:
        """The answer to this client for any type, in place of records; None: records may be given.

        SERVFAIL while incomplete watches leave locations of clients or endpoints unknown; REFUSED for a client without
        a location with `unknown_client refuse`.
        """
        if not self._varies:
            return None
        if not self._chooser.state.synced:
            return not_ready(facts)
        if not self._chooser.refuses:
            return None
        reasons = {self._selection(pool).reason for pool in pools() if pool.everyone.endpoints}
        return self._refusal(facts) if reasons == {Reason.UNKNOWN_CLIENT} else None

    def select(self, pool: Pool) -> Group:
        """The endpoints of `pool` for this client."""
        if not self._filtered:
            return pool.everyone
        if not pool.everyone.endpoints:
            return EMPTY_GROUP  # empty for all clients: not the decision of a policy
        selection = self._selection(pool)
        if self.selection is None or (selection.group.endpoints and not self.selection.group.endpoints):
            self.selection = selection
        return selection.group

    def resolution(
        self, facts: Facts, answer: tuple[RRset, ...] = (), additional: tuple[RRset, ...] = ()
    ) -> Resolution:
        """These records, or NODATA, with the scope, dependencies and selection of the decision."""
        response = Response(_NOERROR, answer, (), additional)
        if not answer:
            response.ede = self._explanation()
        return self._shared_as_far_as_it_goes(facts, response)

    def _refusal(self, facts: Facts) -> Resolution:
        self.selection = Selection(EMPTY_GROUP, Reason.UNKNOWN_CLIENT)
        response = Response(Rcode.REFUSED, flags=0, ede=_UNLOCATED)
        return self._shared_as_far_as_it_goes(facts, response)

    def _shared_as_far_as_it_goes(self, facts: Facts, response: Response) -> Resolution:
        location = self.location
        if location is None:
            return self._named(Resolution(response, PLUGIN, _EVERYONE, facts, self.selection))
        if location.node_name:
            facts = (*facts, node_fact(location.node_name))
        # A claim that is not trusted counts as well: the same octets from another source may be trusted.
        scope = _CLIENT if self._claimed else _NODE
        return self._named(Resolution(response, PLUGIN, scope, facts, self.selection, location))

    def _named(self, resolution: Resolution) -> Resolution:
        """The resolution with the metric labels of a miss, or of a client without a location."""
        selection = self.selection
        if selection is None or (selection.group.endpoints and selection.reason is not _STRANGER_TOLD_ALL):
            return resolution  # most answers; saves hashing an Enum, which runs Python code
        rosters = self._chooser.rosters
        if selection.reason in _MISSES and self._key is not None:
            resolution.missed = rosters.service(self._key)
        if selection.reason in _STRANGERS:
            resolution.prefix = rosters.prefix(self._question.client.address)
        return resolution

    def _selection(self, pool: Pool) -> Selection:
        policy, chooser = self._policy, self._chooser
        if self._varies:
            return chooser.select(pool, policy, self._located())
        if policy is None:
            return Selection(pool.everyone, Reason.UNFILTERED)
        if isinstance(policy, Policy):
            return Selection(pool.everyone, Reason.ANY, ANY_KEY)
        return select(pool, policy, _UNKNOWN, on_invalid=chooser.on_invalid)

    def _located(self) -> Location:
        location = self.location
        if location is None:
            edns = self._question.query.edns
            if edns is not None and edns.options:
                self._claimed = not _CLAIM_OPTIONS.isdisjoint(code for code, _ in edns.options)
            claims = edns if self._claimed else None
            location = self.location = self._chooser.locate(self._question.client, claims)
        return location

    def _explanation(self) -> Ede | None:
        if self.selection is None or self.selection.reason not in _MISSES:
            return None
        if isinstance(self._policy, InvalidPolicy):
            return Ede(EdeCode.OTHER, f"invalid topology keys: {self._policy.problem}")
        if self.location is None or not self.location.node_name:
            return _UNLOCATED
        tried = ", ".join(key for key, _ in self.selection.tried)
        return Ede(EdeCode.OTHER, f"no endpoint matches topologyKeys {tried} for node {self.location.node_name}")


class Chooser:
    """Makes a `Choice` per answer. `settings` is None where the block has no `topology`."""

    def __init__(
        self,
        settings: TopologySettings | None,
        state: ClusterState,
        locator: Locator | None,
        ttl: int,
        rosters: LabelLimiters,
    ) -> None:
        self.rosters = rosters
        self._enabled = settings is not None
        self._placing_kinds = settings.placing_kinds if settings is not None else frozenset[Kind]()
        self.state = state
        self.unknown_client = settings.unknown_client if settings is not None else UnknownClient.STRICT
        self.on_invalid = settings.on_invalid if settings is not None else OnInvalid.IGNORE
        self.refuses = self.unknown_client is UnknownClient.REFUSE
        self._locator = locator
        self._ttl = ttl
        own_ttl = settings.ttl if settings is not None else None
        self._chosen_ttl = own_ttl if own_ttl is not None else min(5, ttl)

    def choice(self, key: ObjectKey, question: ZoneQuestion) -> Choice:
        """For the headless Service with this key; not for imported ones, which have no policies."""
        policy = self.state.policy(key) if self._enabled else None
        return Choice(self, policy, self._enabled, question, self._ttl_under(policy), key)

    def unfiltered(self, question: ZoneQuestion) -> Choice:
        """For answers that no policy filters."""
        return Choice(self, None, False, question, self._ttl)

    def select(self, pool: Pool, policy: Policy | InvalidPolicy | None, location: Location) -> Selection:
        """The endpoints of `pool` for a client at `location`, also while RBAC denies Nodes or Pods."""
        denied = self.state.denied
        if denied and not denied.isdisjoint(self._placing_kinds):
            nodes_denied = "Node" in denied
            return select_while_denied(pool, policy, location, nodes_denied, self.unknown_client, self.on_invalid)
        return select(pool, policy, location, self.unknown_client, self.on_invalid)

    def locate(self, client: Client, claims: Edns | None) -> Location:
        """The client's location, by its claims and its address. Raises BadOption for a malformed claim."""
        locator = self._locator
        if locator is None:
            return _UNKNOWN
        if claims is None:
            return locator.locate(client.address)
        return locator.locate(client.address, read_claim(claims, locator.trusts(client.address)))

    def _ttl_under(self, policy: Policy | InvalidPolicy | None) -> int:
        if not isinstance(policy, Policy):
            return self._ttl
        return policy.ttl if policy.ttl is not None else self._chosen_ttl


def depends_on_client(policy: Policy | InvalidPolicy | None) -> bool:
    """Whether clients at different locations may get different answers."""
    return isinstance(policy, Policy) and policy.keys[:1] != (ANY_KEY,)


def is_miss(resolution: Resolution) -> bool:
    """Whether endpoints are ready, but the policy left none for this client."""
    selection = resolution.selection
    return not resolution.response.answer and selection is not None and selection.reason in _MISSES
