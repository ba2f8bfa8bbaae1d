"""The Corefile language: text to server blocks and directives, and errors with file:line.

`lexer` makes tokens, `imports` expands snippets and imports, `parser` builds blocks and directives; `arguments` and
`zones` parse values. `app.load` turns blocks into settings, each directive with the parser of its plugin.
"""
