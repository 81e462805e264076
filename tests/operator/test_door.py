"""Nobody gets in who may not: every route, without signing in, from elsewhere, with other forms."""

from __future__ import annotations

import pytest

from tests.kit.operator import SETTINGS
from tests.operator.conftest import Browsers
from tests.world import Running, World

pytestmark = pytest.mark.alternating(0)


@pytest.fixture
async def running(world: World) -> Running:
    return await world.start(**SETTINGS)


async def test_an_operator_signs_in_and_sees_the_first_page(
    running: Running, browsers: Browsers
) -> None:
    ada = browsers(running)
    answer = await ada.sign_in()
    assert answer.status_code == 303, answer.text
    page = await ada.get("")
    assert page.status_code == 200
    assert "Nothing is stuck" in page.text
    for path in ("/search", "/acts/recover", "/search?q=nobody&state=ready"):
        assert (await ada.get(path)).status_code == 200, path
