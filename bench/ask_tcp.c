/* Sends queries over TCP. Usage: ask_tcp PORT FILE CONNECTIONS WINDOW

   Each query of FILE (questions.h) is sent once, from 127.0.0.1 to 127.0.0.1:PORT, in turn over CONNECTIONS that stay
   open, at most WINDOW in flight on each: 1 is one by one, more are pipelined (RFC 7766 section 6.2.1.1). Prints
   answers, those with records, and queries without an answer, as outside.c does. A connection that the server closes is
   opened again; the queries in flight on it have no answer.

   The program never sleeps, so that the server does not spend time on waking it up. */
#define _GNU_SOURCE
#include "questions.h"
#include <netinet/tcp.h>
#include <unistd.h>

enum { CONNECTIONS = 256, ROOM = 1 << 18, SIZE = 4096 };
static const double PATIENCE = 5, LIMIT = 15; /* seconds without an answer; seconds in which queries are sent */

typedef struct {
    int fd;
    long waiting;        /* queries in flight */
    size_t filled;       /* octets in `data` of an incomplete message */
    uint8_t data[ROOM];
} Connection;

static Connection connections[CONNECTIONS];
static struct sockaddr_in server = {.sin_family = AF_INET};
static size_t asked;
static long lost;

static void open_connection(Connection *connection) {
    int on = 1;
    connection->fd = socket(AF_INET, SOCK_STREAM, 0);
    connection->waiting = 0;
    connection->filled = 0;
    if (connect(connection->fd, (struct sockaddr *)&server, sizeof server) < 0) {
        perror("ask_tcp");
        exit(1);
    }
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Sends queries until `window` are in flight, all in one write; a window is small enough for the socket's buffer. */
static void ask(Connection *connection, long window) {
    static uint8_t out[ROOM];
    size_t size = 0;

    for (; connection->waiting < window && asked < total && size < ROOM - SIZE; connection->waiting++) {
        uint8_t *question = questions[asked++];
        size_t length = length_of(question);
        out[size] = length >> 8;
        out[size + 1] = length & 0xff;
        memcpy(out + size + 2, question + HEAD, length);
        size += 2 + length;
    }
    if (size)
        send(connection->fd, out, size, MSG_NOSIGNAL);
}

/* Reads and counts the answers that have arrived; returns their number. */
static long take_answers(Connection *connection) {
    uint8_t *data = connection->data;
    ssize_t came = recv(connection->fd, data + connection->filled, ROOM - connection->filled, MSG_DONTWAIT);
    size_t at = 0, size = connection->filled + (came > 0 ? came : 0);
    long taken = 0;

    for (; size - at >= 2 && size - at - 2 >= (size_t)(data[at] << 8 | data[at + 1]); taken++) {
        with_records += has_records(data + at + 2);
        at += 2 + (data[at] << 8 | data[at + 1]);
    }
    connection->filled = size - at;
    memmove(data, data + at, size - at);
    connection->waiting -= taken;
    answers += taken;
    if (came == 0) {
        lost += connection->waiting;
        close(connection->fd);
        open_connection(connection);
    }
    return taken;
}

static long all_waiting(int count) {
    long waiting = 0;
    for (int i = 0; i < count; i++)
        waiting += connections[i].waiting;
    return waiting;
}

int main(int argc, char **argv) {
    if (argc != 5 || load(argv[2]) < 0 || atoi(argv[3]) > CONNECTIONS)
        return 2;
    int count = atoi(argv[3]);
    long window = atol(argv[4]);
    server.sin_port = htons(atoi(argv[1]));
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < count; i++)
        open_connection(&connections[i]);
    double began = now(), heard = began;
    while (now() < heard + PATIENCE && (all_waiting(count) || asked < total)) {
        if (now() > began + LIMIT)
            total = asked;
        for (int i = 0; i < count; i++) {
            ask(&connections[i], window);
            if (take_answers(&connections[i]))
                heard = now();
        }
    }
    printf("%lu %lu %ld\n", answers, with_records, lost + all_waiting(count));
    return 0;
}
