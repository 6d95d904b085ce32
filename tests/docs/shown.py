# SPDX-License-Identifier: BSD-2-Clause
"""Compares what a page shows below a command with what the command prints.

The lines shown must follow each other in the output, blank lines aside; a line "..." stands for any number
of lines, and "..." at the end of a line for its rest. What a page leaves out before and after does not matter.
"""
import re

NUMBER = re.compile(r'\d+(?:\.\d+)?(?:e[+-]?\d+)?')


def words_alike(shown, printed):
    """Equal but for their numbers, except in the first word: it names the row of a table."""
    return shown[:1] == printed[:1] and \
        [NUMBER.sub('#', word) for word in shown[1:]] == [NUMBER.sub('#', word) for word in printed[1:]]


def line_matches(shown, printed, exact):
    cut = shown.endswith(' ...')
    shown, printed = shown.split(), printed.split()
    if cut:
        shown = shown[:-1]
        printed = printed[:len(shown)]
    return shown == printed if exact else words_alike(shown, printed)


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
