#include "statements/kinds.h"

#include <stdbool.h>
#include <string.h>

#include "sql/normal_form.h"

typedef struct {
    const char *text;
    size_t length;
} normal_form;

static bool begins_with_word(const normal_form *form, const char *word)
{
    size_t size = strlen(word);
    return form->length >= size && !memcmp(form->text, word, size);
}

static bool contains_word(const normal_form *form, const char *word)
{
    size_t size = strlen(word);
    const char *end = form->text + form->length;
    const char *at = form->text;
    while ((at = memchr(at, word[0], (size_t)(end - at))) && (size_t)(end - at) >= size) {
        if (!memcmp(at, word, size)) {
            return true;
        }
        at++;
    }
    return false;
}

typedef bool test(const normal_form *form, const char *word);

/* Returns whether the test is true for one of the words. The list ends with NULL. */
static bool is_true_for_any(test *is_it, const normal_form *form, const char *const *words)
{
    while (*words && !is_it(form, *words)) {
        words++;
    }
    return *words != NULL;
}

static bool changes_rows(const normal_form *form)
{
    static const char *const words[] = {"INSERT ", "UPDATE ",  "DELETE ",
                                        "MERGE ",  "REPLACE ", NULL};
    return is_true_for_any(begins_with_word, form, words) && !contains_word(form, " RETURNING ");
}

/* SQLite allows a statement that changes rows only at the beginning or after a WITH, never inside a
 * query. */
static bool changes_after_with(const normal_form *form)
{
    static const char *const words[] = {" INSERT ", " UPDATE ", " DELETE FROM ", " REPLACE INTO ",
                                        NULL};
    return begins_with_word(form, "WITH ") && is_true_for_any(contains_word, form, words) &&
           !contains_word(form, " RETURNING ");
}

static bool can_be_explained(const normal_form *form)
{
    static const char *const words[] = {"SELECT ", "INSERT ",  "UPDATE ", "DELETE ",
                                        "WITH ",   "REPLACE ", NULL};
    return is_true_for_any(begins_with_word, form, words);
}

static qp_schema_change change_of_script(const normal_form *form)
{
    static const char *const creating[] = {"CREATE ", "VIRTUAL ", NULL};
    static const char *const other[] = {"DROP ",   "ALTER ",  "ATTACH ", "DETACH ",
                                        "ANALYZE", "PRAGMA ", "TEMP",    NULL};
    bool is_cut = form->length >= QP_STATEMENT_BYTES - 1;
    if (is_cut || is_true_for_any(contains_word, form, other)) {
        return QP_SCHEMA_CHANGED;
    }
    if (!is_true_for_any(contains_word, form, creating)) {
        return QP_SCHEMA_KEPT;
    }
    return contains_word(form, "IF NOT EXISTS") ? QP_SCHEMA_ENSURED : QP_SCHEMA_CHANGED;
}

static qp_schema_change change_of(const normal_form *form)
{
    static const char *const changing[] = {"CREATE ", "DROP ", "ALTER ", NULL};
    /* The effect of ANALYZE depends on the rows, and the effect of ATTACH on the file. */
    static const char *const unknown[] = {"ANALYZE", "ATTACH ", "DETACH ", "PRAGMA optimize", NULL};
    static const char *const planning[] = {"case_sensitive_like", "automatic_index",
                                           "reverse_unordered_selects", "writable_schema", NULL};
    static const char *const ending[] = {"COMMIT", "END", NULL};
    static const char *const elsewhere_too[] = {"(backup)", "(deserialize)", NULL};
    if (is_true_for_any(begins_with_word, form, changing)) {
        return begins_with_word(form, "CREATE TEMP")  ? QP_SCHEMA_ASIDE
               : contains_word(form, "IF NOT EXISTS") ? QP_SCHEMA_ENSURED
                                                      : QP_SCHEMA_CHANGED;
    }
    if (is_true_for_any(begins_with_word, form, unknown)) {
        return QP_SCHEMA_UNKNOWN;
    }
    if (begins_with_word(form, "PRAGMA ")) {
        return is_true_for_any(contains_word, form, planning) ? QP_SCHEMA_ASIDE : QP_SCHEMA_KEPT;
    }
    if (begins_with_word(form, "(close)")) {
        return QP_SCHEMA_ROLLED_BACK; /* undoes all changes that were not committed */
    }
    if (begins_with_word(form, "ROLLBACK")) {
        return contains_word(form, " TO ") ? QP_SCHEMA_CHANGED : QP_SCHEMA_ROLLED_BACK;
    }
    if (is_true_for_any(begins_with_word, form, ending)) {
        return QP_SCHEMA_COMMITTED;
    }
    return is_true_for_any(begins_with_word, form, elsewhere_too) ? QP_SCHEMA_ELSEWHERE
                                                                  : QP_SCHEMA_KEPT;
}

qp_statement_row qp_statement_classify(const char *text, size_t length)
{
    const normal_form form = {text, length};
    return (qp_statement_row){.changes_rows = changes_rows(&form),
                              .changes_uncounted = changes_after_with(&form),
                              .can_be_explained = can_be_explained(&form),
                              .schema_change = (uint8_t)change_of(&form),
                              .script_change = (uint8_t)change_of_script(&form)};
}
