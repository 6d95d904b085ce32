# SPDX-License-Identifier: BSD-2-Clause
"""What the installed Open MPI has: its releases differ in their components."""
import functools
import shutil
import subprocess


@functools.lru_cache(maxsize=None)
def components():
    if not shutil.which('ompi_info'):
        return ''
    return subprocess.run(['ompi_info', '--parsable'], stdout=subprocess.PIPE, text=True, check=False).stdout


def lacks(framework, name):
    """Why a component cannot be used, or None."""
    return None if f'\nmca:{framework}:{name}:' in components() else f'Open MPI has no {framework} {name}'
