"""The command line: `topodns`, its commands, and `node-cache`."""
