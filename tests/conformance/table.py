# SPDX-License-Identifier: BSD-2-Clause
"""Reads and writes docs/conformance.md: the outcome of each case on each adapter."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / 'docs' / 'conformance.md'
COLUMNS = ('live', 'modelled', 'rxe')
END = '<!-- end -->'


def read_cases(lines):
    """Returns {(group, case): outcome} from the program's output."""
    cases = {}
    for line in lines:
        fields = line.rstrip('\n').split('\t')
        if len(fields) == 3:
            cases[tuple(fields[:2])] = fields[2]
    return cases


def begin(name):
    return f'<!-- {name} -->'


def part(text, name):
    return text.split(begin(name))[1].split(END)[0]


def write_part(page, name, lines):
    """Writes a table between its marks on a page."""
    pattern = re.escape(begin(name)) + '.*?' + re.escape(END)
    block = '\n'.join([begin(name), *lines, END])
    page.write_text(re.sub(pattern, lambda _: block, page.read_text(), count=1, flags=re.S))


def rows(text):
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip('|').split('|')]
        if line.startswith('|') and not set(cells[0]) <= set('- ') and cells[1] != 'case':
            yield cells


class Table:
    def __init__(self):
        text = PAGE.read_text()
        self.outcomes = {column: {} for column in COLUMNS}
        self.reasons = {}
        for group, case, outcome in rows(part(text, 'alike')):
            for column in COLUMNS:
                self.outcomes[column][group, case] = outcome
        for group, case, *outcomes, reason in rows(part(text, 'differ')):
            for column, outcome in zip(COLUMNS, outcomes):
                self.outcomes[column][group, case] = outcome
            self.reasons[group, case] = reason

    def mismatches(self, column, cases):
        """Yields a line for each case whose outcome differs from the page."""
        expected = self.outcomes[column]
        for key in expected.keys() | cases.keys():
            if expected.get(key) != cases.get(key):
                yield (f'{" / ".join(key)}: {cases.get(key, "did not run")}; '
                       f'on the page: {expected.get(key, "not there")}')
        for key, reason in self.reasons.items():
            if not reason:
                yield f'{" / ".join(key)}: the page gives no reason for the difference'

    def write(self, found):
        """Writes the page with new outcomes; reasons stay."""
        differ = ['| group | case | live | modelled | rxe | what decides |', '|---|---|---|---|---|---|']
        alike = ['| group | case | outcome |', '|---|---|---|']
        for key in found['live']:
            outcomes = [found[column].get(key, '') for column in COLUMNS]
            if len(set(outcomes)) == 1:
                alike.append(f'| {key[0]} | {key[1]} | {outcomes[0]} |')
            else:
                reason = self.reasons.get(key, '')
                differ.append(f'| {key[0]} | {key[1]} | {" | ".join(outcomes)} | {reason} |')
        write_part(PAGE, 'differ', differ)
        write_part(PAGE, 'alike', alike)
