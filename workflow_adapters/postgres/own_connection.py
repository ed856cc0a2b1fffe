"""The class of our own connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import asyncpg

if TYPE_CHECKING:
    Base = asyncpg.Connection[Any]
else:
    Base = asyncpg.Connection


class OwnConnection(Base):
    """Knows whether somebody has set on it what outlives a reset: a codec, or a callback.

    A codec of a type that our statements use would change what others store and read from then on.
    """

    __slots__ = ("is_altered",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_altered = False

    async def set_type_codec(self, *args: Any, **kwargs: Any) -> None:
        self.is_altered = True
        await super().set_type_codec(*args, **kwargs)

    async def set_builtin_type_codec(self, *args: Any, **kwargs: Any) -> None:
        self.is_altered = True
        await super().set_builtin_type_codec(*args, **kwargs)

    async def add_listener(self, *args: Any, **kwargs: Any) -> None:
        self.is_altered = True
        await super().add_listener(*args, **kwargs)

    def add_log_listener(self, *args: Any, **kwargs: Any) -> None:
        self.is_altered = True
        super().add_log_listener(*args, **kwargs)

    def add_query_logger(self, *args: Any, **kwargs: Any) -> None:
        self.is_altered = True
        super().add_query_logger(*args, **kwargs)
