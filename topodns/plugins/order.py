"""The one list of plugins, in the order in which they see a query.

A new plugin is a module of this package, or a folder with a module `setup`, that has a `Plugin` named PLUGIN; and a
line of ORDER. `plugins.plugin.load` imports it by that name.
"""

from typing import Final

# The order in which plugins see a query: that of CoreDNS's plugin.cfg, except for `cache`, `topology` and `push`.
ORDER: Final = (
    "metadata",
    "cancel",  # limits the time of all plugins below
    "timeouts",
    "multisocket",
    "reload",
    "nsid",  # on every reply, whichever plugin answers
    "bufsize",
    "bind",
    "debug",
    "ready",
    "health",
    "pprof",
    "prometheus",
    "errors",
    "log",
    "local",  # before all plugins that could forward or log queries for localhost
    "dns64",  # on the answers of all plugins below, cached ones too
    "any",
    "chaos",
    "loadbalance",  # orders addresses last, after `rewrite` has changed them
    "rewrite",
    "autopath",  # each name that it tries goes through the plugins below
    # After `rewrite`, to check the rewritten name; below `autopath`, to check each name tried; above `cache`, to check
    # each client (CoreDNS 1.14.7, #8289 and #8290).
    "acl",
    "header",
    "tls",
    "minimal",
    "template",
    "hosts",
    "k8s_external",
    "kubernetes",
    "topology",  # settings of `kubernetes`; CoreDNS does not have it
    "push",  # sessions that follow the answers of `kubernetes`; CoreDNS does not have it
    "file",
    "loop",  # stops queries that would be forwarded
    "cache",  # lower than in CoreDNS: it keeps only answers of upstreams, so it never hides local data
    "forward",
    "whoami",  # the last resort
    "view",  # selects the block, before all others
)
