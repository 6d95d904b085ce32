# SPDX-License-Identifier: BSD-2-Clause
"""A tree in miniature on which every verdict of tools/mutants is known in advance."""
import json
import os
import shutil
import signal
import subprocess
import time

# Each line that can be changed, and the verdict on all of its mutants.
VERDICTS = {
    'return a + b;': 'killed by unit/sums.plus',
    'return a - b;': 'killed by cli/minus',
    'return a & b;': 'SURVIVED',
    'int hint = 5;': 'same code',
    'struct narrow { int flag : 1; };': 'no build',
}
FILES = {
    '.gitignore': '/build*/\n',
    'src/util/sums.h': 'int plus(int a, int b);\nint minus(int a, int b);\nint both(int a, int b);\n',
    'src/util/sums.c': '''#include "sums.h"
int plus(int a, int b)
{
	struct narrow { int flag : 1; };
	return a + b;
}
int minus(int a, int b)
{
	int hint = 5;
	(void)hint;
	return a - b;
}
int both(int a, int b)
{
	return a & b;
}
''',
    'src/util/answers.c': '''#include <stdio.h>
#include "sums.h"
int main(void) { return printf("%d %d\\n", minus(7, 4), both(5, 3)) < 0; }
''',
    'tests/unit/test_sums.c': '''#include <stdio.h>
#include "../../src/util/sums.h"
int main(void)
{
	int right = plus(2, 3) == 5;
	printf("1..1\\n%s 1 - plus\\n", right ? "ok" : "not ok");
	return !right;
}
''',
    'tools/configure': '''#!/bin/sh
mkdir -p "$1"
cat >"$1/build.ninja" <<'END'
rule cc
  command = cc -O1 -MD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
rule c_LINKER
  command = cc $in -o $out
build sums.o: cc ../src/util/sums.c
build answers.o: cc ../src/util/answers.c
build test_sums.o: cc ../tests/unit/test_sums.c
build answers: c_LINKER answers.o sums.o
build tests/unit/test-sums: c_LINKER test_sums.o sums.o
build all: phony answers
build build.ninja: phony
END
''',
    # "inside" fails once, "bench" always; "cli" waits on demand, until someone ends it.
    'tests/run': '''#!/bin/sh
case $* in
--limits) printf '%s 60\\n' unit cli inside bench wire mapped virtual ;;
"-v cli")
    if [ -e "$CALLER/wait" ]; then
        touch "$CALLER/waiting"
        exec sleep 100
    fi
    case $(build/answers) in 3*) echo "ok minus" ;; *) echo "   FAIL cli/minus: wrong"; exit 1 ;; esac ;;
"-v inside") mkdir "$CALLER/flaky" 2>&- && { echo "FAIL inside/flaky: late"; exit 1; } ;;
"-v bench") echo "FAIL bench/broken: always" ; exit 1 ;;
esac
exit 0
''',
}


def plant(folder, tool):
    for path, text in FILES.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        os.chmod(path, 0o755 if text.startswith('#!') else 0o644)
    shutil.copy(tool, os.path.join(folder, 'tools'))
    subprocess.run(['git', 'init', '-q'], cwd=folder, check=True)
    subprocess.run(['git', 'add', '-A'], cwd=folder, check=True)


def start(folder, *words):
    return subprocess.Popen(['tools/mutants', *words], cwd=folder, text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env=dict(os.environ, CALLER=folder))


def run(folder, *words):
    process = start(folder, *words)
    return process.communicate(timeout=200)[0], process.returncode


def line_of(text):
    return FILES['src/util/sums.c'].split('\n').index('\t' + text) + 1


def wrong_verdicts(folder):
    """What is wrong with the verdicts on all mutants of the tree, or None."""
    output, code = run(folder, '--json', 'verdicts', 'src/util/sums.c')
    if code:
        return f'status {code}: {output[-600:]}'
    with open(os.path.join(folder, 'verdicts'), encoding='utf-8') as file:
        rows = json.load(file)['mutants']
    for text, verdict in VERDICTS.items():
        found = {' by '.join(filter(None, (row['outcome'], row['by'])))
                 for row in rows if row['line'] == line_of(text)}
        if found != {verdict}:
            return f'{text}: {found or "no mutant"}, not {verdict}'
    for wanted in 'seed 1: 3 mutants, 2 killed (67%)', 'left out: bench, which fails without a mutant', \
            f'SURVIVED src/util/sums.c:{line_of("return a & b;")}, without bench':
        if wanted not in output:
            return f'not printed: {wanted}: {output[-600:]}'
    return None


def wrong_when_interrupted(folder):
    """What an interrupted run loses or leaves behind, or None."""
    lines = [f'src/util/sums.c:{line_of(text)}' for text in ('return a + b;', 'return a & b;')]
    order = next(seed for seed in '123456789'
                 if 'a + b' in run(folder, '--list', '--count', '1', '--seed', seed, *lines)[0])
    waiting = os.path.join(folder, 'waiting')
    open(os.path.join(folder, 'wait'), 'w', encoding='utf-8').close()
    process = start(folder, '--seed', order, *lines)
    while not os.path.exists(waiting) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=100)[0]
    os.unlink(os.path.join(folder, 'wait'))
    if process.returncode != 130 or f'seed {order}: 1 mutants, 1 killed (100%)' not in output:
        return f'status {process.returncode}: {output[-600:]}'
    with open(os.path.join(folder, 'build-mutants/tree/src/util/sums.c'), encoding='utf-8') as file:
        return None if file.read() == FILES['src/util/sums.c'] else 'the mutant is left in the copy'


def wrong_again(folder):
    """What is wrong when the survivors of the first run are judged again, after their line has moved."""
    with open(os.path.join(folder, 'src/util/sums.c'), 'w', encoding='utf-8') as file:
        file.write('\n' + FILES['src/util/sums.c'])
    output, code = run(folder, '--again', 'verdicts', '--groups', 'cli')
    moved = f'SURVIVED src/util/sums.c:{line_of("return a & b;") + 1} '
    return None if code == 0 and moved in output and 'seed 1: 1 mutants, 0 killed' in output else output[-600:]
