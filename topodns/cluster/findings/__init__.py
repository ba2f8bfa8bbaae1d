"""Findings about the objects of a cluster: mistakes of keys, annotations, EndpointSlices and Nodes, for operators.

They are in the log, in Events, in an audit, on the page and, where no other line has them, in `explain`. Findings about
the endpoints that clients get are in `inspect.findings`.
"""
