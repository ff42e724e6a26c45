/* The keywords of SQL, as SQLite defines them. */
#pragma once

#include <stddef.h>

/* Returns the upper-case spelling of a keyword (static), or NULL if the word is not a keyword. */
const char *qp_sql_keyword(const unsigned char *word, size_t length);
