"""Metrics in Prometheus's text format."""
