"""Every language has every text, and an operator can change each of them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from bot.domain.commands import CARRIER_WORDS, Command, CommandForm, command_of, fold
from bot.domain.errors import ConfigurationError
from bot.texts import Text, Words
from bot.texts.words import placeholders
from tests.domain.messages import said

LANGUAGES = ("en", "es", "pt", "de", "fr", "it", "ar", "hi", "id", "zh")
VALUES: dict[str, str | int] = {
    "word": "again",
    "count": 3,
    "what": "[photo]",
    "status": "s",
    "stop": "x",
    "retry": "r",
    "receipt": "R-1",
    "export": "e",
    "forget": "f",
}


def table(language: str) -> dict[str, object]:
    return tomllib.loads((files("bot.texts") / f"{language}.toml").read_text(encoding="utf-8"))


def test_the_ten_languages_are_there_with_english_as_the_default() -> None:
    assert sorted(Words.load().languages) == sorted(LANGUAGES)
    assert Words.load().languages[0] == "en"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_text_with_the_same_placeholders(language: str) -> None:
    english, texts = table("en"), table(language)
    assert texts.keys() - {"words"} == set(Text)
    for key in Text:
        assert placeholders(str(texts[key])) == placeholders(str(english[key])), key


@pytest.mark.parametrize("language", [tag for tag in LANGUAGES if tag != "en"])
def test_no_text_was_left_in_english(language: str) -> None:
    english, texts = table("en"), table(language)
    assert not [key for key in Text if texts[key] == english[key]]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_can_be_said_and_fits_where_it_is_shown(language: str) -> None:
    words = Words.load()
    for key in Text:
        text = words.say(key, language, **VALUES)
        assert text == text.strip()
        assert "{" not in text
        assert len(text) <= (20 if key in (Text.RETRY_BUTTON, Text.RESEND_BUTTON) else 700)
    assert all(1 <= len(description) <= 256 for _, description in words.menu(language, data=True))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "command",
    [
        *(Command.STOP, Command.STATUS, Command.HELP, Command.RETRY, Command.RESEND),
        *(Command.EXPORT, Command.FORGET),
    ],
)
def test_the_word_that_a_person_is_told_is_understood(language: str, command: Command) -> None:
    words = Words.load()
    word = words.word(command, language)
    assert not word.startswith("/")
    for sent in (word, f" {word.upper()}! ", f"« {word} »", f"„{word}“"):
        assert command_of(said(sent), CommandForm.WORDS, words.command_words()) is command


def test_no_word_means_two_things_in_any_two_languages() -> None:
    seen: dict[str, str] = {word: command.value for word, command in CARRIER_WORDS.items()}
    for language in LANGUAGES:
        lists = table(language)["words"]
        assert isinstance(lists, dict)
        for command, words in lists.items():
            for word in words:
                assert seen.setdefault(fold(word), command) == command, (language, word)


@pytest.mark.parametrize(
    ("tag", "same_as"),
    [("pt-BR", "pt"), ("PT_br", "pt"), ("zh-hans", "zh"), ("tlh", "en"), ("", "en"), ("-", "en")],
)
def test_the_language_is_chosen_by_tag_then_by_its_first_part_then_english(
    tag: str, same_as: str
) -> None:
    words = Words.load()
    assert words.say(Text.APOLOGY, tag) == words.say(Text.APOLOGY, same_as)
    assert words.word(Command.STOP, tag) == words.word(Command.STOP, same_as)


def test_another_default_is_used_where_the_language_is_unknown() -> None:
    words = Words.load(default="DE")
    assert words.say(Text.STOPPED) == words.say(Text.STOPPED, "de")
    assert words.say(Text.STOPPED, "fr") == Words.load().say(Text.STOPPED, "fr")
    with pytest.raises(ConfigurationError, match=r"'xx'; have: ar, de, en"):
        Words.load(default="xx")


def test_a_value_with_braces_is_shown_as_it_is() -> None:
    assert Words.load().say(Text.ECHO_GOT, what="{0} {word} {") == "I got: {0} {word} {"


def test_help_names_the_words_or_the_slashes() -> None:
    words = Words.load()
    assert "“abbrechen“" in words.help("de", by_words=True).replace("„", "“")
    assert "/stop" in words.help("de", by_words=False)


def test_without_word_commands_people_are_told_the_slash_forms_which_work() -> None:
    words = Words.load(word_commands=False)
    assert words.word(Command.RESEND, "de") == "/resend"
    assert words.help("de", by_words=True) == words.help("de", by_words=False)
    assert not words.command_words()


def operators(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "texts.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_operator_changes_one_text_of_one_language(tmp_path: Path) -> None:
    words = Words.load(operators(tmp_path, '[de]\nAPOLOGY = "Ups. Bitte noch einmal."\n'))
    assert words.say(Text.APOLOGY, "de") == "Ups. Bitte noch einmal."
    assert words.say(Text.APOLOGY, "fr") == Words.load().say(Text.APOLOGY, "fr")
    assert words.say(Text.STOPPED, "de") == Words.load().say(Text.STOPPED, "de")


def test_an_operator_adds_a_language_or_a_regional_one(tmp_path: Path) -> None:
    path = operators(
        tmp_path, '[nl]\nSTOPPED = "Gestopt."\n["pt-PT"]\nSTOPPED = "Parei, pronto."\n'
    )
    words = Words.load(path)
    assert words.say(Text.STOPPED, "nl-BE") == "Gestopt."
    assert words.say(Text.APOLOGY, "nl") == words.say(Text.APOLOGY, "en")
    assert words.say(Text.STOPPED, "pt-PT") == "Parei, pronto."
    assert words.say(Text.APOLOGY, "pt-PT") == words.say(Text.APOLOGY, "pt")


def test_an_operator_replaces_the_words_of_a_command(tmp_path: Path) -> None:
    words = Words.load(operators(tmp_path, '[en.words]\nstop = ["halt"]\nresend = []\n'))
    assert words.word(Command.STOP) == "halt"
    assert "halt" in words.command_words()
    assert "cancel" not in words.command_words()
    assert words.word(Command.RESEND) == "/resend"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[en]\nAPOLGY = "x"', r"\[en\] APOLGY: there is no such text; did you mean APOLOGY\?"),
        ('[en]\nAPOLOGY = ""', r"\[en\] APOLOGY: must be a text in quotes, and not empty"),
        ("[en]\nAPOLOGY = 3", r"\[en\] APOLOGY: must be a text in quotes"),
        ('[de]\nRETRY_HINT = "Nochmal"', r"\[de\] RETRY_HINT: must contain \{word\}"),
        ('[de]\nAPOLOGY = "{name}"', r"\[de\] APOLOGY: must contain no names in braces"),
        ('[de]\nRETRY_HINT = "{word.upper}"', r"\[de\] RETRY_HINT: only a plain name"),
        ('[de]\nRETRY_HINT = "{word!r}"', r"\[de\] RETRY_HINT: only a plain name"),
        ('[de]\nRETRY_HINT = "{word"', r"\[de\] RETRY_HINT: .*brace"),
        ('[de]\nRETRY_HINT = "{}"', r"\[de\] RETRY_HINT: only a plain name"),
        ("de = 1", r"\[de\]: must be a table of texts"),
        ("[de]\nwords = 1", r"\[de\.words\]: must be a table of lists"),
        ('[de.words]\nhalt = ["x"]', r"\[de\.words\] halt: there is no such command"),
        ('[de.words]\nstop = "x"', r"\[de\.words\] stop: must be a list"),
        ('[de.words]\nstop = ["!"]', r"\[de\.words\] stop: '!' is empty"),
        ('[de.words]\nstop = ["Stop"]', r"'Stop' always means opt_out on WhatsApp"),
        ('[de.words]\nstop = ["Riprova!"]', r"'Riprova!' already means retry in \[it\.words\]"),
        ("[de]\nAPOLOGY = oops", r"not valid TOML: .*line 2"),
    ],
)
def test_a_fault_in_the_operators_file_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        Words.load(operators(tmp_path, text))
    assert str(tmp_path / "texts.toml") in str(caught.value)


def test_all_faults_are_named_at_once(tmp_path: Path) -> None:
    path = operators(tmp_path, '[en]\nA = "x"\nB = "y"\n[de]\nC = "z"\n')
    with pytest.raises(ConfigurationError) as caught:
        Words.load(path)
    assert [f"{key}:" in str(caught.value) for key in "ABC"] == [True] * 3


def test_a_file_that_is_missing_or_not_utf8_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.toml can't be read"):
        Words.load(tmp_path / "none.toml")
    path = tmp_path / "latin.toml"
    path.write_bytes('[de]\nSTOPPED = "Schlüß"\n'.encode("latin-1"))
    with pytest.raises(ConfigurationError, match="save it as UTF-8"):
        Words.load(path)
