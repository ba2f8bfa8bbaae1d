"""The command line: `topodns`, its commands, `node-cache`, and the kubectl plugin."""
