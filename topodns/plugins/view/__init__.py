"""The `view` directive: expressions that say which queries a server block takes.

The language is the part of expr-lang (which CoreDNS uses) that decides something about one query: values, comparisons,
logic, arithmetic, and CoreDNS's functions. Variables, predicates, maps and member access are left out, and whatever is
left out is refused when the Corefile is read. Types are checked then too, so that little can go wrong for a query.

`lexer` cuts the text, `parser` makes `nodes` of it, `compiler` checks their types and makes closures of them, with the
operations of `operators`. Only `functions` knows what a query is. `filter` is what a server block has.
"""
