/* Writes a normal form: with spaces between tokens where needed, and with equal neighbors in a list
 * as one item. */
#pragma once

#include <stddef.h>

#include "sql/scanner.h"

/* Writes a token. */
void qp_put_token(scanner *s, token_kind kind, const char *text, size_t length);

/* Writes a parenthesis, and opens or closes its scope. */
void qp_put_open_parenthesis(scanner *s);
void qp_put_close_parenthesis(scanner *s);

/* Writes a comma or semicolon, which separates the items of a list. */
void qp_put_separator(scanner *s, token_kind kind, const char *text, scope_kind list);

void qp_open_scope(scanner *s, scope_kind kind);

/* Ends the innermost scope if it is a VALUES list. */
void qp_close_values_list(scanner *s);

/* Ends the current item of a list, and drops it if it equals the previous item. */
void qp_end_list_item(scanner *s, scope *list);
