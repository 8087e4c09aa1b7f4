"""Keys of providers: named by environment variables, read where they are used, shown nowhere."""

from __future__ import annotations

import os
from dataclasses import dataclass

from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.model.settings import KEY_FORM


@dataclass(frozen=True, slots=True)
class KeyName:
    """The environment variable that has a key."""

    variable: str

    @classmethod
    def parse(cls, text: str) -> KeyName:
        """The variable that a setting names.

        >>> KeyName.parse("${OPENAI_API_KEY}")
        KeyName(variable='OPENAI_API_KEY')
        """
        form = KEY_FORM.fullmatch(text)
        assert form is not None, "settings accept nothing else"
        return cls(form[1])

    def read(self, model: str) -> str:
        """The key itself, for one request. Nothing may keep, format or log it."""
        key = os.environ.get(self.variable, "").strip()
        if not key:
            message = f"{model} needs a key, and the environment has no {self.variable}"
            hint = f"set {self.variable}, or write with --embed later and run 'omnigraph embed'"
            raise InvalidInputError(message, hint=hint, code=ErrorCode.EMBEDDING_KEY)
        if not (key.isascii() and key.isprintable()):
            message = f"{self.variable} is not a valid key"
            raise InvalidInputError(message, hint="set it again", code=ErrorCode.EMBEDDING_KEY)
        return key
