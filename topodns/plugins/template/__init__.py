"""The `template` directive: answers written as Go templates, from the text to the step.

`pieces` cuts the text, `parser` makes `nodes` of it, `render` writes them out with the functions of `functions` and
`formatting`; `values` is what all of them speak of. These know nothing of DNS and do nothing but compute. `question`
is what a template may say about a query, and `step` answers with records.

The language is that of Go's text/template without what Corefiles have no use for: floating point, methods, template
definitions, escaping for HTML. Whatever is left out is refused when the Corefile is read.
"""
