"""A model's words arrive readable and complete, whatever looks like a mark in them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bot.domain.delivery import Sent
from bot.domain.ports import SendRef
from bot.domain.reply import FileOut, Reply
from channels.markdown import render
from channels.telegram.compose import Wire, compose
from channels.text import utf16_len
from channels.whatsapp.compose import LIMIT, pieces
from tests.channels.telegram.kit import NOON, line, params, private
from tests.fakes.telegram import faults

CHAT = 700100201

B111 = (
    "Docs: https://example.test/api/_v1_/users and https://example.test/?q=__flat__&r=a*b*c "
    "then http://example.test/x~~y~~z **now** (https://example.test/wiki/Foo_(bar)_baz)"
)
B112 = (
    r"Edit __init__.py and call __main__: 2*3*4 = 24, a*b + c*d. Path C:\new\_tmp\file or "
    r"\\server\share; pattern \d+\.\d+ is **done** _soon_"
)


def sent(text: str) -> list[dict[str, Any]]:
    """The calls that carry a text to Telegram."""
    return [params(part) for part in compose(Reply(text), private(), 10)]


def styled(text: str) -> list[tuple[str, str]]:
    page = render(text)
    return [(span.style.value, page.text[span.start : span.end]) for span in page.spans]


def unquoted(bodies: list[str]) -> str:
    """The one message without the ticks that keep WhatsApp from reading signs as marks."""
    (body,) = bodies
    return body.replace("`", "")


def code_of(call: dict[str, Any]) -> str:
    """The blocks of code that a message shows."""
    units = call["text"].encode("utf-16-le")
    blocks = [e for e in call.get("entities", []) if e["type"] == "pre"]
    return "".join(
        units[2 * e["offset"] : 2 * (e["offset"] + e["length"])].decode("utf-16-le") for e in blocks
    )


def fenced(body: str) -> str:
    """The same in a message of WhatsApp."""
    return "".join(block.removeprefix("\n").removesuffix("\n") for block in body.split("```")[1::2])


def test_code_in_bold_words_is_innermost_on_whatsapp() -> None:
    assert pieces("**`a` is `b`**, **`c`**") == ["*`a` is `b`*, *`c`*"]


@pytest.mark.parametrize("word", ["__init__.py", "(__x__)", "src/**/*.py", ".*err.*", "@_ada_"])
def test_a_word_whose_signs_whatsapp_would_take_for_marks_is_code_there(word: str) -> None:
    assert word.strip("()") in pieces(f"See {word}, please")[0].split("`")


def test_b111_addresses_arrive_character_for_character() -> None:
    (call,) = sent(B111)
    (body,) = pieces(B111)
    assert call["text"] == render(B111).text == B111.replace("**", "")
    assert styled(B111) == [("bold", "now")]
    assert body == B111.replace("**", "*")


@pytest.mark.parametrize(
    "address",
    [
        "https://example.test/_a_/b",
        "https://example.test/*a*/**b**/c",
        "https://example.test/__init__",
        "https://example.test/a_(b_(c",
        "https://user:p*a*ss@example.test:8443/~me/?a[]=_1_&b=*2*#_frag_",
        "http://[2001:db8::1]/_x_",
        "postgresql://app_user:p_w_@db_host/my_db",
        "tg://resolve?domain=my_bot_&start=_x_",
        "s3://bucket_/_key_",
        "www.example.test/_x_/y",
        "example.test/api/_v1_/users?q=__a__",
        "https://example.test/straße/_ö_",
        "https://пример.test/_путь_",
        "https://example.test/?a=1&lt=2&amp;b=3",
        "first_last_@example.test",
        "_first.last_@example.test",
        "/usr/lib/__pycache__/_x_.pyc",
        "~/.config/*/_x_",
        "src/**/*.py,lib/*.py",
        "@some_bot_name_",
    ],
)
def test_whatever_is_an_address_stays_whole_between_styled_words(address: str) -> None:
    text = f"**See** {address} and _more_ of {address}, **now**"
    plain = f"See {address} and more of {address}, now"
    assert render(text).text == plain
    assert [kind for kind, _ in styled(text)] == ["bold", "italic", "bold"]
    assert unquoted(pieces(text)) == f"*See* {address} and _more_ of {address}, *now*"


@pytest.mark.parametrize(
    ("text", "shown", "styles"),
    [
        ("**https://x.test/a**", "https://x.test/a", [("bold", "https://x.test/a")]),
        (
            "**At https://x.test/a_b.**",
            "At https://x.test/a_b.",
            [("bold", "At https://x.test/a_b.")],
        ),
        ("*https://x.test/a_b*, so", "https://x.test/a_b, so", [("italic", "https://x.test/a_b")]),
        ("<https://x.test/_a_>", "https://x.test/_a_", []),
        ("请看https://x.test/_a_，**好**", "请看https://x.test/_a_，好", [("bold", "好")]),
        ("[a](https://x.test/_a_(b)_c*d*)", "a", [("link", "a")]),
        ("[https://x.test/_a_](https://x.test/_a_)", "https://x.test/_a_", []),
        ('"https://x.test/*a*" **b**', '"https://x.test/*a*" b', [("bold", "b")]),
    ],
)
def test_marks_around_an_address_are_marks(
    text: str, shown: str, styles: list[tuple[str, str]]
) -> None:
    assert (render(text).text, styled(text)) == (shown, styles)


def test_b112_names_products_and_paths_keep_every_character() -> None:
    shown = B112.replace("**done** _soon_", "done soon")
    assert sent(B112)[0]["text"] == render(B112).text == shown
    assert styled(B112) == [("bold", "done"), ("italic", "soon")]
    (body,) = pieces(B112)
    assert body.replace("`", "") == B112.replace("**", "*")
    assert body.startswith("Edit `__init__.py` and call `__main__`: 2*3*4 = 24")


@pytest.mark.parametrize(
    "text",
    [
        "__name__ == '__main__'",
        "__FILE__ and __LINE__",
        "self.__dict__[__x__]",
        "snake_case, trailing_ and _private or _also_private",
        "*args, **kwargs and *rest",
        "2**3**4 = 2**(3**4), x**2 + y**2, a**b + c**d",
        "f(x)*g(y)*h(z) and (a+b)*(c+d)*(e+f)",
        "数量*单价*折扣 = 5*6*7",
        "char **argv, int *p = *q * 2",
        "*.md, docs/*.md and **/*.ts, src/**/*.js or **/node_modules/**",
        "a pattern like .*error.* or ^\\s*\\*+\\d*$",
        "M*A*S*H, f*** and s***t, ****1234 and ****5678",
        "C:\\*.txt, C:\\_x\\_y, C:\\Program Files\\_z, .\\_build, %TEMP%\\_a",
        "\\\\server\\_share and \\\\10.0.0.1\\c$\\_x",
        "$a_1 * b_1 * c$, $$x*y*z$$, \\(a_1*b_1*c\\) and \\[ \\alpha_1 * \\beta_2 * x \\]",
        "\\frac{a_1}{b_1} \\cdot \\sum_{i=1}^{n} x_{i}*y_{i}*z_{i}",
        "Costs $5 and $6, `open only, ~10 to ~20",
        "Vec<std::string>, map<K, V> and <ns:tag> or a < b > c",
        "a line\\\nand a path C:\\dir\\\nand a third",
        "[ref]: https://x.test\n[text][ref] and [^1] and [ ] and [x]",
        "call handlers[name](event), then hooks[i]()",
        "1986\\ was > 1985",
        "~/a ~b~ H~2~O x^2^",
        "emoji :smile_cat: and :+1: #tag_a_ @user_b_",
    ],
)
def test_what_only_looks_like_a_mark_is_text(text: str) -> None:
    assert render(text).text == text
    assert styled(text) == []
    assert unquoted(pieces(text)) == text.replace("`", "")


@pytest.mark.parametrize(
    ("text", "shown", "styles"),
    [
        ("\\*not bold\\* snake\\_case \\`x\\`", "*not bold* snake_case `x`", []),
        ("\\# no head\n\\- no item\n1\\. no list", "# no head\n- no item\n1. no list", []),
        ("costs \\$5", "costs $5", []),
        ("**Note:**text", "Note:text", [("bold", "Note:")]),
        ("**Pros**/**Cons**", "Pros/Cons", [("bold", "Pros"), ("bold", "Cons")]),
        ("**C#** or **18+**", "C# or 18+", [("bold", "C#"), ("bold", "18+")]),
        ("**50%**, **a & b**", "50%, a & b", [("bold", "50%"), ("bold", "a & b")]),
        ("**.env** and **/start**", ".env and /start", [("bold", ".env"), ("bold", "/start")]),
        ('(**a**) "*b*" —*c*—', '(a) "b" —c—', [("bold", "a"), ("italic", "b"), ("italic", "c")]),
        ("**„Zitat“** *«citation»*", "„Zitat“ «citation»", [("bold", "„Zitat“"),
         ("italic", "«citation»")]),
        ("***Note***: **5**$", "Note: 5$", [("bold", "Note"), ("italic", "Note"), ("bold", "5")]),
        ("这是**重要**的", "这是重要的", [("bold", "重要")]),
        ("这是**“重要”**的", "这是“重要”的", [("bold", "“重要”")]),
        ("**注意：**请看", "注意：请看", [("bold", "注意：")]),
        ("これは**「大事」**です", "これは「大事」です", [("bold", "「大事」")]),
        ("**중요**합니다", "중요합니다", [("bold", "중요")]),
        ("นี่คือ**สำคัญ**มาก", "นี่คือสำคัญมาก", [("bold", "สำคัญ")]),
        ("**महत्वपूर्ण**: हाँ", "महत्वपूर्ण: हाँ", [("bold", "महत्वपूर्ण")]),
        ("زور **مهم**، جدا", "زور مهم، جدا", [("bold", "مهم")]),
        ("\u200f**חשוב**\u200f מאוד", "\u200fחשוב\u200f מאוד", [("bold", "חשוב")]),
        ("🔥**Hot**🔥 ❤️**b**", "🔥Hot🔥 ❤️b", [("bold", "Hot"), ("bold", "b")]),
        ("1️⃣**One**", "1️⃣One", [("bold", "One")]),
        ("__bold words__ and ___both words___", "bold words and both words",
         [("bold", "bold words"), ("bold", "both words"), ("italic", "both words")]),
    ],
)  # fmt: skip
def test_marks_at_the_edges_of_words_are_marks(
    text: str, shown: str, styles: list[tuple[str, str]]
) -> None:
    page = render(text)
    assert page.text == shown
    assert sorted(styled(text)) == sorted(styles)


def reachable(calls: list[dict[str, Any]]) -> list[str]:
    """The addresses that a person can open or read, in order."""
    found: list[str] = []
    for call in calls:
        links = [e["url"] for e in call.get("entities", []) if e["type"] == "text_link"]
        found += [*re.findall(r"https://[^\s)]+", call["text"]), *links]
    return found


def test_b113_every_address_of_a_message_with_many_is_reachable() -> None:
    text = "\n".join(f"{n}. **item {n}**: [open](https://example.test/i/{n})" for n in range(1, 81))
    calls = sent(text)
    assert reachable(calls) == [f"https://example.test/i/{n}" for n in range(1, 81)]
    assert all(len(call["entities"]) <= 100 for call in calls)
    assert "\n".join(call["text"] for call in calls) == render(text).text


@pytest.mark.parametrize("refusals", [1, None])
async def test_b113_no_address_is_lost_when_the_entities_are_refused(refusals: int | None) -> None:
    addresses = [f"https://example.test/{'p' * 100}/{n}" for n in range(1, 61)]
    text = "\n".join(f"{n}. [open it here {n}]({a})" for n, a in enumerate(addresses, 1))
    async with line() as at:
        at.fake.fail("sendMessage", faults.refused(400, "Bad Request: ENTITIES_TOO_LONG"), times=1)
        for number, part in enumerate(at.parts(text)):
            if refusals is None and number:
                why = "Bad Request: ENTITIES_TOO_LONG"
                at.fake.fail("sendMessage", faults.refused(400, why), times=1)
            outcome = await at.channel.send(private(), part, SendRef(7, number, NOON))
            assert isinstance(outcome, Sent)
        shown = at.fake.messages(CHAT)
    calls = [{"text": m.text, "entities": m.entities} for m in shown]
    assert reachable(calls) == addresses
    assert reachable(calls[:1]) == re.findall(r"https://[^\s)]+", shown[0].text)
    numbers = re.findall(r"open it here (\d+)", "\n".join(m.text for m in shown))
    assert numbers == [str(n) for n in range(1, 61)]


def test_an_address_too_long_for_an_entity_or_of_this_machine_is_written_out() -> None:
    long = f"https://example.test/{'q' * 1500}"
    for address in (long, "http://localhost:8080/a", "https://intranet/x", "ftp://x.test/a"):
        (call,) = sent(f"[here]({address}) now")
        assert call["text"] == f"here ({address}) now"
        assert "entities" not in call


@pytest.mark.parametrize("words", ["", " ", "\u200b", "\u2060\ufeff", "\u2800", "\u3164"])
def test_a_link_behind_words_that_nobody_sees_is_written_out(words: str) -> None:
    (call,) = sent(f"Here: [{words}](https://x.test/1).")
    assert call["text"].count("https://x.test/1") == 1
    assert all(entity["type"] != "text_link" for entity in call.get("entities", []))
    assert "".join(pieces(f"Here: [{words}](https://x.test/1).")).count("https://x.test/1") == 1


def shown_styles(calls: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Every entity with the words that it covers, in order."""
    found = []
    for call in calls:
        units = call["text"].encode("utf-16-le")
        for e in sorted(call.get("entities", []), key=lambda e: (e["offset"], -e["length"])):
            words = units[2 * e["offset"] : 2 * (e["offset"] + e["length"])].decode("utf-16-le")
            found.append((e["type"], words))
    return found


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("**b** " * 99 + "[a](https://x.test/1)", 1),
        ("**b** " * 120 + "[a](https://x.test/1)", 2),
        ("\n".join(f"- **t{n}**: `c{n}`, *i{n}* ~~s{n}~~" for n in range(100)), 4),
        (" ".join(f"**😀{n}** `日本{n}`" for n in range(160)), 4),
        ("> " + " ".join(f"*q{n}*" for n in range(150)), 2),
    ],
)
def test_b113_every_style_stands_however_many_there_are(text: str, parts: int) -> None:
    calls = sent(text)
    page = render(text)
    assert len(calls) == parts
    assert all(len(call["entities"]) <= 100 for call in calls)
    shown = shown_styles(calls)
    for kind in ("bold", "italic", "strikethrough", "code"):
        style = "strike" if kind == "strikethrough" else kind
        meant = [page.text[s.start : s.end] for s in page.spans if s.style.value == style]
        found = [words for of, words in shown if of == kind]
        assert found == meant


def test_bold_words_that_code_cuts_in_pieces_count_as_so_many_styles() -> None:
    calls = sent("**" + " ".join(f"a{n} `c{n}`" for n in range(80)) + "**")
    assert all(len(call["entities"]) <= 100 for call in calls)
    bold = [words.strip() for kind, words in shown_styles(calls) if kind == "bold"]
    assert bold == [f"a{n}" for n in range(80)]


def test_words_and_links_stand_where_no_number_of_parts_holds_all_styles(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls = sent("**b** " * 2000 + "[a](https://x.test/1)")
    assert len(calls) <= 10
    assert sum(call["text"].count("b") for call in calls) == 2000
    assert calls[-1]["entities"][-1]["url"] == "https://x.test/1"
    assert all(len(call["entities"]) <= 100 for call in calls)
    assert "2001 styles" in caplog.text


def test_a_caption_of_many_styles_goes_before_its_file_with_all_of_them() -> None:
    file = FileOut("photo", url="https://x.test/a.png", caption="**b** " * 120)
    *words, photo = [params(part) for part in compose(Reply(files=(file,)), private(), 10)]
    assert [len(call["entities"]) for call in words] == [100, 20]
    assert "caption" not in photo


def test_words_of_a_caption_keep_their_addresses_when_the_file_is_refused() -> None:
    file = FileOut("photo", url="https://x.test/a.png", caption="[cat](https://x.test/cat)")
    (part,) = compose(Reply(files=(file,)), private(), 10)
    assert Wire.decode(part.wire).plain == "cat (https://x.test/cat)\nhttps://x.test/a.png"


LONG_LINE = "x = '" + "a" * 5000 + "'"
B114 = f"Intro\n\n```python\n{LONG_LINE}\ny = 2\n```\n\nafter"


def test_b114_a_code_block_with_one_very_long_line_stays_code_on_telegram() -> None:
    calls = sent(B114)
    code = [code_of(call) for call in calls]
    assert "".join(code) == f"{LONG_LINE}\ny = 2"
    assert 2 <= len(calls) <= 10
    assert (calls[0]["text"], calls[-1]["text"][-5:]) == ("Intro", "after")
    for call in calls[1:]:
        assert [e["language"] for e in call["entities"]] == ["python"]
    assert all(len(part) >= 100 for part in code[1:-1])


def test_b114_a_code_block_with_one_very_long_line_stays_code_on_whatsapp() -> None:
    found = pieces(B114)
    code = [fenced(body) for body in found]
    assert "".join(code) == f"{LONG_LINE}\ny = 2"
    assert (found[0], found[-1][-5:]) == ("Intro", "after")
    assert len(found) <= 10
    assert all(utf16_len(body) <= LIMIT for body in found)
    assert all(len(part) >= 100 for part in code[1:-1])


@pytest.mark.parametrize(
    "code",
    [
        "z" * 9000,
        "word " * 1800 + "end",
        "    indented = [\n" + "        '" + "b" * 6000 + "',\n    ]",
        "a = 1\n" * 30 + "blob = '" + "c " * 3000 + "'\n" + "d = 2\n" * 30,
        "first\n\n\n" + "e" * 4090 + "\n\n\nlast",
        "😀" * 4000,
        "\n".join("f" * 1000 for _ in range(12)),
    ],
)
def test_code_of_any_shape_is_cut_without_losing_a_character(code: str) -> None:
    text = f"Here it is:\n\n```sh\n{code}\n```\n\nDone."
    for parts in ([code_of(c) for c in sent(text)], [fenced(b) for b in pieces(text)]):
        held = [part for part in parts if part]
        rest = code
        for number, part in enumerate(held):
            assert rest.startswith(part)
            rest = rest.removeprefix(part)
            if rest.startswith("\n"):
                rest = rest.removeprefix("\n")
            elif number < len(held) - 1:
                assert len(part) >= 100
        assert rest == ""


@pytest.mark.parametrize("piece", ["\\[\na\n", "\\begin{\nb\n", "\\( ", '<a b="', "-_", "a*"])
def test_what_opens_a_thousand_times_and_never_closes_is_read_in_no_time(piece: str) -> None:
    """It would take years, and the run's time limit with them, if a pattern tried all ways."""
    assert "".join(pieces(piece * 1000)).count(piece.strip()[0]) == 1000
