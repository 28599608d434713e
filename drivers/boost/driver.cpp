// The driver `boost`: Boost.Interprocess's message queue, and a ring of messages as a program makes one of its shared
// memory, mutex and conditions. Its shared memory has names outside of the file system: the client, which opens it
// last, removes them, so that they stand there for no longer than the endpoints need to find each other.

#include "ipcmark_endpoint.hpp"

#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/containers/vector.hpp>
#include <boost/interprocess/ipc/message_queue.hpp>
#include <boost/interprocess/managed_shared_memory.hpp>
#include <boost/interprocess/sync/interprocess_condition.hpp>
#include <boost/interprocess/sync/interprocess_mutex.hpp>
#include <boost/interprocess/sync/scoped_lock.hpp>
#include <boost/version.hpp>
#include <random>

namespace bip = boost::interprocess;
using ipcmark::Orders;

namespace {

// Nobody else's processes open what this user's have.
const bip::permissions OWN(0600);

// How many messages wait at most: about a pipe's bytes, but some of the large ones, too.
std::size_t most_waiting(std::size_t message_bytes)
{
	return std::clamp<std::size_t>((64 << 10) / message_bytes, 8, 1024);
}

// The name of what the endpoints share. The server chooses one that nobody has, and its ticket has it.
std::string shared_name(const Orders &orders)
{
	if (orders.is_client)
		return ipcmark::hear_ticket();
	std::string run = orders.directory.substr(orders.directory.rfind('/') + 1);
	return run + '-' + std::to_string(orders.number) + "-boost-" + std::to_string(std::random_device()());
}

// A name outside of the file system, which is removed with this at the latest. What is open stays.
template <class Named> class SharedName {
public:
	explicit SharedName(std::string given) : name(std::move(given)) {}
	SharedName(const SharedName &) = delete;
	~SharedName() { remove(); }
	void remove() { Named::remove(name.c_str()); }
	const char *text() const { return name.c_str(); }

private:
	std::string name;
};

// A message queue each way. Each has messages of one size.
class Queues : public ipcmark::Channel {
public:
	explicit Queues(const Orders &orders) : Queues(orders, shared_name(orders)) {}

	void send(const std::uint8_t *bytes, std::size_t count)
	{
		(is_client ? asked : answered).send(bytes, count, 0);
	}

	void receive(std::uint8_t *bytes, std::size_t count)
	{
		bip::message_queue::size_type got = 0;
		unsigned priority = 0;
		(is_client ? answered : asked).receive(bytes, count, got, priority);
		if (got != count)
			throw ipcmark::Failed("a message of another size came");
	}

private:
	using Name = SharedName<bip::message_queue>;
	bool is_client;
	Name asked_name, answered_name;
	bip::message_queue asked, answered;

	Queues(const Orders &orders, const std::string &name)
		: is_client(orders.is_client), asked_name(name + "-asked"), answered_name(name + "-answered"),
		  asked(opened(orders, asked_name, orders.size_bytes)),
		  answered(opened(orders, answered_name, orders.answer_bytes))
	{
		if (is_client) {
			asked_name.remove();
			answered_name.remove();
		} else {
			ipcmark::say_ticket(name);
		}
	}

	static bip::message_queue opened(const Orders &orders, const Name &name, std::size_t message_bytes)
	{
		if (orders.is_client)
			return bip::message_queue(bip::open_only, name.text());
		return bip::message_queue(bip::create_only, name.text(), most_waiting(message_bytes), message_bytes, OWN);
	}
};

// Messages of one size, in memory that both processes have.
class Ring {
public:
	Ring(std::size_t message_bytes, bip::managed_shared_memory::segment_manager *memory)
		: size(message_bytes), places(most_waiting(size)), bytes(places * size, 0, memory)
	{
	}

	void put(const std::uint8_t *message)
	{
		{
			bip::scoped_lock<bip::interprocess_mutex> lock(mutex);
			taken_one.wait(lock, [this] { return put_count - taken_count < places; });
			std::memcpy(&bytes[put_count++ % places * size], message, size);
		}
		put_one.notify_one();
	}

	void take(std::uint8_t *message)
	{
		{
			bip::scoped_lock<bip::interprocess_mutex> lock(mutex);
			put_one.wait(lock, [this] { return taken_count < put_count; });
			std::memcpy(message, &bytes[taken_count++ % places * size], size);
		}
		taken_one.notify_one();
	}

	// The memory of a ring with messages of so many bytes.
	static std::size_t memory_bytes(std::size_t message_bytes)
	{
		return sizeof(Ring) + most_waiting(message_bytes) * message_bytes;
	}

private:
	using Allocator = bip::allocator<std::uint8_t, bip::managed_shared_memory::segment_manager>;
	const std::size_t size, places;
	std::uint64_t put_count = 0, taken_count = 0;
	bip::interprocess_mutex mutex;
	bip::interprocess_condition put_one, taken_one;
	bip::vector<std::uint8_t, Allocator> bytes;
};

// A ring each way.
class Rings : public ipcmark::Channel {
public:
	explicit Rings(const Orders &orders)
		: name(shared_name(orders)), memory(opened(orders, name)), asked(ring("asked", orders.size_bytes)),
		  answered(ring("answered", orders.answer_bytes)), outgoing(orders.is_client ? asked : answered),
		  incoming(orders.is_client ? answered : asked)
	{
		if (orders.is_client)
			name.remove();
		else
			ipcmark::say_ticket(name.text());
	}

	void send(const std::uint8_t *bytes, std::size_t) { outgoing.put(bytes); }
	void receive(std::uint8_t *bytes, std::size_t) { incoming.take(bytes); }

private:
	using Name = SharedName<bip::shared_memory_object>;
	Name name;
	bip::managed_shared_memory memory;
	Ring &asked, &answered, &outgoing, &incoming;

	static bip::managed_shared_memory opened(const Orders &orders, const Name &name)
	{
		// What the segment needs to know of what is in it.
		constexpr std::size_t OWN_BYTES = 64 << 10;
		if (orders.is_client)
			return bip::managed_shared_memory(bip::open_only, name.text());
		std::size_t bytes = Ring::memory_bytes(orders.size_bytes) + Ring::memory_bytes(orders.answer_bytes);
		return bip::managed_shared_memory(bip::create_only, name.text(), OWN_BYTES + bytes, nullptr, OWN);
	}

	// The one called `what`, which the server makes.
	Ring &ring(const char *what, std::size_t message_bytes)
	{
		return *memory.find_or_construct<Ring>(what)(message_bytes, memory.get_segment_manager());
	}
};

template <class Way> Way connected(const Orders &orders)
{
	return Way(orders);
}

}  // namespace

int main()
{
	return ipcmark::run(
		"boost",
		{
			ipcmark::mechanism("boost-message-queue", ipcmark::ALL_WORKLOADS, connected<Queues>,
				"message_queue of Boost.Interprocess, one each way"),
			ipcmark::mechanism("boost-shared-ring", ipcmark::ALL_WORKLOADS, connected<Rings>,
				"a ring of messages each way in managed_shared_memory, with interprocess_mutex"),
		},
		"Boost.Interprocess " BOOST_LIB_VERSION);
}
