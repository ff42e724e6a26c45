/* Times the calls of the library's function through which a statement is executed: of one function
 * at a time, and of some calls.
 *
 * While it is watched, the interpreter evaluates frames through a function of ours (PEP 523), which
 * sees each call, also those that raise; CPython lets one function do so, and none is displaced.
 * What the program's own code takes inside the library (signals, from_db, converters) is the
 * program's, and so is not counted.
 */
#pragma once

#include <Python.h>

#include "calls/call.h"

/* Begins to watch the function through which the statement of a call in progress is executed,
 * unless another one is watched, or the statement's time is known. Raises nothing. */
void qp_library_watch(const qp_call *call);

/* Notes an execution while a function is watched. */
void qp_library_note(const qp_call *call);

/* Ends watching. Drops a reference, which may run code of the program. */
void qp_library_watch_stop(void);

/* Ends watching, and forgets earlier tries. Drops a reference, too. */
void qp_library_watch_clear(void);

/* In a forked child: what the parent has timed is dropped. Drops a reference, too. */
void qp_library_watch_after_fork(void);
