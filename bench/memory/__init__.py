"""`make bench-memory`: the memory of servers and node caches, by their objects, answers and connections."""
