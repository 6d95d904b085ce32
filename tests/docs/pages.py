# SPDX-License-Identifier: BSD-2-Clause
"""Reads the fenced blocks of Markdown pages, and the examples of man pages.

The info string of a fence says what is in the block:

    none, sh, console   commands, one a line; after a "$ " prompt, with what they print below
    anything else       a listing: C, text, a file of some kind

A listing with file=NAME in its info string is the content of that file.
"""
import dataclasses
import glob
import os
import re

COMMANDS = {'', 'sh', 'console'}
FENCE = re.compile(r'^\s*```(.*)$')
PROMPT = re.compile(r'^([a-z0-9]*)\$ (.*)$')
COMMENT = re.compile(r'(^|\s+)# .*$')


@dataclasses.dataclass
class Command:
    line: int
    text: str                       # as bash gets it
    host: str = ''                  # of a prompt like "node17$ "
    shown: list = dataclasses.field(default_factory=list)

    @property
    def key(self):
        """The command on one line, without its comment."""
        lines = [COMMENT.sub('', line).removesuffix('\\') for line in self.text.split('\n')]
        return ' '.join(' '.join(lines).split())


@dataclasses.dataclass
class Block:
    line: int
    kind: str
    file: str
    lines: list

    @property
    def is_listing(self):
        return self.kind not in COMMANDS

    def commands(self):
        if any(PROMPT.match(line) for line in self.lines):
            return self.session()
        return self.script()

    def script(self):
        found = []
        whole = True
        for number, line in enumerate(self.lines, self.line + 1):
            if not whole:
                found[-1].text += '\n' + line
            elif line.strip() and not line.startswith('#'):
                found.append(Command(number, line))
            whole = not line.endswith('\\')
        return found

    def session(self):
        found = []
        whole = True
        for number, line in enumerate(self.lines, self.line + 1):
            prompt = PROMPT.match(line)
            if prompt:
                found.append(Command(number, prompt[2], prompt[1]))
                whole = not line.endswith('\\')
            elif line.startswith('> ') or not whole:
                found[-1].text += '\n' + line.removeprefix('> ')
                whole = not line.endswith('\\')
            else:
                found[-1].shown.append(line)
        return found


def markdown_blocks(text):
    block = None
    for number, line in enumerate(text.split('\n'), 1):
        fence = FENCE.match(line)
        if not fence:
            if block:
                block.lines.append(line)
            continue
        if block:
            yield block
            block = None
        else:
            kind, *words = fence[1].split() or ['']
            file = next((word[5:] for word in words if word.startswith('file=')), '')
            block = Block(number, kind, file, [])


def man_blocks(text):
    """The text between .nf and .fi in the section EXAMPLES."""
    section = ''
    block = None
    for number, line in enumerate(text.split('\n'), 1):
        if line.startswith('.SH '):
            section = line[4:]
        elif line == '.nf' and section == 'EXAMPLES':
            block = Block(number, '', '', [])
        elif line == '.fi' and block:
            yield block
            block = None
        elif block:
            block.lines.append(line.strip().replace('\\-', '-').replace('\\\\', '\\'))


def pages(root):
    """(path, blocks) of every page, in the order in which a reader meets them."""
    patterns = ['README.md', 'CONTRIBUTING.md', 'docs/*.md', 'docs/experiments/*.md', 'man/*.in']
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            with open(path, encoding='utf-8') as file:
                text = file.read()
            read = man_blocks if path.endswith('.in') else markdown_blocks
            yield os.path.relpath(path, root), list(read(text))
