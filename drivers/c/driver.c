/* The driver `c`: read(2) and write(2) on pipes, sockets and eventfds, send(2) and recv(2) of datagrams, and nothing
 * beside them. It is what other drivers are held against. */

#include "endpoint.h"
#include "codec.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#define MECHANISM(name, codecs) \
	"{\"name\":\"" name "\",\"workloads\":[\"latency\",\"transfer\",\"throughput\"],\"codecs\":[" codecs "]},"
static const char MECHANISMS[] =
	MECHANISM("pipe", CODECS)
	MECHANISM("unix-stream", CODECS)
	MECHANISM("tcp", CODECS)
	MECHANISM("udp", "")
	"{\"name\":\"eventfd\",\"workloads\":[\"latency\"]}";

enum { TOKEN_BYTES = 16 };
static bool is_counter, is_datagram;
static int source, sink;
/* In a stream over udp: how many messages fit in the server's buffer, after how many of them it acknowledges, and how
 * many are not acknowledged. */
static size_t window, half, open_messages;

static void put(const void *bytes, size_t count)
{
	ssize_t sent;
	while ((sent = send(sink, bytes, count, 0)) < 0 && errno == EINTR)
		;
	if (sent < 0)
		fail("the peer has closed, or takes nothing: %s", strerror(errno));
}

/* Takes the next datagram. Returns how long it was, which may be more than there is room for. */
static size_t take(void *into, size_t room)
{
	ssize_t got;
	while ((got = recv(source, into, room, MSG_TRUNC)) < 0 && errno == EINTR)
		;
	if (got < 0)
		fail("the peer has closed: %s", strerror(errno));
	return got;
}

/* Waits until at most so many messages of a stream are not acknowledged. */
static void wait_for_room(size_t most)
{
	uint8_t word;
	for (; open_messages > most; open_messages -= half)
		take(&word, sizeof word);
}

static void send_datagram(size_t bytes)
{
	bool streams_out = streams && is_client;
	if (streams_out)
		wait_for_room(window - 1);
	put(outgoing, bytes);
	open_messages += streams_out;
}

static void receive_datagram(size_t bytes)
{
	if (streams && is_client)
		wait_for_room(half - 1);
	size_t got = take(incoming, bytes);
	if (got != bytes)
		fail("a message of %zu bytes came instead of one of %zu", got, bytes);
	if (streams && !is_client && ++open_messages == half) {
		put("", 1);
		open_messages = 0;
	}
}

static void send_message(uint64_t number, size_t bytes)
{
	if (is_counter) {
		uint64_t one = 1;
		write_all(sink, &one, sizeof one);
		return;
	}
	make(number, bytes);
	if (codec[0] != 0)
		send_object(sink, bytes);
	else if (is_datagram)
		send_datagram(bytes);
	else
		write_all(sink, outgoing, bytes);
}

static void receive_message(uint64_t number, size_t bytes)
{
	if (codec[0] != 0)
		receive_object(source, bytes);
	else if (is_datagram)
		receive_datagram(bytes);
	else if (!read_all(source, incoming, is_counter ? 8 : bytes))
		fail("the peer has closed");
	if (!is_counter)
		verify(number, bytes);
}

/* What a client shows to its server. */
static uint8_t own[TOKEN_BYTES];

static void take_token(void)
{
	long token[TOKEN_BYTES];
	if (numbers_of("token", token, TOKEN_BYTES) != TOKEN_BYTES)
		fail("the orders have no token");
	for (int k = 0; k < TOKEN_BYTES; k++)
		own[k] = token[k];
}

/* The socket of a mechanism of a network, whose orders are what is heard. */
static int inet_socket(int type)
{
	take_token();
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fail("socket: %s", strerror(errno));
	return source = sink = fd;
}

/* Connects `fd` to the port whose two bytes are in `port`. */
static void connect_port(int fd, const long *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	address.sin_port = htons(port[0] << 8 | port[1]);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
		fail("connect: %s", strerror(errno));
}

/* Binds `fd` to a free port. Returns that. */
static int bind_port(int fd)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	if (bind(fd, (struct sockaddr *)&address, length) != 0)
		fail("bind: %s", strerror(errno));
	getsockname(fd, (struct sockaddr *)&address, &length);
	return ntohs(address.sin_port);
}

static void nodelay(int fd)
{
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	source = sink = fd;
}

/* Takes the first connection to `listener` that shows the token. */
static void accept_whoever_shows_it(int listener)
{
	for (;;) {
		int accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (accepted < 0)
			fail("accept: %s", strerror(errno));
		/* Whoever shows another token, or none for a while, is a stranger. */
		struct timeval limit = {.tv_sec = 2};
		uint8_t shown[TOKEN_BYTES];
		setsockopt(accepted, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
		if (recv(accepted, shown, sizeof shown, MSG_WAITALL) == sizeof shown && memcmp(shown, own, sizeof shown) == 0) {
			limit.tv_sec = 0;
			setsockopt(accepted, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
			nodelay(accepted);
			return;
		}
		close(accepted);
	}
}

static void connect_tcp(void)
{
	int fd = inet_socket(SOCK_STREAM);
	if (is_client) {
		long port[2];
		hear();
		if (numbers_of("ticket", port, 2) != 2)
			fail("the ticket of tcp has two bytes");
		connect_port(fd, port);
		write_all(fd, own, TOKEN_BYTES);
		nodelay(fd);
		return;
	}
	char ticket[64];
	int port = bind_port(fd);
	if (listen(fd, 16) != 0)
		fail("listen: %s", strerror(errno));
	snprintf(ticket, sizeof ticket, "{\"ticket\":[%d,%d]}", port >> 8, port & 255);
	say(ticket);
	accept_whoever_shows_it(fd);
}

static void put_word(char kind)
{
	uint8_t word[TOKEN_BYTES + 1];
	memcpy(word, own, TOKEN_BYTES);
	word[TOKEN_BYTES] = kind;
	put(word, sizeof word);
}

/* The kind of the next word, from whoever `from` then has; what is no word is dropped. */
static char take_word(struct sockaddr_in *from)
{
	for (;;) {
		uint8_t word[TOKEN_BYTES + 2];
		socklen_t length = sizeof *from;
		ssize_t got = recvfrom(source, word, sizeof word, 0, (struct sockaddr *)from, &length);
		if (got < 0 && errno != EINTR)
			fail("the peer has closed: %s", strerror(errno));
		if (got == TOKEN_BYTES + 1 && memcmp(word, own, TOKEN_BYTES) == 0)
			return word[TOKEN_BYTES];
	}
}

/* The server's ticket of udp: the port, and how many messages its buffer surely holds. */
static void say_datagram_ticket(int port)
{
	int room = 0;
	socklen_t length = sizeof room;
	char ticket[64];
	getsockopt(source, SOL_SOCKET, SO_RCVBUF, &room, &length);
	window = room / 2 / (2 * size + 1024);
	snprintf(ticket, sizeof ticket, "{\"ticket\":[%d,%d,%zu,%zu,%zu,%zu]}", port >> 8, port & 255,
		window >> 24 & 255, window >> 16 & 255, window >> 8 & 255, window & 255);
	say(ticket);
}

static void connect_udp(void)
{
	int fd = inet_socket(SOCK_DGRAM);
	struct sockaddr_in peer;
	is_datagram = true;
	if (is_client) {
		long ticket[6];
		hear();
		if (numbers_of("ticket", ticket, 6) != 6)
			fail("the ticket of udp has six bytes");
		window = ticket[2] << 24 | ticket[3] << 16 | ticket[4] << 8 | ticket[5];
		connect_port(fd, ticket);
		put_word('h');
		while (take_word(&peer) != 'w')
			;
		put_word('r');
	} else {
		say_datagram_ticket(bind_port(fd));
		while (take_word(&peer) != 'h')
			;
		if (connect(fd, (struct sockaddr *)&peer, sizeof peer) != 0)
			fail("connect: %s", strerror(errno));
		do
			put_word('w');
		while (take_word(&peer) == 'h');
	}
	half = window < 2 ? 1 : window / 2;
	window = window < 2 ? 1 : 2 * half;
}

static void connect_peer(void)
{
	long fds[2] = {-1, -1};
	size_t given = numbers_of("descriptors", fds, 2);
	is_counter = is("mechanism", "\"eventfd\"");
	if (codec[0] != 0 && (is_counter || is("mechanism", "\"udp\"")))
		fail("only what streams bytes has codecs");
	source = fds[0];
	sink = given == 2 ? fds[1] : fds[0];
	if (is("mechanism", "\"tcp\""))
		connect_tcp();
	else if (is("mechanism", "\"udp\""))
		connect_udp();
	else if (!(is_counter || is("mechanism", "\"pipe\"") || is("mechanism", "\"unix-stream\"")) || given == 0)
		fail("this driver has no such mechanism");
}

int main(void)
{
	codecs = CODECS;
	take_part("c", MECHANISMS);
}
