"""SQLite's rendering of the notation."""

from __future__ import annotations

import json
import re
from datetime import datetime
from enum import Enum
from typing import Any, Final

from workflow_adapters.sql.columns import Kind, instant_to_ms
from workflow_adapters.sql.render import Rendered, Style
from workflow_adapters.sql.statement import Argument

_LIST: Final = re.compile(r"(?P<operator>= ANY|<> ALL)\((?P<argument>\$\d+)(?:::\w+\[\])+\)")
_POSTGRES_ONLY: Final = re.compile(
    r"""::@?\w+(?:\[\])?
        | \s+COLLATE\s"C"
        | \s+FOR\s(?:NO\sKEY\sUPDATE|UPDATE|KEY\sSHARE)(?:\sOF\s\w+)?(?:\sSKIP\sLOCKED)?""",
    re.VERBOSE,
)
_AS_THEY_ARE: Final = frozenset({str, int, float, bool})
_PLACEHOLDER: Final = re.compile(r"\$(\d+)")


class SqliteStyle(Style):
    """Plain names, ``?`` for arguments, instants as integers of milliseconds, lists as JSON text."""

    def table(self, name: str) -> str:
        return name

    def status_type(self) -> str:
        return "Status"

    def selected(self, kind: Kind, expression: str) -> str:
        return expression

    def argument(self, value: Argument) -> Any:
        if value is None or type(value) in _AS_THEY_ARE:
            return value
        if isinstance(value, Enum):
            return value.value
        if isinstance(value, datetime):
            return instant_to_ms(value)
        if isinstance(value, list | tuple):
            return json.dumps(value, ensure_ascii=False)
        return value

    def finished(self, text: str) -> Rendered:
        plain = _POSTGRES_ONLY.sub("", _LIST.sub(_json_list, text))
        # Numbered placeholders draw a DeprecationWarning from sqlite3 in some releases of Python 3.12.
        order = tuple(int(number) - 1 for number in _PLACEHOLDER.findall(plain))
        return Rendered(_PLACEHOLDER.sub("?", plain), order)


def _json_list(match: re.Match[str]) -> str:
    operator = "IN" if match["operator"] == "= ANY" else "NOT IN"
    return f"{operator} (SELECT value FROM json_each({match['argument']}))"
