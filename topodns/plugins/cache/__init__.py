"""The `cache` directive: answers of upstreams, kept until their TTL expires, and as stale answers beyond it (RFC 8767).

Only answers of `forward` are cached. Answers from the cluster state are in memory already and always exact, and some
depend on the client's topology domain, so that a cached one could reach a client in another. They pass through
unchanged, and two topology domains never share an answer.
"""
