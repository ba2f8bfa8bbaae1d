"""The `autopath` plugin: answers the first query of a search list with the first name on it that exists."""
