"""The `template` directive: answers generated from Go templates.

`engine` is the template language, without DNS and without I/O: `lexer` and `parser` make `nodes` of the text, and
`execute` renders them with `functions`; `values` defines the values. `rule` is one compiled directive with the data of
a query that its templates can use, and `handler` the plugin.

The language is Go's text/template without features that Corefiles have no use for: floating point, methods, template
definitions, escaping for HTML. Features left out are refused when the Corefile is read.
"""
