#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <jansson.h>

/* Writes the page of a reproduction; CLI_OK, or CLI_FAILED having said why. */
int report_reproduction(json_t *reproduction, const char *path);

#endif
