/* What goes wrong is said once, with the name of the process in front, through Open MPI. */
#ifndef MTL_LOG_H
#define MTL_LOG_H

#include <opal/util/output.h>

#define mtl_log(format, ...) opal_output(0, "verbena: " format, ##__VA_ARGS__)

#endif
