#include "runtime/recording.h"

uint32_t qp_recording;

int64_t qp_own_ticks;
