"""Everything that waits: sockets, files, HTTP, metrics. Modules here do not know each other; `app` joins them."""
