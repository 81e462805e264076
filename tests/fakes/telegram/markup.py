"""HTML, MarkdownV2 and Markdown as the Bot API reads them: text and entities, or an error."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from tests.fakes.recording import Json


class MarkupError(Exception):
    """The markup is unbalanced or has an unescaped character; the message is the API's."""


@dataclass
class _Output:
    text: str = ""
    units: int = 0
    entities: list[Json] = field(default_factory=list)

    def write(self, piece: str) -> None:
        self.text += piece
        self.units += len(piece.encode("utf-16-le", "surrogatepass")) // 2

    def close(self, kind: str, start: int, **more: str) -> None:
        if self.units > start:
            entity: Json = {"type": kind, "offset": start, "length": self.units - start}
            self.entities.append(entity | more)

    def result(self) -> tuple[str, list[Json]]:
        return self.text, sorted(self.entities, key=lambda e: (e["offset"], -e["length"]))


def parse_markup(raw: str, mode: str) -> tuple[str, list[Json]]:
    """The visible text and its entities. Raises MarkupError."""
    match mode.lower():
        case "html":
            return _html(raw)
        case "markdownv2":
            return _marked(raw, _V2, strict=True)
        case "markdown":
            return _marked(raw, _V1, strict=False)
        case _:
            raise MarkupError("unsupported parse_mode")


def _cant_parse(why: str) -> MarkupError:
    return MarkupError(f"can't parse entities: {why}")


_TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "code": "code",
    "pre": "pre",
    "a": "text_link",
    "blockquote": "blockquote",
    "tg-emoji": "custom_emoji",
}


class _HtmlReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out = _Output()
        self.open: list[tuple[str, int, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _TAGS:
            raise _cant_parse(f'Unsupported start tag "{tag}" at byte offset {self._at()}')
        self.open.append((tag, self.out.units, dict(attrs).get("href") or ""))

    def handle_endtag(self, tag: str) -> None:
        if not self.open:
            raise _cant_parse(f"Unexpected end tag at byte offset {self._at()}")
        started, start, href = self.open.pop()
        if started != tag:
            why = f'Unmatched end tag at byte offset {self._at()}, expected "</{started}>", '
            raise _cant_parse(f'{why}found "</{tag}>"')
        if href:
            self.out.close(_TAGS[tag], start, url=href)
        else:
            self.out.close(_TAGS[tag], start)

    def handle_data(self, data: str) -> None:
        self.out.write(data)

    def _at(self) -> int:
        return len(self.out.text.encode("utf-8", "surrogatepass"))


def _html(raw: str) -> tuple[str, list[Json]]:
    reader = _HtmlReader()
    reader.feed(raw)
    reader.close()
    if reader.open:
        raise _cant_parse(f'Can\'t find end tag corresponding to start tag "{reader.open[-1][0]}"')
    return reader.out.result()


_V2 = {
    "||": "spoiler",
    "__": "underline",
    "*": "bold",
    "_": "italic",
    "~": "strikethrough",
}
_V1 = {"*": "bold", "_": "italic"}
_RESERVED = set("[]()>#+-=|{}.!")
_LINK = re.compile(r"\[((?:\\.|[^\]\\])*)\]\(((?:\\.|[^)\\])*)\)", re.DOTALL)
_CODE = re.compile(r"```(?:(\w+)\n)?((?:\\.|[^\\`]|`(?!``))*)```|`((?:\\.|[^\\`])+)`", re.DOTALL)


def _marked(raw: str, markers: dict[str, str], *, strict: bool) -> tuple[str, list[Json]]:
    out, open_marks, at = _Output(), list[tuple[str, int, int]](), 0
    while at < len(raw):
        character = raw[at]
        if character == "\\" and at + 1 < len(raw):
            out.write(raw[at + 1])
            at += 2
        elif character == "`":
            at = _code(raw, at, out)
        elif character == "[" and (link := _LINK.match(raw, at)):
            start = out.units
            out.write(re.sub(r"\\(.)", r"\1", link[1]))
            out.close("text_link", start, url=link[2])
            at = link.end()
        elif mark := next((m for m in markers if raw.startswith(m, at)), ""):
            _toggle(mark, at, raw, open_marks, out, markers)
            at += len(mark)
        elif strict and character in _RESERVED and not _quotes(raw, at):
            why = f"Character '{character}' is reserved and must be escaped with the preceding '\\'"
            raise _cant_parse(why)
        else:
            out.write("" if strict and character == ">" else character)
            at += 1
    if open_marks:
        kind, byte = markers[open_marks[-1][0]], open_marks[-1][2]
        named = f"{kind.capitalize()} entity" if strict else "the entity"
        raise _cant_parse(f"Can't find end of {named} at byte offset {byte}")
    return out.result()


def _quotes(raw: str, at: int) -> bool:
    return raw[at] == ">" and (at == 0 or raw[at - 1] == "\n")


def _code(raw: str, at: int, out: _Output) -> int:
    found = _CODE.match(raw, at)
    if found is None:
        byte = len(raw[:at].encode("utf-8", "surrogatepass"))
        raise _cant_parse(f"Can't find end of the entity starting at byte offset {byte}")
    block = found[3] is None
    start = out.units
    out.write(re.sub(r"\\(.)", r"\1", found[2] if block else found[3]))
    out.close("pre" if block else "code", start)
    return found.end()


def _toggle(
    mark: str,
    at: int,
    raw: str,
    open_marks: list[tuple[str, int, int]],
    out: _Output,
    markers: dict[str, str],
) -> None:
    if open_marks and open_marks[-1][0] == mark:
        _, start, _ = open_marks.pop()
        out.close(markers[mark], start)
        return
    if any(m == mark for m, _, _ in open_marks):
        byte = len(raw[:at].encode("utf-8", "surrogatepass"))
        raise _cant_parse(f"Can't find end of the entity starting at byte offset {byte}")
    open_marks.append((mark, out.units, len(raw[:at].encode("utf-8", "surrogatepass"))))
