"""What a node cache does to its node's network: a link with the listen addresses, rules that keep DNS out of conntrack,
and a switch that lets go of the traffic when nobody answers it.

Pure: `plan` (what is wished), `nftables_text` and `iptables_text` (as the firewalls say it, and what differs),
`notices`. Doing: `link`, `nftables`, `iptables`, `beat`, `watch`, `presence`. `keeper` puts them together, and is what
the program uses; `supervisor` is a process of its own where the firewall cannot forget by itself. Knows no DNS.
"""
