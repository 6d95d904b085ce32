#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <jansson.h>

/* Writes the page of a reproduction; CLI_OK, or CLI_FAILED having said why. Where Verbena was built
 * without the page, says so: the other files are whole without it. */
int report_reproduction(json_t *reproduction, const char *path);

#endif
