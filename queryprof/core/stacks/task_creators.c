#include "stacks/task_creators.h"

#include "runtime/allocation.h"
#include "runtime/compiler.h"
#include "runtime/index.h"
#include "runtime/recording.h"
#include "stacks/stacks.h"
#include "stacks/submitter.h"

enum { FIRST_SLOTS = 1024, MAX_SLOTS = 1 << 20 /* 32 MB, for 524,288 living tasks */ };

typedef struct {
    const void *task; /* NULL if free */
    uint32_t path;
    uint32_t call_path;         /* call path of the last work that the task handed over or
                                 * awaited; QP_PATH_NONE: none */
    const void *call_outermost; /* outermost code object of these frames, only compared; NULL if
                                 * unknown */
} creator;

static struct {
    PyTypeObject *type; /* owned; NULL if not watched */
    destructor deallocate;
} watched;

static struct {
    creator *slots; /* open addressing, linear probing */
    uint32_t mask;
    uint32_t used;
} table;

bool qp_task_creators_known;

static const void *(*find_running_task)(const qp_step *);

void qp_task_creators_set_finder(const void *(*running_task)(const qp_step *))
{
    find_running_task = running_task;
}

static PyCodeObject *boundary_code; /* owned */

bool qp_task_is_boundary(const PyCodeObject *code)
{
    return code == boundary_code;
}

void qp_task_set_boundary(PyCodeObject *code)
{
    Py_XSETREF(boundary_code, (PyCodeObject *)Py_NewRef((PyObject *)code));
}

static void forget_all(void)
{
    qp_free(table.slots);
    table.slots = NULL;
    table.used = 0;
    qp_task_creators_known = false;
}

/* Returns the slot of a task, or the free slot for the task. */
static creator *task_slot(const void *task)
{
    uint32_t slot = (uint32_t)qp_hash_mix(0, (uintptr_t)task) & table.mask;
    while (table.slots[slot].task && table.slots[slot].task != task) {
        slot = (slot + 1) & table.mask;
    }
    return &table.slots[slot];
}

static uint32_t slot_index(const creator *slot)
{
    return (uint32_t)(slot - table.slots);
}

/* Frees a task's slot, and moves up the entries that were placed behind the slot (Knuth, TAOCP 6.4,
 * algorithm R). */
static void forget_task(const void *task)
{
    creator *slot = task_slot(task);
    if (!slot->task) {
        return;
    }
    table.used--;
    uint32_t gap = slot_index(slot);
    for (uint32_t at = (gap + 1) & table.mask; table.slots[at].task; at = (at + 1) & table.mask) {
        uint32_t home = (uint32_t)qp_hash_mix(0, (uintptr_t)table.slots[at].task) & table.mask;
        if (((at - home) & table.mask) >= ((at - gap) & table.mask)) {
            table.slots[gap] = table.slots[at];
            gap = at;
        }
    }
    table.slots[gap].task = NULL;
}

static void on_deallocate(PyObject *task)
{
    destructor deallocate = watched.deallocate;
    if (table.slots) {
        forget_task(task);
    }
    deallocate(task);
}

void qp_task_creators_watch(PyTypeObject *type)
{
    if (!watched.type && type->tp_dealloc != on_deallocate) {
        watched.type = (PyTypeObject *)Py_NewRef((PyObject *)type);
        watched.deallocate = type->tp_dealloc;
        type->tp_dealloc = on_deallocate;
    }
}

void qp_task_creators_stop(void)
{
    forget_all();
    Py_CLEAR(boundary_code);
    if (watched.type && watched.type->tp_dealloc == on_deallocate) {
        watched.type->tp_dealloc = watched.deallocate;
        Py_CLEAR(watched.type);
    }
}

/* Doubles the table, or empties it if it has its maximum size. Returns false if out of memory. */
static QP_COLD bool make_room(void)
{
    uint32_t before = table.slots ? table.mask + 1 : 0;
    creator *old = table.slots;
    uint32_t slots = before ? 2 * before : FIRST_SLOTS;
    if (slots > MAX_SLOTS) {
        forget_all();
        old = NULL;
        before = 0;
        slots = FIRST_SLOTS;
    }
    creator *made = qp_allocate(slots, sizeof *made);
    if (!made) {
        return false;
    }
    table.slots = made;
    table.mask = slots - 1;
    for (uint32_t i = 0; i < before; i++) {
        if (old[i].task) {
            *task_slot(old[i].task) = old[i];
        }
    }
    qp_free(old);
    return true;
}

/* Returns the entry of a task, and adds a new entry if needed. NULL if the task is not of the
 * watched type, or if out of memory. */
static creator *find_or_add_task(PyObject *task)
{
    if (!watched.type || !PyObject_TypeCheck(task, watched.type)) {
        return NULL;
    }
    if ((!table.slots || table.used > table.mask / 2) && !make_room()) {
        return NULL;
    }
    creator *slot = task_slot(task);
    if (!slot->task) {
        table.used++;
        *slot = (creator){task, QP_PATH_NONE, QP_PATH_NONE, NULL};
    }
    qp_task_creators_known = true;
    return slot;
}

void qp_task_creator_add(PyObject *task, uint32_t path)
{
    creator *entry = find_or_add_task(task);
    if (entry) {
        entry->path = path;
    }
}

void qp_task_note_call_path(uint32_t path, const void *outermost_code)
{
    const void *task = find_running_task ? find_running_task(NULL) : NULL;
    creator *entry = task ? find_or_add_task((PyObject *)task) : NULL;
    if (entry) {
        entry->call_path = path;
        entry->call_outermost = outermost_code;
    }
}

uint32_t qp_task_path_before_greenlet(const qp_step *step, const void *outermost_code)
{
    const void *task = find_running_task && qp_task_creators_known ? find_running_task(step) : NULL;
    const creator *found = task && qp_task_creators_known ? task_slot(task) : NULL;
    bool is_known = found && found->task && found->call_outermost && outermost_code;
    bool is_elsewhere = is_known && found->call_outermost != outermost_code;
    return is_elsewhere ? found->call_path : QP_PATH_NONE;
}

/* Returns the call path of the running task's creator, or QP_PATH_NONE. */
static uint32_t task_creator_path(void)
{
    const void *task = find_running_task ? find_running_task(NULL) : NULL;
    if (!task || !qp_task_creators_known) { /* a property of a step's callback may run code */
        return QP_PATH_NONE;
    }
    const creator *found = task_slot(task);
    return found->task ? found->path : QP_PATH_NONE;
}

/* Returns the path, or the stack (is_stack), of the running work's submitter. Without a submitter,
 * returns the path of the running task's creator. */
static uint32_t submitter_or_creator(bool is_stack)
{
    const qp_submitter *submitter = qp_running_submitter();
    if (submitter) {
        uint32_t found = is_stack ? submitter->stack : submitter->path;
        return submitter->recording == qp_recording ? found : QP_PATH_NONE;
    }
    return qp_task_creators_known ? task_creator_path() : QP_PATH_NONE;
}

QP_COLD uint32_t qp_submitter_path_find(void)
{
    return submitter_or_creator(false);
}

QP_COLD uint32_t qp_submitter_stack(void)
{
    return submitter_or_creator(true);
}
