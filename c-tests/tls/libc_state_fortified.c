// The same as a distribution builds it.
// cflags: -O2 -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fcf-protection
#include "libc_state.c"
