"""Memory of tables: how many entries or octets they hold, and which go first."""
