/* A process beside a command that removes the segment of its fabric, should the command or what it
 * started be killed before they can. */
#ifndef CLI_GUARDIAN_H
#define CLI_GUARDIAN_H

/* Between the two the command may start whatever uses the fabric. Before that goes what was left
 * behind by processes that were all killed at once, their guardian with them. */
void guardian_begin(void);

/* Removes the segment; if some process still has it, the guardian waits for that. */
void guardian_end(void);

#endif
