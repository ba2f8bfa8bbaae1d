"""Topology for one query: finds the policy and, only where the policy needs it, the client; then chooses endpoints.

What it learns on the way (how far the answer may be shared, what it rests on, its TTL, why it is empty) goes into the
resolution that it makes.
"""

from collections.abc import Callable, Iterable
from typing import Final

from topodns.cluster.backends import EMPTY_GROUP, Group, Pool
from topodns.cluster.facts import node_fact
from topodns.cluster.locate import Locator
from topodns.cluster.model import ObjectKey
from topodns.cluster.policy import ANY_KEY, InvalidPolicy, Policy
from topodns.cluster.state import ClusterState
from topodns.cluster.topology import Location, OnInvalid, Reason, Selection, UnknownClient, select
from topodns.dns.message import Ede, EdeCode, Edns, Option, Rcode, Response, RRset
from topodns.resolve.identity import read_claim
from topodns.resolve.origins import Question
from topodns.resolve.rosters import Rosters
from topodns.resolve.step import Client, Resolution, Scope
from topodns.resolve.verdict import PLUGIN, Facts, not_ready
from topodns.settings.topology import TopologySettings

MAX_MISS_TTL: Final = 5  # seconds that "nothing for you" may be kept: a Pod on the client's node may start any moment

_UNKNOWN: Final = Location()
_MISSES: Final = frozenset({Reason.NO_MATCH, Reason.UNKNOWN_CLIENT, Reason.DENIED})
_STRANGERS: Final = frozenset({Reason.UNKNOWN_CLIENT, Reason.UNKNOWN_CLIENT_ALL})
_STRANGER_TOLD_ALL: Final = Reason.UNKNOWN_CLIENT_ALL
_UNLOCATED: Final = Ede(EdeCode.OTHER, "client location unknown")
_EVERYONE, _NODE, _CLIENT = Scope.EVERYONE, Scope.NODE, Scope.CLIENT  # reading an Enum's member costs 0.1 us
_NOERROR: Final = int(Rcode.NOERROR)
_CLAIM_OPTIONS: Final = frozenset({int(Option.NODE_IDENTITY), int(Option.CLIENT_SUBNET)})


class Choice:
    """The topology side of one answer about one Service."""

    __slots__ = (
        *("_chooser", "_claimed", "_filtered", "_key", "_policy", "_question", "_varies"),
        *("location", "selection", "ttl"),
    )

    def __init__(
        self,
        chooser: "Chooser",
        policy: Policy | InvalidPolicy | None,
        filtered: bool,
        question: Question,
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
        self.location: Location | None = None  # None: nobody needed to know
        self.selection: Selection | None = None  # the first one that chose something, else the first one

    def objection(self, pools: Callable[[], Iterable[Pool]], facts: Facts) -> Resolution | None:
        """What this client is told whatever type it asks for, in place of any record; None: nothing stands against it.

        SERVFAIL while the watches cannot tell where clients and endpoints are, REFUSED with `unknown_client refuse`.
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
        """The endpoints of `pool` that this client is told about."""
        if not self._filtered:
            return pool.everyone
        if not pool.everyone.endpoints:
            return EMPTY_GROUP  # for everyone: no decision of a policy
        selection = self._selection(pool)
        if self.selection is None or (selection.group.endpoints and not self.selection.group.endpoints):
            self.selection = selection
        return selection.group

    def resolution(
        self, facts: Facts, answer: tuple[RRset, ...] = (), additional: tuple[RRset, ...] = ()
    ) -> Resolution:
        """These records, or NODATA, with all that was learned in choosing them."""
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
        # A claim that is not believed counts as well: the same octets from another source may be believed.
        scope = _CLIENT if self._claimed else _NODE
        return self._named(Resolution(response, PLUGIN, scope, facts, self.selection, location))

    def _named(self, resolution: Resolution) -> Resolution:
        """With the names that a miss, or a client that nobody could locate, is counted under."""
        selection = self.selection
        if selection is None or (selection.group.endpoints and selection.reason is not _STRANGER_TOLD_ALL):
            return resolution  # most answers: spared the hash of an Enum, which is a function of Python
        rosters = self._chooser.rosters
        if selection.reason in _MISSES and self._key is not None:
            resolution.missed = rosters.service(self._key)
        if selection.reason in _STRANGERS:
            resolution.prefix = rosters.prefix(self._question.client.address)
        return resolution

    def _selection(self, pool: Pool) -> Selection:
        policy, chooser = self._policy, self._chooser
        if self._varies:
            return select(pool, policy, self._located(), chooser.unknown_client, chooser.on_invalid)
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
    """Makes a `Choice` for each answer. `settings` is None where the block has no `topology`."""

    def __init__(
        self,
        settings: TopologySettings | None,
        state: ClusterState,
        locator: Locator | None,
        ttl: int,
        rosters: Rosters,
    ) -> None:
        self.rosters = rosters
        self._enabled = settings is not None
        self.state = state
        self.unknown_client = settings.unknown_client if settings is not None else UnknownClient.STRICT
        self.on_invalid = settings.on_invalid if settings is not None else OnInvalid.IGNORE
        self.refuses = self.unknown_client is UnknownClient.REFUSE
        self._locator = locator
        self._ttl = ttl
        own_ttl = settings.ttl if settings is not None else None
        self._chosen_ttl = own_ttl if own_ttl is not None else min(5, ttl)

    def choice(self, key: ObjectKey, question: Question) -> Choice:
        """For the headless Service of this key; not for imported ones, they have no policies."""
        # Without Nodes no client has a place, and a hard policy would empty its Service for everybody: as if off.
        enabled = self._enabled and "Node" not in self.state.denied
        policy = self.state.policy(key) if enabled else None
        return Choice(self, policy, enabled, question, self._ttl_under(policy), key)

    def unfiltered(self, question: Question) -> Choice:
        """For what no policy may touch."""
        return Choice(self, None, False, question, self._ttl)

    def locate(self, client: Client, claims: Edns | None) -> Location:
        """Where the client is, by what it claims and by its address. Raises BadOption on a malformed claim."""
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
    """Whether clients at different places may be told different things."""
    return isinstance(policy, Policy) and policy.keys[:1] != (ANY_KEY,)


def is_miss(resolution: Resolution) -> bool:
    """Whether endpoints are ready and a policy kept them all from this client."""
    selection = resolution.selection
    return not resolution.response.answer and selection is not None and selection.reason in _MISSES
