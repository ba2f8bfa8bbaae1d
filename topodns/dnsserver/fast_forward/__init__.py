"""The fast path: relays plain questions to `forward` and back as octets, if no other plugin affects them."""
