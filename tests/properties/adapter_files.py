# SPDX-License-Identifier: BSD-2-Clause
"""The parameters of modelled adapters, read from adapters/ and docs/adapters.md."""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNITS = {'B': 1, 'KB': 1 << 10, 'MB': 1 << 20, 'GB/s': 1, 'MB/s': 1e-3, 'Gbit/s': 0.125}
NO_STEPS = {'link.mtu', 'pfc.xon', 'pfc.xoff'}  # one of a few sizes; thresholds that are two packets apart
NOT_USED = re.compile(r'mpi|nas|host\.(create|destroy|modify|reg|dereg|alloc|bind|event|wake|copy)')  # by the sweep


def names():
    return sorted(name.removesuffix('.adapter') for name in os.listdir(os.path.join(ROOT, 'adapters'))
                  if name.endswith('.adapter'))


def lines(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return file.read().splitlines()


def units():
    """The kind of value of each key, as documented."""
    rows = (re.match(r'\| `([a-z]+\.\w+)` \| ([^|]+) \|', line) for line in lines('docs/adapters.md'))
    return {row[1]: row[2] for row in rows if row}


class Adapter:
    def __init__(self, name):
        self.values, self.units = {}, units()
        self.read(name)

    def read(self, name):
        for line in lines(f'adapters/{name}.adapter'):
            key, separator, value = line.partition('#')[0].partition('=')
            if not separator:
                continue
            if key.strip() == 'based-on':
                self.read(value.strip())
            else:
                self.values[key.strip()] = value.strip()

    def text(self, key):
        return self.values[key]

    def unit(self, key):
        return self.units[key]

    def number(self, key):
        number, unit = self.values[key].split()
        return float(number) * UNITS[unit]

    def changed(self, key, factor):
        """The setting that changes a parameter by a factor, or None if it is too coarse for that."""
        number, _, unit = self.values[key].partition(' ')
        if self.units[key] in ('a size', 'a whole number'):
            whole = float(number) * UNITS.get(unit, 1)
            after = round(whole * factor)
            near = whole and abs(after / whole - factor) < 0.5 * abs(factor - 1)
            return f'{key}={after}{"B" if unit else ""}' if near else None
        return f'{key}={float(number) * factor:.8g}{unit}'

    def can_change(self, step):
        """Parameters that can be changed by so little, up and down."""
        return [key for key, value in sorted(self.values.items())
                if self.units.get(key) in ('a time', 'a rate', 'a size', 'a whole number') and
                not NOT_USED.match(key) and key not in NO_STEPS and float(value.split()[0]) > 0 and
                self.changed(key, 1 + step) and self.changed(key, 1 - step)]
