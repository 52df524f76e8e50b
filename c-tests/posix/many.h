/* What the tests of poll and select share: many pipes to watch, of which one is written to after a while. */
#ifndef MANY_H
#define MANY_H

#include "fds.h"

enum { DESCRIPTORS = 1000 };

CHECK_UNUSED static int watch_reads[DESCRIPTORS], watch_writes[DESCRIPTORS];

CHECK_UNUSED static void open_many(int count)
{
    raise_files();
    for (int i = 0; i < count; i++) {
        int fds[2];
        CHECK_SYS(pipe(fds));
        watch_reads[i] = fds[0];
        watch_writes[i] = fds[1];
    }
}

CHECK_UNUSED static void close_many(int count)
{
    for (int i = 0; i < count; i++) {
        CHECK_SYS(close(watch_reads[i]));
        CHECK_SYS(close(watch_writes[i]));
    }
}

#endif
