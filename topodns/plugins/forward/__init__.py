"""The `forward` directive: queries sent to upstreams.

`handler` is the plugin, `single_flight` lets equal queries share an exchange, `flight` is that exchange, `policy` and
`health` choose the upstream, `hedging` asks a second one, `limits` bounds the queries in flight, `messages` builds the
messages to upstreams and `sanitize` filters their replies. These use the interfaces `Timers`, `Outcome` and `Upstream`
only; `upstreams` opens the upstreams for them.
"""
