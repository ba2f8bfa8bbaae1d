"""What a `cache` of a node's Corefile means where it does not say: the node's names outlast its upstreams."""

from typing import Final

from topodns.settings.cache import Cache, ServeStale, Share

_MAX_STALE: Final = 86_400.0  # seconds beyond the TTL, as RFC 8767 section 5 allows: one day to three
# A restarted upstream may know nothing for a moment. Longer, and pods would be sent to what was deleted on purpose.
_DOUBT: Final = 10.0

NODE_CACHE: Final = Cache(
    # No TTL of an upstream is raised: names of the cluster DNS have 5 s and less because they change.
    success=Share(3600, min_ttl=0),
    denial=Share(1800, min_ttl=0),
    serve_stale=ServeStale(_MAX_STALE, verify=True, doubt=_DOUBT),
)
