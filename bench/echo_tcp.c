/* The plain echo over TCP: sends back the octets of each connection on loopback. Usage: echo_tcp PORT

   It also sends back datagrams, one by one, since the bench waits for an answer over UDP after its start. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCH = 64, SIZE = 1 << 16 };

static int events;

static void watch(int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(events, EPOLL_CTL_ADD, fd, &event);
}

static void accept_connection(int listener) {
    int fd = accept(listener, NULL, NULL), on = 1;
    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watch(fd);
}

int main(int argc, char **argv) {
    static char data[SIZE];
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, peer;
    int udp = socket(AF_INET, SOCK_DGRAM, 0), listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    if (argc != 2)
        return 2;
    own.sin_port = htons(atoi(argv[1]));
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(udp, (struct sockaddr *)&own, sizeof own) < 0 ||
        bind(listener, (struct sockaddr *)&own, sizeof own) < 0 || listen(listener, 256) < 0)
        return 1;
    events = epoll_create1(0);
    watch(udp);
    watch(listener);
    for (;;) {
        struct epoll_event ready[BATCH];
        int count = epoll_wait(events, ready, BATCH, -1);
        for (int i = 0; i < count; i++) {
            int fd = ready[i].data.fd;
            socklen_t length = sizeof peer;
            if (fd == listener)
                accept_connection(listener);
            else if (fd == udp) {
                ssize_t size = recvfrom(udp, data, SIZE, 0, (struct sockaddr *)&peer, &length);
                if (size > 0)
                    sendto(udp, data, size, 0, (struct sockaddr *)&peer, length);
            } else {
                ssize_t size = recv(fd, data, SIZE, 0);
                if (size <= 0 || send(fd, data, size, MSG_NOSIGNAL) != size)
                    close(fd);
            }
        }
    }
}
