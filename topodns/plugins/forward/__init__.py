"""The `forward` directive: queries sent to upstreams.

`handler` is the plugin and builds the messages to upstreams, `single_flight` lets equal queries share an exchange and
bounds the queries that wait, `flight` is that exchange with its hedging, `upstreams` has the health of the upstreams
and chooses one, and `sanitize` filters their replies. These use the interfaces `Timers`, `Outcome` and `Upstream` only;
`lazy_upstream` opens the upstreams for them.
"""
