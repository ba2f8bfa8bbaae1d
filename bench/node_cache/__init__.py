"""`make bench-node-cache`: faults and restarts of a node's DNS cache, its memory and CPU, beside NodeLocal DNSCache."""
