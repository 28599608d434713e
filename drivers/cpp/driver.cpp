// The driver `cpp`: read(2) and write(2) on pipes, sockets and eventfds, each closed by who owns it. Beside the driver
// `c` it shows what the header ipcmark_endpoint.hpp costs, by which others in C++ are made.

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

Descriptor tcp_socket()
{
	return Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
}

Tcp connected(const Orders &orders)
{
	std::string ticket = ipcmark::hear_ticket();
	if (ticket.size() != 2)
		throw Failed("the ticket of tcp has two bytes");
	auto high = static_cast<std::uint8_t>(ticket[0]), low = static_cast<std::uint8_t>(ticket[1]);
	sockaddr_in address = loopback(high << 8 | low);
	Descriptor socket = tcp_socket();
	if (connect(socket.number(), reinterpret_cast<sockaddr *>(&address), sizeof address) != 0)
		throw ipcmark::failed("connect");
	ipcmark::write_all(socket.number(), orders.token.data(), orders.token.size());
	return Tcp(std::move(socket));
}

Tcp accepted(const Orders &orders)
{
	sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;
	auto any = reinterpret_cast<sockaddr *>(&address);
	Descriptor listener = tcp_socket();
	if (bind(listener.number(), any, length) != 0 || listen(listener.number(), 16) != 0)
		throw ipcmark::failed("bind");
	if (getsockname(listener.number(), any, &length) != 0)
		throw ipcmark::failed("getsockname");
	std::uint16_t port = ntohs(address.sin_port);
	ipcmark::say_ticket(std::string{static_cast<char>(port >> 8), static_cast<char>(port)});
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
	if (orders.token.empty())
		throw Failed("the orders have no token");
	return orders.is_client ? connected(orders) : accepted(orders);
}

}  // namespace

int main()
{
	return ipcmark::run("cpp", {
		ipcmark::mechanism("pipe", ipcmark::ALL_WORKLOADS, given<Stream>),
		ipcmark::mechanism("unix-stream", ipcmark::ALL_WORKLOADS, given<Stream>),
		ipcmark::mechanism("tcp", ipcmark::ALL_WORKLOADS, tcp),
		ipcmark::mechanism("eventfd", {"latency"}, given<Counter>),
	});
}
