r"""Markdown as models mean it: CommonMark, with the mere look-alikes of its marks left as text.

A star, an underscore or a backslash is nobody's mark in an address, a formula, a path, a
product, a glob or a dunder name, and one too many on the screen is better than a name that
lost some. So marks stand at the edges of words, and a backslash is one only before a sign
that would else be a mark, in a word that holds no other backslash.
"""

from __future__ import annotations

from functools import cache

import regex
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, blockquote
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter

NESTING = 100
"""The deepest nesting: what is deeper is shown as it was written."""


class _Parser(MarkdownIt):
    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the library's name
        """The address as it was written."""
        return url


@cache
def parser() -> MarkdownIt:
    """The parser of all that is sent."""
    found = _Parser("commonmark", {"html": False, "maxNesting": NESTING})
    found.enable(["table", "strikethrough"]).disable(["reference", "lheading", "autolink"])
    inline = found.inline.ruler
    inline.before("text", "literal", _literal)
    inline.at("escape", _escape)
    inline.at("emphasis", _marks)
    inline.disable("strikethrough")  # _marks reads its marks too
    found.block.ruler.at("blockquote", _quote, {"alt": ["paragraph", "list"]})
    found.block.ruler.before("fence", "formula", _formula, {"alt": ["paragraph", "list"]})
    return found


_LITERAL = regex.compile(
    r"""
    (?<= (?<![\w+.-]) [a-zA-Z][a-zA-Z0-9+.-]{0,30} ) (?P<address> ://
        (?: \( [^\s()<>"`]* \) | \[ [^\s\[\]<>"`]* \]
        | [[^\s<>"`()\[\]|]--[\p{Pi}\p{Pf}、。《》「」『』【】！（），：；？]] )+ )
    | < (?P<inner> (?: https? | ftp | tg | mailto ) : [^\s<>]+ | [^\s<>@]+ @ [^\s<>@]+ ) >
    | < [a-zA-Z][\w:-]* (?: \s+ [\w:.-]+ = (?: "[^"<>]*" | '[^'<>]*' ) )+ \s* /? >
    | (?<!\w) __ (?: [a-z0-9][a-z0-9_]*? | [A-Z0-9][A-Z0-9_]*? ) __ (?!\w)
    | \$\$ .{1,2000}? \$\$
    | \$ (?=\S) (?: (?!\*\*|__)[^$\n] )* [^\s$\\] \$ (?!\w)
    | \\\( .{1,2000}? \\\)
    | \\\[ .{1,2000}? \\\]
    """,
    regex.VERBOSE | regex.DOTALL | regex.V1,
)
_SIGNS = "*_~"
_STOPS = ".,:;!?'…"


def _literal(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's call
    found = _LITERAL.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    text, end = found["inner"] or found.group(), found.end()
    if found["address"]:
        text = _address(text, state.src[: state.pos])
        end = state.pos + len(text)
    if not silent:
        state.pending += regex.sub(r"\\([*_~])", r"\1", text) if found["address"] else text
    state.pos = end
    return True


def _address(found: str, before: str) -> str:
    """Without the stops and closing marks at its end; marks that it has in pairs are its own."""
    core = found.rstrip(_SIGNS + _STOPS)
    marks = found[len(core) :].rstrip(_STOPS)
    opened = before.rstrip("abcdefghijklmnopqrstuvwxyz").endswith(marks)
    return core if opened or core.count(marks) % 2 == 0 else core + marks


_ESCAPE = regex.compile(
    r"""
    (?<! [.~%+^] | \\(?![*_~`$])\S{0,200} | (?<!\w)[a-zA-Z]: (?:\\[^\n]{0,200})? )
        \\[*_~`$] (?! \S{0,200}\\(?![*_~`$]) )
    | (?<= (?m:^)[ \t]* ) \\[#>+-] (?! \S{0,200}\\ )
    | (?<= (?m:^)[ \t]*\d+ ) \\[.)]
    """,
    regex.VERBOSE | regex.V1,
)


def _escape(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's call
    """A backslash that is no mark is text, and so is what stands behind it."""
    if state.src[state.pos] != "\\":
        return False
    two = state.src[state.pos : min(state.pos + 2, state.posMax)].rstrip()
    if not silent:
        state.pending += two[1:] if _ESCAPE.match(state.src, state.pos) else two
    state.pos += len(two)
    return True


_WORD = r"[[\p{L}\p{N}\p{Mn}\p{Mc}]--[\uFE00-\uFE0F]]"
_NARROW = r"[[\p{L}\p{N}\p{Mn}\p{Mc}]--[\uFE00-\uFE0F\p{EA=W}\p{EA=F}]]"
"""Scripts written wide have no spaces between words, so a mark has none around it either."""
_BEGINS = (
    r"""(?: [[\p{L}\p{N}\p{M}\p{Cf}\p{Ps}\p{Pi}\p{Pf}\p{Pd}\p{S}"'*_¿¡&@#%…!\\•·§†]--[=>|]]"""
    r" | \.\.\. )"
)
_BEFORE_END = r"(?: [\s\p{Ps}\\<|&@] | (?<! ://\S{0,300} )/ )"
_AFTER_END = (
    r"""(?: \Z | [\s\p{Cf}\p{Pe}\p{Pf}\p{Pd}\p{So}_~`<\[【（] | [\p{Po}--[/\\@&#%.]] | \.(?!\w) )"""
)
"""The letters that may begin styled words, can't be their end, and may follow them. Two
signs together are hardly ever meant otherwise, so `_OPENS` and `_CLOSES` ask less of them."""
_LONGEST = 3
"""The most signs in a row that are marks; more are a blank to fill in, or a hidden word."""
_RUN = regex.compile(r"\*+|_+|~~+")
_OPENS = regex.compile(
    rf"""
    (?<! {_NARROW} | [\\@] )
        (?: \*\*++ | ~~++ ) (?: (?=\p{{L}}) | (?<! [=&\#+<|^%$/)\]][*~]+ )(?={_BEGINS})
            | (?=[./]\p{{L}}[^*\n]*(?<![\s/])\*\*) )
    | (?<= \p{{L}}\p{{M}}* ) \*\* (?= \p{{L}}[^\s*]{{1,200}}\*\* )
    | (?<! {_WORD} | [\\=@&\#+<|^%$/.)\]}}?] ) (?: \*(?!\*) | (?<!["'])_++ ) (?= {_BEGINS} )
    """,
    regex.VERBOSE | regex.V1,
)
_CLOSES = regex.compile(
    rf"""
    (?<! {_BEFORE_END} ) (?: \*\*++ | ~~++ ) (?: (?!{_NARROW}) | (?<= :[*~]+ )
        | (?<= [\p{{L}}\p{{Mn}}\p{{Mc}}.!?][*~]+ )(?=\p{{L}}) )
    | (?<! {_BEFORE_END} ) (?: \*(?!\*) | _++(?!"|'(?!s)) ) (?= {_AFTER_END} )
    """,
    regex.VERBOSE | regex.V1,
)


def _marks(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the library's call
    """Stars, underscores and tildes as delimiters, for the library to pair."""
    run = _RUN.match(state.src, state.pos, state.posMax)
    if silent or run is None:
        return False
    opens, closes = (
        len(run.group()) <= _LONGEST and kind.match(state.src, state.pos, state.posMax) is not None
        for kind in (_OPENS, _CLOSES)
    )
    tilde = run.group().startswith("~")
    for mark in regex.findall("~~|~$|[*_]", run.group()):
        state.push("text", "", 0).content = mark
        if mark != "~":
            length = 0 if tilde else len(run.group())
            state.delimiters.append(
                Delimiter(ord(mark[0]), length, len(state.tokens) - 1, -1, opens, closes)
            )
    state.pos = run.end()
    return True


_FORMULA = regex.compile(
    "|".join(
        rf"{begin}(?!.*{end}).*\n(?:(?!.*(?:```|~~~))[ \t]*+\S.*+\n){{0,99}}?.*{end}.*"
        for begin, end in ((r"\$\$", r"\$\$"), (r"\\\[", r"\\\]"), (r"\\begin\{", r"\\end\{"))
    )
)


def _formula(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - as above
    """A formula of several lines, shown as it was written."""
    found = _FORMULA.match(
        state.src, state.bMarks[start] + state.tShift[start], state.eMarks[end - 1]
    )
    if found is None:
        return False
    if not silent:
        state.line = start + 1 + found.group().count("\n")
        token = state.push("formula", "", 0)
        token.content = state.getLines(start, state.line, state.blkIndent, False)
        token.map = [start, state.line]
    return True


_GREATER = regex.compile(r">(?=[\d=\p{Sc}])")


def _quote(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - as above
    """A quote, but for a line such as `>50 seats`."""
    greater = _GREATER.match(state.src, state.bMarks[start] + state.tShift[start])
    return greater is None and blockquote(state, start, end, silent)
