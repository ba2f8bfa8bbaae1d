"""How the cache of a node cache names its clients to the cluster DNS, and for which of them it keeps an answer.

The cluster DNS sees the address of the node cache only. The first query, and one each minute, has the client's address:
the option CLIENT_POD beside the node identity. Where the cluster DNS reads something of Pods, its reply has the option,
too, and later queries name their clients. Where its answers depend on the Pod, it refuses a query that names none
(`EdeCode.NAME_CLIENT`), and the cache asks again. The option of a reply says for which clients the answer is, as the
scope of an EDNS Client Subnet does: for all of the Node, for the namespace that it names, or for this client alone. An
entry has that in its key, so no client gets the answer of a narrower scope than its own.

Which namespace an address is in is known by replies, and for as short a time as such an entry lives: the address of a
Pod that has ended may be another one's by then.
"""

from collections.abc import Iterator
from typing import Final

from topodns.dns.message import Ede, EdeCode, Edns, Option, Query, Response
from topodns.dns.rrtype import Rcode
from topodns.dns.wire_format import pack_option_head
from topodns.memory.bounded import TTLCache
from topodns.plugins.cache.entry import options_of_key
from topodns.query.client_scope import ClientScope, read_client_scope
from topodns.query.deferred import Timer, Timers
from topodns.query.plugin import Client, ForwardedOption

KNOWN: Final = 5.0  # seconds for which the namespace of an address is known
WANTED: Final = 60.0  # seconds for which clients are named after the last reply that was about them
TRY_EACH: Final = 60.0  # seconds between two queries that name a client unasked
MAX_CLIENTS: Final = 4096  # addresses whose namespace is known

_PAYLOAD_SIZE: Final = 1232


class PodNaming:
    """The negotiation of one `cache` with the cluster DNS. `wanted`: whether queries name the client now."""

    def __init__(self, timers: Timers) -> None:
        self.wanted = False
        self._tries = False  # the next query names its client unasked
        self._until = 0.0
        self._timers = timers
        self._timer: Timer | None = None
        self._namespaces: TTLCache[bytes, bytes] = TTLCache(MAX_CLIENTS, KNOWN, timers.time)  # by packed address

    def start(self) -> None:
        """Name the client of the next query, and of one each minute."""
        self._tries = self.wanted = True
        self._timer = self._timers.call_later(TRY_EACH, self.start)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def goes_on(self) -> bool:
        """Whether this query names its client; not after WANTED seconds without a reply about clients."""
        if self._tries:
            self._tries = False
            return True
        self.wanted = self.wanted and self._timers.time() < self._until
        return self.wanted

    def is_asked_for(self, rcode: int, ede: Ede | None) -> bool:
        """Whether a response refuses a query because it names no client; then queries name it from now on."""
        if rcode != Rcode.REFUSED or ede is None or ede.code != EdeCode.NAME_CLIENT:
            return False
        self._go_on()
        return True

    def named(self, query: Query, client: Client) -> Query:
        """The query with the option that names the client."""
        edns = query.edns or Edns(_PAYLOAD_SIZE, 0, False)
        others = tuple(option for option in edns.options if option[0] != Option.CLIENT_POD)
        options = (*others, ForwardedOption(Option.CLIENT_POD, client.address))
        return query._replace(edns=edns._replace(options=options))

    def keys(self, key: bytes, client: Client) -> Iterator[bytes]:
        """The keys of the entries that this client may get for a question, whose own key is `key`."""
        yield key
        namespace = self._namespaces.get(client.address)
        if namespace is not None:
            yield _scoped(key, ClientScope.NAMESPACE, namespace)
        yield _scoped(key, ClientScope.CLIENT, client.address)

    def key_for(self, key: bytes, client: Client, response: Response) -> bytes | None:
        """The key under which the response to a query of this client may be kept; None: under none.

        Takes the option out of the response. One without it does not depend on the client.
        """
        found = [data for code, data in response.options if code == Option.CLIENT_POD]
        if self.is_asked_for(response.rcode, response.ede):
            return None
        if not found:
            return key
        response.options = tuple(option for option in response.options if option[0] != Option.CLIENT_POD)
        self._go_on()
        scope, namespace = read_client_scope(found)
        match scope:
            case ClientScope.NODE:
                return key
            case ClientScope.NAMESPACE:
                self._namespaces[client.address] = namespace
                return _scoped(key, scope, namespace)
            case ClientScope.CLIENT:
                return _scoped(key, scope, client.address)
            case _:
                return None

    def _go_on(self) -> None:
        self.wanted, self._until = True, self._timers.time() + WANTED


def is_for_all(key: bytes) -> bool:
    """Whether the entry of this key is for all clients of the Node, and so may be stale."""
    return Option.CLIENT_POD not in options_of_key(key)


def _scoped(key: bytes, scope: ClientScope, whom: bytes) -> bytes:
    return key + pack_option_head(Option.CLIENT_POD, 1 + len(whom)) + bytes((scope,)) + whom
