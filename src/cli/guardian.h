/* A process beside a command that removes the segment of its fabric, should the command or what it
 * started be killed before they can. */
#ifndef CLI_GUARDIAN_H
#define CLI_GUARDIAN_H

/* Between the two the command may start whatever uses the fabric. Before that goes what was left
 * behind by processes that were all killed at once, their guardian with them. */
void guardian_begin(void);

/* Removes the segment unless some process still has it. What has ended in order leaves others at
 * work, who will remove it; where the status says otherwise, the guardian waits for the last one.
 */
void guardian_end(int status);

#endif
