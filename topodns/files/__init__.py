"""Reads regular files, replaces them at once, watches them for changes; frames with a checksum in them."""
