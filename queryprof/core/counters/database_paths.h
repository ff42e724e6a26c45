/* The paths of databases, and the files at these paths. A path keeps its number as long as the
 * process lives. The functions may be called in any thread, without the GIL.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Returns the number of a database's path (copied if `of_main`); 0 if the table is full. The path
 * of an attached database is not stored: it is a value in a statement, which may be a secret. */
uint32_t qp_database_path_number(const char *path, bool of_main);

/* Returns a path by its number (static text); "" for 0. For a file that was never a main database:
 * "(attached IDENTITY)", or "(attached)" if there were too many such files. */
const char *qp_database_path_text(uint32_t number);

/* Returns the identity of the file at this path: a hash of the file's device and inode, which is
 * the same in each process; 0 if unknown. */
uint64_t qp_database_file_identity(uint32_t number);
