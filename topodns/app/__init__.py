"""The server process: builds the server of a Corefile, opens its sockets, reloads, drains and stops."""
