"""The `forward` directive: queries sent to upstreams, through the interfaces `Timers`, `Outcome` and `Upstream` only.

`handler` is the plugin, `flight` is the single-flight exchange shared by equal queries, `pool` and `health` choose the
upstream, `hedging` asks a second one, `limits` bounds the queries in flight, `messages` builds the messages to
upstreams and `sanitize` filters their replies.
"""
