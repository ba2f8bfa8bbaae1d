"""What an operator can choose, as frozen dataclasses: every knob and its default stands here and nowhere else.

`topodns.config` builds them from a Corefile; everything below the roof only reads its own section.
"""
