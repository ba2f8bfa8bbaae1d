"""The `cache` directive: answers of upstreams, kept until their TTL ends, and beyond it where nothing better is there.

Only what a `forward` has just answered is kept. Answers from the cluster come from memory already and are exact at any
time; and some were chosen for where their client is, so that one kept here could be given to a client elsewhere. They
pass through, whatever they were decided by, and no two locations ever share one.
"""

from topodns.resolve.cache.around import ResponseCache
from topodns.resolve.cache.counts import CacheCounts, zones_label
from topodns.resolve.cache.memory import Room, room_of

__all__ = ["CacheCounts", "ResponseCache", "Room", "room_of", "zones_label"]
