"""The `rewrite` directive (as in CoreDNS 1.14.7): rewrites queries before, and responses after, the plugins below.

`handler` applies the `rules` to a `rewritten_query`; `response` applies their amendments to the response and puts the
client's own name back. `cname_rule` and `edns_rules` hold the rules for CNAME targets and EDNS options. Names are
compared and replaced as text (`names`).
"""
