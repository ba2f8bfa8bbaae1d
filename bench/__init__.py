"""CPU per query, start time and memory of topodns, beside a plain UDP echo. See README.md here."""
