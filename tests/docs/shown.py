# SPDX-License-Identifier: BSD-2-Clause
"""Compares what a page shows below a command with what the command prints.

The lines shown must follow each other in the output, blank lines aside; a line "..." stands for any number
of lines, and "..." at the start or end of a line for its other words. What a page leaves out before and after does not matter.
"""
import re

NUMBER = re.compile(r'0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?')


def word_alike(shown, printed):
    return NUMBER.sub('#', shown) == NUMBER.sub('#', printed)


def words_alike(shown, printed, exact):
    """Live, equal but for their numbers; the first word may not differ either: it names the row of a table."""
    if exact or not shown:
        return shown == printed
    first = shown[0] == printed[0] or '[' in shown[0] and word_alike(shown[0], printed[0])
    return first and len(shown) == len(printed) and all(map(word_alike, shown, printed))


def line_matches(shown, printed, exact):
    shown, printed = shown.split(), printed.split()
    starts = [0]
    if shown[0] == '...':
        shown = shown[1:]
        starts = range(len(printed))
    if shown[-1] == '...':
        shown = shown[:-1]
        return any(words_alike(shown, printed[start:start + len(shown)], exact) for start in starts
                   if start + len(shown) <= len(printed))
    return any(words_alike(shown, printed[start:], exact) for start in starts if start < len(printed))


def parts(lines):
    """The runs of lines between lines of "..."."""
    found = [[]]
    for line in lines:
        if line.strip() == '...':
            found.append([])
        elif line.strip():
            found[-1].append(line)
    return [part for part in found if part]


def find(part, lines, start, exact):
    """Where the part ends in the lines, or None; and how many of its lines were found at most."""
    most = 0
    for first in range(start, len(lines)):
        count = 0
        while count < len(part) and first + count < len(lines) and \
                line_matches(part[count], lines[first + count], exact):
            count += 1
        most = max(most, count)
        if count == len(part):
            return first + count, most
    return None, most


def difference(shown, printed, exact):
    """None, or which line of the page the output does not have."""
    lines = [line for line in printed.split('\n') if line.strip()]
    position = 0
    for part in parts(shown):
        end, found = find(part, lines, position, exact)
        if end is None:
            return f'it does not print "{part[found].strip()}"'
        position = end
    return None
