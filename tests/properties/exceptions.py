# SPDX-License-Identifier: BSD-2-Clause
"""What does not hold, by how much, and why. docs/values.md has it, too."""

SMALL = 'small changes have small effects'
RIGHT = 'effects have the right sign'

RHYTHM = 'two senders fall into one of two rhythms'
ALONE = 'one sender alone falls into a slower rhythm'
POLLS = 'the sender learns of replies by polling, and polls a step earlier or later'
CUT = 'read requests of 507 bytes cut a packet into other pieces than those of 512'
TURNS = 'messages in and out take turns differently'
END = 'the end of a run, which both directions share, counts where a message takes long'

# (adapter, property, figure): by how much at most, and why
BROKEN = {
    ('clan-pentium3', RIGHT, 'bw write reply 8'): (0.01, POLLS),
    ('connect-ib', 'both ways at most twice one way', 'bibw write refill 8'): (0.01, ALONE),
    ('connect-ib', SMALL, 'bibw write refill 2048'): (0.06, RHYTHM),
    ('connect-ib', RIGHT, 'bibw write refill 2048'): (0.06, RHYTHM),
    ('connectx6-hdr', 'both ways at most twice one way', 'bibw write refill 8'): (0.01, END),
    ('connectx6-hdr', 'both ways at most twice one way', 'bibw write refill 64'): (0.01, END),
    ('connectx6-hdr', 'both ways at most twice one way', 'bibw write refill 512'): (0.01, END),
    ('connectx6-hdr', 'both ways at most twice one way', 'bibw write refill 1024'): (0.01, END),
    ('connectx6-hdr', 'both ways at most twice one way', 'bibw write refill 2048'): (0.01, END),
    ('connectx7-ndr', 'both ways at most twice one way', 'bibw write refill 8'): (0.01, END),
    ('connectx7-ndr', 'both ways at most twice one way', 'bibw write refill 64'): (0.01, END),
    ('connectx7-ndr', 'both ways at most twice one way', 'bibw write refill 512'): (0.01, END),
    ('connectx7-ndr', RIGHT, 'bibw write reply 2048'): (0.02, POLLS),
    ('connectx7-ndr', RIGHT, 'bw write reply 2048'): (0.02, POLLS),
    ('hdr100', 'bandwidth rises with size', 'bibw write refill 2048'): (0.13, RHYTHM),
    ('hdr100', SMALL, 'bibw write refill 2048'): (0.13, RHYTHM),
    ('hdr100', RIGHT, 'bibw write refill 2048'): (0.13, RHYTHM),
    ('ibm12x', RIGHT, 'bibw write refill 65536'): (0.01, TURNS),
    ('mt23108-2003', RIGHT, 'bw write refill 2048'): (0.02, CUT),
    ('mt23108-2003', RIGHT, 'bw write reply 2048'): (0.02, CUT),
    ('mt27700', 'both ways at most twice one way', 'bibw write refill 8'): (0.01, ALONE),
    ('mt27700', 'both ways at most twice one way', 'bibw write refill 64'): (0.01, ALONE),
    ('mt27700', RIGHT, 'bibw write refill 2048'): (0.02, TURNS),
    ('ndr400', 'both ways at most twice one way', 'bibw write refill 4096'): (0.1, ALONE),
    ('ndr400', RIGHT, 'bibw write reply 2048'): (0.02, POLLS),
    ('ndr400', RIGHT, 'bw write reply 2048'): (0.02, POLLS),
    ('roce40', RIGHT, 'bibw write refill 2048'): (0.02, TURNS),
}
