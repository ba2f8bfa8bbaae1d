/* The plain UDP echo: sends back each datagram on loopback, batched like the server. Usage: echo PORT */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { BATCH = 64, SIZE = 4096 };

int main(int argc, char **argv) {
    static char data[BATCH][SIZE];
    static struct sockaddr_in peers[BATCH];
    struct iovec spans[BATCH];
    struct mmsghdr messages[BATCH];
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int sock = socket(AF_INET, SOCK_DGRAM, 0);

    if (argc != 2)
        return 2;
    own.sin_port = htons(atoi(argv[1]));
    if (sock < 0 || bind(sock, (struct sockaddr *)&own, sizeof own) < 0)
        return 1;
    for (;;) {
        memset(messages, 0, sizeof messages);
        for (int i = 0; i < BATCH; i++) {
            spans[i] = (struct iovec){data[i], SIZE};
            messages[i].msg_hdr.msg_iov = &spans[i];
            messages[i].msg_hdr.msg_iovlen = 1;
            messages[i].msg_hdr.msg_name = &peers[i];
            messages[i].msg_hdr.msg_namelen = sizeof peers[i];
        }
        int count = recvmmsg(sock, messages, BATCH, MSG_WAITFORONE, NULL);
        for (int i = 0; i < count; i++)
            spans[i].iov_len = messages[i].msg_len;
        for (int sent = 0; sent < count;) {
            int some = sendmmsg(sock, messages + sent, count - sent, 0);
            sent += some > 0 ? some : 1; /* the kernel has refused the first one: drop it */
        }
    }
}
