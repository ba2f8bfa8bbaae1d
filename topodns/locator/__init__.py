"""The command `topodns locator`: a controller that writes a NodeLocator for each Node, or a PodLocator for each Pod.

Servers with `locate nodelocator` or `locate podlocator` read these objects and need no right to read Pods. It lists and
watches by `kube.informer`, and writes by the kubernetes package, so it does not run from the image for Pods that serves
DNS.
"""
