"""Reads regular files, and watches them for changes."""
