/* The driver `c`: read(2) and write(2) on pipes, sockets and eventfds, and nothing beside them. It is what other
 * drivers are held against. */

#include "endpoint.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

static const char MECHANISMS[] =
	"{\"name\":\"pipe\",\"workloads\":[\"latency\",\"transfer\",\"throughput\"]},"
	"{\"name\":\"unix-stream\",\"workloads\":[\"latency\",\"transfer\",\"throughput\"]},"
	"{\"name\":\"tcp\",\"workloads\":[\"latency\",\"transfer\",\"throughput\"]},"
	"{\"name\":\"eventfd\",\"workloads\":[\"latency\"]}";

static bool is_counter;
static int source, sink;

static void send_message(uint64_t number, size_t bytes)
{
	if (is_counter) {
		uint64_t one = 1;
		write_all(sink, &one, sizeof one);
		return;
	}
	make(number, bytes);
	write_all(sink, outgoing, bytes);
}

static void receive_message(uint64_t number, size_t bytes)
{
	if (!read_all(source, incoming, is_counter ? 8 : bytes))
		fail("the peer has closed");
	if (!is_counter)
		verify(number, bytes);
}

static void nodelay(int fd)
{
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	source = sink = fd;
}

/* Takes the first connection to `listener` that shows `own`. */
static void accept_whoever_shows(int listener, const uint8_t own[16])
{
	for (;;) {
		int accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (accepted < 0)
			fail("accept: %s", strerror(errno));
		/* Whoever shows another token, or none for a while, is a stranger. */
		struct timeval limit = {.tv_sec = 2};
		uint8_t shown[16];
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
	long token[16];
	uint8_t own[16];
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
	int port = ntohs(address.sin_port);
	snprintf(ticket, sizeof ticket, "{\"ticket\":[%d,%d]}", port >> 8, port & 255);
	say(ticket);
	accept_whoever_shows(fd, own);
}

static void connect_peer(void)
{
	long fds[2] = {-1, -1};
	size_t given = numbers_of("descriptors", fds, 2);
	is_counter = is("mechanism", "\"eventfd\"");
	source = fds[0];
	sink = given == 2 ? fds[1] : fds[0];
	if (is("mechanism", "\"tcp\""))
		connect_tcp();
	else if (!(is_counter || is("mechanism", "\"pipe\"") || is("mechanism", "\"unix-stream\"")) || given == 0)
		fail("this driver has no such mechanism");
}

int main(void)
{
	take_part("c", MECHANISMS);
}
