// needs: redis-server
// link: -lhiredis
// timeout: 120
/* An ordinary hiredis client: 200 threads, a connection each, 1,000 commands each, every answer checked. */
#include "../common/check.h"
#include <hiredis/hiredis.h>

enum { THREADS = 200, COMMANDS = 1000, PIPELINE = 50 };

static int port;
static pthread_barrier_t everybody_connected;

static redisContext *connect_it(int me)
{
    struct timeval patience = {30, 500000};
    redisContext *redis =
        me % 2 ? redisConnect("127.0.0.1", port) : redisConnectWithTimeout("127.0.0.1", port, patience);
    CHECK(redis != NULL);
    if (redis->err)
        CHECK_FAIL("connection %d: %s", me, redis->errstr);
    if (me % 4 == 0)
        CHECK_EQ(redisSetTimeout(redis, patience), REDIS_OK);
    return redis;
}

static redisReply *expect(redisContext *redis, redisReply *reply, int type)
{
    if (reply == NULL)
        CHECK_FAIL("no reply: %s", redis->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        CHECK_FAIL("an error: %s", reply->str);
    CHECK_EQ(reply->type, type);
    return reply;
}

static void expect_number(redisContext *redis, redisReply *reply, long long want)
{
    CHECK_EQ(expect(redis, reply, REDIS_REPLY_INTEGER)->integer, want);
    freeReplyObject(reply);
}

static void expect_text(redisContext *redis, redisReply *reply, int type, const char *want)
{
    CHECK_STR(expect(redis, reply, type)->str, want);
    freeReplyObject(reply);
}

static void count_alone(redisContext *redis, int me, int upto)
{
    for (int i = 1; i <= upto; i++)
        expect_number(redis, redisCommand(redis, "INCR own:%d", me), i);
}

static void count_together(redisContext *redis, int times)
{
    long long last = 0;
    for (int i = 0; i < times; i++) {
        redisReply *reply = expect(redis, redisCommand(redis, "INCR shared"), REDIS_REPLY_INTEGER);
        CHECK(reply->integer > last && reply->integer <= THREADS * times);
        last = reply->integer;
        freeReplyObject(reply);
    }
}

static void keep_and_find(redisContext *redis, int me, int times)
{
    char value[256];
    for (int i = 0; i < times; i++) {
        int size = snprintf(value, sizeof value, "thread %d value %d %0*d", me, i, i % 200 + 1, i);
        expect_text(redis, redisCommand(redis, "SET key:%d %b", me, value, (size_t)size), REDIS_REPLY_STATUS, "OK");
        expect_text(redis, redisCommand(redis, "GET key:%d", me), REDIS_REPLY_STRING, value);
    }
}

static void in_pipelines(redisContext *redis, int me, int times)
{
    char value[32];
    for (int first = 0; first < times; first += PIPELINE) {
        for (int i = first; i < first + PIPELINE; i++)
            CHECK_EQ(i % 2 ? redisAppendCommand(redis, "INCR piped:%d", me) : redisAppendCommand(redis, "ECHO %d-%d", me, i),
                     REDIS_OK);
        for (int i = first; i < first + PIPELINE; i++) {
            redisReply *reply = NULL;
            CHECK_EQ(redisGetReply(redis, (void **)&reply), REDIS_OK);
            snprintf(value, sizeof value, "%d-%d", me, i);
            if (i % 2)
                expect_number(redis, reply, i / 2 + 1);
            else
                expect_text(redis, reply, REDIS_REPLY_STRING, value);
        }
    }
}

/* Even threads wait inside the server for what their odd neighbours push. */
static void hand_over(redisContext *redis, int me, int times)
{
    char value[32];
    for (int i = 0; i < times; i++) {
        snprintf(value, sizeof value, "item %d", i);
        if (me % 2) {
            redisReply *reply = redisCommand(redis, "RPUSH queue:%d %s", me / 2, value);
            CHECK(expect(redis, reply, REDIS_REPLY_INTEGER)->integer >= 1);
            freeReplyObject(reply);
        } else {
            redisReply *reply = redisCommand(redis, "BLPOP queue:%d 0", me / 2);
            CHECK_EQ(expect(redis, reply, REDIS_REPLY_ARRAY)->elements, 2);
            CHECK_STR(reply->element[1]->str, value);
            freeReplyObject(reply);
        }
    }
}

static void large_value(redisContext *redis, int me)
{
    size_t size = 300000 + (size_t)me;
    char *value = malloc(size);
    memset(value, 'a' + me % 26, size);
    expect_text(redis, redisCommand(redis, "SET large:%d %b", me % 8, value, size), REDIS_REPLY_STATUS, "OK");
    redisReply *reply = expect(redis, redisCommand(redis, "GET large:%d", me % 8), REDIS_REPLY_STRING);
    CHECK(reply->len >= 300000 && reply->len < 300000 + THREADS);
    for (size_t i = 1; i < (size_t)reply->len; i++)
        CHECK_EQ(reply->str[i], reply->str[0]);
    freeReplyObject(reply);
    free(value);
}

static void *client(void *arg)
{
    int me = (int)(intptr_t)arg;
    redisContext *redis = connect_it(me);
    pthread_barrier_wait(&everybody_connected);
    count_alone(redis, me, 200);
    count_together(redis, 200);
    keep_and_find(redis, me, 124);
    large_value(redis, me);
    in_pipelines(redis, me, 300);
    hand_over(redis, me, 50);
    redisFree(redis);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    const char *where = getenv("REDIS_PORT");
    CHECK(where != NULL);
    port = atoi(where);
    CHECK_OK(pthread_barrier_init(&everybody_connected, NULL, THREADS));

    redisContext *redis = connect_it(0);
    expect_text(redis, redisCommand(redis, "FLUSHALL"), REDIS_REPLY_STATUS, "OK");
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(client, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    expect_text(redis, redisCommand(redis, "GET shared"), REDIS_REPLY_STRING, "40000");
    redisReply *reply = expect(redis, redisCommand(redis, "MGET own:0 own:199 piped:7"), REDIS_REPLY_ARRAY);
    CHECK_STR(reply->element[0]->str, "200");
    CHECK_STR(reply->element[1]->str, "200");
    CHECK_STR(reply->element[2]->str, "150");
    freeReplyObject(reply);
    redisFree(redis);
    printf("%d threads, %d commands each: ok\n", THREADS, COMMANDS);
    return 0;
}
