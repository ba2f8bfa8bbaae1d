"""Corefile text to settings: the language, the directives, and errors with file:line.

`load` is the way in. Below it: `lexer` makes tokens, `imports` replaces snippets and imports, `corefile` finds blocks
and directives, `directives` gives each directive its meaning, `blocks` puts a server block together.
"""
