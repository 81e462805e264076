"""The model that LLM_MODEL names."""

from __future__ import annotations

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.settings import ModelSettings

from bot.domain.errors import ConfigurationError

_OPENAI = "openai:"


def make_model(name: str, base_url: str) -> Model:
    """`provider:model`; with `base_url` the model of a server that speaks OpenAI's protocol.
    Raises ConfigurationError."""
    if not name:
        raise ConfigurationError("LLM_MODEL is empty: set it to provider:model, as openai:gpt-5")
    try:
        return _behind(name.removeprefix(_OPENAI), base_url) if base_url else infer_model(name)
    except UserError as error:
        said = error.message.partition(". ")[0]
        raise ConfigurationError(f"LLM_MODEL={name}: {said}") from error
    except ImportError as error:
        raise ConfigurationError(
            f"LLM_MODEL={name}: its provider's package is missing ({error.name or error})"
        ) from error


def _behind(name: str, base_url: str) -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - it takes a second
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - as above

    return OpenAIChatModel(name, provider=OpenAIProvider(base_url=base_url))


def settings_of(timeout: float) -> ModelSettings:
    """What goes with every request: our own queue tries again, so the SDK must not."""
    return ModelSettings(timeout=timeout, max_retries=0)
