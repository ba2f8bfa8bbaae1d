"""Cluster state from manifest files: loaded at start, read again on change, emitted as changes of the model.

`objects` decodes and merges the contents of files, without I/O. `source` reads the files and waits for changes; the app
passes in the iterator of changes, so that nothing here depends on inotify.
"""
