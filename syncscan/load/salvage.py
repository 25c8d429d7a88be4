"""Read events from JSON text that a strict decoder refuses, repair them where possible, and count the rest."""

from __future__ import annotations

import enum
import itertools
import json
import re
from collections.abc import Generator, Iterator
from typing import Any

from syncscan.load.damage import Damage
from syncscan.load.split import EVENT_KEYS, LONGEST

_NEXT = re.compile(r"\{\s*\"(?:" + EVENT_KEYS.decode() + r")\"\s*:")
_NEXT_PHASE = re.compile(r"\{\s*\"ph\"\s*:")
_BETWEEN_EVENTS = "\0 ,\t\r\n"
_BLANK = re.compile(r"[\s,\x00]*")
LIST_END = re.compile(r"\]\s*(?:,\s*\"(?:[^\"\\]|\\.)*\"\s*:|\}|\Z)")
"""The end of a list of events: followed by a member of the object around it, its end, or nothing."""
_KEY = r"\"[^\"\\\n]{1,80}\"\s*:"
_STRING = re.compile(rf"({_KEY}\s*\")(.*?)(\"(?=\s*(?:,\s*{_KEY}|\}})))", re.DOTALL)
_NAME = re.compile(r"\"name\"\s*:\s*\"")
_NAME_END = re.compile(rf"\"(?=\s*,\s*\"(?:{EVENT_KEYS.decode()}|cname|tdur|bind_id|scope)\"\s*:|\s*\}}[\s,\x00]*\Z)")
"""Possible end of an event's name: before another key of the Trace Event Format, or at the event's end."""
_MOST_ENDS = 16
"""Number of places to try as the end of a name or of the list; hardly any event has two."""
_BARE_QUOTE = re.compile(r"(?<!\\)((?:\\\\)*)\"")
_BAD_ESCAPE = re.compile(r"\\(?![\\/bfnrtu\"])|\\u(?![0-9a-fA-F]{4})")
_LONE_BACKSLASH = re.compile(r"(?<!\\)((?:\\\\)*)\\(?![\\\"])")
_NOT_NUMBER = r"(?<=[\s:,\[])[+-]?(?:nan|inf(?:inity)?)(?=\s*[,}\]])"
_NOT_NUMBERS_BYTES = re.compile(_NOT_NUMBER.encode(), re.IGNORECASE)
_NOT_NUMBERS = re.compile(_NOT_NUMBER, re.IGNORECASE)
_STRINGS_OR_NOT_NUMBERS = re.compile(rf"\"(?:[^\"\\]|\\.)*\"|{_NOT_NUMBER}", re.IGNORECASE | re.DOTALL)
# Between two quotes without a colon or comma is a key or a string, never the text between two strings.
_KEY_OF_NOT_NUMBER = re.compile(rf"(\"[^\"\\:,]{{1,80}}\"\s*:\s*){_NOT_NUMBER}", re.IGNORECASE)
_LONGEST_REPAIR = 1 << 20
"""Longest event to repair, since the patterns look at each quote repeatedly."""
_CHUNK = 1 << 16
"""Characters read at once, and the longest string that may continue after them; names are shorter."""
_LONGEST_WORD = len("-Infinity") + 1
_FIELD = re.compile(
    r"\"(ph|cat|name|pid|tid|ts|dur|id|correlation|External id|Sequence number|Fwd thread id|device|stream"
    r"|bytes|kind)\"\s*:\s*(?:\"((?:[^\"\\\n]|\\.)*)\"|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?=\s*[,}\]]))"
)
_TOP = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "id"}
MOST_DIGITS = 4000
"""Number of digits from which an integer is refused, as Python refuses more than 4,300
(`sys.set_int_max_str_digits`)."""


def _integer(digits: str) -> int | None:
    """Return an integer; None for one with so many digits that Python refuses it."""
    return int(digits) if len(digits) < MOST_DIGITS else None


Object = dict[str, Any]


def _each_key_once(members: list[tuple[str, Any]]) -> Object:
    """Return the object of these members; if a key occurs twice (`ValueError`), a string must have ended elsewhere."""
    value = dict(members)
    if len(value) < len(members):
        raise ValueError("a key occurs twice")
    return value


_DECODER = json.JSONDecoder(strict=False, parse_int=_integer)
_DECODER_OF_KEYS = json.JSONDecoder(strict=False, parse_int=_integer, object_pairs_hook=_each_key_once)


class ListPosition(enum.Enum):
    """Where in the list of events the text read so far ends."""

    BETWEEN_EVENTS = enum.auto()
    IN_EVENT = enum.auto()
    """The incomplete event is kept back, to be read with the text that follows."""
    BEHIND_LIST = enum.auto()


Salvaged = tuple[Object, str]
"""One event, and its text with the blanks before it; the text is empty if it differs from the event."""


class Salvage:
    """Reads events one by one, across any damage."""

    def __init__(self, damage: Damage) -> None:
        self.place = ListPosition.BETWEEN_EVENTS
        self._damage = damage
        self._unfinished: list[bytes] = []
        self._enough = 0
        self._tail: list[str] = []
        self._tail_length = 0

    @property
    def tail(self) -> str | None:
        """The text after the list; None before its end was seen."""
        return "".join(self._tail) if self.place is ListPosition.BEHIND_LIST else None

    def events(self, text: bytes, offset: int, last: bool) -> Iterator[Salvaged]:
        """Yield the events in this text, which continues the previous call's after its comma.

        `offset` is the position of the text in the whole, in bytes; nothing follows the `last` one.
        """
        if self.place is ListPosition.BEHIND_LIST:
            self._add_to_tail("," + text.decode("utf-8", "replace"))
            return
        if self.place is ListPosition.IN_EVENT:
            offset -= sum(len(part) + 1 for part in self._unfinished)
            self._unfinished.append(text)
            # Tried again with twice the text, so that an event of n pieces isn't read n times.
            if not last and sum(map(len, self._unfinished)) < self._enough:
                return
            text = b",".join(self._unfinished)
        self.place, self._unfinished = ListPosition.BETWEEN_EVENTS, []
        yield from self._in_chunks(self._decode(text, offset), offset, last)

    def _add_to_tail(self, text: str) -> None:
        """Store text after the list, up to the largest tail."""
        room = max(0, LONGEST - self._tail_length)
        self._tail.append(text[:room])
        self._tail_length += len(text[:room])
        self._damage.behind += len(text[room:].encode("utf-8", "replace"))

    def _decode(self, text: bytes, offset: int) -> str:
        try:
            return text.decode()
        except UnicodeDecodeError as e:
            decoded = text.decode("utf-8", "replace")
            self._damage.encoding += max(1, decoded.count("\N{REPLACEMENT CHARACTER}"))
            self._damage.at(offset + e.start)
            return decoded

    def _in_chunks(self, text: str, offset: int, last: bool) -> Iterator[Salvaged]:
        """Yield the events of this text, a chunk at a time, as a failing decoder counts the lines of all its input."""
        at, size = 0, _CHUNK
        while at < len(text):
            chunk = text[at : at + size]
            is_rest = at + size >= len(text)
            read = yield from self._chunk(chunk, offset + at, last and is_rest)
            if self.place is ListPosition.BEHIND_LIST:
                self._add_to_tail(text[at + len(chunk) :])
                return
            at, size = at + read, (size if read else 4 * size)
            if is_rest:
                break
        if at < len(text):
            self.place, self._unfinished = ListPosition.IN_EVENT, [text[at:].encode()]
            self._enough = 2 * len(self._unfinished[0])

    def _chunk(self, text: str, offset: int, last: bool) -> Generator[Salvaged, None, int]:
        """Yield the events of a chunk, and return how much of it was read."""
        end, solid, after = len(text), len(text.rstrip()), 0
        while (at := _BLANK.match(text, after).end()) < end:  # type: ignore[union-attr]
            if text[at] == "]" and self._is_end(text, at):
                self.place = ListPosition.BEHIND_LIST
                self._add_to_tail(text[at + 1 :])
                return end
            blank = text[after:at]
            try:
                value, after = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError) as e:
                if not last and end - at < LONGEST and _goes_on(e, solid):
                    return at
                following = _NEXT.search(text, at + 1)
                list_end = None if following else _list_end_behind(text, at)
                after = following.start() if following else end if list_end is None else list_end
                event = self._repaired(text[at:after], offset + at, last and after == end)
                if event is not None:
                    yield event, ""
                continue
            if isinstance(value, dict):
                yield value, blank[blank.rfind(",") + 1 :] + text[at:after]
            else:
                self._damage.foreign += 1
        return end

    def _is_end(self, text: str, at: int) -> bool:
        """Return whether this bracket ends the list; in a damaged trace only if no event follows."""
        return bool(LIST_END.match(text, at)) and (self._damage.first is None or not _NEXT_PHASE.search(text, at))

    def _repaired(self, text: str, offset: int, unfinished: bool) -> Object | None:
        """Return the repaired event of this broken text, or its main fields, or None; count the outcome."""
        if text.strip(" \t\r\n,]}\x00"):
            self._damage.at(offset)
        if not text.startswith("{"):
            self._damage.skipped += len(text.strip().encode())
            return None
        event = repaired(text)
        if event is not None and (unfinished or _is_timed(event)):
            self._damage.repaired += 1
            return event
        event = None if unfinished else _main_fields(text) or event
        if event is None:
            self._damage.dropped += 1
        else:
            self._damage.partial += 1
        return event


def _goes_on(error: Exception, end: int) -> bool:
    """Return whether a decoder failed because text after `end` is missing: there, or in a string short enough.

    A word, number or escape that is cut off is reported where it begins.
    """
    if not isinstance(error, json.JSONDecodeError):
        return False
    in_string = error.msg.startswith("Unterminated string") and end - error.pos <= _CHUNK
    return in_string or end - error.pos < _LONGEST_WORD


def _is_timed(event: Object) -> bool:
    """Return whether an event with a phase also has a time, which labels don't need."""
    return "ts" in event or event.get("ph", "M") == "M"


def _list_end_behind(text: str, begin: int) -> int | None:
    """Return where the list of events ends after a damaged event that no other follows; None if unknown.

    The text has the event, and the trace's end or a part of it; or a cut event, whose brackets are its own.
    """
    at = begin + 1
    if _NEXT_PHASE.search(text, at) or _whole_object(text[begin:] + "}"):
        return None
    ends = list(itertools.islice(LIST_END.finditer(text, at), _MOST_ENDS))
    # whole members of the object around the list can't be the rest of an event
    sure = (end for end in ends if _closes(text[end.start() + 1 :]))
    likely = (end for end in ends if text[at : end.start()].rstrip().endswith("}"))
    end = next(itertools.chain(sure, likely), None)
    return None if end is None else end.start()


def _closes(tail: str) -> bool:
    """Return whether this text ends an object that begins before it, and contains nothing else."""
    try:
        _, end = _DECODER.raw_decode('{"": 0' + tail)
    except (ValueError, RecursionError):
        return False
    return not tail[end - len('{"": 0') :].strip("\0 \t\r\n")


def repaired(text: str) -> Object | None:
    """Return the object that begins here, with quotes, escapes and non-numbers repaired; None if that isn't enough.

    torch 2.13 writes quotes in scope names unescaped; older versions write bare `inf` and `nan`. A string ends at the
    first quote that is followed by the next key or by the object's end. An event's name may contain what looks like a
    key (kineto#1459): it ends where the next key is one of an event's, if that makes the whole text an object.
    """
    if len(text) > _LONGEST_REPAIR:
        return None
    whole = next((event for event in map(_whole_object, _with_whole_name(text)) if event), None)
    if whole is not None:
        return whole
    try:
        value, _ = _DECODER.raw_decode(_with_whole_strings(text))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _whole_object(text: str) -> Object | None:
    """Return the object that this whole text is, with each key once; None for any other text."""
    try:
        value, end = _DECODER_OF_KEYS.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not text[end:].strip(_BETWEEN_EVENTS) else None


def _with_whole_name(text: str) -> Iterator[str]:
    """Yield the text with each name that the event may have, the shortest first."""
    if (name := _NAME.search(text)) is None:
        return
    before = _with_whole_strings(text[: name.start()])
    for end in itertools.islice(_NAME_END.finditer(text, name.end()), _MOST_ENDS):
        within = _escape(text[name.end() : end.start()])
        yield f'{before}{name[0]}{within}"{_with_whole_strings(text[end.end() :])}'


def _with_whole_strings(text: str) -> str:
    """Return the text with its strings escaped and its numbers written as JSON demands."""
    return plain_numbers(_STRING.sub(lambda string: string[1] + _escape(string[2]) + string[3], text))


def _escape(inner: str) -> str:
    """Return the inside of a string, escaped as JSON demands."""
    if _BAD_ESCAPE.search(inner):  # so none of its backslashes was escaped: a Windows path (`windows_paths`)
        of_a_server = "\\\\" if inner.startswith("\\\\") else ""  # two backslashes that aren't an escaped one
        inner = of_a_server + _LONE_BACKSLASH.sub(r"\1\\\\", inner)
    return _BARE_QUOTE.sub(r'\1\\"', inner)


def _main_fields(text: str) -> Object | None:
    """Return the fields that can be read one by one; None without a phase and a time."""
    event: Object = {}
    args: Object = {}
    for key, string, number in _FIELD.findall(text):
        into = event if key in _TOP else args
        into.setdefault(key, _number(number) if number else string)
    if "ph" not in event or "ts" not in event:
        return None
    return {**event, "args": args} if args else event


def _number(text: str) -> int | float | None:
    try:
        return json.loads(text[:400])  # type: ignore[no-any-return]
    except ValueError:
        return None


def has_not_numbers(text: bytes | memoryview) -> bool:
    """Return whether NaN, Infinity or the like may occur in this text where a number should be."""
    return _NOT_NUMBERS_BYTES.search(text) is not None


def plain_numbers(text: str) -> str:
    """Return the text with NaN, Infinity and the like as null, which strict decoders accept; strings are unchanged."""
    if not _NOT_NUMBERS.search(text):
        return text
    text = _KEY_OF_NOT_NUMBER.sub(r"\1null", text)
    if not _NOT_NUMBERS.search(text):
        return text
    return _STRINGS_OR_NOT_NUMBERS.sub(lambda m: m[0] if m[0][0] == '"' else "null", text)


_MEMBER = re.compile(r"\"((?:[^\"\\]|\\.){1,200})\"\s*:\s*")


def members(text: str) -> Object:
    readable: Object = {}
    at = 0
    while match := _MEMBER.search(text, at):
        at = match.end()
        for size in (1 << 12, 1 << 16, LONGEST):
            try:
                readable[match[1]], length = _DECODER.raw_decode(text[at : at + size])
            except (ValueError, RecursionError) as e:
                if len(text) - at <= size or not _goes_on(e, size):
                    break
            else:
                at += length
                break
    return readable
