"""How a release is made: distributions, image, bill of materials, audit. Not part of what is installed."""
