# SPDX-License-Identifier: BSD-2-Clause
"""Builds the experiment of docs/experiments/writing.md into a verbena command of its own.

The command is linked from the objects of the build directory; only the files that the page adds or
changes are compiled.
"""
import json
import os
import shlex
import shutil
import subprocess

GROUP = 'src/bench/experiments/basic'
TABLE_END = '    { .name = NULL },\n'
HEADER_END = '\n#endif\n'


def write_sources(root, listings, folder):
    """A copy of the group's folder, changed as the page says."""
    shutil.copytree(os.path.join(root, GROUP), folder)
    for name, end in ('table.c', TABLE_END), ('runs.h', HEADER_END):
        path = os.path.join(folder, name)
        with open(path, encoding='utf-8') as file:
            text = file.read()
        if text.count(end) != 1:
            raise ValueError(f'{name} has no one place to add to')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text.replace(end, listings[name] + end))
    new = [name for name in listings if name not in ('table.c', 'runs.h')]
    for name in new:
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(listings[name])
    return ['table.c', *new]


def compile_words(build):
    """How the build compiles table.c of the group, without its input and output."""
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        commands = json.load(file)
    command = next(command for command in commands if command['file'].endswith(f'{GROUP}/table.c'))
    words = shlex.split(command['command'])
    drop = {'-MQ', '-MF', '-o', '-c'}
    return [word for before, word in zip([''] + words, words)
            if word not in drop | {'-MD'} and before not in drop]


def run(words, build):
    done = subprocess.run(words, cwd=build, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        raise ValueError(f'{words[0]}: {(done.stderr or done.stdout).strip()[-600:]}')
    return done.stdout


def link_words(build):
    """How the build links the command, without its output."""
    lines = run(['ninja', '-t', 'commands', 'src/cli/verbena'], build).splitlines()
    words = shlex.split(lines[-1])
    place = words.index('-o')
    return words[:place] + words[place + 2:]


def build_command(root, build, listings, directory):
    """A directory like the build directory, with the new command in it."""
    folder = os.path.join(directory, 'basic')
    stage = os.path.join(directory, 'stage')
    os.mkdir(stage)
    objects = []
    compiler = compile_words(build)
    for name in write_sources(root, listings, folder):
        objects.append(os.path.join(folder, name + '.o'))
        run([*compiler, '-Werror', '-o', objects[-1], '-c', os.path.join(folder, name)], build)
    # The new table comes before the archive that has the old one, which is then not needed.
    first, *rest = link_words(build)
    run([first, '-o', os.path.join(stage, 'verbena'), *objects, *rest], build)
    for name in os.listdir(build):
        if name in ('lib', 'libexec', 'adapters', 'share'):
            os.symlink(os.path.join(build, name), os.path.join(stage, name))
    return stage
