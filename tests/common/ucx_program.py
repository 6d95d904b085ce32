# SPDX-License-Identifier: BSD-2-Clause
"""How ucx_perftest starts here: some systems build it with MPI, and then it has no server and client."""
import functools
import shutil
import subprocess

PROGRAM = 'ucx_perftest'


@functools.lru_cache(maxsize=None)
def started_by_mpi():
    path = shutil.which(PROGRAM)
    return bool(path) and 'libmpi.so' in subprocess.run(['ldd', path], stdout=subprocess.PIPE, text=True, check=False).stdout


def no_server():
    """Why a server and its client cannot be started, or None."""
    if not shutil.which(PROGRAM):
        return f'{PROGRAM} is not installed'
    return f'{PROGRAM} is built with MPI here: no server and client' if started_by_mpi() else None
