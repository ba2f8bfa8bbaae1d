"""The packet cache: ready-made replies, keyed by the octets of the query, as in dnsdist and PowerDNS."""
