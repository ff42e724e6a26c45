#include "runtime/thread_local.h"

QP_THREAD_LOCAL qp_local qp_here;
