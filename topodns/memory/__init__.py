"""Limits on the memory of tables, in entries or octets, and the order in which entries are evicted."""
