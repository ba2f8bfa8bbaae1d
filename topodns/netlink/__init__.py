"""Netlink: messages and sockets, rtnetlink (links and addresses), nfnetlink (nftables) and sock_diag (sockets)."""
