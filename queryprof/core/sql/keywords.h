/* The keywords of SQL, as SQLite knows them. */
#ifndef QP_SQL_KEYWORDS_H
#define QP_SQL_KEYWORDS_H

#include <stddef.h>

/* The upper-case spelling of a keyword (static), or NULL when the word is none. */
const char *qp_sql_keyword(const unsigned char *word, size_t length);

#endif
