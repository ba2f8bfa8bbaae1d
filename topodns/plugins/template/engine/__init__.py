"""The subset of Go's text/template that the `template` directive needs."""
