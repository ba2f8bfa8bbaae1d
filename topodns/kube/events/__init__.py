"""Warning Events on Services whose topology keys are invalid, or placed where they have no effect.

`recorder` schedules and writes Events, `bodies` encodes them, `lease` elects the writing replica. No answer to a query
waits for any of it.
"""
