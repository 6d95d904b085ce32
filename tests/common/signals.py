# SPDX-License-Identifier: BSD-2-Clause
"""Makes tests independent of inherited signal dispositions and masks."""
import signal


def give_defaults_to_children():
    """Undo nohup, '&' in a script, and signal masks for all children started from now on.

    The process itself keeps ignoring these signals: with empty handlers, which exec() resets.
    """
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
