/* The clients of a resolver, and its upstream. Usage: outside PORT

   The upstream answers on 127.0.0.1:PORT, over UDP and pipelined TCP: queries for A with 192.0.2.1 and a TTL of 300,
   all others with NODATA of the same TTL.

   A line on stdin, "ADDRESS PORT FILE WINDOW", is a command to the clients: send each query of FILE (questions.h) once
   to the resolver at ADDRESS and PORT, at most WINDOW in flight, from the query's own source address (IP_PKTINFO). The
   result is a line on stdout with three numbers: answers, those with records, and queries without an answer.

   Both are one process, so that neither waits for the other on their core. It never sleeps while queries are in flight,
   so that the resolver does not spend time on waking it up. */
#define _GNU_SOURCE
#include "questions.h"
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { BATCH = 64, SIZE = 4096, FILES = 2048, ROOM = 16384, QUESTION_TYPE_A = 1 };
static const double PATIENCE = 5, LIMIT = 15; /* seconds without an answer; seconds in which queries are sent */

static int events, upstream, listener; /* file descriptors */
static uint8_t pending[FILES][ROOM];   /* of each connection to the upstream: an incomplete message */
static size_t pending_size[FILES];

static struct sockaddr_in resolver = {.sin_family = AF_INET};

static void watch(int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(events, EPOLL_CTL_ADD, fd, &event);
}

/* The upstream. */

/* Writes the answer to a query over the query; returns its length, 0 if the message was no query. */
static size_t answer(uint8_t *message, size_t length) {
    static const uint8_t address[] = {0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 1};
    static const uint8_t soa[] = {0xc0, 0x0c, 0, 6, 0, 1, 0, 0, 1, 44, 0, 22, 0, 0, 0, 0, 0,
                                  1,    0,    0, 0, 1, 0, 0, 0, 1, 0,  0,  0, 1, 0, 0, 1, 44};
    static const uint8_t opt[] = {0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0};
    size_t at = HEADER;

    while (at < length && message[at])
        at += 1 + message[at];
    at += 5;
    if (at > length)
        return 0;
    int is_address = message[at - 4] == 0 && message[at - 3] == QUESTION_TYPE_A, has_opt = message[11] != 0;
    message[2] = (message[2] & 0x79) | 0x80;
    message[3] = 0x80;
    message[7] = is_address;
    message[9] = !is_address;
    message[11] = has_opt;
    size_t size = is_address ? sizeof address : sizeof soa;
    memcpy(message + at, is_address ? address : soa, size);
    at += size;
    if (has_opt) {
        memcpy(message + at, opt, sizeof opt);
        at += sizeof opt;
    }
    return at;
}

static void answer_datagrams(void) {
    static uint8_t data[BATCH][SIZE];
    static struct sockaddr_in peers[BATCH];
    struct iovec spans[BATCH];
    struct mmsghdr messages[BATCH];

    for (int i = 0; i < BATCH; i++) {
        spans[i] = (struct iovec){data[i], SIZE / 2};
        messages[i].msg_hdr = (struct msghdr){
            .msg_iov = &spans[i], .msg_iovlen = 1, .msg_name = &peers[i], .msg_namelen = sizeof peers[i]};
    }
    int count = recvmmsg(upstream, messages, BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++)
        spans[i].iov_len = answer(data[i], messages[i].msg_len);
    for (int sent = 0; sent < count;) {
        int some = sendmmsg(upstream, messages + sent, count - sent, 0);
        sent += some > 0 ? some : 1; /* the kernel has refused the first one: drop it */
    }
}

/* Answers the complete messages of a connection in one write, and keeps an incomplete one. */
static int answer_stream(int fd) {
    static uint8_t out[4 * ROOM];
    uint8_t *data = pending[fd];
    size_t at = 0, filled = 0;
    ssize_t came = recv(fd, data + pending_size[fd], ROOM - pending_size[fd], MSG_DONTWAIT);

    if (came <= 0)
        return -1;
    size_t size = pending_size[fd] + came;
    while (size - at >= 2 && size - at - 2 >= (size_t)(data[at] << 8 | data[at + 1])) {
        size_t length = data[at] << 8 | data[at + 1];
        memcpy(out + filled + 2, data + at + 2, length);
        size_t answered = answer(out + filled + 2, length);
        out[filled] = answered >> 8;
        out[filled + 1] = answered & 0xff;
        filled += answered ? 2 + answered : 0;
        at += 2 + length;
    }
    pending_size[fd] = size - at;
    memmove(data, data + at, size - at);
    /* A window of answers always fits into the socket's buffer. */
    return filled == 0 || send(fd, out, filled, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)filled ? 0 : -1;
}

static void accept_connection(void) {
    int fd = accept(listener, NULL, NULL), on = 1;
    if (fd >= FILES)
        close(fd);
    else if (fd >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        pending_size[fd] = 0;
        watch(fd);
    }
}

/* Answers the messages that have arrived, or waits for one; returns whether stdin has a line. */
static int serve(int timeout) {
    struct epoll_event ready[BATCH];
    int count = epoll_wait(events, ready, BATCH, timeout), has_command = 0;

    for (int i = 0; i < count; i++) {
        int fd = ready[i].data.fd;
        if (fd == STDIN_FILENO)
            has_command = 1;
        else if (fd == listener)
            accept_connection();
        else if (fd == upstream)
            answer_datagrams();
        else if (answer_stream(fd) < 0)
            close(fd);
    }
    return has_command;
}

static void open_upstream(int port) {
    struct sockaddr_in own = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int on = 1, room = 4 << 20;

    events = epoll_create1(0);
    upstream = socket(AF_INET, SOCK_DGRAM, 0);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(upstream, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(upstream, (struct sockaddr *)&own, sizeof own) < 0 ||
        bind(listener, (struct sockaddr *)&own, sizeof own) < 0 || listen(listener, 1024) < 0) {
        perror("outside");
        exit(1);
    }
    watch(STDIN_FILENO);
    watch(upstream);
    watch(listener);
}

/* The clients. */

/* Sends `count` queries, from the one at `first` on, each from its own source; returns the number the kernel took. */
static int ask(int sock, size_t first, int count) {
    static struct mmsghdr messages[BATCH];
    static struct iovec spans[BATCH];
    static Control controls[BATCH];

    for (int i = 0; i < count; i++)
        address_from_source(&messages[i].msg_hdr, &spans[i], &controls[i], &resolver, questions[(first + i) % total]);
    int sent = sendmmsg(sock, messages, count, 0);
    return sent > 0 ? sent : 0;
}

/* Reads and counts the answers that have arrived; returns the number of messages. */
static int take_answers(int sock) {
    static uint8_t data[BATCH][SIZE];
    static struct mmsghdr messages[BATCH];
    static struct iovec spans[BATCH];

    for (int i = 0; i < BATCH; i++) {
        spans[i] = (struct iovec){data[i], SIZE};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &spans[i], .msg_iovlen = 1};
    }
    int came = recvmmsg(sock, messages, BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < came; i++)
        if (messages[i].msg_len >= HEADER) {
            answers++;
            with_records += has_records(data[i]);
        }
    return came > 0 ? came : 0;
}

/* Sends all queries of the file, `window` in flight; returns the number of those without an answer. */
static long ask_all(int sock, long window) {
    double began = now(), heard = began;
    size_t asked = 0;
    long waiting = 0;

    for (;;) {
        double time = now();
        int more = time < began + LIMIT && asked < total;
        if ((!more && waiting <= 0) || time > heard + PATIENCE)
            return waiting;
        long count = window - waiting < BATCH ? window - waiting : BATCH, left = total - asked;
        if (more && count > 0) {
            int sent = ask(sock, asked, count < left ? count : left);
            asked += sent;
            waiting += sent;
        }
        serve(0);
        int came = take_answers(sock);
        waiting -= came;
        if (came)
            heard = time;
    }
}

static void run_command(const char *line) {
    int port;
    long window;
    char address[INET_ADDRSTRLEN], path[SIZE];

    if (sscanf(line, "%15s %d %4095s %ld", address, &port, path, &window) != 4 || load(path) < 0 ||
        inet_pton(AF_INET, address, &resolver.sin_addr) != 1)
        exit(2);
    int sock = socket(AF_INET, SOCK_DGRAM, 0), room = 4 << 20;
    setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    resolver.sin_port = htons(port);
    answers = with_records = 0;
    long lost = ask_all(sock, window);
    close(sock);
    printf("%lu %lu %ld\n", answers, with_records, lost);
    fflush(stdout);
}

int main(int argc, char **argv) {
    char line[2 * SIZE];

    if (argc != 2)
        return 2;
    open_upstream(atoi(argv[1]));
    for (;;)
        if (serve(-1)) {
            ssize_t size = read(STDIN_FILENO, line, sizeof line - 1);
            if (size <= 0)
                return 0;
            line[size] = 0;
            run_command(line);
        }
}
