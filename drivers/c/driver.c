/* An endpoint of ipcmark in C, by the document docs/reference/protocol.md: read(2) and write(2) on pipes, sockets and eventfds, and nothing
 * beside them. It is what other drivers are held against. Messages of the protocol are few and flat, so that they are searched and not parsed. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { MOST_STRETCHES = 16, SHOWN = 400 };

static const char HELLO[] =
	"{\"hello\":{\"protocol\":\"ipcmark-endpoint\",\"version\":3,\"program\":\"c\",\"capabilities\":[\"each\"],"
	"\"runtime\":\"" __VERSION__ "\",\"mechanisms\":["
	"{\"name\":\"pipe\",\"workloads\":[\"latency\",\"transfer\",\"throughput\"]},"
	"{\"name\":\"unix-stream\",\"workloads\":[\"latency\",\"transfer\",\"throughput\"]},"
	"{\"name\":\"tcp\",\"workloads\":[\"latency\",\"transfer\",\"throughput\"]},"
	"{\"name\":\"eventfd\",\"workloads\":[\"latency\"]}]}}";

/* What the orders say, and the descriptors that they led to. */
static bool is_client, streams, is_counter, check;
static size_t size, answer;
static int source, sink;
static uint8_t *outgoing, *incoming;

/* What is heard: the last message of the coordinator, ended by a zero. */
static char *heard;

static void write_all(int fd, const void *bytes, size_t count)
{
	while (count > 0) {
		ssize_t sent = write(fd, bytes, count);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			exit(1);
		bytes = (const uint8_t *)bytes + sent;
		count -= sent;
	}
}

static void say(const char *message)
{
	uint32_t length = strlen(message);
	uint8_t bytes[4] = {length, length >> 8, length >> 16, length >> 24};
	write_all(1, bytes, sizeof bytes);
	write_all(1, message, length);
}

/* Says why this endpoint cannot go on, and ends. What is said has no quotes in it. */
static _Noreturn void fail(const char *format, ...)
{
	char why[SHOWN], message[SHOWN + 32];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(why, sizeof why, format, arguments);
	va_end(arguments);
	snprintf(message, sizeof message, "{\"failed\":\"%s\"}", why);
	say(message);
	exit(1);
}

/* Reads exactly so much from the coordinator; false at its end. */
static bool read_all(void *into, size_t count)
{
	while (count > 0) {
		ssize_t got = read(0, into, count);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		into = (uint8_t *)into + got;
		count -= got;
	}
	return true;
}

static void hear(void)
{
	uint8_t bytes[4];
	if (!read_all(bytes, sizeof bytes))
		exit(0);
	size_t length = bytes[0] | bytes[1] << 8 | bytes[2] << 16 | (size_t)bytes[3] << 24;
	heard = length <= 16 << 20 ? realloc(heard, length + 1) : NULL;
	if (heard == NULL || !read_all(heard, length))
		exit(1);
	heard[length] = 0;
	if (strcmp(heard, "\"goodbye\"") == 0)
		exit(0);
}

/* Where the value of `name` begins in what is heard, from `from` on; NULL where there is none. */
static const char *value_of(const char *name, const char *from)
{
	char key[64];
	snprintf(key, sizeof key, "\"%s\":", name);
	const char *found = strstr(from, key);
	return found == NULL ? NULL : found + strlen(key);
}

static bool is(const char *name, const char *text)
{
	const char *value = value_of(name, heard);
	return value != NULL && strncmp(value, text, strlen(text)) == 0;
}

/* The numbers of the list `name`, at most `most`. Returns how many there are. */
static size_t numbers_of(const char *name, long *numbers, size_t most)
{
	const char *at = value_of(name, heard);
	size_t count = 0;
	while (at != NULL && *at != ']' && count < most) {
		char *end;
		numbers[count++] = strtol(at + 1, &end, 10);
		at = end;
	}
	return count;
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static uint8_t expected(uint64_t number, size_t k)
{
	return k < 8 ? number >> 8 * k : (number + k) * UINT64_C(0x9e3779b97f4a7c15) >> 56;
}

static void send_message(uint64_t number, size_t bytes)
{
	if (is_counter) {
		uint64_t one = 1;
		write_all(sink, &one, sizeof one);
		return;
	}
	for (size_t k = 0; check && k < bytes; k++)
		outgoing[k] = expected(number, k);
	memcpy(outgoing, &number, sizeof number);
	write_all(sink, outgoing, bytes);
}

static void receive_message(uint64_t number, size_t bytes)
{
	size_t count = is_counter ? 8 : bytes, received = 0;
	while (received < count) {
		ssize_t got = read(source, incoming + received, count - received);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			fail("the peer has closed");
		received += got;
	}
	if (is_counter)
		return;
	for (size_t k = 0; k < (check || bytes < 8 ? bytes : 8); k++)
		if (incoming[k] != expected(number, k))
			fail("message %" PRIu64 " came changed, or another came in its place", number);
}

static void nodelay(int fd)
{
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	source = sink = fd;
}

static void connect_tcp(void)
{
	long token[16];
	uint8_t shown[16], own[16];
	if (numbers_of("token", token, 16) != 16)
		fail("the orders have no token");
	for (int k = 0; k < 16; k++)
		own[k] = token[k];
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (is_client) {
		long port[2];
		hear();
		if (numbers_of("ticket", port, 2) != 2)
			fail("the ticket of tcp has two bytes");
		address.sin_port = htons(port[0] << 8 | port[1]);
		if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
			fail("connect: %s", strerror(errno));
		write_all(fd, own, sizeof own);
		nodelay(fd);
		return;
	}
	socklen_t length = sizeof address;
	if (bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, 16) != 0)
		fail("bind: %s", strerror(errno));
	getsockname(fd, (struct sockaddr *)&address, &length);
	char ticket[64];
	snprintf(ticket, sizeof ticket, "{\"ticket\":[%d,%d]}", ntohs(address.sin_port) >> 8, ntohs(address.sin_port) & 255);
	say(ticket);
	for (;;) {
		int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (accepted < 0)
			fail("accept: %s", strerror(errno));
		/* Whoever shows another token, or none for a while, is a stranger. */
		struct timeval limit = {.tv_sec = 2};
		setsockopt(accepted, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
		if (recv(accepted, shown, sizeof shown, MSG_WAITALL) == sizeof shown && memcmp(shown, own, sizeof own) == 0) {
			limit.tv_sec = 0;
			setsockopt(accepted, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
			nodelay(accepted);
			return;
		}
		close(accepted);
	}
}

static void take_orders(void)
{
	long fds[2] = {-1, -1};
	const char *bytes = value_of("size_bytes", heard);
	if (!is("parameters", "{}") || bytes == NULL)
		fail("this driver has no parameters");
	size = strtoull(bytes, NULL, 10);
	is_client = is("role", "\"client\"");
	streams = is("workload", "\"throughput\"");
	answer = is("workload", "\"latency\"") ? size : 1;
	is_counter = is("mechanism", "\"eventfd\"");
	outgoing = calloc(1, size + 8);
	incoming = calloc(1, size + 8);
	size_t given = numbers_of("descriptors", fds, 2);
	source = fds[0];
	sink = given == 2 ? fds[1] : fds[0];
	if (outgoing == NULL || incoming == NULL)
		fail("there is no memory for messages of %zu bytes", size);
	if (is("mechanism", "\"tcp\""))
		connect_tcp();
	else if (!(is_counter || is("mechanism", "\"pipe\"") || is("mechanism", "\"unix-stream\"")) || given == 0)
		fail("this driver has no such mechanism");
}

/* Says what a phase came to: its time, and the times of its iterations. */
static void say_done(uint64_t elapsed_ns, const uint64_t *each_ns, size_t count)
{
	char *message = malloc(96 + 21 * count), *at = message;
	if (message == NULL)
		fail("there is no memory for the times of a phase");
	at += sprintf(at, "{\"done\":{\"elapsed_ns\":%" PRIu64 ",\"each_ns\":[", elapsed_ns);
	for (size_t k = 0; k < count; k++)
		at += sprintf(at, "%s%" PRIu64, k == 0 ? "" : ",", each_ns[k]);
	strcpy(at, "]}}");
	say(message);
	free(message);
}

static void iteration(uint64_t number)
{
	if (is_client) {
		send_message(number, size);
		if (!streams)
			receive_message(number, answer);
	} else {
		receive_message(number, size);
		if (!streams)
			send_message(number, answer);
	}
}

static void acknowledge(uint64_t count)
{
	if (is_client)
		receive_message(count, 1);
	else
		send_message(count, 1);
}

static void phase(void)
{
	struct stretch {
		uint64_t messages;
		bool timed, acknowledged;
	} stretches[MOST_STRETCHES];
	size_t count = 0, singly = 0;
	bool each = is("each", "true");
	check = is("check", "true");
	for (const char *at = heard; (at = value_of("messages", at)) != NULL && count < MOST_STRETCHES; count++) {
		const char *timed = value_of("timed", at), *acknowledged = value_of("acknowledged", at);
		stretches[count] = (struct stretch){strtoull(at, NULL, 10), *timed == 't', *acknowledged == 't'};
	}
	uint64_t number = 0, elapsed_ns = 0, *each_ns = NULL;
	if (!is_client)
		say("\"ready\"");
	for (struct stretch *stretch = stretches; stretch < stretches + count; stretch++) {
		uint64_t end = number + stretch->messages;
		bool notes = each && stretch->timed;
		if (notes && (each_ns = calloc(stretch->messages, sizeof *each_ns)) == NULL)
			fail("there is no memory for the times of a phase");
		uint64_t start = now_ns(), before = start;
		for (; number < end; number++) {
			iteration(number);
			if (notes) {
				uint64_t now = now_ns();
				each_ns[singly++] = now - before;
				before = now;
			}
		}
		if (stretch->acknowledged)
			acknowledge(number);
		if (stretch->timed)
			elapsed_ns += now_ns() - start;
	}
	say_done(elapsed_ns, each_ns, singly);
	free(each_ns);
}

int main(void)
{
	hear();
	say(HELLO);
	hear();
	take_orders();
	say("\"connected\"");
	for (;;) {
		hear();
		phase();
	}
}
