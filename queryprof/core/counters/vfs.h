/* SQLite's own VFS, watched: our functions run before its own when it opens files
 * (https://www.sqlite.org/vfs.html).
 *
 * The functions of SQLite's VFSs that open and delete files are exchanged in place, so that a
 * connection's VFS is the same before and after: SQLite compares it to share a cache. Each VFS gets
 * functions of ours that know SQLite's functions, and that never read the struct they are called
 * with. So a tool's copy of the struct works, even after the recording. A VFS of the program is not
 * changed.
 */
#pragma once

#include "sqlite/library.h"

/* Watches the files that a library's own VFSs open from now on; not where their memory cannot be
 * written, or others have exchanged their functions. Returns whether any is. With the GIL. */
bool qp_vfs_watch(const qp_sqlite_functions *sqlite);

/* Whether what is done with the files of a connection (sqlite3 *) is seen; false for a VFS of the
 * program's own. It has just been opened, or its mutex is held: its files are watched from now on.
 */
bool qp_vfs_sees_connection(const qp_sqlite_functions *sqlite, void *db);

/* Puts back what qp_vfs_watch exchanged, unless others have exchanged it since. With the GIL. */
void qp_vfs_unwatch(void);
