// The driver `cpp`: read(2) and write(2) on pipes, sockets and eventfds, send(2) and recv(2) of datagrams, each closed by
// who owns it. Beside the driver `c` it shows what the header ipcmark_endpoint.hpp costs, by which others in C++ are made.

#include "codec.hpp"
#include "ipcmark_endpoint.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

using ipcmark::Failed;
using ipcmark::Orders;

namespace {

// A descriptor, which is closed with this.
class Descriptor {
public:
	Descriptor(int opened, const std::string &operation) : fd(opened)
	{
		if (fd < 0)
			throw ipcmark::failed(operation);
	}
	Descriptor(Descriptor &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
	~Descriptor()
	{
		if (fd >= 0)
			close(fd);
	}
	int number() const { return fd; }

private:
	int fd;
};

// A stream of bytes over one descriptor or two: a message of a trial is as long as both know.
class Stream : public ipcmark::Channel {
public:
	Stream(int from, int to) : source(from), sink(to) {}

	void send(const std::uint8_t *bytes, std::size_t count) { ipcmark::write_all(sink, bytes, count); }

	void receive(std::uint8_t *bytes, std::size_t count)
	{
		if (!ipcmark::read_all(source, bytes, count))
			throw Failed("the peer has closed");
	}

private:
	int source, sink;
};

// The same over a socket of its own.
class Tcp : public Stream {
public:
	explicit Tcp(Descriptor connected)
		: Stream(connected.number(), connected.number()), socket(std::move(connected))
	{
		int on = 1;
		if (setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
			throw ipcmark::failed("setsockopt TCP_NODELAY");
	}

private:
	Descriptor socket;
};

class Counter : public ipcmark::Channel {
public:
	static constexpr bool HAS_BYTES = false;

	Counter(int from, int to) : source(from), sink(to) {}

	void send(const std::uint8_t *, std::size_t)
	{
		std::uint64_t one = 1;
		ipcmark::write_all(sink, &one, sizeof one);
	}

	void receive(std::uint8_t *, std::size_t)
	{
		std::uint64_t count;
		if (!ipcmark::read_all(source, &count, sizeof count) || count != 1)
			throw Failed("the counter has not one message");
	}

private:
	int source, sink;
};

// Datagrams of a connected socket. In a stream, of which an endpoint sends or receives, the server acknowledges each
// half of what its buffer holds, and so much is on its way at most.
class Datagrams : public ipcmark::Channel {
public:
	Datagrams(Descriptor connected, const Orders &orders, std::size_t fitting)
		: socket(std::move(connected)), waits(orders.streams && orders.is_client),
		  acknowledges(orders.streams && !orders.is_client), half(std::max<std::size_t>(fitting / 2, 1)),
		  most(fitting < 2 ? 1 : 2 * half)
	{
	}

	void send(const std::uint8_t *bytes, std::size_t count)
	{
		if (waits) {
			wait_for_room(most - 1);
			open++;
		}
		put(bytes, count);
	}

	void receive(std::uint8_t *bytes, std::size_t count)
	{
		if (waits)
			wait_for_room(half - 1);
		take(bytes, count);
		if (acknowledges && ++open == half) {
			put(bytes, 1);
			open = 0;
		}
	}

private:
	Descriptor socket;
	bool waits, acknowledges;
	std::size_t half, most, open = 0;

	void put(const std::uint8_t *bytes, std::size_t count)
	{
		while (::send(socket.number(), bytes, count, 0) < 0)
			if (errno != EINTR)
				throw ipcmark::failed("the peer has closed, or takes nothing: send");
	}

	void take(std::uint8_t *bytes, std::size_t count)
	{
		ssize_t got;
		while ((got = recv(socket.number(), bytes, count, MSG_TRUNC)) < 0)
			if (errno != EINTR)
				throw ipcmark::failed("the peer has closed: recv");
		if (got != static_cast<ssize_t>(count))
			throw Failed("a message of " + std::to_string(got) + " bytes came instead of one of " + std::to_string(count));
	}

	// Waits until no more messages than that are not acknowledged.
	void wait_for_room(std::size_t left)
	{
		for (std::uint8_t word; open > left; open -= half)
			take(&word, 1);
	}
};

template <class Way> Way given(const Orders &orders)
{
	if (orders.descriptors.empty())
		throw Failed("the orders have no descriptors");
	return Way(orders.descriptors.front(), orders.descriptors.back());
}

sockaddr_in loopback(std::uint16_t port)
{
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons(port);
	return address;
}

void limit_waiting(const Descriptor &socket, int seconds)
{
	timeval limit{};
	limit.tv_sec = seconds;
	setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

Descriptor inet_socket(int type, const Orders &orders)
{
	if (orders.token.empty())
		throw Failed("the orders have no token");
	return Descriptor(socket(AF_INET, type | SOCK_CLOEXEC, 0), "socket");
}

// Connects to the port that a ticket begins with.
void connect_to(const Descriptor &socket, const std::string &ticket)
{
	auto high = static_cast<std::uint8_t>(ticket[0]), low = static_cast<std::uint8_t>(ticket[1]);
	sockaddr_in address = loopback(high << 8 | low);
	if (connect(socket.number(), reinterpret_cast<sockaddr *>(&address), sizeof address) != 0)
		throw ipcmark::failed("connect");
}

// Binds to a free port. Returns its two bytes.
std::string bound(const Descriptor &socket)
{
	sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;
	auto any = reinterpret_cast<sockaddr *>(&address);
	if (bind(socket.number(), any, length) != 0 || getsockname(socket.number(), any, &length) != 0)
		throw ipcmark::failed("bind");
	return std::string(reinterpret_cast<const char *>(&address.sin_port), sizeof address.sin_port);
}

Tcp connected(const Orders &orders)
{
	Descriptor socket = inet_socket(SOCK_STREAM, orders);
	std::string ticket = ipcmark::hear_ticket();
	if (ticket.size() != 2)
		throw Failed("the ticket of tcp has two bytes");
	connect_to(socket, ticket);
	ipcmark::write_all(socket.number(), orders.token.data(), orders.token.size());
	return Tcp(std::move(socket));
}

Tcp accepted(const Orders &orders)
{
	Descriptor listener = inet_socket(SOCK_STREAM, orders);
	std::string port = bound(listener);
	if (listen(listener.number(), 16) != 0)
		throw ipcmark::failed("listen");
	ipcmark::say_ticket(port);
	for (;;) {
		Descriptor socket(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC), "accept");
		// Whoever shows another token, or none for a while, is a stranger.
		limit_waiting(socket, 2);
		std::string shown(orders.token.size(), '\0');
		ssize_t got = recv(socket.number(), shown.data(), shown.size(), MSG_WAITALL);
		if (got == static_cast<ssize_t>(shown.size()) && shown == orders.token) {
			limit_waiting(socket, 0);
			return Tcp(std::move(socket));
		}
	}
}

Tcp tcp(const Orders &orders)
{
	return orders.is_client ? connected(orders) : accepted(orders);
}

void put_word(const Descriptor &socket, const Orders &orders, char kind)
{
	std::string word = orders.token + kind;
	if (send(socket.number(), word.data(), word.size(), 0) < 0)
		throw ipcmark::failed("send");
}

// The kind of the next word, and whom it is from; what is no word is dropped.
char take_word(const Descriptor &socket, const Orders &orders, sockaddr_in &from)
{
	for (;;) {
		char bytes[64];
		socklen_t length = sizeof from;
		ssize_t got =
			recvfrom(socket.number(), bytes, sizeof bytes, 0, reinterpret_cast<sockaddr *>(&from), &length);
		if (got < 0 && errno != EINTR)
			throw ipcmark::failed("the peer has closed: recvfrom");
		std::string_view word(bytes, std::max<ssize_t>(got, 0));
		if (word.size() == orders.token.size() + 1 && word.substr(0, orders.token.size()) == orders.token)
			return word.back();
	}
}

Datagrams greeted(const Orders &orders)
{
	Descriptor socket = inet_socket(SOCK_DGRAM, orders);
	std::string ticket = ipcmark::hear_ticket();
	if (ticket.size() != 6)
		throw Failed("the ticket of udp has six bytes");
	connect_to(socket, ticket);
	sockaddr_in peer;
	put_word(socket, orders, 'h');
	while (take_word(socket, orders, peer) != 'w') {
	}
	put_word(socket, orders, 'r');
	std::uint32_t fitting;
	std::memcpy(&fitting, ticket.data() + 2, sizeof fitting);
	return Datagrams(std::move(socket), orders, ntohl(fitting));
}

Datagrams welcomed(const Orders &orders)
{
	Descriptor socket = inet_socket(SOCK_DGRAM, orders);
	std::string port = bound(socket);
	int room = 0;
	socklen_t length = sizeof room;
	if (getsockopt(socket.number(), SOL_SOCKET, SO_RCVBUF, &room, &length) != 0)
		throw ipcmark::failed("getsockopt SO_RCVBUF");
	auto fitting = static_cast<std::uint32_t>(room / 2 / (2 * orders.size_bytes + 1024));
	std::uint32_t shown = htonl(fitting);
	ipcmark::say_ticket(port + std::string(reinterpret_cast<const char *>(&shown), sizeof shown));
	sockaddr_in peer;
	while (take_word(socket, orders, peer) != 'h') {
	}
	if (connect(socket.number(), reinterpret_cast<sockaddr *>(&peer), sizeof peer) != 0)
		throw ipcmark::failed("connect");
	do
		put_word(socket, orders, 'w');
	while (take_word(socket, orders, peer) == 'h');
	return Datagrams(std::move(socket), orders, fitting);
}

Datagrams udp(const Orders &orders)
{
	return orders.is_client ? greeted(orders) : welcomed(orders);
}

// A mechanism that streams bytes, and objects where the orders have a codec.
template <class Connect> ipcmark::Mechanism streaming(const std::string &name, Connect connect)
{
	auto objects = [connect](const Orders &orders) { return Objects(connect(orders), orders); };
	auto plain = ipcmark::mechanism(name, ipcmark::ALL_WORKLOADS, connect).trial;
	auto coded = ipcmark::mechanism(name, ipcmark::ALL_WORKLOADS, objects).trial;
	auto trial = [plain, coded](const Orders &orders) { (orders.codec.empty() ? plain : coded)(orders); };
	return {name, ipcmark::ALL_WORKLOADS, "", trial, CODECS};
}

}  // namespace

int main()
{
	return ipcmark::run("cpp", {
		streaming("pipe", given<Stream>),
		streaming("unix-stream", given<Stream>),
		streaming("tcp", tcp),
		ipcmark::mechanism("udp", ipcmark::ALL_WORKLOADS, udp),
		ipcmark::mechanism("eventfd", {"latency"}, given<Counter>),
	});
}
