"""`make bench-guard`: the calls that a query costs, counted on fixed tapes, against the figures in the tree."""
