"""The processes of `multisocket`: the first one watches and has the HTTP endpoints, the workers get its changes."""
