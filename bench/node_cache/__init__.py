"""`make bench-node-cache`: what a node's DNS cache does when things go wrong, and costs, beside NodeLocal DNSCache."""
