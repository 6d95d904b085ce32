# SPDX-License-Identifier: BSD-2-Clause
"""Processes that a test has started, and what they do."""
import glob


def text_of(path):
    try:
        with open(path, encoding='utf-8', errors='replace') as file:
            return file.read()
    except OSError:
        return ''


def descendants(pid):
    children = [int(word) for name in glob.glob(f'/proc/{pid}/task/*/children') for word in text_of(name).split()]
    return [found for child in children for found in (child, *descendants(child))]


def doing(pid):
    """For a process that takes too long, and its descendants: state, where it sleeps, processor time."""
    told = []
    for one in (pid, *descendants(pid)):
        for task in sorted(glob.glob(f'/proc/{one}/task/*')):
            fields = text_of(f'{task}/stat').rpartition(')')[2].split()
            if fields:
                told.append(f'{task[6:]} {fields[0]} {text_of(f"{task}/wchan")} {int(fields[11]) + int(fields[12])} ticks')
    return '; '.join(told)
