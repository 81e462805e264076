"""docs/logs.md lists the fields that lines have, and the settings that there are."""

from __future__ import annotations

import re
from pathlib import Path

from bot.observability.lines import OUR_FIELDS
from bot.wiring.channels import settings_class

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/logs.md").read_text()


def test_the_fields_are_those_of_the_pipeline_in_their_order() -> None:
    section = PAGE.partition("## Fields")[2].partition("##")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == OUR_FIELDS


def test_the_variables_are_settings_or_opentelemetrys_own() -> None:
    named = set(re.findall(r"`([A-Z]+_[A-Z_]+)`", PAGE))
    own = {name.upper() for name in settings_class().model_fields}
    assert named - own == {"OTEL_TRACES_SAMPLER"}
    example = (ROOT / ".env.example").read_text()
    assert {name for name in named & own if f"#{name}=" not in example} == set()
