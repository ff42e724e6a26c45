/* Complaints: messages for the person who runs the program. */
#pragma once

/* Writes a line to the program's stderr, like queryprof.core.recorder.complain, unless the program
 * has opened another file with that descriptor. The caller must hold the GIL. May run code of the
 * program. Leaves no exception. `format` is a format for PyUnicode_FromFormat. */
void qp_complain(const char *format, ...);
