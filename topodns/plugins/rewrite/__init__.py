"""The `rewrite` directive (as in CoreDNS 1.14.7): rewrites queries before, and responses after, the plugins below.

`handler` applies the `rules` to a query, and then their amendments to the response; `cname_rule` and `edns_rules` hold
the rules for CNAME targets and EDNS options. Names are compared and replaced as text (`names`).
"""
