/* Complaints: messages for the person who runs the program. */
#pragma once

/* Writes a line to the program's stderr, as queryprof.core.recorder.complain does: not to a file
 * that the program has opened in its place. The caller must hold the GIL. It may run code of the
 * program; it leaves no exception. `format` is of PyUnicode_FromFormat. */
void qp_complain(const char *format, ...);
