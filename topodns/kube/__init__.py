"""Kubernetes as a source of cluster state: API client, informers, manifests, Events."""
