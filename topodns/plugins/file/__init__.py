"""The `file` plugin: serves zones from zone files."""
