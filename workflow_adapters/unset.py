"""The sentinel for "this field was left out", which is not the same as None."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Unset(Enum):
    """Type of `UNSET`. In a patch it leaves the column alone; in a filter it means no filter."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = Unset.UNSET
