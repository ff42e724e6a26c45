/* Complaints: messages for the person who runs the program. */
#pragma once

/* Writes a line to the program's stderr, like queryprof.core.recorder.complain, unless the program
 * has opened another file with that descriptor. The caller must hold the GIL. It may run code of
 * the program; it leaves no exception. `format` is of PyUnicode_FromFormat. */
void qp_complain(const char *format, ...);
