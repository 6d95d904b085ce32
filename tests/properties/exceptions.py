# SPDX-License-Identifier: BSD-2-Clause
"""What does not hold, and why. docs/values.md has it, too."""

SMALL = 'small changes have small effects'
RIGHT = 'effects have the right sign'

RHYTHM = 'two senders fall into one of two rhythms, 12% apart'

# by (adapter, property)
SHAPES_BROKEN = {
    ('hdr100', 'bandwidth rises with size'): f'both ways at 2 KB: {RHYTHM}',
    ('ndr400', 'both ways at most twice one way'): 'at 4 KB: one sender alone falls into a slower rhythm',
}

STEP = 'about 1%: the sender learns of replies by polling, and polls a step earlier or later'
CUT = 'less than 2%: read requests of 507 bytes cut a packet into other pieces than those of 512'

# by (adapter, property, figure)
FIGURES_BROKEN = {
    ('clan-pentium', RIGHT, 'bibw write reply 8'): STEP,
    ('clan-pentium', RIGHT, 'bw write reply 8'): STEP,
    ('hdr100', SMALL, 'bibw write refill 2048'): RHYTHM,
    ('hdr100', RIGHT, 'bibw write refill 2048'): RHYTHM,
    ('ibm12x', RIGHT, 'bibw write refill 65536'): 'less than 1%: messages in and out take turns differently',
    ('mt23108-2003', RIGHT, 'bw write refill 2048'): CUT,
    ('mt23108-2003', RIGHT, 'bw write reply 2048'): CUT,
    ('ndr400', RIGHT, 'bibw write reply 2048'): STEP,
    ('ndr400', RIGHT, 'bw write reply 2048'): STEP,
}
