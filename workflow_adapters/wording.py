"""How messages are worded."""


def counted(count: int, noun: str) -> str:
    """``1 job``, ``2 jobs``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
