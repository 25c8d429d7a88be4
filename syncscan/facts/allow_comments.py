"""From the text of a Python file to the syncs that its comments allow: `# syncscan: allow[RULE] reason`."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

import msgspec

_COMMENT = re.compile(r"#\s*syncscan:\s*allow\b\s*(?:\[([^\]]*)\])?(.*)", re.IGNORECASE)


class Comment(msgspec.Struct, frozen=True):
    """One such comment."""

    line: int
    """The line that it speaks of: its own, or the next one where it stands alone."""
    rules: tuple[str, ...]
    """Ids; `*` for any."""
    reason: str

    def __str__(self) -> str:
        """As it is written."""
        return f"# syncscan: allow[{', '.join(self.rules)}] {self.reason}".rstrip()

    @property
    def counts(self) -> bool:
        """Whether it allows anything: it names a rule and says why."""
        return bool(self.rules and self.reason)

    def allows(self, rule: str) -> bool:
        """Whether it allows the syncs of this rule."""
        return self.counts and ("*" in self.rules or rule in self.rules)


def comments_in(text: str) -> tuple[Comment, ...]:
    """All of them, in the order of their lines; what looks like one inside of a string is none.

    Args:
        text: of a Python file, whole or with lines left blank; what can't be tokenised ends the search.
    """
    return tuple(_found(text))


def _found(text: str) -> Iterator[Comment]:
    if "syncscan:" not in text.lower():
        return
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            match = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
            if match:
                rules = tuple(rule.strip() for rule in (match[1] or "").split(",") if rule.strip())
                alone = not token.line[: token.start[1]].strip()
                yield Comment(token.start[0] + alone, rules, match[2].strip(" \t:-–—"))
    except (tokenize.TokenError, SyntaxError):
        return
