"""Warning Events on Services: topology keys that are invalid or have no effect, and objects left out of the state.

`recorder` schedules and writes Events, `bodies` encodes them and has their reasons, `lease` elects the replica that
writes. No answer to a query waits for any of it.
"""
