"""Netlink messages: routes, links and addresses (rtnetlink), and nftables (nfnetlink)."""
