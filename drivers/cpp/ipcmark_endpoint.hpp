// The core of an endpoint of ipcmark, by the document docs/reference/protocol.md, for programs in C++17: messages,
// phases and payload. What connects two endpoints is each program's own: it gives `run` mechanisms, each with a
// function that connects as the orders say and returns a channel, which sends and receives whole messages. Loops are
// compiled for each kind of channel, so that nothing stands between them and its functions.

#pragma once

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ipcmark {

// Why the endpoint cannot go on, in a sentence, which `run` says to the coordinator.
struct Failed : std::runtime_error {
	using std::runtime_error::runtime_error;
};

// That `operation` failed, for the reason that errno has.
inline Failed failed(const std::string &operation)
{
	return Failed(operation + ": " + std::strerror(errno));
}

inline void write_all(int fd, const void *bytes, std::size_t count)
{
	for (auto at = static_cast<const char *>(bytes); count > 0;) {
		ssize_t sent = write(fd, at, count);
		if (sent < 0 && errno != EINTR)
			throw failed("write");
		if (sent > 0) {
			at += sent;
			count -= sent;
		}
	}
}

// Reads exactly so much; false where the other side has closed before.
inline bool read_all(int fd, void *bytes, std::size_t count)
{
	for (auto at = static_cast<char *>(bytes); count > 0;) {
		ssize_t got = read(fd, at, count);
		if (got == 0)
			return false;
		if (got < 0 && errno != EINTR)
			throw failed("read");
		if (got > 0) {
			at += got;
			count -= got;
		}
	}
	return true;
}

// A value of JSON. Numbers, true, false and null are kept as they are spelled.
struct Json {
	std::string text;
	std::vector<Json> items;
	std::vector<std::pair<std::string, Json>> members;

	// The member of that name; an empty value where there is none.
	const Json &operator[](std::string_view name) const
	{
		static const Json none;
		for (const auto &[key, value] : members)
			if (key == name)
				return value;
		return none;
	}

	std::uint64_t number() const
	{
		std::uint64_t value = 0;
		const char *end = text.data() + text.size();
		auto read = std::from_chars(text.data(), end, value);
		if (read.ec != std::errc() || read.ptr != end)
			throw Failed("a message has '" + text + "' where a whole number is due");
		return value;
	}

	bool is_true() const { return text == "true"; }

	// The numbers of a list, as bytes.
	std::string bytes() const
	{
		std::string all;
		for (const Json &item : items)
			all += static_cast<char>(item.number());
		return all;
	}
};

// Reads JSON, of which the coordinator sends little.
class JsonReader {
public:
	explicit JsonReader(std::string_view text) : rest(text) {}

	Json whole()
	{
		Json value = one(0);
		next();
		if (!rest.empty())
			throw Failed("there is something behind a message");
		return value;
	}

private:
	static constexpr int DEEPEST = 32;
	std::string_view rest;

	// The next character that is no blank, which stays; a zero at the end.
	char next()
	{
		rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
		return rest.empty() ? '\0' : rest.front();
	}

	bool take(char wanted)
	{
		bool is_there = next() == wanted;
		rest.remove_prefix(is_there ? 1 : 0);
		return is_there;
	}

	void need(std::string_view wanted)
	{
		for (char one : wanted)
			if (!take(one))
				throw Failed(std::string("a message is no JSON: ") + one + " is missing");
	}

	Json one(int depth)
	{
		Json value;
		if (depth > DEEPEST)
			throw Failed("a message is nested too deep");
		if (next() == '"') {
			value.text = string();
		} else if (take('{')) {
			for (bool is_first = true; !take('}'); is_first = false) {
				need(is_first ? "" : ",");
				std::string name = string();
				need(":");
				value.members.emplace_back(std::move(name), one(depth + 1));
			}
		} else if (take('[')) {
			for (bool is_first = true; !take(']'); is_first = false) {
				need(is_first ? "" : ",");
				value.items.push_back(one(depth + 1));
			}
		} else {
			value.text = word();
		}
		return value;
	}

	std::string word()
	{
		std::size_t length = std::min(rest.find_first_of(" \t\r\n,:]}"), rest.size());
		if (length == 0)
			throw Failed("a message is no JSON: a value is missing");
		std::string found(rest.substr(0, length));
		rest.remove_prefix(length);
		return found;
	}

	std::string string()
	{
		std::string found;
		need("\"");
		for (;;) {
			char one = character();
			if (one == '"')
				return found;
			found += one == '\\' ? escaped() : one;
		}
	}

	char character()
	{
		if (rest.empty())
			throw Failed("a message is no JSON: a string has no end");
		char one = rest.front();
		rest.remove_prefix(1);
		return one;
	}

	// What stands for the characters behind a backslash. The coordinator escapes no character above U+007F.
	char escaped()
	{
		static constexpr std::string_view LETTERS = "bfnrt", MEANT = "\b\f\n\r\t";
		char letter = character();
		if (letter == 'u') {
			std::string digits{character(), character(), character(), character()};
			return static_cast<char>(std::strtoul(digits.c_str(), nullptr, 16));
		}
		std::size_t at = LETTERS.find(letter);
		return at == std::string_view::npos ? letter : MEANT[at];
	}
};

// `text` as a string of JSON.
inline std::string quoted(std::string_view text)
{
	std::string all = "\"";
	for (char one : text) {
		if (one == '"' || one == '\\')
			all += '\\';
		all += static_cast<unsigned char>(one) < ' ' ? ' ' : one;
	}
	return all + '"';
}

// `values` between brackets.
inline std::string listed(const std::vector<std::string> &values)
{
	std::string all;
	for (const std::string &value : values)
		all += (all.empty() ? "" : ",") + value;
	return '[' + all + ']';
}

// Says a message, which is JSON, to the coordinator.
inline void say(std::string_view message)
{
	std::string frame;
	for (int k = 0; k < 4; k++)
		frame += static_cast<char>(message.size() >> 8 * k);
	frame += message;
	write_all(STDOUT_FILENO, frame.data(), frame.size());
}

// A message of the coordinator: its name, and its value if it has one.
struct Message {
	std::string name;
	Json value;
};

// The next message; goodbye where the coordinator is gone.
inline Message hear()
{
	constexpr std::size_t LONGEST = 16 << 20;
	unsigned char head[4];
	if (!read_all(STDIN_FILENO, head, sizeof head))
		return {"goodbye", {}};
	std::string body(head[0] | head[1] << 8 | head[2] << 16 | std::size_t{head[3]} << 24, '\0');
	if (body.size() > LONGEST)
		throw Failed("a message is longer than any may be");
	if (!read_all(STDIN_FILENO, body.data(), body.size()))
		return {"goodbye", {}};
	Json whole = JsonReader(body).whole();
	if (whole.members.size() == 1)
		return {whole.members[0].first, std::move(whole.members[0].second)};
	return {whole.text, {}};
}

inline void say_ticket(std::string_view bytes)
{
	std::vector<std::string> numbers;
	for (unsigned char byte : bytes)
		numbers.push_back(std::to_string(byte));
	say("{\"ticket\":" + listed(numbers) + "}");
}

// What the server's ticket has, for its client.
inline std::string hear_ticket()
{
	Message message = hear();
	if (message.name != "ticket")
		throw Failed(message.name + " came instead of the ticket");
	return message.value.bytes();
}

// What the endpoint is to do.
struct Orders {
	bool is_client;
	std::string mechanism;
	bool streams;              // in `throughput`
	std::size_t size_bytes;    // of a message of the client
	std::size_t answer_bytes;  // of one of the server
	std::vector<int> descriptors;
	std::string directory;
	std::uint64_t number;
	std::string token;  // of a network
	std::string codec;  // by which messages are made bytes of, empty where they are as they are

	explicit Orders(const Json &orders)
		: is_client(orders["role"].text == "client"), mechanism(orders["mechanism"].text),
		  streams(orders["workload"].text == "throughput"), size_bytes(orders["size_bytes"].number()),
		  answer_bytes(orders["workload"].text == "latency" ? size_bytes : 1),
		  directory(orders["directory"].text), number(orders["number"].number()),
		  token(orders["network"]["token"].bytes()), codec(orders["parameters"]["codec"].text)
	{
		for (const auto &parameter : orders["parameters"].members)
			if (parameter.first != "codec")
				throw Failed("this endpoint has no parameter " + parameter.first);
		for (const Json &descriptor : orders["descriptors"].items)
			descriptors.push_back(static_cast<int>(descriptor.number()));
	}

	// A path in the directory for names, which no other trial has.
	std::string path(const std::string &what) const { return directory + '/' + std::to_string(number) + '.' + what; }
};

// What every channel is. One that sends and receives messages has, beside that,
//     void send(const std::uint8_t *bytes, std::size_t count);
//     void receive(std::uint8_t *bytes, std::size_t count);
// of which the second waits for a message of so many bytes, and throws `Failed` where there will be none.
struct Channel {
	// Whether what is sent arrives: a counter has nothing but that something came.
	static constexpr bool HAS_BYTES = true;
};

// Does the phases of a trial over a channel.
template <class Way> class Exchange {
public:
	Exchange(const Orders &given, Way &connected)
		: orders(given), way(connected), outgoing(room(given)), incoming(room(given))
	{
	}

	void phase(const Json &phase)
	{
		check = phase["check"].is_true();
		bool each = phase["each"].is_true();
		std::uint64_t number = 0, elapsed_ns = 0;
		std::vector<std::uint64_t> ends_ns;
		std::vector<std::string> each_ns;
		if (!orders.is_client)
			say("\"ready\"");
		for (const Json &stretch : phase["stretches"].items) {
			bool is_timed = stretch["timed"].is_true(), is_acknowledged = stretch["acknowledged"].is_true();
			std::uint64_t messages = stretch["messages"].number(), end = number + messages;
			bool notes = each && is_timed;
			ends_ns.reserve(notes ? messages : 0);
			std::uint64_t start_ns = now_ns();
			for (; number < end; number++) {
				iteration(number);
				if (notes)
					ends_ns.push_back(now_ns());
			}
			if (is_acknowledged)
				acknowledge(number);
			elapsed_ns += is_timed ? now_ns() - start_ns : 0;
			for (std::uint64_t end_ns : ends_ns)
				each_ns.push_back(std::to_string(end_ns - std::exchange(start_ns, end_ns)));
			ends_ns.clear();
		}
		say("{\"done\":{\"elapsed_ns\":" + std::to_string(elapsed_ns) + ",\"each_ns\":" + listed(each_ns) + "}}");
	}

private:
	const Orders &orders;
	Way &way;
	bool check = false;
	std::vector<std::uint8_t> outgoing, incoming;

	// The number of a message has room even where the message is shorter.
	static std::vector<std::uint8_t> room(const Orders &orders)
	{
		return std::vector<std::uint8_t>(std::max<std::size_t>(orders.size_bytes, 8));
	}

	static std::uint64_t now_ns()
	{
		auto now = std::chrono::steady_clock::now().time_since_epoch();
		return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
	}

	static std::uint8_t expected(std::uint64_t number, std::size_t k)
	{
		return (number + k) * 0x9e3779b97f4a7c15 >> 56;
	}

	void send(std::uint64_t number, std::size_t bytes)
	{
		for (int k = 0; k < 8; k++)
			outgoing[k] = number >> 8 * k;
		for (std::size_t k = 8; check && k < bytes; k++)
			outgoing[k] = expected(number, k);
		way.send(outgoing.data(), bytes);
	}

	void receive(std::uint64_t number, std::size_t bytes)
	{
		way.receive(incoming.data(), bytes);
		if (!Way::HAS_BYTES)
			return;
		std::uint64_t came = 0, fitting = bytes < 8 ? (std::uint64_t{1} << 8 * bytes) - 1 : ~std::uint64_t{0};
		for (int k = 0; k < 8; k++)
			came |= std::uint64_t{incoming[k]} << 8 * k;
		bool is_right = ((came ^ number) & fitting) == 0;
		for (std::size_t k = 8; check && k < bytes; k++)
			is_right &= incoming[k] == expected(number, k);
		if (!is_right)
			throw Failed("message " + std::to_string(number) + " came changed, or another came in its place");
	}

	void iteration(std::uint64_t number)
	{
		if (orders.is_client) {
			send(number, orders.size_bytes);
			if (!orders.streams)
				receive(number, orders.answer_bytes);
		} else {
			receive(number, orders.size_bytes);
			if (!orders.streams)
				send(number, orders.answer_bytes);
		}
	}

	void acknowledge(std::uint64_t count)
	{
		if (orders.is_client)
			receive(count, 1);
		else
			send(count, 1);
	}
};

inline const std::vector<std::string> ALL_WORKLOADS{"latency", "transfer", "throughput"};

// A mechanism that the endpoint has.
struct Mechanism {
	std::string name;
	std::vector<std::string> workloads;
	std::string summary;
	std::function<void(const Orders &)> trial;  // takes part in one, until the coordinator says goodbye
	std::vector<std::string> codecs{};          // by which bytes can be made of its messages
};

// One whose endpoints are connected by `connect`, which returns the channel. One of the endpoint's own has a summary.
template <class Connect>
Mechanism mechanism(std::string name, std::vector<std::string> workloads, Connect connect, std::string summary = "")
{
	auto trial = [connect](const Orders &orders) {
		auto channel = connect(orders);
		Exchange exchange(orders, channel);
		say("\"connected\"");
		Message message = hear();
		for (; message.name == "phase"; message = hear())
			exchange.phase(message.value);
		if (message.name != "goodbye")
			throw Failed(message.name + " came instead of a phase");
	};
	return {std::move(name), std::move(workloads), std::move(summary), trial};
}

// `texts` as a list of JSON.
inline std::string quoted_list(const std::vector<std::string> &texts)
{
	std::vector<std::string> all;
	for (const std::string &text : texts)
		all.push_back(quoted(text));
	return listed(all);
}

inline bool has(const Mechanism &mechanism, const std::string &codec)
{
	const std::vector<std::string> &codecs = mechanism.codecs;
	return codec.empty() || std::find(codecs.begin(), codecs.end(), codec) != codecs.end();
}

inline void take_part(
	const std::string &program, const std::vector<Mechanism> &mechanisms, const std::string &library)
{
	if (hear().name != "hello")
		throw Failed("the coordinator does not say hello");
	std::vector<std::string> offered;
	for (const Mechanism &mechanism : mechanisms)
		offered.push_back("{\"name\":" + quoted(mechanism.name) + ",\"summary\":" + quoted(mechanism.summary) +
			",\"workloads\":" + quoted_list(mechanism.workloads) + ",\"codecs\":" + quoted_list(mechanism.codecs) +
			"}");
	say("{\"hello\":{\"protocol\":\"ipcmark-endpoint\",\"version\":3,\"capabilities\":[\"each\"],\"program\":" +
		quoted(program) + ",\"runtime\":" + quoted(__VERSION__) + ",\"library\":" + quoted(library) +
		",\"mechanisms\":" + listed(offered) + "}}");
	Message message = hear();
	if (message.name == "goodbye")
		return;
	if (message.name != "orders")
		throw Failed(message.name + " came instead of orders");
	Orders orders(message.value);
	for (const Mechanism &mechanism : mechanisms)
		if (mechanism.name == orders.mechanism && has(mechanism, orders.codec))
			return mechanism.trial(orders);
	throw Failed("this endpoint has no " + orders.mechanism + (orders.codec.empty() ? "" : " with " + orders.codec));
}

// Takes part in a trial as `program`. Returns the exit code.
inline int run(
	const std::string &program, const std::vector<Mechanism> &mechanisms, const std::string &library = "")
{
	// Who writes to a peer that is gone is told by the answer of write(2).
	std::signal(SIGPIPE, SIG_IGN);
	try {
		take_part(program, mechanisms, library);
		return 0;
	} catch (const std::exception &error) {
		try {
			say("{\"failed\":" + quoted(error.what()) + "}");
		} catch (const Failed &) {
			// Nobody is there to hear it.
		}
		return 1;
	}
}

}  // namespace ipcmark
