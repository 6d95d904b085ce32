#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Make the export rows and the version script of one drop-in library.

    generate.py --library NAME --system PATH --list exports.txt --rows OUT.h --map OUT.map
    generate.py --refresh exports.txt --system PATH...

The names and versions come from the installed system library, so that the drop-in offers whatever
the programs and providers of this machine were linked against, and from the list kept beside this
script: programs may bring a newer rdma-core than the system's. A name that the list has in
IBVERBS_PRIVATE is offered in every version of the interface to providers.
"""
import argparse
import os
import re
import subprocess
import sys

PRIVATE = 'IBVERBS_PRIVATE'
PRIVATE_VERSIONS = (34, 57, 59, 64, 65)  # the newest last

SYMBOL = re.compile(r'^(\w+)(@@?)(\w[\w.]*)$')

# Calls that return a pointer, in case the adapter lacks them.
RETURNS_POINTER = re.compile(
    r'^(ibv_(get_device_(list|name)|open_device|import_\w+|alloc_pd|reg_\w*mr\w*|create_\w+'
    r'|get_sysfs_path|qp_to_qp_ex|dmabuf_heap_(alloc|cc_shared_init)|\w+_str)'
    r'|verbs_open_device|_verbs_init_and_alloc_context'
    r'|rdma_(create_event_channel|get_devices|event_str))$')


def installed_exports(path):
    """Rows (name, separator, version, data size or 0) that a library on this machine defines."""
    text = subprocess.run(['readelf', '-W', '--dyn-syms', path], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    rows = []
    for line in text.splitlines():
        field = line.split()
        if len(field) < 8 or field[6] in ('UND', 'ABS', 'Ndx'):
            continue
        match = SYMBOL.match(field[7])
        if match:
            rows.append((*match.groups(), int(field[2]) if field[3] == 'OBJECT' else 0))
    return sorted(rows, key=lambda row: (row[2], row[0]))


def private_rows(name, size):
    """A name of the list in each version; drivers register by one that contains the version."""
    for version in PRIVATE_VERSIONS:
        full = f'{name}_{version}' if name == 'verbs_register_driver' else name
        default = version == PRIVATE_VERSIONS[-1] or full != name
        yield full, '@@' if default else '@', f'{PRIVATE}_{version}', size


def listed_exports(path, library):
    rows = []
    with open(path, encoding='ascii') as lines:
        for line in lines:
            field = line.split()
            if field and field[0] == library:
                name, separator, version = SYMBOL.match(field[1]).groups()
                size = int(field[2])
                rows += (private_rows(name, size) if version == PRIVATE
                         else [(name, separator, version, size)])
    return rows


def merged(installed, listed):
    """Each name and version once; the installed library chooses the default of its names."""
    known = {(name, version) for name, _, version, _ in installed}
    defaults = {name for name, separator, _, _ in installed if separator == '@@'}
    return installed + [(name, '@' if name in defaults else separator, version, size)
                        for name, separator, version, size in listed
                        if (name, version) not in known]


def answer(name):
    if RETURNS_POINTER.match(name):
        return 'null'
    return 'error' if name.startswith(('ibv_', 'verbs_', 'execute_')) else 'minus'


def row_text(index, row, defaults):
    name, separator, version, size = row
    if size:
        return f'DATA({index}, "{name}{separator}{version}", {size})'
    # Old versions beside a newer default use the structures of 2006: fail instead of misreading them.
    old = separator == '@' and name in defaults and not version.startswith(PRIVATE)
    kind = 'OLD' if old else 'CALL'
    return f'{kind}({index}, "{name}", "{name}{separator}{version}", {answer(name)})'


def version_key(version):
    return [int(part) if part.isdigit() else part for part in re.split(r'(\d+)', version)]


def write(path, text):
    with open(path, 'w', encoding='ascii') as out:
        out.write(text)


def make(args):
    system = args.system[0] if args.system else ''
    present = os.path.isabs(system) and os.path.exists(system)
    rows = merged(installed_exports(system) if present else [],
                  listed_exports(args.list, args.library))
    if not rows:
        sys.exit(f'generate.py: no exports known for {args.library}')
    defaults = {name for name, separator, _, _ in rows if separator == '@@'}
    calls = [row for row in rows if not row[3]] + [row for row in rows if row[3]]
    text = [row_text(index, row, defaults) for index, row in enumerate(calls)]
    write(args.rows, '\n'.join(text) + '\n')
    write(args.map, version_script(rows))


def version_script(rows):
    versions = sorted({row[2] for row in rows}, key=version_key)
    nodes = [f'{version} {{\n}};' for version in versions[:-1]]
    # "local: *" would hide names of its own version node, so that node lists them.
    last = ''.join(f'    {row[0]};\n' for row in rows if row[2] == versions[-1])
    nodes.append(f'{versions[-1]} {{\nglobal:\n{last}local:\n    *;\n}};')
    return '\n'.join(nodes) + '\n'


def refresh(args):
    text = []
    for path in args.system:
        library = os.path.basename(path)
        for name, separator, version, size in installed_exports(path):
            if version.startswith(PRIVATE):
                name = name.removesuffix(version.removeprefix(PRIVATE))
                version = PRIVATE
            text.append(f'{library} {name}{separator}{version} {size}')
    write(args.refresh, '\n'.join(text) + '\n')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--library')
    parser.add_argument('--system', nargs='*', default=[])
    parser.add_argument('--list')
    parser.add_argument('--rows')
    parser.add_argument('--map')
    parser.add_argument('--refresh')
    args = parser.parse_args()
    if args.refresh:
        refresh(args)
    else:
        make(args)


if __name__ == '__main__':
    main()
