"""The `topology` directive: which endpoints of a Service a client gets; settings of `kubernetes`."""
