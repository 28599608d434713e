// load: a closed loop of requests over keep-alive connections, by TCP or a Unix socket, for servers whose usual clients know only one of the two.
//
//     load http|memcached PORT|/SOCKET CONNECTIONS SECONDS
//
// Each connection has one request on its way. Prints "requests per second: X". Build: cc -O2 -o load load.c
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define VALUE 128
#define REPLY 16384

struct connection {
    int fd;
    size_t have;
    char reply[REPLY + 1];
};

static const char *request;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int open_connection(const char *address) {
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in inet = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int is_unix = address[0] == '/', one = 1;
    int fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
    if (fd < 0) fail("socket");
    snprintf(local.sun_path, sizeof local.sun_path, "%s", address);
    inet.sin_port = htons(is_unix ? 0 : atoi(address));
    if (is_unix ? connect(fd, (void *)&local, sizeof local) : connect(fd, (void *)&inet, sizeof inet)) fail("connect");
    // As every load generator does: without it the second of two small writes would wait for the peer's delayed acknowledgement.
    if (!is_unix && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)) fail("setsockopt(TCP_NODELAY)");
    return fd;
}

static void write_all(int fd, const char *text) {
    size_t length = strlen(text);
    // A request is far smaller than any socket buffer, and the connection is empty: a short write means that something is wrong.
    if (send(fd, text, length, MSG_NOSIGNAL) != (ssize_t)length) fail("send");
}

// The length of the reply at the start of the text, 0 while it is not whole.
static size_t http_reply(const char *text, size_t have) {
    const char *end = strstr(text, "\r\n\r\n"), *field = strcasestr(text, "\r\ncontent-length:");
    if (!end) return 0;
    if (strncmp(text, "HTTP/1.1 200", 12) || !field || field > end) {
        fprintf(stderr, "not a 200 with a content-length: %.60s\n", text);
        exit(1);
    }
    size_t length = end + 4 - text + strtoul(field + 17, 0, 10);
    return have >= length ? length : 0;
}

static size_t memcached_reply(const char *text, size_t have) {
    return have >= 5 && !memcmp(text + have - 5, "END\r\n", 5) ? have : 0;
}

int main(int count, char **words) {
    if (count != 5) return fprintf(stderr, "load http|memcached PORT|/SOCKET CONNECTIONS SECONDS\n"), 2;
    int is_memcached = !strcmp(words[1], "memcached"), connections = atoi(words[3]);
    double seconds = atof(words[4]);
    size_t (*reply_length)(const char *, size_t) = is_memcached ? memcached_reply : http_reply;
    request = is_memcached ? "get key\r\n" : "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct connection *all = calloc(connections, sizeof *all);
    int poller = epoll_create1(0);
    if (!all || poller < 0) fail("start");
    for (int i = 0; i < connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        all[i].fd = open_connection(words[2]);
        if (is_memcached && i == 0) {
            char set[VALUE + 64], stored[16];
            snprintf(set, sizeof set, "set key 0 0 %d\r\n%0*d\r\n", VALUE, VALUE, 0);
            write_all(all[i].fd, set);
            if (read(all[i].fd, stored, sizeof stored) < 6 || memcmp(stored, "STORED", 6)) fail("set");
        }
        if (epoll_ctl(poller, EPOLL_CTL_ADD, all[i].fd, &event)) fail("epoll_ctl");
    }
    for (int i = 0; i < connections; i++) write_all(all[i].fd, request);
    // The first fifth is not counted: the server makes its threads and buffers then, and compiles its hot paths.
    double begin = now(), from = begin + seconds / 5, to = begin + seconds, time = begin;
    long replies = 0;
    while (time < to) {
        struct epoll_event ready[64];
        int n = epoll_wait(poller, ready, 64, 100);
        time = now();
        for (int i = 0; i < n; i++) {
            struct connection *c = ready[i].data.ptr;
            ssize_t got = read(c->fd, c->reply + c->have, REPLY - c->have);
            if (got <= 0) fail("read: the server closed the connection, or its reply is too long");
            c->reply[c->have += got] = 0;
            if (!reply_length(c->reply, c->have)) continue;
            replies += time >= from;
            c->have = 0;
            write_all(c->fd, request);
        }
    }
    printf("requests per second: %.1f\n", replies / (time - from));
    return replies ? 0 : 1;
}
