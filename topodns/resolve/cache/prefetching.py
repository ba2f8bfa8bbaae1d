"""The `prefetch` option: which entries are popular, and when they want to be asked for anew."""

from math import ceil

from topodns.resolve.cache.entry import Entry
from topodns.settings.cache import Prefetch


class Prefetching:
    """The rules of one `prefetch` line."""

    def __init__(self, settings: Prefetch) -> None:
        self._settings = settings

    def note(self, entry: Entry, now: float) -> bool:
        """The entry was asked for; whether it is popular by now."""
        history = entry.history
        if now - history.last_asked > self._settings.window:
            history.hits = 0
        history.hits += 1
        history.last_asked = now
        return history.hits >= self._settings.amount

    def begins_at(self, entry: Entry) -> int:
        """The seconds of age from which on a popular entry is to be refreshed; the last one at the latest."""
        return entry.ttl - ceil(entry.ttl * self._settings.percentage / 100)

    def look_again_at(self, entry: Entry, now: float) -> int:
        """The seconds of age up to which ready-made copies of a popular entry may be given out.

        Nobody notes who gets a copy. So they go out for half of the window at most, or an entry that is asked for all
        the time would seem to have been forgotten.
        """
        return min(self.begins_at(entry), entry.ticks(now) + max(1, int(self._settings.window / 2)))
