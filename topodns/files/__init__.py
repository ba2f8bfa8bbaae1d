"""Reads regular files, replaces them at once, and watches them for changes."""
