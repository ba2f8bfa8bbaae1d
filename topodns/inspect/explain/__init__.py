"""Explanations of replies to a client, for /explain of a running server and for the command `topodns explain`."""
