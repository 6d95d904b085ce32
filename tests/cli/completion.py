# SPDX-License-Identifier: BSD-2-Clause
"""Asks bash, zsh and fish how they would complete a command line."""
import os
import shlex
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPTS = os.path.join(ROOT, 'completion')
PATIENCE = 60

# Bash cuts words at these characters, so '=' is a word of its own.
BASH = r'''
source {scripts}/verbena.bash
compopt() {{ :; }}
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
try() {{
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _verbena
    printf '%s\t' "${{COMPREPLY[@]}}"
    echo
}}
'''

# An interactive zsh on a pseudo-terminal. A widget asks for the completion and keeps the line.
ZSH = r'''
zmodload zsh/zpty
zpty shell zsh -f -i
wait_for() {{
    local line all
    repeat 400; do
        while zpty -r -t shell line; do all+=$line; done
        [[ $all == *"$1"* ]] && return
        sleep 0.05
    done
    print -u2 "waited in vain for $1: ${{(V)all}}"
    exit 1
}}
zpty -w shell "PROMPT=; fpath=({scripts} \$fpath); autoload -U compinit; compinit -u -D; LISTMAX=0"
zpty -w shell "keep() {{ zle complete-word; print -r -- \$BUFFER >> {out}; BUFFER=; print -n done-\$((++n))-; }}"
zpty -w shell "zle -N keep; bindkey '^X' keep; print re''ady"
wait_for ready
n=0
try() {{
    zpty -w -n shell "$1"$'\x18'
    wait_for "done-$((++n))-"
}}
'''


def in_bash(lines, folder, env):
    """What bash offers for each line, a list of words for each."""
    script = BASH.format(scripts=shlex.quote(SCRIPTS))
    for line in lines:
        words = line.replace('=', ' = ').split(' ')
        words = [word for word in words[:-1] if word] + [words[-1]]
        script += 'try ' + ' '.join(map(shlex.quote, words)) + '\n'
    done = subprocess.run(['bash', '--norc', '-c', script], text=True, cwd=folder, env=env, timeout=PATIENCE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    return [[word for word in line.split('\t') if word] for line in done.stdout.splitlines()]


def in_zsh(lines, folder, env):
    """The line after a press of the tab key, for each."""
    with tempfile.NamedTemporaryFile('r', encoding='utf-8') as out:
        script = ZSH.format(scripts=shlex.quote(SCRIPTS), out=shlex.quote(out.name))
        script += ''.join(f'try {shlex.quote(line)}\n' for line in lines)
        subprocess.run(['zsh', '-f', '-c', script], text=True, cwd=folder, env=env, timeout=PATIENCE,
                       stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
        return out.read().splitlines()


def in_fish(lines, folder, env):
    """What fish offers for each line."""
    script = f'source {shlex.quote(SCRIPTS)}/verbena.fish\n'
    script += ''.join(f'complete -C {shlex.quote(line)}; echo :end\n' for line in lines)
    done = subprocess.run(['fish', '--no-config', '-c', script], text=True, cwd=folder, env=env,
                          timeout=PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL)
    offers = done.stdout.split(':end\n')[:-1]
    return [[line.split('\t')[0] for line in offer.splitlines()] for offer in offers]
