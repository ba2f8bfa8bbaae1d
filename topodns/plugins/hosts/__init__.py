"""The `hosts` plugin: names and addresses from a hosts file and from the Corefile."""
