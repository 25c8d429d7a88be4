"""Parse comments that allow syncs: `# syncscan: allow[RULE] reason`."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

import msgspec

_COMMENT = re.compile(r"#\s*syncscan:\s*allow\b\s*(?:\[([^\]]*)\])?(.*)", re.IGNORECASE)


class Comment(msgspec.Struct, frozen=True):
    line: int
    """The line that it applies to: its own, or the next one if it stands alone."""
    rules: tuple[str, ...]
    """Rule ids; `*` for any rule."""
    reason: str

    def __str__(self) -> str:
        return f"# syncscan: allow[{', '.join(self.rules)}] {self.reason}".rstrip()

    @property
    def counts(self) -> bool:
        """Whether it names a rule and gives a reason."""
        return bool(self.rules and self.reason)

    def allows(self, rule: str) -> bool:
        return self.counts and ("*" in self.rules or rule in self.rules)


def comments_in(text: str) -> tuple[Comment, ...]:
    """Return all allow comments in line order; strings that look like comments don't count.

    Lines of the source may be blanked out. The search ends where it can't be tokenized.
    """
    return tuple(_parse(text))


def _parse(text: str) -> Iterator[Comment]:
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
