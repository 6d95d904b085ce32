# SPDX-License-Identifier: BSD-2-Clause
"""How many numbers of the adapter files are fitted, and to how many independent values of the papers."""
import glob
import os
import re

from results import ROOT, document

SMOOTH = ('a time', 'a rate', 'a number')
LEADER = 'fitted, as '
AS_MANY = {'ibm12x'}  # numbers as values, where there should be fewer
FITTED_TO = re.compile(r'fitted to paper \d+')


def read(*path):
    with open(os.path.join(ROOT, *path), encoding='utf-8') as file:
        return file.read()


class File:
    """An adapter file: what it is based on, and the value and origin of each of its keys."""
    def __init__(self, path):
        text = read(path)
        based_on = re.search(r'(?m)^based-on = (\S+)', text)
        self.base = based_on and based_on[1]
        self.lines = {key: (value.strip(), origin.strip()) for key, value, origin in
                      re.findall(r'(?m)^(\w+\.\w+) = ([^#\n]*)(?:# (.*))?$', text)}

    def fitted(self):
        return {key: line for key, line in self.lines.items() if line[1].startswith('fitted')}

    def counts(self, kinds):
        """Times, rates and factors; those that follow another; counts, sizes, switches and zeros."""
        counts = [0, 0, 0]
        for key, (value, origin) in self.fitted().items():
            smooth = kinds[key] in SMOOTH and float(value.split()[0]) > 0
            counts[1 if origin.startswith(LEADER) else 0 if smooth else 2] += 1
        return tuple(counts)

    def mistakes(self):
        """Origins that a command cannot follow."""
        fitted = self.fitted()
        for key, (value, origin) in fitted.items():
            leader = origin.removeprefix(LEADER)
            if origin == leader:
                if not FITTED_TO.match(origin):
                    yield f'{key} is fitted to no paper'
            elif leader not in fitted or fitted[leader][1].startswith(LEADER) or fitted[leader][0] != value:
                yield f'{key} does not follow {leader}'


def files():
    return {os.path.basename(path).removesuffix('.adapter'): File(path)
            for path in sorted(glob.glob(os.path.join(ROOT, 'adapters', '*.adapter')))}


def chain(adapters, name):
    """An adapter and those that it is based on."""
    while name:
        yield name
        name = adapters[name].base


def adapters_of(spec):
    """Those of a row and of its points."""
    if isinstance(spec, dict):
        for key, value in spec.items():
            yield from [value] if key == 'adapter' else adapters_of(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from adapters_of(value)


def independent_values():
    """The adapters of each value that no shape, input or other row repeats, and that runs."""
    papers = glob.glob(os.path.join(ROOT, 'papers', '*.json')) + glob.glob(os.path.join(ROOT, 'papers', '*', '*.json'))
    return {name: set(adapters_of(spec)) for path in papers for name, spec in document(path)['rows'].items()
            if 'value' in spec and not {'input', 'repeats', 'not_run'} & set(spec)}


def families(adapters):
    """Lists of adapters that share fitted numbers, by the first file that has some."""
    found = {}
    for name in adapters:
        own = [one for one in chain(adapters, name) if adapters[one].fitted()]
        if own:
            found.setdefault(own[-1], []).append(name)
    return found


def values_of(values, adapters):
    return sum(bool(used & set(adapters)) for used in values.values())
