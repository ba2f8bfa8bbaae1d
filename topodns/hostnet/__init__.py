"""The node's network as a node cache needs it: a link with the listen addresses, firewall rules that keep DNS traffic
out of conntrack, and a redirect that expires when the node cache stops answering.

Pure: `rules` (the desired state, and the choice between nftables, iptables and none), `nftables_ruleset` and
`iptables_ruleset` (that state as input of nft and iptables-restore, and the difference from the actual state). With
system calls: `link`, `nftables`, `iptables`, `monitor`, `instances`, `port_watch`, `node_checks`, `redirect`.
`reconciler` combines them and is the entry point; `watchdog` is a separate process for iptables, whose rules cannot
expire by themselves. No DNS in here.
"""
