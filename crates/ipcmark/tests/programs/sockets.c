// Sets up sockets in the many ways in which programs do, with TCP over loopback, and prints what it sees. Two runs
// print the same bytes, so that a run in which something stands between this program and the kernel can be compared
// with one in which nothing does. Hence it never prints a port, a process id, a descriptor or a time, but how they
// relate; and it never sleeps in the hope that something has happened, but waits for it.
// Build with gcc -O1 -Wall -Wextra -Werror -pthread -o sockets sockets.c, run as ./sockets [--list | NAME...].
// Every scenario runs in a child with a time limit: one that does not end is printed as HANG, one that is killed as
// "signal N", one in which a call fails that must work as FAILED and "exit 1". The exit status is 0 if all ended by
// themselves. Loopback must have IPv6. Calls that belong together share a line, to be read as a script.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOCAL, PEER, LIMIT_S = 60, PATIENCE_MS = 30000 }; // which name of a socket; the limit of a scenario, and of one wait in it
static const char V4[] = "127.0.0.1", V6[] = "::1", ANY4[] = "0.0.0.0", ANY6[] = "::", *scenario;
struct address {
    union { struct sockaddr sa; struct sockaddr_in in; struct sockaddr_in6 in6; struct sockaddr_un un; char bytes[128]; };
    socklen_t len;
};
struct ends { int listener, client, server; };
#define LENGTH(table) ((int)(sizeof(table) / sizeof *(table)))

// ---- printing ----
// Text that lasts for the next few calls: enough for the arguments of one say().
__attribute__((format(printf, 1, 2))) static const char *text(const char *format, ...) {
    static _Thread_local struct { unsigned next; char ring[16][400]; } texts;
    char *at = texts.ring[texts.next++ % 16];
    va_list list;
    va_start(list, format); vsnprintf(at, sizeof texts.ring[0], format, list); va_end(list);
    return at;
}
static void print(const char *what) { // by one write(2): processes share the output, and none may leave half a line in it
    char line[500]; int n = snprintf(line, sizeof line, "%s: %s\n", scenario, what);
    if (write(STDOUT_FILENO, line, n) != n) _exit(3);
}
#define say(...) print(text(__VA_ARGS__))
static const char *result(long r, const char *good) { return r < 0 ? strerrorname_np(errno) : good; }
static void tell(const char *what, long r) { say("%s=%s", what, result(r, "ok")); }
static void count(const char *what, long r) { say("%s=%s", what, result(r, text("%ld", r))); }
static int must(const char *what, long r) {
    if (r < 0) { say("FAILED %s: %s", what, result(r, "")); _exit(1); }
    return (int)r;
}
static const char *mask(unsigned e) { // of poll and of epoll: the bits are the same
    return 1 + text("%s%s%s%s%s%s", e & EPOLLIN ? " IN" : "", e & EPOLLOUT ? " OUT" : "", e & EPOLLERR ? " ERR" : "",
                    e & EPOLLHUP ? " HUP" : "", e & EPOLLRDHUP ? " RDHUP" : "", e ? "" : " none");
}
#define MUST(call) must(#call, call)   // without this call the rest of the scenario would mean nothing
#define TELL(call) tell(#call, call)   // the call and its error, or ok
#define COUNT(call) count(#call, call) // the call and its error, or the number that it returned
#define YES(truth) say("%s=%s", #truth, (truth) ? "yes" : "no")
#define READ(fd) say("read %s=%s", #fd, next_read(fd))
#define READY(fd, events) say("poll %s=%s", #fd, mask(ready(fd, events)))
#define VALUE(fd, level, option) say("%s of %s=%s", #option, #fd, value(fd, level, option))

// ---- addresses and connections ----
static struct address at(const char *host, int port) {
    int six = strchr(host, ':') != NULL;
    struct address a = {.sa.sa_family = six ? AF_INET6 : AF_INET, .len = six ? sizeof a.in6 : sizeof a.in};
    a.in.sin_port = htons(port); // at the same place in both
    inet_pton(a.sa.sa_family, host, six ? (void *)&a.in6.sin6_addr : (void *)&a.in.sin_addr);
    return a;
}
static struct address name_of(int fd, int which) { // its length is 0 if there is none, and errno says why
    struct address a = {.len = sizeof a.bytes};
    if ((which == PEER ? getpeername(fd, &a.sa, &a.len) : getsockname(fd, &a.sa, &a.len)) < 0) a.len = 0;
    return a;
}
static const char *address_text(struct address a) {
    char host[INET6_ADDRSTRLEN] = "?"; int six = a.sa.sa_family == AF_INET6;
    if (a.len == 0) return result(-1, "");
    inet_ntop(a.sa.sa_family, six ? (void *)&a.in6.sin6_addr : (void *)&a.in.sin_addr, host, sizeof host);
    return text("%s %s port %s addrlen %u", six ? "AF_INET6" : a.sa.sa_family == AF_INET ? "AF_INET" : "family?", host,
                a.in.sin_port ? "nonzero" : "0", a.len);
}
static const char *name(int fd, int which) { return address_text(name_of(fd, which)); }
static void show(const char *key, int fd) { say("%s local=[%s] peer=[%s]", key, name(fd, LOCAL), name(fd, PEER)); }
static int port_of(int fd, int which) { return ntohs(name_of(fd, which).in.sin_port); }
static int local_port(int fd) { return port_of(fd, LOCAL); }
static int bind_to(int fd, struct address a) { return bind(fd, &a.sa, a.len); }
static int connect_to(int fd, struct address a) { return connect(fd, &a.sa, a.len); }
static int tcp(int flags) { return MUST(socket(AF_INET, SOCK_STREAM | flags, 0)); }
static int tcp6(void) { return MUST(socket(AF_INET6, SOCK_STREAM, 0)); }
static int tcp_for(const char *host) { return strchr(host, ':') ? tcp6() : tcp(0); }
static int listen_on(int fd, struct address a) { MUST(bind_to(fd, a)); MUST(listen(fd, 128)); return fd; }
static int listener(const char *host) { return listen_on(tcp_for(host), at(host, 0)); }
static int client_of(int l) { int c = tcp(0); MUST(connect_to(c, at(V4, local_port(l)))); return c; } // over IPv4
static int set(int fd, int level, int option, int v) { return setsockopt(fd, level, option, &v, sizeof v); }
static const char *value(int fd, int level, int option) {
    int v[2] = {0}; socklen_t len = sizeof v;
    if (getsockopt(fd, level, option, v, &len) < 0) return result(-1, "");
    return len == sizeof v ? text("%d %d", v[0], v[1]) : text(len == sizeof *v ? "%d" : "%d in a wrong length", v[0]);
}

// ---- data, and the other side ----
static unsigned ready(int fd, int events) { // waits for one of them; the events there, 0 if none came
    struct pollfd p = {fd, events, 0}; return poll(&p, 1, PATIENCE_MS) > 0 ? p.revents : 0;
}
static int accepted(int l) { ready(l, POLLIN); return MUST(accept(l, NULL, NULL)); } // also if it does not block
static struct ends ends_of(int l) { int c = client_of(l); return (struct ends){l, c, accepted(l)}; }
static int put(int fd, const char *s) { return write(fd, s, strlen(s)) == (ssize_t)strlen(s); }
static int get(int fd, void *data, size_t n) { // all n bytes, also from a descriptor that does not block
    for (ssize_t r; n > 0; n -= r, data = (char *)data + r)
        if (!ready(fd, POLLIN) || (r = read(fd, data, n)) <= 0) return 0;
    return 1;
}
static int got(int fd, const char *s) { char b[64]; return get(fd, b, strlen(s)) && !memcmp(b, s, strlen(s)); }
static const char *next_read(int fd) { // bytes, 0 at the end, or an error
    char data[64]; ssize_t r = ready(fd, POLLIN) ? read(fd, data, sizeof data) : -1;
    return result(r, text("%zd", r));
}
static void exchange(const char *key, int a, int b) {
    int there = put(a, "there") && got(b, "there"), back = put(b, "and back") && got(a, "and back");
    say("%s data there=%s back=%s", key, there ? "yes" : "no", back ? "yes" : "no");
}
// Connects c (a new socket if -1) to the host at the listener's port, and shows all that can be seen of it.
static struct ends meet(const char *key, int l, int c, const char *host) {
    struct address a = {.len = sizeof a.bytes};
    int port = local_port(l), s;
    c = c < 0 ? tcp_for(host) : c;
    MUST(connect_to(c, at(host, port))); ready(l, POLLIN); s = MUST(accept(l, &a.sa, &a.len));
    int seen = ntohs(a.in.sin_port), agree = seen == local_port(c) && seen == port_of(s, PEER) && port == port_of(c, PEER);
    say("%s accept=[%s] ports agree=%s", key, address_text(a), agree && local_port(s) == port ? "yes" : "no");
    show("client", c); show("server", s); exchange(key, c, s);
    return (struct ends){l, c, s};
}
static int serve_one(int l) { // accepts, and answers a number with the next; returns the number
    int number = 0, s = MUST(accept(l, NULL, NULL)), answer;
    if (get(s, &number, sizeof number)) { answer = number + 1; MUST(write(s, &answer, sizeof answer)); }
    close(s); return number;
}
static int ask(int l, int number) { // connects; whether the number was answered with the next
    int answer = 0, c = client_of(l);
    MUST(write(c, &number, sizeof number)); get(c, &answer, sizeof answer); close(c); return answer == number + 1;
}
static int serve_port(int l) { // accepts, and answers whether accept and getpeername say the port that the client says
    struct sockaddr_in a, b; socklen_t n = sizeof a, m = sizeof b; int port = 0, s = MUST(accept(l, (void *)&a, &n));
    MUST(getpeername(s, (void *)&b, &m)); get(s, &port, sizeof port);
    int answer = ntohs(a.sin_port) == port && ntohs(b.sin_port) == port;
    MUST(write(s, &answer, sizeof answer)); close(s); return answer;
}
static int ask_port(int l) { // connects, and says its own port; whether that is what the server sees
    int answer = 0, c = client_of(l), port = local_port(c);
    MUST(write(c, &port, sizeof port)); get(c, &answer, sizeof answer); close(c); return answer;
}
// fork(2), but the child ends with its parent; and wait for it, which gives its status.
static pid_t start(void) { pid_t pid = MUST(fork()); return pid ? pid : prctl(PR_SET_PDEATHSIG, SIGKILL); }
static int ended(pid_t pid) { int status = 0; MUST(waitpid(pid, &status, 0)); return status; }
// A thread that is blocked in accept(2): block() returns once it sleeps there, unblocked() what accept returned.
struct blocked { pthread_t thread; int fd, result, error; atomic_int id; };
static void *accept_blocked(void *argument) {
    struct blocked *b = argument;
    b->id = (int)syscall(SYS_gettid); // from here on it sleeps only in accept
    b->result = accept(b->fd, NULL, NULL); b->error = errno; return NULL;
}
static void block(struct blocked *b, int fd) {
    char line[256], state = 0;
    *b = (struct blocked){.fd = fd}; MUST(-pthread_create(&b->thread, NULL, accept_blocked, b));
    while (b->id == 0) poll(NULL, 0, 1);
    int f = MUST(open(text("/proc/self/task/%d/stat", b->id), O_RDONLY));
    for (; state != 'S'; poll(NULL, 0, 1), state = strrchr(line, ')')[2])
        line[MUST(pread(f, line, sizeof line - 1, 0))] = 0;
    close(f);
}
static const char *unblocked(struct blocked *b) { return pthread_join(b->thread, 0), errno = b->error, result(b->result, "ok"); }

// ---- addresses ----
static void ipv4(void) {
    int l = tcp(0), unbound = tcp(0), c = tcp(0), lowest = dup(c);
    show("new", l); TELL(bind_to(l, at(V4, 0))); show("bound", l);
    int port = local_port(l);
    TELL(listen(l, 128)); show("listening", l); YES(local_port(l) == port); TELL(listen(l, 5));
    close(lowest); YES(meet("connected", l, c, V4).server == lowest); // which accept takes
    TELL(listen(unbound, 1)); meet("never bound", unbound, -1, V4);
}
static void short_buffers(void) { // get the beginning of the address, and addrlen the length of the whole
    static const socklen_t room[] = {0, 1, 2, 4, 15, 16, 17, 128};
    int l = listener(V4), c, s;
    for (int i = 0; i < 8; i++) {
        struct address a[3], expected, whole;
        memset(a, 0x55, sizeof a); memset(&expected, 0x55, sizeof expected); a[0].len = a[1].len = a[2].len = room[i];
        c = client_of(l); s = MUST(accept(l, &a[0].sa, &a[0].len));
        MUST(getpeername(s, &a[1].sa, &a[1].len)); MUST(getsockname(c, &a[2].sa, &a[2].len));
        whole = name_of(c, LOCAL); memcpy(expected.bytes, whole.bytes, room[i] < whole.len ? room[i] : whole.len);
        say("room=%u accept=%u getpeername=%u getsockname=%u", room[i], a[0].len, a[1].len, a[2].len);
        for (int k = 0; k < 3; k++) YES(!memcmp(a[k].bytes, expected.bytes, sizeof expected.bytes));
        exchange("short", c, s);
    }
    socklen_t len = 99; // is left alone without an address
    c = client_of(l); s = MUST(accept(l, NULL, &len)); COUNT(len); exchange("without address", c, s);
}
static void show_flags(const char *key, int fd) {
    int flags = MUST(fcntl(fd, F_GETFL)), close_on_exec = MUST(fcntl(fd, F_GETFD)) & FD_CLOEXEC;
    say("%s access mode=%d O_NONBLOCK=%d FD_CLOEXEC=%d", key, flags & O_ACCMODE, !!(flags & O_NONBLOCK), close_on_exec);
}
static void descriptor_flags(void) {
    static const int flags[] = {0, SOCK_NONBLOCK, SOCK_CLOEXEC, SOCK_NONBLOCK | SOCK_CLOEXEC};
    for (int i = 0; i < 4; i++) {
        int l = listen_on(tcp(flags[i]), at(V4, 0)), c = tcp(flags[i]), s;
        TELL(connect_to(c, at(V4, local_port(l)))); show_flags("listener", l); show_flags("client", c); ready(l, POLLIN);
        s = MUST(accept4(l, NULL, NULL, flags[3 - i])); show_flags("accept4", s); exchange("accept4", c, s);
        c = client_of(l); MUST(fcntl(c, F_SETFL, O_NONBLOCK)); MUST(fcntl(c, F_SETFD, FD_CLOEXEC)); s = accepted(l);
        show_flags("set after connect", c); show_flags("accept", s); exchange("accept", c, s); // s takes none from l
    }
}
static void ipv6(void) {
    struct address a = {.len = 6};
    int l = listener(V6), c = tcp6();
    show("listening", l); meet("connected", l, -1, V6);
    MUST(connect_to(c, at(V6, local_port(l)))); exchange("short", c, MUST(accept(l, &a.sa, &a.len))); COUNT(a.len);
    meet("mapped client of an IPv4 listener", listener(V4), -1, "::ffff:127.0.0.1");
}
static void dual_stack(void) { // the server sees an IPv4 client by its mapped address
    const char *hosts[] = {V4, V6, "::ffff:127.0.0.1", ANY6, ANY4};
    int l = tcp6();
    TELL(set(l, IPPROTO_IPV6, IPV6_V6ONLY, 0)); show("listening", listen_on(l, at(ANY6, 0)));
    TELL(set(l, IPPROTO_IPV6, IPV6_V6ONLY, 1)); VALUE(l, IPPROTO_IPV6, IPV6_V6ONLY); // too late
    TELL(bind_to(tcp(0), at(ANY4, local_port(l))));
    for (int i = 0; i < 5; i++) meet(hosts[i], l, -1, hosts[i]);
}
static void both_wildcards(void) { // 0.0.0.0 and, with IPV6_V6ONLY, :: listen on the same port
    int four, six, r;
    do { // another program may have the port in the other family: then take another
        MUST(bind_to(four = tcp(0), at(ANY4, 0))); MUST(set(six = tcp6(), IPPROTO_IPV6, IPV6_V6ONLY, 1));
    } while ((r = bind_to(six, at(ANY6, local_port(four)))) < 0 && errno == EADDRINUSE);
    TELL(r); TELL(listen(six, 128)); TELL(connect_to(tcp(0), at(V4, local_port(four)))); // only :: listens
    TELL(listen(four, 128)); meet("four", four, -1, V4); meet("six", six, -1, V6); close(four); meet("six alone", six, -1, V6);
}
static void source_and_destination(void) {
    int l = listener(ANY4), hold = tcp(0), c = tcp(0);
    TELL(set(hold, SOL_SOCKET, SO_REUSEADDR, 1)); TELL(set(c, SOL_SOCKET, SO_REUSEADDR, 1));
    TELL(bind_to(hold, at(V4, 0))); TELL(bind_to(c, at(V4, local_port(hold)))); // hold: no other program takes the port
    YES(port_of(meet("from a port", l, c, V4).server, PEER) == local_port(hold));
    TELL(bind_to(c = tcp(0), at("127.0.0.5", 0))); meet("from 127.0.0.5", l, c, V4);
    meet("to 0.0.0.0", l, -1, ANY4); meet("to 127.0.0.2", l, -1, "127.0.0.2"); l = listener(V4);
    meet("to 0.0.0.0, listener on 127.0.0.1", l, -1, ANY4); TELL(connect_to(tcp(0), at("127.0.0.2", local_port(l))));
    meet("to the listener on 127.0.0.2", listener("127.0.0.2"), -1, "127.0.0.2");
}

// ---- options ----
#define SO(option, one, two) {"SO_" #option, SOL_SOCKET, SO_##option, {one, two}}
#define TCP(option, one, two) {"TCP_" #option, IPPROTO_TCP, TCP_##option, {one, two}}
static const struct { const char *name; int level, option, values[2]; } options[] = { // the last five cannot be set
    TCP(NODELAY, 1, 0), TCP(KEEPIDLE, 77, 78), TCP(KEEPINTVL, 11, 12), TCP(KEEPCNT, 5, 6), TCP(USER_TIMEOUT, 60000, 0),
    SO(KEEPALIVE, 7, 0), SO(REUSEADDR, 1, 0), SO(LINGER, 1, 0), SO(SNDBUF, 30000, 50000), SO(RCVBUF, 30000, 50000),
    {"IP_TOS", IPPROTO_IP, IP_TOS, {0x10, 0x08}}, SO(TYPE, 1, 1), SO(DOMAIN, 2, 2), SO(PROTOCOL, 6, 6),
    SO(ACCEPTCONN, 1, 1), SO(ERROR, 0, 0),
};
static void show_options(const char *when, int fd, int which) {
    for (int i = 0; i < LENGTH(options); i++) {
        const char *v = value(fd, options[i].level, options[i].option), *name = options[i].name;
        int grows = strstr(name, "BUF") && atoi(v) >= options[i].values[which]; // the kernel gives more than was set
        say("%s: %s=%s", when, name, grows ? "at least what was set" : v);
    }
}
static void set_options(const char *when, int fd, int which) {
    for (int i = 0; i < LENGTH(options); i++) {
        int v[2] = {options[i].values[which], 3 + which}, lingers = !strcmp(options[i].name, "SO_LINGER");
        int r = setsockopt(fd, options[i].level, options[i].option, v, lingers ? sizeof(struct linger) : sizeof(int));
        say("%s: set %s=%s", when, options[i].name, result(r, "ok"));
    }
    show_options(when, fd, which);
}
static void option_values(void) {
    int l = tcp(0), c = tcp(0), six = tcp6(), s;
    set_options("listener before bind", l, 0); show_options("listening", listen_on(l, at(V4, 0)), 0);
    set_options("client before connect", c, 0); MUST(connect_to(c, at(V4, local_port(l)))); show_options("connected", c, 0);
    set_options("client after connect", c, 1);
    s = accepted(l); show_options("accepted", s, 0); exchange("first", c, s); // s has those of the listener
    set_options("listener after listen", l, 1); c = client_of(l); s = accepted(l); show_options("accepted then", s, 1);
    set_options("server", s, 0); exchange("second", c, s); MUST(set(six, IPPROTO_IPV6, IPV6_V6ONLY, 1));
    c = meet("ipv6", listen_on(six, at(V6, 0)), -1, V6).client;
    VALUE(six, IPPROTO_IPV6, IPV6_V6ONLY); VALUE(c, IPPROTO_IPV6, IPV6_V6ONLY);
}
static void option_errors(void) {
    struct ends e = ends_of(listener(V4));
    int fds[] = {tcp(0), e.listener, e.client, e.server}, many[4] = {1, 2, 3, 4};
    for (int i = 0; i < 4; i++) { // a new socket, then the others
        int fd = fds[i], out[4] = {0}; socklen_t one = 1, all = sizeof out, minus = -1;
        TELL(set(fd, IPPROTO_TCP, 9999, 1)); TELL(set(fd, SOL_SOCKET, 9999, 1)); TELL(set(fd, 9999, 1, 1));
        TELL(getsockopt(fd, IPPROTO_TCP, 9999, out, &all)); TELL(getsockopt(fd, SOL_SOCKET, 9999, out, &all));
        TELL(getsockopt(fd, 9999, 1, out, &all)); TELL(set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1));
        TELL(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, many, 1)); TELL(setsockopt(fd, SOL_SOCKET, SO_LINGER, many, 4));
        TELL(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, many, 16)); TELL(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, many, 4));
        TELL(set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 0)); TELL(set(fd, IPPROTO_TCP, TCP_KEEPCNT, 1000));
        // By syscall(2): a checking build would stop at the bad pointer in its own getsockopt.
        TELL(syscall(SYS_setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, NULL, 4));
        TELL(syscall(SYS_getsockopt, fd, IPPROTO_TCP, TCP_NODELAY, NULL, &all));
        TELL(syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, out, NULL));
        TELL(syscall(SYS_getsockopt, fd, IPPROTO_TCP, TCP_NODELAY, out, &minus));
        TELL(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, out, &one)); COUNT(one); COUNT(out[0]);
        TELL(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, out, &all)); COUNT(all); COUNT(out[0]);
    }
    exchange("afterwards", e.client, e.server);
}
static void timeouts(void) {
    static char block[1 << 16];
    struct timeval set = {0, 100000}, bad = {0, 2000000}, in = {7, 7}, out = {7, 7}; struct timespec begin, end;
    int l = listener(V4), c = tcp(0); socklen_t len = sizeof set;
    TELL(setsockopt(c, SOL_SOCKET, SO_RCVTIMEO, &set, len)); TELL(setsockopt(c, SOL_SOCKET, SO_SNDTIMEO, &set, len));
    MUST(connect_to(c, at(V4, local_port(l)))); exchange("before", c, accepted(l));
    TELL(getsockopt(c, SOL_SOCKET, SO_RCVTIMEO, &in, &len)); TELL(getsockopt(c, SOL_SOCKET, SO_SNDTIMEO, &out, &len));
    YES(!memcmp(&in, &set, len)); YES(!memcmp(&out, &set, len));
    clock_gettime(CLOCK_MONOTONIC, &begin); COUNT(read(c, block, 1)); clock_gettime(CLOCK_MONOTONIC, &end);
    YES((end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec >= 90000000);
    while (write(c, block, sizeof block) > 0) {} // what did not fit in time is at first a short write
    say("write into a full connection=%s", result(-1, "")); TELL(setsockopt(c, SOL_SOCKET, SO_RCVTIMEO, &bad, len));
    TELL(setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &set, len)); TELL(accept(l, NULL, NULL)); meet("afterwards", l, -1, V4);
}
static void defer_accept(void) { // a connection can be accepted only when it has data
    int l = tcp(SOCK_NONBLOCK), c, s;
    TELL(set(l, IPPROTO_TCP, TCP_DEFER_ACCEPT, 30)); listen_on(l, at(V4, 0)); VALUE(l, IPPROTO_TCP, TCP_DEFER_ACCEPT);
    c = client_of(l); TELL(accept(l, NULL, NULL)); YES(put(c, "first"));
    s = accepted(l); YES(got(s, "first")); exchange("deferred", c, s);
}

// ---- waiting ----
static int watch(int ep, int operation, int fd, unsigned events, unsigned long data) {
    return epoll_ctl(ep, operation, fd, &(struct epoll_event){.events = events, .data.u64 = data << 32 | 5});
}
static void show_events(const char *key, int ep, int timeout) {
    struct epoll_event e = {0};
    int n = epoll_wait(ep, &e, 1, timeout);
    say("%s epoll_wait=%d events=%s data=%llx", key, n, mask(e.events), (unsigned long long)e.data.u64);
}
static void epoll_connect(void) {
    for (int i = 0; i < 4; i++) {
        int l = listener(V4), c = tcp(SOCK_NONBLOCK), ep = MUST(epoll_create1(0)), before = i & 1, s;
        unsigned edge = i & 2 ? EPOLLET : 0, all = EPOLLIN | EPOLLOUT | EPOLLRDHUP | edge;
        say("added=%s connect, %s triggered", before ? "before" : "after", edge ? "edge" : "level");
        if (before) { TELL(watch(ep, EPOLL_CTL_ADD, c, all, 1)); show_events("unconnected", ep, 0); }
        TELL(connect_to(c, at(V4, local_port(l))));
        s = accepted(l); // after which nothing more happens at the client that could be another edge
        if (!before) TELL(watch(ep, EPOLL_CTL_ADD, c, all, 1));
        show_events("connected", ep, PATIENCE_MS); show_events("again", ep, 0);
        YES(put(s, "one")); ready(c, POLLIN); show_events("data", ep, PATIENCE_MS); YES(got(c, "one"));
        TELL(watch(ep, EPOLL_CTL_MOD, c, EPOLLIN | edge, 2)); show_events("modified", ep, 0);
        YES(put(s, "two")); ready(c, POLLIN); show_events("data", ep, PATIENCE_MS);
        TELL(watch(ep, EPOLL_CTL_DEL, c, 0, 0)); show_events("deleted", ep, 0);
        TELL(watch(ep, EPOLL_CTL_DEL, c, 0, 0)); TELL(watch(ep, EPOLL_CTL_MOD, c, all, 3));
        TELL(watch(ep, EPOLL_CTL_ADD, c, all, 4)); TELL(watch(ep, EPOLL_CTL_ADD, c, all, 5));
        show_events("added again", ep, PATIENCE_MS); YES(got(c, "two")); exchange("epoll", c, s);
    }
}
static void epoll_listen(void) {
    for (int i = 0; i < 4; i++) {
        int l = tcp(SOCK_NONBLOCK), ep = MUST(epoll_create1(0)), before = i & 1, c;
        unsigned events = EPOLLIN | (i & 2 ? EPOLLET : 0);
        say("added=%s listen, %s triggered", before ? "before" : "after", i & 2 ? "edge" : "level");
        if (before) { TELL(watch(ep, EPOLL_CTL_ADD, l, events, 1)); show_events("unbound", ep, 0); }
        listen_on(l, at(V4, 0));
        if (!before) TELL(watch(ep, EPOLL_CTL_ADD, l, events, 1));
        show_events("listening", ep, 0); c = client_of(l); show_events("connection", ep, PATIENCE_MS);
        show_events("again", ep, 0); exchange("first", c, accepted(l)); show_events("accepted", ep, 0);
        TELL(watch(ep, EPOLL_CTL_MOD, l, events, 2)); c = client_of(l); show_events("connection", ep, PATIENCE_MS);
        exchange("second", c, accepted(l)); TELL(watch(ep, EPOLL_CTL_DEL, l, 0, 0)); TELL(watch(ep, EPOLL_CTL_DEL, l, 0, 0));
    }
}
static void nonblocking_connect(void) {
    for (int selecting = 0; selecting < 2; selecting++) {
        int l = listener(V4), c = tcp(SOCK_NONBLOCK), port = local_port(l);
        struct timeval patience = {PATIENCE_MS / 1000, 0}; fd_set writable;
        FD_ZERO(&writable); FD_SET(c, &writable); TELL(connect_to(c, at(V4, port)));
        if (selecting) COUNT(select(c + 1, NULL, &writable, NULL, &patience)); else READY(c, POLLIN | POLLOUT);
        VALUE(c, SOL_SOCKET, SO_ERROR); show("client", c);
        TELL(connect_to(c, at(V4, port))); TELL(connect_to(c, at(V4, port))); // tells once that it succeeded
        exchange("connected", c, accepted(l));
    }
    int bound = tcp(0), c = tcp(SOCK_NONBLOCK), error = 0;
    MUST(bind_to(bound, at(V4, 0))); // nobody listens there, and nobody else can
    if (connect_to(c, at(V4, local_port(bound))) < 0) error = errno;
    if (error == EINPROGRESS) { ready(c, POLLOUT); error = atoi(value(c, SOL_SOCKET, SO_ERROR)); }
    YES(error == ECONNREFUSED); VALUE(c, SOL_SOCKET, SO_ERROR);
}
static void connect_errors(void) {
    struct ends e = ends_of(listener(V4));
    struct address here = at(V4, local_port(e.listener)), other = here, six = at(V6, local_port(e.listener));
    int c = tcp(0), bound = tcp(0);
    other.sa.sa_family = 99; TELL(connect_to(c, other)); TELL(connect_to(c, six)); TELL(connect_to(tcp6(), here));
    TELL(connect_to(e.client, here)); TELL(connect_to(e.server, here)); TELL(connect_to(e.listener, here));
    exchange("connected before", e.client, e.server); MUST(bind_to(bound, at(V4, 0)));
    TELL(connect_to(c, at(V4, local_port(bound)))); TELL(connect_to(c, at(V4, local_port(bound))));
    TELL(listen(bound, 1)); meet("the same socket after ECONNREFUSED", bound, c, V4);
}
static atomic_int handled;
static void on_signal(int number) { (void)number; handled++; }
static void interrupted(void) {
    int l = listener(V4), c;
    for (int restart = 0; restart < 2; restart++) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = restart ? SA_RESTART : 0}; struct blocked b;
        MUST(sigaction(SIGUSR1, &action, NULL)); block(&b, l); pthread_kill(b.thread, SIGUSR1);
        while (handled <= restart) poll(NULL, 0, 1);
        if (restart) c = client_of(l); // only a connection ends it now
        say("accept with SA_RESTART %d=%s", restart, unblocked(&b));
        if (restart) exchange("restarted", c, b.result); else meet("afterwards", l, -1, V4);
    }
    COUNT(handled); MUST(fcntl(l, F_SETFL, O_NONBLOCK)); TELL(accept(l, NULL, NULL)); meet("non-blocking", l, -1, V4);
    TELL(accept(l, NULL, NULL));
}

// ---- ports, processes and threads ----
static void reuse_port(void) {
    int a = tcp(0), b = tcp(0), right_ports = 0;
    TELL(set(a, SOL_SOCKET, SO_REUSEPORT, 1)); TELL(set(b, SOL_SOCKET, SO_REUSEPORT, 1)); listen_on(a, at(V4, 0));
    TELL(bind_to(b, at(V4, local_port(a)))); TELL(listen(b, 128)); TELL(bind_to(tcp(0), at(V4, local_port(a))));
    struct pollfd p[] = {{a, POLLIN, 0}, {b, POLLIN, 0}}; pid_t server = start();
    for (int served = 0; server == 0; served == 64 ? _exit(0) : (void)MUST(poll(p, 2, PATIENCE_MS)))
        for (int k = 0; k < 2; k++) served += p[k].revents & POLLIN && serve_port(p[k].fd) >= 0;
    for (int i = 0; i < 64; i++) right_ports += ask_port(a);
    COUNT(right_ports); COUNT(ended(server)); // how the kernel shared them out is chance
}
static void address_in_use(void) {
    int l = tcp(0), again = tcp(0), a = tcp(0), b = tcp(0), four[] = {l, again, a, b};
    for (int i = 0; i < 4; i++) MUST(set(four[i], SOL_SOCKET, SO_REUSEADDR, 1));
    struct ends e = ends_of(listen_on(l, at(V4, 0)));
    struct address here = at(V4, local_port(l)), any = at(ANY4, local_port(l));
    TELL(bind_to(tcp(0), here)); TELL(bind_to(again, here)); TELL(bind_to(again, any));
    close(l); TELL(bind_to(tcp(0), here)); TELL(bind_to(again, here)); TELL(listen(again, 128)); // e has the port
    exchange("of the closed listener", e.client, e.server); meet("of the next", again, -1, V4);
    TELL(bind_to(a, at(V4, 0))); TELL(bind_to(b, at(V4, local_port(a))));
    TELL(listen(a, 128)); TELL(listen(b, 128)); meet("of two that are bound", a, -1, V4);
}
static void prefork(void) {
    int l = listener(V4), answered = 0, last = 0, statuses = 0; pid_t children[4];
    for (int i = 0; i < 4; i++)
        for (children[i] = start(); children[i] == 0;) if (serve_one(l) < 0) _exit(0);
    for (int i = 0; i < 40; i++) answered += ask(l, i);
    for (int i = 0; i < 4; i++) last += ask(l, -1); // ends one of them
    for (int i = 0; i < 4; i++) statuses += ended(children[i]);
    COUNT(answered); COUNT(last); COUNT(statuses);
}
static void forked(void) {
    struct ends e = ends_of(listener(V4));
    pid_t child = start();
    if (child == 0) { show("old", e.client); exchange("old", e.client, e.server); meet("child", e.listener, -1, V4); _exit(0); }
    COUNT(ended(child)); exchange("parent", e.client, e.server); meet("parent", e.listener, -1, V4);
}
static int inherited(char **argv) { // what it does after it has executed itself: --inherited LISTENER CLIENT CLOSED
    int l = atoi(argv[2]), c = atoi(argv[3]), closed = atoi(argv[4]); // had FD_CLOEXEC
    show("listener", l); show_flags("listener", l); show("client", c); show_flags("client", c);
    VALUE(l, SOL_SOCKET, SO_ACCEPTCONN); VALUE(c, SOL_SOCKET, SO_TYPE); VALUE(c, IPPROTO_TCP, TCP_NODELAY);
    TELL(fcntl(closed, F_GETFD)); YES(got(c, "before")); YES(put(c, "after")); COUNT(serve_one(l)); return 0;
}
static void executed(void) {
    struct ends e = ends_of(listener(V4));
    int l = e.listener, closed = tcp(SOCK_CLOEXEC), other;
    MUST(set(e.client, IPPROTO_TCP, TCP_NODELAY, 1)); put(e.server, "before");
    MUST(connect_to(closed, at(V4, local_port(l)))); other = accepted(l);
    pid_t child = start();
    const char *fds[] = {text("%d", l), text("%d", e.client), text("%d", closed)};
    if (child == 0) MUST(execl("/proc/self/exe", scenario, "--inherited", fds[0], fds[1], fds[2], NULL));
    close(e.client);
    int after = got(e.server, "after"), answered = ask(l, 7), status = ended(child); // then the output is ours again
    YES(after); YES(answered); COUNT(status); READ(e.server); exchange("kept by the parent", closed, other);
}
struct worker { pthread_t thread; int listener, connects, good; };
static void *work(void *argument) {
    struct worker *w = argument;
    for (int i = 0; i < 50; i++) w->good += w->connects ? ask(w->listener, i) : serve_one(w->listener) >= 0;
    return NULL;
}
static void threads(void) {
    struct worker w[4];
    for (int i = 0, l = listener(V4); i < 4; i++) {
        w[i] = (struct worker){.listener = l, .connects = i & 1}; MUST(-pthread_create(&w[i].thread, NULL, work, &w[i]));
    }
    for (int i = 0; i < 4; i++) { pthread_join(w[i].thread, NULL); COUNT(w[i].good); }
}
static void pass(int over, int fds[2], int sends) { // two descriptors
    union { char bytes[CMSG_SPACE(2 * sizeof(int))]; struct cmsghdr align; } control = {{0}};
    struct iovec one = {&(char){0}, 1};
    struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    *h = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(2 * sizeof(int))};
    memcpy(CMSG_DATA(h), fds, 2 * sizeof(int)); MUST(sends ? sendmsg(over, &m, 0) : recvmsg(over, &m, 0));
    memcpy(fds, CMSG_DATA(h), 2 * sizeof(int));
}
static void passed(void) {
    int over[2], fds[2] = {-1, -1}; MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
    pid_t child = start(); // before the sockets, so that it can have them in no other way
    if (child == 0) {
        pass(over[1], fds, 0); show("listener", fds[0]); show("client", fds[1]); VALUE(fds[1], SOL_SOCKET, SO_TYPE);
        YES(got(fds[1], "to the child")); YES(put(fds[1], "from it")); COUNT(serve_one(fds[0])); _exit(0);
    }
    struct ends e = ends_of(fds[0] = listener(V4));
    fds[1] = e.client; pass(over[0], fds, 1); close(e.client);
    int back = put(e.server, "to the child") && got(e.server, "from it"), answered = ask(fds[0], 3);
    COUNT(ended(child)); YES(back); YES(answered); READ(e.server);
}
static void duplicates(void) {
    int l = tcp(0), copies[4] = {dup(l), dup2(l, 200), fcntl(l, F_DUPFD, 100), fcntl(l, F_DUPFD_CLOEXEC, 100)};
    MUST(bind_to(l, at(V4, 0))); MUST(listen(copies[0], 128));
    for (int i = 0; i < 4; i++) {
        int c = tcp(0), copy = i & 1 ? dup2(c, 201 + i) : dup(c), other = i & 2 ? c : copy, after;
        struct ends e = meet("through a copy", copies[i], i & 2 ? copy : c, V4);
        show("other", other); show_flags("copy", copies[i]); close(e.client); exchange("before connect", other, e.server);
        after = fcntl(e.server, F_DUPFD, 150); close(e.server); exchange("after accept", other, after);
    }
    close(l); close(copies[0]); meet("the first two closed", copies[1], -1, V4);
}

// ---- the end of a connection ----
static int outstanding(int fd) { // bytes that the peer has not acknowledged; waits until there are none
    int n = -1;
    for (int i = 0; i < PATIENCE_MS && ioctl(fd, SIOCOUTQ, &n) == 0 && n > 0; i++) poll(NULL, 0, 1);
    return n;
}
static void half_close(void) {
    struct ends e = ends_of(listener(V4));
    YES(put(e.client, "last")); TELL(shutdown(e.client, SHUT_WR)); TELL(write(e.client, "x", 1));
    YES(got(e.server, "last")); READ(e.server); READY(e.server, POLLIN | POLLRDHUP);
    YES(put(e.server, "still")); TELL(shutdown(e.server, SHUT_WR)); YES(got(e.client, "still"));
    READ(e.client); READY(e.client, POLLIN | POLLRDHUP); TELL(shutdown(tcp(0), SHUT_RDWR));
}
static void shutdown_read(void) { // TCP still takes what the peer sends, and gives it to a reader
    struct ends e = ends_of(listener(V4));
    TELL(shutdown(e.client, SHUT_RD)); READ(e.client); COUNT(write(e.server, "late", 4)); COUNT(outstanding(e.server));
    READ(e.client); YES(put(e.client, "other way")); YES(got(e.server, "other way"));
}
static void shutdown_listener(void) {
    struct blocked b; int l = listener(V4);
    meet("before", l, -1, V4); block(&b, l);
    TELL(shutdown(l, SHUT_RDWR)); say("blocked accept=%s", unblocked(&b)); TELL(accept(l, NULL, NULL));
}
static void closed_peer(void) {
    struct sigaction action = {.sa_handler = on_signal};
    struct ends e = ends_of(listener(V4));
    int l = e.listener, first = 0, last = 0, never;
    MUST(sigaction(SIGPIPE, &action, NULL)); close(e.server); READ(e.client);
    for (int i = 0; last != EPIPE && i < PATIENCE_MS; poll(NULL, 0, 1), i++) // until the peer's answer has come
        if (write(e.client, "x", 1) < 0) { last = errno; first = first ? first : last; }
    YES(first == EPIPE || first == ECONNRESET); YES(last == EPIPE); YES(handled > 0);
    e = ends_of(l); put(e.client, "unread"); ready(e.server, POLLIN); close(e.server); READ(e.client); READ(e.client);
    e.client = client_of(l); ready(l, POLLIN); never = client_of(l); // is in the queue when the listener is closed
    e.server = accepted(l); close(l); exchange("accepted", e.client, e.server); READ(never);
    TELL(connect_to(tcp(0), at(V4, local_port(e.server)))); // the accepted connection keeps the port
}

// ---- data ----
static void data_calls(void) {
    struct ends e = ends_of(listener(V4));
    int c = e.client, s = e.server, n = -1, pipes[2], file = MUST(open("/proc/self/exe", O_RDONLY));
    char b[16]; struct iovec two[] = {{b, 3}, {b + 8, 5}};
    put(c, "abcdefgh"); ready(s, POLLIN); TELL(ioctl(s, FIONREAD, &n)); COUNT(n); COUNT(recv(s, b, 4, MSG_PEEK));
    COUNT(recv(s, b, 8, MSG_WAITALL)); COUNT(outstanding(c)); COUNT(recv(s, b, 8, MSG_DONTWAIT)); put(c, "half");
    pid_t child = start();
    if (child == 0) { COUNT(recv(s, b, 8, MSG_WAITALL)); _exit(0); }
    put(c, "half"); COUNT(ended(child));
    memcpy(b, "one     three", 13); COUNT(writev(c, two, 2)); memset(b, 0, 13);
    ready(s, POLLIN); COUNT(readv(s, two, 2)); say("%.3s=%.5s", b, b + 8);
    COUNT(sendfile(c, file, NULL, 4)); YES(got(s, "\177ELF")); MUST(pipe(pipes));
    put(c, "spliced"); ready(s, POLLIN); COUNT(splice(s, NULL, pipes[1], NULL, 64, 0)); YES(got(pipes[0], "spliced"));
    put(pipes[1], "back"); COUNT(splice(pipes[0], NULL, s, NULL, 64, 0)); YES(got(c, "back")); exchange("afterwards", c, s);
}
static void message_names(void) { // a connection gives none, and takes any
    struct ends e = ends_of(listener(V4)); char b[8];
    for (int i = 0, from = e.client, to = e.server; i < 2; i++, from = e.server, to = e.client) {
        struct address a = {.len = sizeof a.bytes}; struct iovec one = {b, 4};
        struct msghdr m = {.msg_name = &a, .msg_namelen = sizeof a.bytes, .msg_iov = &one, .msg_iovlen = 1};
        put(from, "name"); ready(to, POLLIN); COUNT(recvmsg(to, &m, 0)); COUNT(m.msg_namelen); COUNT(m.msg_flags);
        put(from, "name"); ready(to, POLLIN); COUNT(recvfrom(to, b, 4, 0, &a.sa, &a.len)); COUNT(a.len);
        m.msg_name = NULL; m.msg_namelen = 0; COUNT(sendmsg(from, &m, 0)); YES(got(to, "name"));
        a = at(V4, 9); COUNT(sendto(from, "to", 2, 0, &a.sa, a.len)); YES(got(to, "to"));
    }
}
static void large(void) { // both ways at once
    enum { SIZE = 8 << 20 }; static unsigned char out[2][SIZE], in[2][SIZE];
    struct ends e = ends_of(listener(V4));
    unsigned sums[4] = {0}; long sent[2] = {0}, had[2] = {0}, n;
    for (long i = 0; i < 2 * SIZE; i++) out[i / SIZE][i % SIZE] = (unsigned)i * 2654435761u >> 24;
    MUST(fcntl(e.client, F_SETFL, O_NONBLOCK)); MUST(fcntl(e.server, F_SETFL, O_NONBLOCK));
    while (had[0] < SIZE || had[1] < SIZE) {
        struct pollfd p[] = {{e.client, POLLIN | (sent[0] < SIZE ? POLLOUT : 0), 0},
                             {e.server, POLLIN | (sent[1] < SIZE ? POLLOUT : 0), 0}};
        MUST(poll(p, 2, PATIENCE_MS) - 1); // none is a failure too
        for (int k = 0; k < 2; k++) {
            if (p[k].revents & POLLOUT && (n = write(p[k].fd, out[k] + sent[k], SIZE - sent[k])) > 0) sent[k] += n;
            if (p[k].revents & POLLIN) had[k] += MUST(read(p[k].fd, in[k] + had[k], SIZE - had[k]) - 1) + 1;
        }
    }
    for (long i = 0; i < 4 * SIZE; i++) sums[i / SIZE] = sums[i / SIZE] * 31 + (i < 2 * SIZE ? out : in)[i / SIZE % 2][i % SIZE];
    say("sent=%x %x received=%x %x", sums[0], sums[1], sums[3], sums[2]);
}

// ---- bad arguments ----
static void bad_arguments(void) {
    struct ends e = ends_of(listener(V4));
    int l = e.listener, new = tcp(0), bound = tcp(0), c, fds[] = {-1, MUST(open("/proc/self/exe", O_RDONLY))};
    struct address a = at(V4, local_port(l)), any = at(V4, 0), out; socklen_t minus = -1, len = 16;
    for (int i = 0, fd; i < 2; i++) {
        fd = fds[i]; TELL(bind_to(fd, a)); TELL(connect_to(fd, a)); TELL(listen(fd, 1)); TELL(accept(fd, NULL, NULL));
        TELL(accept4(fd, NULL, NULL, 0)); TELL(getsockname(fd, &out.sa, &len)); TELL(getpeername(fd, &out.sa, &len));
        TELL(set(fd, SOL_SOCKET, SO_REUSEADDR, 1)); VALUE(fd, SOL_SOCKET, SO_TYPE);
    }
    // Bad pointers by syscall(2): a checking build would stop at them in its own functions.
    TELL(syscall(SYS_bind, new, 8, 16)); TELL(syscall(SYS_connect, new, 8, 16));
    TELL(syscall(SYS_getsockname, l, 8, &len)); TELL(syscall(SYS_getpeername, e.client, 8, &len));
    TELL(syscall(SYS_getsockname, l, &out, 8)); TELL(syscall(SYS_getpeername, e.client, &out, 8));
    TELL(syscall(SYS_getsockname, l, &out, &minus)); TELL(syscall(SYS_getpeername, e.server, &out, &minus));
    c = client_of(l); TELL(syscall(SYS_accept, l, 8, &len)); READ(c); // it was taken from the queue, and closed
    TELL(accept4(l, NULL, NULL, 1)); meet("afterwards", l, -1, V4);
    TELL(bind(new, &a.sa, 4)); TELL(bind(new, &a.sa, 0)); TELL(bind(new, &a.sa, 1000)); TELL(bind_to(new, at(V6, 0)));
    TELL(connect(new, &a.sa, 4)); TELL(connect(new, &a.sa, 1)); TELL(connect(new, &a.sa, 1000)); TELL(bind_to(tcp6(), any));
    TELL(bind_to(new, at("192.0.2.1", 0))); TELL(bind_to(bound, any)); TELL(bind_to(bound, any)); TELL(bind_to(e.client, any));
    TELL(listen(e.client, 1)); TELL(listen(e.server, 1));
    TELL(accept(e.client, NULL, NULL)); TELL(accept(new, NULL, NULL)); TELL(accept(bound, NULL, NULL));
    TELL(read(new, &c, 1)); TELL(write(new, "x", 1)); TELL(read(l, &c, 1)); TELL(write(l, "x", 1));
    show("new", new); show("bound", bound); exchange("at the end", e.client, e.server); meet("with the new socket", l, new, V4);
}

// ---- other sockets and pipes ----
static void udp(void) {
    int a = MUST(socket(AF_INET, SOCK_DGRAM, 0)), b = MUST(socket(AF_INET, SOCK_DGRAM, 0));
    struct address from = {.len = sizeof from.bytes}; char data[8];
    TELL(bind_to(b, at(V4, 0))); TELL(connect_to(a, name_of(b, LOCAL))); show("a", a); show("b", b);
    YES(put(a, "to b")); COUNT(recvfrom(b, data, sizeof data, 0, &from.sa, &from.len)); say("from=[%s]", address_text(from));
    YES(ntohs(from.in.sin_port) == local_port(a)); TELL(connect_to(b, from)); exchange("udp", a, b);
    TELL(listen(a, 1)); TELL(accept(a, NULL, NULL)); TELL(set(a, IPPROTO_TCP, TCP_NODELAY, 1));
}
static void unix_stream(struct address a) {
    int l = MUST(socket(AF_UNIX, SOCK_STREAM, 0)), c = MUST(socket(AF_UNIX, SOCK_STREAM, 0)), s;
    struct address peer = {.len = sizeof peer.bytes};
    TELL(connect_to(c, a)); TELL(bind_to(l, a)); TELL(listen(l, 5)); TELL(connect_to(c, a));
    s = MUST(accept(l, &peer.sa, &peer.len)); COUNT(peer.len); COUNT(name_of(s, PEER).len); COUNT(name_of(l, LOCAL).len);
    peer = name_of(c, PEER); YES(peer.len == a.len && !memcmp(&peer.un, &a.un, a.len)); exchange("unix", c, s);
    TELL(set(c, IPPROTO_TCP, TCP_NODELAY, 1)); VALUE(c, SOL_SOCKET, SO_DOMAIN); VALUE(l, SOL_SOCKET, SO_ACCEPTCONN);
}
static void unix_sockets(void) {
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC};
    struct address a = {.un.sun_family = AF_UNIX};
    int d = MUST(socket(AF_UNIX, SOCK_DGRAM, 0)), e = MUST(socket(AF_UNIX, SOCK_DGRAM, 0)), two[2];
    char directory[] = "/tmp/sockets-XXXXXX", *path = a.un.sun_path;
    MUST(mkdtemp(directory) ? 0 : -1); // both names are of the same length in every run
    a.len = sizeof(sa_family_t) + snprintf(path, sizeof a.un.sun_path, "%s/s", directory) + 1;
    unix_stream(a); TELL(unlink(path)); TELL(rmdir(directory));
    a.len = sizeof(sa_family_t) + snprintf(path, sizeof a.un.sun_path, "0sockets-%010d", getpid());
    path[0] = 0; unix_stream(a); // an abstract name begins with 0
    for (int i = 0; i < 4; i++) {
        MUST(socketpair(AF_UNIX, types[i], 0, two)); show_flags("pair", two[0]); exchange("pair", two[0], two[1]);
    }
    a.len = sizeof(sa_family_t); TELL(bind_to(d, a)); TELL(bind_to(e, a)); // each gets an abstract name of its own
    TELL(connect_to(d, name_of(e, LOCAL))); TELL(connect_to(e, name_of(d, LOCAL))); exchange("datagrams", d, e);
}
static void pipes(void) {
    static char block[4096];
    for (int i = 0, two[2]; i < 2; i++) {
        long held = 0, n;
        MUST(i ? pipe2(two, O_NONBLOCK | O_CLOEXEC) : pipe(two)); show_flags("reads", two[0]); show_flags("writes", two[1]);
        YES(put(two[1], "through")); YES(got(two[0], "through")); TELL(fcntl(two[1], F_SETPIPE_SZ, 131072));
        YES(fcntl(two[0], F_GETPIPE_SZ) >= 131072); MUST(fcntl(two[1], F_SETFL, O_NONBLOCK));
        while ((n = write(two[1], block, sizeof block)) > 0) held += n;
        TELL(n); YES(held >= 131072); MUST(fcntl(two[0], F_SETFL, O_NONBLOCK));
        while ((n = read(two[0], block, sizeof block)) > 0) {}
        TELL(n); close(two[1]); READY(two[0], POLLIN);
    }
}

// ---- the scenarios ----
#define ALL(X) \
    X(ipv4) X(short_buffers) X(descriptor_flags) X(ipv6) X(dual_stack) X(both_wildcards) X(source_and_destination) \
    X(option_values) X(option_errors) X(timeouts) X(defer_accept) X(epoll_connect) X(epoll_listen) \
    X(nonblocking_connect) X(connect_errors) X(interrupted) X(reuse_port) X(address_in_use) X(prefork) X(forked) \
    X(executed) X(threads) X(passed) X(duplicates) X(half_close) X(shutdown_read) X(shutdown_listener) X(closed_peer) \
    X(data_calls) X(message_names) X(large) X(bad_arguments) X(udp) X(unix_sockets) X(pipes)
#define ROW(name) {#name, name},
static const struct { const char *name; void (*run)(void); } scenarios[] = {ALL(ROW)};
static int run(int i) { // whether it ended by itself
    scenario = scenarios[i].name;
    pid_t child = start();
    setpgid(child, child); // both do it, so that it is done before either goes on
    if (child == 0) { signal(SIGPIPE, SIG_IGN); alarm(LIMIT_S); scenarios[i].run(); _exit(0); }
    int status = ended(child);
    kill(-child, SIGKILL); // what it may have left behind
    if (WIFSIGNALED(status)) say(WTERMSIG(status) == SIGALRM ? "HANG" : "signal %d", WTERMSIG(status));
    else if (status) say("exit %d", WEXITSTATUS(status));
    return status == 0;
}
int main(int argc, char **argv) {
    int list = argc == 2 && !strcmp(argv[1], "--list"), known = list, good = 1;
    scenario = argv[0]; // of a run with --inherited it is one
    if (argc == 5 && !strcmp(argv[1], "--inherited")) return inherited(argv);
    for (int i = 0; i < LENGTH(scenarios); i++) {
        int named = argc == 1;
        for (int k = 1; k < argc; k++) named += !strcmp(argv[k], scenarios[i].name);
        if (list) puts(scenarios[i].name); else if (named) good &= run(i);
        known += named;
    }
    if (known < argc - 1) return fprintf(stderr, "%s: not all of these are scenarios; see --list\n", argv[0]), 2;
    return !good;
}
