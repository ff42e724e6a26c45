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

/* Watches the files that a library's own VFSs open from now on. Skips a VFS whose memory cannot be
 * written, or whose functions were replaced. Returns whether at least one VFS is watched. The
 * caller must hold the GIL. */
bool qp_vfs_watch(const qp_sqlite_functions *sqlite);

/* Returns whether queryprof sees the file access of a connection (sqlite3 *). False if it uses the
 * program's own VFS. It has just been opened, or its mutex is held: its files are watched from now
 * on. */
bool qp_vfs_sees_connection(const qp_sqlite_functions *sqlite, void *db);

/* Restores the functions that qp_vfs_watch replaced, unless others have replaced them since. The
 * caller must hold the GIL. */
void qp_vfs_unwatch(void);
