/* Sends queries at an even pace, and measures the latency of each answer. Usage: pace PORT FILE RATE SECONDS

   The queries of FILE (questions.h) are sent repeatedly, RATE in a second, each from its own source address. An
   answer's latency ends when the kernel gets it (SO_TIMESTAMPNS), not when this process reads it. Prints: answers,
   those with records, queries without an answer within a second; then the latency in microseconds that 50 %, 90 %,
   99 %, 99.9 % and all of the answers do not exceed.

   It sleeps between two queries, so that the stand-in for an API server can make changes on the same core. */
#define _GNU_SOURCE
#include "questions.h"
#include <poll.h>
#include <sys/prctl.h>

enum { SIZE = 4096, IDS = 1 << 16 };
static const double PATIENCE = 1; /* seconds */

static struct sockaddr_in server = {.sin_family = AF_INET};
static double sent_at[IDS]; /* of the wall clock, by message id; 0: answered */
static double *latencies;   /* microseconds */

static double wall(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void ask(int sock, unsigned long number) {
    static uint8_t copy[SIZE];
    uint8_t *question = questions[number % total];
    struct msghdr header;
    struct iovec span;
    Control room;

    memcpy(copy, question, HEAD + length_of(question));
    copy[HEAD] = number >> 8 & 0xff;
    copy[HEAD + 1] = number & 0xff;
    address_from_source(&header, &span, &room, &server, copy);
    sent_at[number % IDS] = wall();
    if (sendmsg(sock, &header, 0) < 0)
        sent_at[number % IDS] = 0;
}

/* Reads the answers that have arrived, and notes their latencies. */
static void take_answers(int sock) {
    static uint8_t data[SIZE];
    union {
        char room[CMSG_SPACE(sizeof(struct timespec))];
        struct cmsghdr aligned;
    } control;

    for (;;) {
        struct iovec span = {data, SIZE};
        struct msghdr header = {
            .msg_iov = &span, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.room};
        if (recvmsg(sock, &header, MSG_DONTWAIT) < HEADER)
            return;
        struct cmsghdr *found = CMSG_FIRSTHDR(&header);
        struct timespec arrived;
        double *sent = &sent_at[data[0] << 8 | data[1]];
        if (!found || found->cmsg_type != SCM_TIMESTAMPNS || *sent == 0)
            continue;
        memcpy(&arrived, CMSG_DATA(found), sizeof arrived);
        latencies[answers++] = (arrived.tv_sec + arrived.tv_nsec / 1e9 - *sent) * 1e6;
        with_records += has_records(data);
        *sent = 0;
    }
}

/* Reads answers until this time. */
static void wait_until(int sock, double end) {
    struct pollfd ready = {.fd = sock, .events = POLLIN};
    for (double left; (left = end - now()) > 0;) {
        struct timespec limit = {.tv_sec = left, .tv_nsec = (left - (long)left) * 1e9};
        if (ppoll(&ready, 1, &limit, NULL) > 0)
            take_answers(sock);
    }
}

static int compare(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

/* The quantile of the latencies: `part` of the answers do not exceed it. */
static double quantile(double part) {
    unsigned long at = part * answers;
    return answers ? latencies[at < answers ? at : answers - 1] : 0;
}

int main(int argc, char **argv) {
    if (argc != 5 || load(argv[2]) < 0)
        return 2;
    int sock = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
    double rate = atof(argv[3]), begin = now();
    unsigned long queries = rate * atof(argv[4]);
    server.sin_port = htons(atoi(argv[1]));
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(sock, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    prctl(PR_SET_TIMERSLACK, 1);
    latencies = calloc(queries + 1, sizeof *latencies);

    for (unsigned long number = 0; number < queries; number++) {
        ask(sock, number);
        wait_until(sock, begin + (number + 1) / rate);
    }
    wait_until(sock, now() + PATIENCE);
    qsort(latencies, answers, sizeof *latencies, compare);
    printf("%lu %lu %lu %.1f %.1f %.1f %.1f %.1f\n", answers, with_records, queries - answers, quantile(0.5),
           quantile(0.9), quantile(0.99), quantile(0.999), quantile(1));
    return 0;
}
