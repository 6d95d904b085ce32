#ifndef CLI_LIST_PAPERS_H
#define CLI_LIST_PAPERS_H

#include "commands.h"

/* Every figure that a paper quotes, by paper. */
int list_papers(const struct invocation *invocation);

#endif
