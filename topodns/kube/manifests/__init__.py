"""Cluster state from manifest files: loaded at once, read again when they change, told as changes of the model.

`contents` is what files say, alone and together, and touches no file. `source` reads the files and does the waiting;
the iterator that it waits for is the app's to choose, so that it knows nothing of inotify.
"""

from topodns.edge.manifests.contents import KINDS, Contents, ManifestSet, Merged, read_contents
from topodns.edge.manifests.source import SUFFIXES, ManifestSource

__all__ = ["ManifestSource", "ManifestSet", "Contents", "Merged", "read_contents", "KINDS", "SUFFIXES"]
