/* Sends queries over UDP in batches, and receives their answers in batches. Included by the generators that have a
   number of queries in flight. */
#include "questions.h"

enum { BATCH = 64, SIZE = 4096 };

/* Sends `count` queries, from the one at `first` on, each from its own source; returns the number the kernel took. */
static int ask(int sock, struct sockaddr_in *server, size_t first, int count) {
    static struct mmsghdr messages[BATCH];
    static struct iovec spans[BATCH];
    static Control controls[BATCH];

    for (int i = 0; i < count; i++)
        address_from_source(&messages[i].msg_hdr, &spans[i], &controls[i], server, questions[(first + i) % total]);
    int sent = sendmmsg(sock, messages, count, 0);
    return sent > 0 ? sent : 0;
}

/* Reads the answers that have arrived, and counts each by `count_one`; returns the number of messages. */
static int take_answers(int sock, void (*count_one)(const uint8_t *answer)) {
    static uint8_t data[BATCH][SIZE];
    static struct mmsghdr messages[BATCH];
    static struct iovec spans[BATCH];

    for (int i = 0; i < BATCH; i++) {
        spans[i] = (struct iovec){data[i], SIZE};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &spans[i], .msg_iovlen = 1};
    }
    int came = recvmmsg(sock, messages, BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < came; i++)
        if (messages[i].msg_len >= HEADER)
            count_one(data[i]);
    return came > 0 ? came : 0;
}
