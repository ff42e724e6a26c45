/* VFSs as other tools make them, each from whatever is registered as "unix" when tools() is called:
 *
 *     copied    a copy of the struct, with one function of its own and data of its own
 *     tabled    its xOpen exchanges the file's table for a copy with one function of its own
 *     stacked   a file of its own, with the other one behind it in the same memory
 *     late      keeps the size of a file, and looks "unix" up each time that it opens one
 *
 * Each adds to the count that tool_calls() returns.
 */
#include <sqlite3.h>
#include <string.h>

static sqlite3_vfs *original, copied, tabled, stacked, late;
static int calls, own_data;

int tool_calls(void)
{
    return calls;
}

static int counted_access(sqlite3_vfs *v, const char *name, int flags, int *out)
{
    calls++;
    return original->xAccess(original, name, flags, out);
}

enum { TABLES = 8 }; /* of one SQLite: with queryprof a file may have another than the one before */
static sqlite3_io_methods own_tables[TABLES];
static const sqlite3_io_methods *its_tables[TABLES];

static int counted_sync(sqlite3_file *f, int flags)
{
    calls++;
    return its_tables[f->pMethods - own_tables]->xSync(f, flags);
}

static int tabled_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
    int result = original->xOpen(original, name, f, flags, out);
    for (int i = 0; result == SQLITE_OK && f->pMethods && i < TABLES; i++) {
        if (!its_tables[i] || its_tables[i] == f->pMethods) {
            its_tables[i] = f->pMethods;
            memcpy(&own_tables[i], f->pMethods, sizeof own_tables[i]);
            own_tables[i].xSync = counted_sync;
            f->pMethods = &own_tables[i];
            break;
        }
    }
    return result;
}

typedef struct {
    sqlite3_file own;
    sqlite3_file behind;
} stacked_file;

#define BEHIND(f) (&((stacked_file *)(f))->behind)
#define METHODS(f) (BEHIND(f)->pMethods)

static int s_close(sqlite3_file *f)
{
    int result = METHODS(f) ? METHODS(f)->xClose(BEHIND(f)) : SQLITE_OK;
    f->pMethods = NULL;
    return result;
}
static int s_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    return METHODS(f)->xRead(BEHIND(f), to, n, at);
}
static int s_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    calls++;
    return METHODS(f)->xWrite(BEHIND(f), from, n, at);
}
static int s_truncate(sqlite3_file *f, sqlite3_int64 n)
{
    return METHODS(f)->xTruncate(BEHIND(f), n);
}
static int s_sync(sqlite3_file *f, int flags)
{
    return METHODS(f)->xSync(BEHIND(f), flags);
}
static int s_size(sqlite3_file *f, sqlite3_int64 *n)
{
    return METHODS(f)->xFileSize(BEHIND(f), n);
}
static int s_lock(sqlite3_file *f, int level)
{
    return METHODS(f)->xLock(BEHIND(f), level);
}
static int s_unlock(sqlite3_file *f, int level)
{
    return METHODS(f)->xUnlock(BEHIND(f), level);
}
static int s_reserved(sqlite3_file *f, int *out)
{
    return METHODS(f)->xCheckReservedLock(BEHIND(f), out);
}
static int s_control(sqlite3_file *f, int operation, void *argument)
{
    return METHODS(f)->xFileControl(BEHIND(f), operation, argument);
}
static int s_sector(sqlite3_file *f)
{
    return METHODS(f)->xSectorSize(BEHIND(f));
}
static int s_device(sqlite3_file *f)
{
    return METHODS(f)->xDeviceCharacteristics(BEHIND(f));
}

static const sqlite3_io_methods stacked_methods = {
    1,      s_close,  s_read,     s_write,   s_truncate, s_sync,   s_size,
    s_lock, s_unlock, s_reserved, s_control, s_sector,   s_device,
};

static int stacked_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
    BEHIND(f)->pMethods = NULL;
    int result = original->xOpen(original, name, BEHIND(f), flags, out);
    f->pMethods = METHODS(f) ? &stacked_methods : NULL;
    return result;
}

static int late_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
    sqlite3_vfs *now = sqlite3_vfs_find("unix");
    calls++;
    return now->xOpen(now, name, f, flags, out);
}

/* Registers them; `is_default`: the stacked one becomes the default. */
int tools(int is_default)
{
    if (original) {
        return 0;
    }
    original = sqlite3_vfs_find("unix");
    copied = tabled = stacked = late = *original;
    copied.pNext = tabled.pNext = stacked.pNext = late.pNext = NULL;
    copied.zName = "copied";
    copied.pAppData = original->pAppData; /* xOpen is inherited, which may need it */
    copied.xAccess = counted_access;
    tabled.zName = "tabled";
    tabled.pAppData = &own_data;
    tabled.xOpen = tabled_open;
    stacked.zName = "stacked";
    stacked.pAppData = &own_data;
    stacked.szOsFile = (int)sizeof(sqlite3_file) + original->szOsFile;
    stacked.xOpen = stacked_open;
    late.zName = "late";
    late.pAppData = &own_data;
    late.xOpen = late_open;
    return sqlite3_vfs_register(&copied, 0) || sqlite3_vfs_register(&tabled, 0) ||
           sqlite3_vfs_register(&late, 0) || sqlite3_vfs_register(&stacked, is_default);
}

/* Takes them out of the list; files that are open keep them. */
int tools_gone(void)
{
    if (!original) {
        return 0;
    }
    return sqlite3_vfs_unregister(&copied) || sqlite3_vfs_unregister(&tabled) ||
           sqlite3_vfs_unregister(&late) || sqlite3_vfs_unregister(&stacked);
}
