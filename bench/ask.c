/* Sends queries of many clients over UDP, a number of them in flight. Usage: ask PORT FILE SECONDS

   The queries of FILE (questions.h) are sent to 127.0.0.1:PORT, repeatedly for SECONDS, or once each if that is 0.
   Prints six numbers: answers; of these the ones with records, NODATA, NXDOMAIN, and others; queries without an answer.

   All clients share one socket: IP_PKTINFO gives each datagram its own source address in 127.0.0.0/8. The program never
   sleeps, so that the server does not spend time on waking it up. */
#define _GNU_SOURCE
#include "batches.h"

enum { WINDOW = 256 };

static struct sockaddr_in server = {.sin_family = AF_INET};
static unsigned long no_data, name_errors, others, lost;

static void tell_apart(const uint8_t *answer) {
    int rcode = answer[3] & 0x0f, ancount = answer[6] << 8 | answer[7];
    answers++;
    if (rcode == 0)
        *(ancount ? &with_records : &no_data) += 1;
    else
        *(rcode == 3 ? &name_errors : &others) += 1;
}

int main(int argc, char **argv) {
    if (argc != 4 || load(argv[2]) < 0)
        return 2;
    int sock = socket(AF_INET, SOCK_DGRAM, 0), room = 4 << 20;
    server.sin_port = htons(atoi(argv[1]));
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);

    double seconds = atof(argv[3]), end = now() + seconds, heard = now();
    size_t asked = 0;
    long waiting = 0;
    for (;;) {
        int more = seconds > 0 ? now() < end : asked < total;
        if (!more && waiting <= 0)
            break;
        size_t left = seconds > 0 ? BATCH : total - asked;
        if (more && waiting <= WINDOW - BATCH) {
            int sent = ask(sock, &server, asked, left < BATCH ? left : BATCH);
            asked += sent;
            waiting += sent;
        }
        int came = take_answers(sock, tell_apart);
        waiting -= came;
        if (came)
            heard = now();
        else if (now() - heard > 0.5) { /* seconds, after which queries without an answer are lost */
            lost += waiting > 0 ? waiting : 0;
            waiting = 0;
            heard = now();
        }
    }
    printf("%lu %lu %lu %lu %lu %lu\n", answers, with_records, no_data, name_errors, others, lost);
    return 0;
}
