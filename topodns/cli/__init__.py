"""The command line: `topodns`, `topodns check`, `topodns explain`, `topodns node-cache`."""
