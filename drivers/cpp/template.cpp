// An endpoint of ipcmark over a pair of pipes, from which you begin one of your own: what you write is how two
// endpoints are connected, and how a message is sent and received. c++ -std=c++17 -O2 -o driver template.cpp

#include "ipcmark_endpoint.hpp"

class Pipes : public ipcmark::Channel {
public:
	Pipes(int from, int to) : source(from), sink(to) {}

	void send(const std::uint8_t *bytes, std::size_t count) { ipcmark::write_all(sink, bytes, count); }

	void receive(std::uint8_t *bytes, std::size_t count)
	{
		if (!ipcmark::read_all(source, bytes, count))
			throw ipcmark::Failed("the peer has closed");
	}

private:
	int source, sink;
};

// Where the endpoints have no descriptors from their start, the server says a ticket here, and the client hears it.
static Pipes connect(const ipcmark::Orders &orders)
{
	return Pipes(orders.descriptors.at(0), orders.descriptors.at(1));
}

int main()
{
	return ipcmark::run("NAME", {ipcmark::mechanism("pipe", ipcmark::ALL_WORKLOADS, connect)});
}
