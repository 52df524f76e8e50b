// The second library of dlopen_tls.c: the same in the static model, so it lives in the surplus beside the TCB.
// not-a-test
#define THREAD __attribute__((tls_model("initial-exec"))) __thread
#define BLOCK 200
#include "dlopen_tls_lib.c"
