// The bounded queue with ten million items.
// full
// timeout: 300
#define ITEMS 10000000
#include "cond_bounded_queue.c"
