/* The core of an endpoint of ipcmark in C, by the document docs/reference/protocol.md: messages, phases and payload.
 * What connects two endpoints is each driver's own: it includes this file, has the three functions that are declared
 * below, and calls take_part. Messages of the protocol are few and flat, so that they are searched and not parsed. */

#ifndef ENDPOINT_H
#define ENDPOINT_H

#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_STRETCHES = 16, SHOWN = 400, LONGEST_HELLO = 2000, LONGEST_CODEC = 16 };

/* The driver's: connects the endpoints as the orders say, which are what is heard. */
static void connect_peer(void);
/* The driver's: send and receive a message of so many bytes. */
static void send_message(uint64_t number, size_t bytes);
static void receive_message(uint64_t number, size_t bytes);

/* What the orders say, and whether all bytes of a message matter. */
static bool is_client, streams, check;
static size_t size, answer;
/* The codecs that the driver has, a list in JSON without brackets: none unless it says so before it takes part. */
static const char *codecs = "";
/* The one that makes bytes of messages; empty where none does. */
static char codec[LONGEST_CODEC];
/* Room for a message each way, and for a number whatever the size. */
static uint8_t *outgoing, *incoming;

/* What is heard: the last message of the coordinator, ended by a zero. */
static char *heard;

static inline void write_all(int fd, const void *bytes, size_t count)
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

/* Reads exactly so much; false at the end. */
static inline bool read_all(int fd, void *into, size_t count)
{
	while (count > 0) {
		ssize_t got = read(fd, into, count);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		into = (uint8_t *)into + got;
		count -= got;
	}
	return true;
}

static inline void say(const char *message)
{
	uint32_t length = strlen(message);
	uint8_t bytes[4] = {length, length >> 8, length >> 16, length >> 24};
	write_all(1, bytes, sizeof bytes);
	write_all(1, message, length);
}

/* Says why this endpoint cannot go on, and ends. What is said has no quotes in it. */
static inline _Noreturn void fail(const char *format, ...)
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

static inline void hear(void)
{
	uint8_t bytes[4];
	if (!read_all(0, bytes, sizeof bytes))
		exit(0);
	size_t length = bytes[0] | bytes[1] << 8 | bytes[2] << 16 | (size_t)bytes[3] << 24;
	heard = length <= 16 << 20 ? realloc(heard, length + 1) : NULL;
	if (heard == NULL || !read_all(0, heard, length))
		exit(1);
	heard[length] = 0;
	if (strcmp(heard, "\"goodbye\"") == 0)
		exit(0);
}

/* Where the value of `name` begins in what is heard, from `from` on; NULL where there is none. */
static inline const char *value_of(const char *name, const char *from)
{
	char key[64];
	snprintf(key, sizeof key, "\"%s\":", name);
	const char *found = strstr(from, key);
	return found == NULL ? NULL : found + strlen(key);
}

static inline bool is(const char *name, const char *text)
{
	const char *value = value_of(name, heard);
	return value != NULL && strncmp(value, text, strlen(text)) == 0;
}

/* The numbers of the list `name`, at most `most`. Returns how many there are. */
static inline size_t numbers_of(const char *name, long *numbers, size_t most)
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

static inline uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static inline uint8_t expected(uint64_t number, size_t k)
{
	return k < 8 ? number >> 8 * k : (number + k) * UINT64_C(0x9e3779b97f4a7c15) >> 56;
}

/* Puts message `number` into `outgoing`. */
static inline void make(uint64_t number, size_t bytes)
{
	for (size_t k = 0; check && k < bytes; k++)
		outgoing[k] = expected(number, k);
	memcpy(outgoing, &number, sizeof number);
}

/* Fails where `incoming` is not message `number`. */
static inline void verify(uint64_t number, size_t bytes)
{
	for (size_t k = 0; k < (check || bytes < 8 ? bytes : 8); k++)
		if (incoming[k] != expected(number, k))
			fail("message %" PRIu64 " came changed, or another came in its place", number);
}

/* Takes the codec from the orders' parameters. */
static inline void take_codec(void)
{
	static const char KEY[] = "{\"codec\":";
	char quoted[LONGEST_CODEC + 2];
	const char *name = is("parameters", KEY) ? value_of("parameters", heard) + strlen(KEY) : NULL;
	size_t length = name == NULL || *name != '"' ? 0 : strcspn(name + 1, "\"");
	if (length == 0 || length >= LONGEST_CODEC || strncmp(name + 1 + length, "\"}", 2) != 0)
		fail("this driver has no parameters but a codec");
	memcpy(codec, name + 1, length);
	snprintf(quoted, sizeof quoted, "\"%s\"", codec);
	if (strstr(codecs, quoted) == NULL)
		fail("this driver has no codec %s", codec);
}

static inline void take_orders(void)
{
	const char *bytes = value_of("size_bytes", heard);
	if (bytes == NULL)
		fail("the orders have no size");
	if (!is("parameters", "{}"))
		take_codec();
	size = strtoull(bytes, NULL, 10);
	is_client = is("role", "\"client\"");
	streams = is("workload", "\"throughput\"");
	answer = is("workload", "\"latency\"") ? size : 1;
	outgoing = calloc(1, size + 8);
	incoming = calloc(1, size + 8);
	if (outgoing == NULL || incoming == NULL)
		fail("there is no memory for messages of %zu bytes", size);
	connect_peer();
}

/* Says what a phase came to: its time, and the times of its iterations. */
static inline void say_done(uint64_t elapsed_ns, const uint64_t *each_ns, size_t count)
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

static inline void iteration(uint64_t number)
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

static inline void acknowledge(uint64_t count)
{
	if (is_client)
		receive_message(count, 1);
	else
		send_message(count, 1);
}

static inline void phase(void)
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

/* Takes part in a trial, as an endpoint of `program`. `mechanisms` lists in JSON what it has, without brackets. */
static inline _Noreturn void take_part(const char *program, const char *mechanisms)
{
	char hello[LONGEST_HELLO];
	snprintf(hello, sizeof hello,
		"{\"hello\":{\"protocol\":\"ipcmark-endpoint\",\"version\":3,\"program\":\"%s\",\"capabilities\":[\"each\"],"
		"\"runtime\":\"" __VERSION__ "\",\"mechanisms\":[%s]}}", program, mechanisms);
	hear();
	say(hello);
	hear();
	take_orders();
	say("\"connected\"");
	for (;;) {
		hear();
		phase();
	}
}

#endif
