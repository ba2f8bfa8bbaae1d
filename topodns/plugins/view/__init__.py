"""The `view` directive: expressions that select the queries of a server block.

The language is a subset of expr-lang (which CoreDNS uses) for predicates on one query: values, comparisons, logic,
arithmetic, and CoreDNS's functions. Variables, predicates, maps and member access are left out and refused when the
Corefile is read. Types are checked then, too, so that few errors are possible at query time.

`parser` holds the lexer, the parser and the nodes of the syntax tree; `expression` checks types and makes closures of
nodes; `functions` holds the functions, the only part that reads a query, and the operators. `handler` is the filter of
a server block.
"""
