"""Removing reasoning that a model or its server left in the text of an answer."""

from __future__ import annotations

import re

_NAMES = "think|thinking|thought|thoughts|reasoning"
_BLOCK = re.compile(
    rf"\A\s*[<\[◁]({_NAMES})[>\]▷].*?(?:[<\[◁]/\1[>\]▷]|\Z)", re.IGNORECASE | re.DOTALL
)
_BEFORE_END = rf"\A(?:(?!<(?:{_NAMES})>).)*?"
_END_ALONE = re.compile(
    rf"{_BEFORE_END}(?:(?:\A|\n)\s*</(?:{_NAMES})>|</(?:{_NAMES})>\s*\n)", re.IGNORECASE | re.DOTALL
)
"""Reasoning whose opening mark was in the prompt: the answer has only the closing one, at the
beginning or the end of a line."""
_CHANNEL = "<|channel|>"
_SPOKEN = re.compile(r"<\|channel\|>final\b[^<]*<\|message\|>(.*)\Z", re.DOTALL)
_END_MARKS = re.compile(r"(?:<\|(?:end|return|im_end|eot_id|endoftext)\|>\s*)+\Z")


def without_reasoning(text: str) -> str:
    """The text without reasoning and end marks. A text that only mentions such marks keeps them."""
    if text.lstrip().startswith(_CHANNEL):
        spoken = _SPOKEN.search(text)
        text = spoken.group(1) if spoken else ""
    while thought := _END_ALONE.match(text) or _BLOCK.match(text):
        text = text[thought.end() :].lstrip()
    return _END_MARKS.sub("", text)
