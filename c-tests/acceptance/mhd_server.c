// not-a-test
// link: -lmicrohttpd
/* libmicrohttpd with a thread a connection, answering 6 bytes.
 *
 *     mhd_server PORT         0 lets the kernel choose; the first line of output names the port
 *
 * SIGTERM and SIGINT end it with status 0. */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static enum MHD_Result answer(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **state)
{
    (void)cls, (void)url, (void)method, (void)version, (void)upload, (void)upload_size, (void)state;
    struct MHD_Response *response = MHD_create_response_from_buffer(6, "hello\n", MHD_RESPMEM_PERSISTENT);
    enum MHD_Result queued = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return queued;
}

int main(int argc, char **argv)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(argc == 2 ? atoi(argv[1]) : 0)};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);

    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL, NULL, answer, NULL,
        MHD_OPTION_SOCK_ADDR, &addr, MHD_OPTION_CONNECTION_LIMIT, 20000u, MHD_OPTION_END);
    if (daemon == NULL) {
        fprintf(stderr, "mhd_server: cannot start\n");
        return 1;
    }
    printf("listening on %u\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    int signal;
    sigwait(&ends, &signal);
    MHD_stop_daemon(daemon);
    return 0;
}
