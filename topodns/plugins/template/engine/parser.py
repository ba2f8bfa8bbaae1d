"""Parser of templates: makes a `Compiled` template of literal text and actions, and resolves all names.

`TokenReader` parses the content of one action: terms, calls and pipelines, with the variables and fields in scope.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from topodns.plugins.template.engine.functions import FUNCTIONS, GO_ONLY, META
from topodns.plugins.template.engine.lexer import Action, BadTemplate, TemplateToken, cut
from topodns.plugins.template.engine.nodes import (
    Assignment,
    Break,
    Compiled,
    Continue,
    Dot,
    Expression,
    Fields,
    If,
    Node,
    Output,
    Range,
    TemplateCall,
    TemplateLiteral,
    Text,
    Variable,
    With,
)

KEYWORDS: Final = frozenset({"if", "else", "end", "range", "with", "break", "continue", "define", "template", "block"})

_MAX_PARENTHESES: Final = 32  # nesting of parentheses
_MAX_VARIABLES: Final = 64
_MAX_NUMBER: Final = (1 << 63) - 1  # Go's int
_NUMBER: Final = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|0[0-7_]*|[1-9][0-9_]*)")
_OLD_OCTAL: Final = re.compile(r"([+-]?)0([0-7_]+)")
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|[0-7]{3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_PLAIN_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_CONSTANTS: Final = {"true": True, "false": False, "nil": None}


class VariableScope:
    """The variables in scope at a position of the template. Slot 0 is `$`, the data.

    `fields`: the top-level fields of the data that the template reads up to here.
    """

    def __init__(self, known: Mapping[str, frozenset[str]]) -> None:
        self.slots = 1
        self.fields: set[str] = set()
        self.moved_dots = 0  # number of `with` and `range` blocks around this position
        self._known = known
        self._variables: list[tuple[str, int]] = []

    def mark(self) -> int:
        return len(self._variables)

    def forget(self, mark: int) -> None:
        """End the scope of the variables declared since `mark`."""
        del self._variables[mark:]

    def declare(self, name: str) -> int:
        if self.slots == _MAX_VARIABLES:
            raise BadTemplate(f"found more than {_MAX_VARIABLES - 1} variables")
        self.slots += 1
        self._variables.append((name, self.slots - 1))
        return self.slots - 1

    def slot(self, action: Action, name: str) -> int:
        for known, slot in reversed(self._variables):
            if known == name:
                return slot
        raise action.error(f"unknown variable {name!r}")

    def use(self, action: Action, names: tuple[str, ...]) -> None:
        """Note that the template reads the field path `names` of the data: its first name is added to `fields`.

        Raises BadTemplate for an empty path, an unknown first name, and an unknown second name below a structure.
        """
        if not names:
            raise action.error("found the whole of the data, expected one of its fields, such as .Name")
        first, *rest = names
        self._check(action, first, self._known)
        if rest and self._known[first]:
            self._check(action, rest[0], self._known[first], first)
        self.fields.add(first)

    @staticmethod
    def _check(action: Action, name: str, known: Mapping[str, object] | frozenset[str], owner: str = "") -> None:
        if name not in known:
            prefix = f".{owner}." if owner else "."
            expected = ", ".join(f"{prefix}{each}" for each in sorted(known))
            raise action.error(f"unknown field '{prefix}{name}', expected one of {expected}")


class TokenReader:
    """Reads the tokens of one action from left to right."""

    def __init__(self, action: Action, scope: VariableScope) -> None:
        self.action = action
        self._scope = scope
        self._at = 0
        self._depth = 0

    def error(self, problem: str) -> BadTemplate:
        return self.action.error(problem)

    def keyword(self) -> str:
        """Take the next token if it is a keyword, and return its text; "" if it is none."""
        token = self._peek()
        if token is None or token.kind != "word" or token.text not in KEYWORDS:
            return ""
        self._at += 1
        return token.text

    def next_is(self, text: str) -> bool:
        token = self._peek()
        return token is not None and token.kind in ("word", "mark") and token.text == text

    def expect_end(self) -> None:
        token = self._peek()
        if token is not None:
            raise self.error(f"found {token.text!r}, expected the end of the action")

    def assignment(self) -> tuple[str, bool] | None:
        """Take `$name :=` or `$name =`: (`$name`, whether it is declared, by `:=`); None if neither comes next."""
        name, mark = self._peek(), self._peek(1)
        if name is None or mark is None or name.kind != "variable" or mark.text not in (":=", "="):
            return None
        self._at += 2
        return self._named(name), mark.text == ":="

    def range_variables(self) -> list[str]:
        """Take `$element :=` or `$key, $element :=`: the names; empty if neither comes next."""
        first, mark, second, sign = (self._peek(ahead) for ahead in range(4))
        if first is None or mark is None or first.kind != "variable":
            return []
        if mark.text == ":=":
            self._at += 2
            return [self._named(first)]
        if mark.text == "," and second is not None and sign is not None and sign.text == ":=":
            self._at += 4
            return [self._named(first), self._named(second)]
        return []

    def pipeline(self) -> Expression:
        """`command | command`: the result of each command is the last argument of the next."""
        expression = self._command(None)
        while self.next_is("|"):
            self._at += 1
            expression = self._command(expression)
        return expression

    def _peek(self, ahead: int = 0) -> TemplateToken | None:
        at = self._at + ahead
        return self.action.tokens[at] if at < len(self.action.tokens) else None

    def _named(self, token: TemplateToken) -> str:
        if token.kind != "variable" or token.text == "$":
            raise self.error(f"found {token.text!r}, expected a variable such as $name")
        return token.text

    def _command(self, piped: Expression | None) -> Expression:
        token = self._peek()
        if token is None:
            raise self.error("found nothing, expected a value")
        if token.kind == "word" and token.text not in _CONSTANTS:
            self._at += 1
            return self._call(self._function(token.text), piped)
        if self._is_meta(token):
            self._at += 1
            return self._call(META, piped)
        term = self._term()
        if piped is not None or not self._ended():
            raise self.error(f"{token.text!r} is no function, so it can have no arguments")
        return term

    def _function(self, name: str) -> str:
        if name in FUNCTIONS:
            return name
        if name in GO_ONLY:
            raise self.error(f"Go's templates have the function {name!r}, topodns does not")
        known = ", ".join(sorted(known for known in FUNCTIONS if known != META))
        raise self.error(f"unknown function {name!r}, expected one of {known}")

    def _is_meta(self, token: TemplateToken) -> bool:
        """Whether `.Meta` or `$.Meta`, the only method, comes next; inside `with` and `range` only `$.Meta` counts.

        Takes the `$`, but not `.Meta`.
        """
        if token.text == "$" and (field := self._peek(1)) is not None and field.text == META and field.glued:
            self._at += 1
            return True
        return token.text == META and not self._scope.moved_dots

    def _call(self, function: str, piped: Expression | None) -> TemplateCall:
        arguments: list[Expression] = []
        while not self._ended():
            arguments.append(self._term())
        if piped is not None:
            arguments.append(piped)
        least, most, _ = FUNCTIONS[function]
        if not least <= len(arguments) <= (len(arguments) if most is None else most):
            expected = f"at least {least}" if most is None else f"{least}" if most == least else f"{least} to {most}"
            raise self.error(f"{function!r} has {len(arguments)} arguments, expected {expected}")
        return TemplateCall(function, tuple(arguments))

    def _ended(self) -> bool:
        return self._peek() is None or self.next_is("|") or self.next_is(")")

    def _term(self) -> Expression:
        token = self._peek()
        assert token is not None  # checked by the caller
        self._at += 1
        match token.kind:
            case "string" | "raw" | "char" | "number":
                return TemplateLiteral(self._literal(token))
            case "float":
                raise self.error(f"found {token.text!r}, but topodns has no floating point")
            case "dot" | "field" | "variable":
                return self._path(token)
            case "word" if token.text in _CONSTANTS:
                return TemplateLiteral(_CONSTANTS[token.text])
            case "word" if token.text in FUNCTIONS:
                raise self.error(f"found {token.text!r} as an argument, expected it in parentheses with its own")
            case "mark" if token.text == "(":
                return self._parentheses()
        raise self.error(f"found {token.text!r}, expected a value")

    def _parentheses(self) -> Expression:
        self._depth += 1
        if self._depth > _MAX_PARENTHESES:
            raise self.error(f"found parentheses more than {_MAX_PARENTHESES} deep")
        inner = self.pipeline()
        if not self.next_is(")"):
            raise self.error("found no ')' for a '('")
        self._at += 1
        self._depth -= 1
        names = self._field_names()
        return Fields(inner, names) if names else inner

    def _path(self, token: TemplateToken) -> Expression:
        """The expression of a dot, a field or a variable (`token`, already taken) and of all fields glued to it."""
        names = ((token.text[1:],) if token.kind == "field" else ()) + self._field_names()
        of_data = token.text == "$" or (token.kind != "variable" and not self._scope.moved_dots)
        if of_data:
            self._scope.use(self.action, names)
            return Fields(Variable(0), names)
        owner = Variable(self._scope.slot(self.action, token.text)) if token.kind == "variable" else Dot()
        return Fields(owner, names) if names else owner

    def _field_names(self) -> tuple[str, ...]:
        names: list[str] = []
        while (token := self._peek()) is not None and token.kind == "field" and token.glued:
            names.append(token.text[1:])
            self._at += 1
        return tuple(names)

    def _literal(self, token: TemplateToken) -> str | int:
        match token.kind:
            case "raw":
                return token.text[1:-1]
            case "string":
                return _ESCAPE.sub(self._unescaped, token.text[1:-1])
            case "char":
                char = _ESCAPE.sub(self._unescaped, token.text[1:-1])
                if len(char) != 1:
                    raise self.error(f"found {token.text!r}, expected one character between the quotes")
                return ord(char)
        if not _NUMBER.fullmatch(token.text):
            raise self.error(f"found {token.text!r}, expected an integer")
        number = int(_OLD_OCTAL.sub(r"\g<1>0o\2", token.text) if _OLD_OCTAL.fullmatch(token.text) else token.text, 0)
        if abs(number) > _MAX_NUMBER:
            raise self.error(f"found {token.text!r}, which is more than 63 bits hold")
        return number

    def _unescaped(self, match: re.Match[str]) -> str:
        escape = match[1]
        if escape in _PLAIN_ESCAPES:
            return _PLAIN_ESCAPES[escape]
        if escape in ("\\", '"', "'"):
            return escape
        code = int(escape[1:], 16) if escape[0] in "xuU" and len(escape) > 1 else _octal(escape)
        if code is None or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self.error(f"found the escape \\{escape}, which no string has")
        return chr(code)


def _octal(escape: str) -> int | None:
    return int(escape, 8) if len(escape) == 3 else None


MAX_TEXT: Final = 65_536  # characters; enough for the text of the longest record

_MAX_BLOCKS: Final = 32  # nesting of blocks
_UNSUPPORTED: Final = frozenset({"define", "template", "block"})

Nodes = tuple[Node, ...]
Fieldset = Mapping[str, frozenset[str]]


def compile_template(text: str, known: Fieldset) -> Compiled:
    """Compile a template. Raises BadTemplate.

    `known`: the fields of the data, each with its subfields if it is a structure, else empty.
    """
    if len(text) > MAX_TEXT:
        raise BadTemplate(f"found {len(text)} characters, expected at most {MAX_TEXT}")
    scope = VariableScope(known)
    parser = _Parser(cut(text), scope)
    nodes = parser.whole()
    return Compiled(text, nodes, scope.slots, frozenset(scope.fields))


class _Parser:
    def __init__(self, pieces: Iterator[str | Action], scope: VariableScope) -> None:
        self._pieces = pieces
        self._scope = scope
        self._loops = 0
        self._depth = 0

    def whole(self) -> Nodes:
        nodes, stopped = self._nodes()
        if stopped is not None:
            raise stopped.error("found where no if, range or with is open")
        return nodes

    def _nodes(self) -> tuple[Nodes, TokenReader | None]:
        """The nodes up to an `end` or `else`, and a reader before that word; (nodes, None) at the end of the text."""
        nodes: list[Node] = []
        for piece in self._pieces:
            if isinstance(piece, str):
                nodes.append(Text(piece))
                continue
            words = TokenReader(piece, self._scope)
            if words.next_is("end") or words.next_is("else"):
                return tuple(nodes), words
            nodes.append(self._statement(words))
        return tuple(nodes), None

    def _statement(self, words: TokenReader) -> Node:
        keyword = words.keyword()
        if keyword in _UNSUPPORTED:
            raise words.error(f"found {keyword!r}, which topodns does not have")
        if keyword in ("if", "with", "range"):
            return self._block(keyword, words)
        if keyword in ("break", "continue"):
            words.expect_end()
            if not self._loops:
                raise words.error("found outside of a range")
            return Break() if keyword == "break" else Continue()
        return self._simple(words)

    def _simple(self, words: TokenReader) -> Node:
        assigned = words.assignment()
        expression = words.pipeline()
        words.expect_end()
        if assigned is None:
            return Output(expression)
        name, declares = assigned
        return Assignment(self._scope.declare(name) if declares else self._scope.slot(words.action, name), expression)

    def _block(self, keyword: str, words: TokenReader) -> Node:
        """The block from `if`, `with` or `range` to its `end`, which also ends the scope of its variables."""
        self._depth += 1
        if self._depth > _MAX_BLOCKS:
            raise words.error(f"found blocks inside blocks, more than {_MAX_BLOCKS} deep")
        mark = self._scope.mark()
        node = self._range(words) if keyword == "range" else self._condition(keyword, words)
        self._scope.forget(mark)
        self._depth -= 1
        return node

    def _condition(self, keyword: str, words: TokenReader) -> Node:
        assigned = words.assignment()
        expression = words.pipeline()
        words.expect_end()
        slot = None
        if assigned is not None:
            name, declares = assigned
            slot = self._scope.declare(name) if declares else self._scope.slot(words.action, name)
        body, stopped = self._body(words, moves_dot=keyword == "with")
        otherwise = self._otherwise(keyword, words, stopped)
        if keyword == "if":
            return If(expression, slot, body, otherwise)
        return With(expression, slot, body, otherwise)

    def _range(self, words: TokenReader) -> Node:
        names = words.range_variables()
        expression = words.pipeline()
        words.expect_end()
        slots = [self._scope.declare(name) for name in names]
        self._loops += 1
        body, stopped = self._body(words, moves_dot=True)
        self._loops -= 1
        otherwise = self._otherwise("range", words, stopped)
        key = slots[0] if len(slots) == 2 else None
        return Range(expression, key, slots[-1] if slots else None, body, otherwise)

    def _body(self, owner: TokenReader, moves_dot: bool) -> tuple[Nodes, TokenReader]:
        mark = self._scope.mark()
        self._scope.moved_dots += moves_dot
        nodes, stopped = self._nodes()
        self._scope.moved_dots -= moves_dot
        self._scope.forget(mark)
        if stopped is None:
            raise owner.error("found no end, expected {{ end }}")
        return nodes, stopped

    def _otherwise(self, keyword: str, owner: TokenReader, stopped: TokenReader) -> Nodes:
        """The nodes of the `else` branch, up to the `end` of the block, which is taken; () if `stopped` is at `end`.

        `else if` in an `if` and `else with` in a `with` need no `end` of their own.
        """
        if stopped.keyword() == "end":
            stopped.expect_end()
            return ()
        if keyword != "range" and stopped.next_is(keyword):
            stopped.keyword()
            return (self._block(keyword, stopped),)
        stopped.expect_end()
        nodes, last = self._body(owner, moves_dot=False)
        if last.keyword() != "end":
            raise last.error("found a second else, expected {{ end }}")
        last.expect_end()
        return nodes
