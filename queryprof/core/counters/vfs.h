/* SQLite's own VFS, watched: it opens its files with our functions in front of its own
 * (https://www.sqlite.org/vfs.html).
 *
 * A VFS of ours is registered in front of each of SQLite's own, under the same name, so that ATTACH
 * and VACUUM, which look a connection's VFS up by its name, find SQLite's after the recording. It
 * is a copy of SQLite's but for the functions that open and delete files; so is a copy of it that a
 * tool makes. Nothing of SQLite's is written but the first field of files that were opened for us.
 * A VFS of the program's own is not touched, and stays the default if it was.
 */
#pragma once

#include "sqlite/library.h"

/* Watches the files that a library's own VFSs open from now on. Returns whether any is watched: not
 * where others have exchanged their functions. With the GIL. */
bool qp_vfs_watch(const qp_sqlite_functions *sqlite);

/* Whether all that is done with the files of a connection (sqlite3 *) is seen: false for a VFS of
 * the program's own, and for a connection that was opened before and has a rollback journal, of
 * which only the locks are known. It has just been opened; or its mutex is held, and its files are
 * watched from now on. */
bool qp_vfs_sees_connection(const qp_sqlite_functions *sqlite, void *db);

/* Watches no further files. With the GIL. */
void qp_vfs_unwatch(void);
