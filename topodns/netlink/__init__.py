"""Netlink: messages and sockets, and rtnetlink (links and addresses)."""
