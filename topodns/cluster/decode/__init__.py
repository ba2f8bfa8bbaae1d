"""Decoders of Kubernetes API objects, lists and watch events to the values of `cluster.model`."""
