"""The command `topodns locator`: a controller that writes a NodeLocator for each Node, or a PodLocator for each Pod.

Servers with `locate nodelocator` or `locate podlocator` read these objects and need no right to read Pods. It runs with
the kubernetes package, so not from the image for Pods that serves DNS.
"""
