"""How a release is made: distributions, image, bill of materials, advisories. Not part of what is installed."""
