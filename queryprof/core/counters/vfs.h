/* Watches SQLite's own VFS: our functions run before SQLite's when SQLite opens files
 * (https://www.sqlite.org/vfs.html).
 *
 * The functions of SQLite's VFSs that open and delete files are exchanged in place, so that a
 * connection's VFS is the same before and after: connections share a cache only if their VFS is the
 * same. Each VFS gets its own pair of our functions, which call SQLite's functions and never read
 * the struct that is passed to them. So another tool's copy of the struct works, even after the
 * recording. A VFS of the program is not changed.
 */
#pragma once

#include "sqlite/library.h"

/* Watches the files that a library's own VFSs open from now on. Skips a VFS whose memory cannot be
 * written, or whose functions were replaced. Returns whether at least one VFS is watched. The
 * caller must hold the GIL. */
bool qp_vfs_watch(const qp_sqlite_functions *sqlite);

/* Watches the files of a connection (sqlite3 *) from now on, and returns whether queryprof sees its
 * file access. False if the connection uses the program's own VFS. The connection must have just
 * been opened, or the caller must hold its mutex. */
bool qp_vfs_watch_connection(const qp_sqlite_functions *sqlite, void *db);

/* Restores the functions that qp_vfs_watch replaced, unless others have replaced them since. The
 * caller must hold the GIL. */
void qp_vfs_unwatch(void);
