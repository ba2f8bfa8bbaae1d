"""The `rewrite` directive (as in CoreDNS 1.14.7): rewrites queries before, and responses after, the plugins below.

`handler` applies its rules to a query; `response` applies their amendments to the response and puts the client's own
name back.
"""
