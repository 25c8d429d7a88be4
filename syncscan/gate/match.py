"""Match the sites of two recordings by place, even though lines moved and folders were renamed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from syncscan.gate.sites import NOWHERE, Key, Place

Group = tuple[tuple[Key, ...], tuple[Key, ...]]
"""Sites of both states at the same place; one of the two may be empty."""
_Choice = tuple[int, tuple[int, ...]]
"""Cost of an assignment, and the index among `many` for each of `few`."""
_NEVER = 10**12
_MOST = 60
"""Most lines of one function that are aligned; more are paired in order."""


def matched(before: Iterable[Key], after: Iterable[Key]) -> list[Group]:
    """Return groups that hold every site of both states once.

    Passes pair sites by decreasing similarity: first by all of scope, op, phase and place; then without the line,
    without folders, without the phase; and where one of the two has no place, by scope and op only, several together if
    necessary.
    """
    left, right = dict.fromkeys(before), dict.fromkeys(after)
    groups: list[Group] = []
    for pairs in _alike(left, right):
        for pair in pairs:
            groups.append(pair)
            for keys, known in zip(pair, (left, right), strict=True):
                for key in keys:
                    del known[key]
    return [*groups, *(((key,), ()) for key in left), *(((), (key,)) for key in right)]


def _file(place: Place) -> Place:
    return (place[0], 0, place[2])


def _name(place: Place) -> Place:
    return (place[0].replace("\\", "/").rpartition("/")[2], 0, place[2])


def _exactly(k: Key) -> Hashable:
    return k.intended, k.scope, k.op, k.phase, k.user, k.in_library


def _without_line(k: Key) -> Hashable:
    return k.intended, k.scope, k.op, k.phase, _file(k.user), _file(k.in_library)


def _without_folder(k: Key) -> Hashable:
    return k.intended, k.scope, k.op, k.phase, _name(k.user), _name(k.in_library)


def _without_phase(k: Key) -> Hashable:
    return k.scope, k.op, _name(k.user), _name(k.in_library)


def _scoped(k: Key) -> Hashable | None:
    """Match after a file was renamed: the function and the scope are equal."""
    return (k.scope, k.op, k.user[2], k.in_library[2]) if k.scope and k.placed else None


def _in_function(k: Key) -> Hashable | None:
    """Match after a scope was added or renamed: the function is equal, and isn't the module itself."""
    return (k.op, _name(k.user), _name(k.in_library)) if k.user[2] not in ("", "<module>") else None


def _in_file(k: Key) -> Hashable | None:
    """Match after code moved to another function of its file, under the same scope."""
    return (k.scope, k.op, _name(k.user)[0], _name(k.in_library)) if k.scope and k.user != NOWHERE else None


_PASSES: tuple[Callable[[Key], Hashable | None], ...] = (
    _exactly,
    _without_line,
    _without_folder,
    _without_phase,
    _scoped,
    _in_function,
    _in_file,
)


def _of_user(k: Key) -> Hashable | None:
    return (k.scope, k.op, _name(k.user)) if k.user != NOWHERE else None


def _of_library(k: Key) -> Hashable | None:
    return (k.scope, k.op, _name(k.in_library)) if k.in_library != NOWHERE else None


def _of_same_op(k: Key) -> Hashable:
    return k.scope, k.op, k.intended


def _of_scope(k: Key) -> Hashable:
    """Match by scope and op; whether a wait is intended may depend on its rule, and that on the frames."""
    return k.scope, k.op


_UNKNOWING: tuple[tuple[Callable[[Key], Hashable | None], Callable[[Key], bool]], ...] = (
    (_of_user, lambda k: k.in_library != NOWHERE),
    (_of_library, lambda k: k.user != NOWHERE),
    (_of_same_op, lambda k: k.placed),
    (_of_scope, lambda k: k.placed),
)
"""Criteria for sites where one recording has less information, and the information it is missing."""


def _groups(
    left: Iterable[Key], right: Iterable[Key], similar: Callable[[Key], Hashable | None]
) -> Iterator[tuple[list[Key], list[Key]]]:
    """Yield groups of similar sites, each with sites of both states."""
    groups: defaultdict[Hashable, tuple[list[Key], list[Key]]] = defaultdict(lambda: ([], []))
    for number, keys in enumerate((left, right)):
        for key in keys:
            if (name := similar(key)) is not None:
                groups[name][number].append(key)
    yield from ((one, other) for one, other in groups.values() if one and other)


def _alike(left: Iterable[Key], right: Iterable[Key]) -> Iterator[list[Group]]:
    """Yield the pairs of one pass after the other; each handles what earlier passes left."""
    for similar in _PASSES:
        yield [pair for one, other in _groups(left, right, similar) for pair in _pair(one, other)]
    for similar, knows in _UNKNOWING:
        yield [
            (tuple(one), tuple(other))
            for one, other in _groups(left, right, similar)
            if not any(map(knows, one)) or not any(map(knows, other))
        ]


def _pair(first: Sequence[Key], other: Sequence[Key]) -> Iterator[Group]:
    """Yield pairs line by line, in order; all together where one side knows only the function."""
    if not all(k.exact for k in (*first, *other)):
        yield tuple(first), tuple(other)
        return
    first, other = sorted(first, key=_line), sorted(other, key=_line)
    if len(first) > len(other):
        yield from (((a,), (b,)) for b, a in _align(other, first))
    else:
        yield from (((a,), (b,)) for a, b in _align(first, other))


def _line(key: Key) -> tuple[int, int]:
    return key.user[1], key.in_library[1]


def _align(few: Sequence[Key], many: Sequence[Key]) -> list[tuple[Key, Key]]:
    """Pair each of `few` with one of `many`, in order, so that lines shift as evenly as possible."""
    if len(few) == len(many) or len(many) > _MOST:
        return list(zip(few, many, strict=False))
    moved = [[_line(b)[0] - _line(a)[0] for b in many] for a in few]
    best: list[_Choice] = [(abs(shift), (j,)) for j, shift in enumerate(moved[0])]
    for i in range(1, len(few)):
        best = [_behind(best, moved[i - 1], moved[i][j], j) for j in range(len(many))]
    return [(a, many[j]) for a, j in zip(few, min(best)[1], strict=True)]


def _behind(best: list[_Choice], moved: Sequence[int], shift: int, j: int) -> _Choice:
    """Return the cheapest assignment that continues with `j`, shifted by `shift`, given the previous shifts."""
    earlier = [(cost + abs(shift - moved[chosen[-1]]), (*chosen, j)) for cost, chosen in best if chosen[-1] < j]
    return min(earlier, default=(_NEVER, (j,) * (len(best[0][1]) + 1)))
