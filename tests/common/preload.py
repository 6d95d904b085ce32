# SPDX-License-Identifier: BSD-2-Clause
"""Preloads a library into programs."""
import os


def variables(library, base=os.environ):
    """Environment variables that preload the library, wherever it is.

    The dynamic linker splits LD_PRELOAD at blanks, but not LD_LIBRARY_PATH.
    """
    library = str(library)
    if ' ' not in library:
        return {'LD_PRELOAD': library}
    folders = [os.path.dirname(library), *filter(None, [base.get('LD_LIBRARY_PATH')])]
    return {'LD_PRELOAD': os.path.basename(library), 'LD_LIBRARY_PATH': ':'.join(folders)}
