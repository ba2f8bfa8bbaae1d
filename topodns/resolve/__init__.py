"""Who answers a query: the hot dictionaries, the ladder of refusals, and the steps of a server block."""
