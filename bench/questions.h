/* Reads the file of queries that bench/questions.py writes: for each query 4 octets of source address, 2 of length,
   and the message; all big-endian. Included by the generators. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { SOURCE = 4, HEAD = 6, HEADER = 12 };

typedef union {
    char room[CMSG_SPACE(sizeof(struct in_pktinfo))];
    struct cmsghdr aligned;
} Control;

static uint8_t *file, **questions; /* each points to the source address of a query in `file` */
static size_t total;
static unsigned long answers, with_records;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static size_t length_of(const uint8_t *question) {
    return question[SOURCE] << 8 | question[SOURCE + 1];
}

/* Reads a file, which replaces the previous one. Returns -1 if it cannot be read or is empty. */
static int load(const char *path) {
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return -1;
    fseek(stream, 0, SEEK_END);
    size_t size = ftell(stream);
    rewind(stream);
    file = realloc(file, size);
    questions = realloc(questions, (size / HEAD + 1) * sizeof *questions);
    size_t got = file && questions ? fread(file, 1, size, stream) : 0;
    fclose(stream);
    total = 0;
    for (uint8_t *at = file; at < file + got; at += HEAD + length_of(at))
        questions[total++] = at;
    return total ? 0 : -1;
}

/* Fills in one message for sendmmsg: the query, to this server, from the query's source address. */
static inline void address_from_source(struct msghdr *header, struct iovec *span, Control *room,
                                       struct sockaddr_in *server, uint8_t *question) {
    *span = (struct iovec){question + HEAD, length_of(question)};
    *header = (struct msghdr){.msg_name = server, .msg_namelen = sizeof *server, .msg_iov = span, .msg_iovlen = 1,
                              .msg_control = room, .msg_controllen = sizeof room->room};
    struct cmsghdr *control = CMSG_FIRSTHDR(header);
    control->cmsg_level = IPPROTO_IP;
    control->cmsg_type = IP_PKTINFO;
    control->cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo));
    struct in_pktinfo source = {0};
    memcpy(&source.ipi_spec_dst, question, SOURCE);
    memcpy(CMSG_DATA(control), &source, sizeof source);
}

static inline int has_records(const uint8_t *answer) {
    return (answer[3] & 0x0f) == 0 && (answer[6] || answer[7]);
}
