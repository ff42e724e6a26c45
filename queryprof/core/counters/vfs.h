/* SQLite's own VFS, watched: it opens its files with our functions in front of its own
 * (https://www.sqlite.org/vfs.html).
 *
 * The functions of SQLite's VFS that open and delete files are exchanged in place. A file's table
 * of functions is exchanged for a copy when the file is opened, one copy for each of SQLite's few
 * tables, with the original behind it. Copies are never freed: files that are open when recording
 * ends keep them, and they only forward then. A VFS of the program's own is not touched.
 */
#pragma once

#include "sqlite/library.h"

/* Watches the files that a library's own VFSs open from now on; not where their memory cannot be
 * written, or others have exchanged their functions. Returns whether any is. With the GIL. */
bool qp_vfs_watch(const qp_sqlite_functions *sqlite);

/* Watches the files of a connection (sqlite3 *) that was opened before; with its mutex. */
void qp_vfs_watch_connection(const qp_sqlite_functions *sqlite, void *db);

/* Puts back what qp_vfs_watch exchanged, unless others have exchanged it since. With the GIL. */
void qp_vfs_unwatch(void);
