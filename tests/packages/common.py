# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of this folder share."""
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('VERBENA_BUILD', os.path.join(ROOT, 'build'))
VERBENA = os.path.join(BUILD, 'verbena')


class Failure(Exception):
    pass


def require(condition, reason):
    if not condition:
        raise Failure(reason)


def text_of(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return file.read()


def version():
    """The version in meson.build, from which all others follow."""
    return re.search(r"^\s*version: '([\d.]+)'", text_of('meson.build'), re.M).group(1)


def call(*words, patience=120, **options):
    """Run a program that must succeed; returns what it prints."""
    done = subprocess.run(words, text=True, errors='replace', stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=patience, **options)
    require(done.returncode == 0, f'{" ".join(words)}: status {done.returncode}: {done.stdout[-400:]}')
    return done.stdout


def fenced(path):
    """The fenced blocks of a documentation page: pairs of language and text."""
    return re.findall(r'^```(\w*)\n(.*?)^```$', text_of(path), re.M | re.S)
