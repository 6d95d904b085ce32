# SPDX-License-Identifier: BSD-2-Clause
"""What a runner inherits must not decide what its tests find."""
import signal


def give_defaults_to_children():
    """Undo nohup, '&' in a script, and masks for whatever this process starts from now on.

    The process itself goes on to ignore what it was told to ignore: by handlers, which end at exec.
    """
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
