"""The contract between the server and its plugins, and the values and helpers that plugins share."""
