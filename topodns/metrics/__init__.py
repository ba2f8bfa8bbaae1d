"""Metrics of the process as values, and their exposition by prometheus_client."""
