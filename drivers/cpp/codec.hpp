// Codecs of the driver `cpp`: what makes bytes of an object of a word, `kind`, and bytes, `data`, and the data of them again,
// by nlohmann/json. JSON has no bytes: there they are base64, by OpenSSL. Where a host lacks these the driver is built
// without HAS_CODECS, and has none.

#pragma once

#include "ipcmark_endpoint.hpp"

#ifdef HAS_CODECS

#include <nlohmann/json.hpp>
#include <openssl/evp.h>

// Codecs that the driver has.
inline const std::vector<std::string> CODECS{"json", "msgpack"};

inline std::string to_base64(const std::vector<std::uint8_t> &data)
{
	// The library ends what it writes with a zero.
	std::string text(4 * ((data.size() + 2) / 3) + 1, '\0');
	int length = EVP_EncodeBlock(
		reinterpret_cast<unsigned char *>(text.data()), data.data(), static_cast<int>(data.size()));
	text.resize(length);
	return text;
}

inline std::vector<std::uint8_t> from_base64(const std::string &text)
{
	std::vector<std::uint8_t> data(text.size() / 4 * 3 + 1);
	int length = EVP_DecodeBlock(
		data.data(), reinterpret_cast<const unsigned char *>(text.data()), static_cast<int>(text.size()));
	// The last block is decoded whole, with a zero for each sign that fills it up.
	auto filled = std::count(text.end() - std::min<std::ptrdiff_t>(text.size(), 2), text.end(), '=');
	if (length < filled)
		throw ipcmark::Failed("what came is no base64");
	data.resize(length - filled);
	return data;
}

inline std::vector<std::uint8_t> encoded(bool is_json, std::vector<std::uint8_t> data)
{
	if (is_json) {
		std::string text = nlohmann::json{{"kind", "message"}, {"data", to_base64(data)}}.dump();
		return {text.begin(), text.end()};
	}
	return nlohmann::json::to_msgpack({{"kind", "message"}, {"data", nlohmann::json::binary(std::move(data))}});
}

inline std::vector<std::uint8_t> decoded(bool is_json, const std::vector<std::uint8_t> &body)
{
	if (is_json)
		return from_base64(nlohmann::json::parse(body).at("data").get_ref<const std::string &>());
	return std::move(nlohmann::json::from_msgpack(body).at("data").get_binary());
}

#else

inline const std::vector<std::string> CODECS;

inline std::vector<std::uint8_t> encoded(bool, std::vector<std::uint8_t>)
{
	throw ipcmark::Failed("this driver is built without codecs");
}

inline std::vector<std::uint8_t> decoded(bool, const std::vector<std::uint8_t> &)
{
	throw ipcmark::Failed("this driver is built without codecs");
}

#endif

// Objects over a stream of bytes, the length of each before it.
template <class Stream> class Objects : public ipcmark::Channel {
public:
	Objects(Stream connected, const ipcmark::Orders &orders)
		: stream(std::move(connected)), is_json(orders.codec == "json")
	{
	}

	void send(const std::uint8_t *bytes, std::size_t count)
	{
		std::vector<std::uint8_t> body = encoded(is_json, {bytes, bytes + count});
		std::vector<std::uint8_t> frame(HEAD_BYTES);
		for (std::size_t k = 0; k < HEAD_BYTES; k++)
			frame[k] = static_cast<std::uint8_t>(body.size() >> 8 * k);
		frame.insert(frame.end(), body.begin(), body.end());
		stream.send(frame.data(), frame.size());
	}

	void receive(std::uint8_t *bytes, std::size_t count)
	{
		std::uint8_t head[HEAD_BYTES];
		stream.receive(head, HEAD_BYTES);
		std::size_t length = head[0] | head[1] << 8 | head[2] << 16 | std::size_t{head[3]} << 24;
		// More is no object of that size in any codec.
		if (length > 2 * count + 1024)
			throw ipcmark::Failed("an object came that is too long");
		std::vector<std::uint8_t> body(length);
		stream.receive(body.data(), length);
		std::vector<std::uint8_t> data = decoded(is_json, body);
		if (data.size() != count)
			throw ipcmark::Failed("an object came whose data have another size");
		std::copy(data.begin(), data.end(), bytes);
	}

private:
	static constexpr std::size_t HEAD_BYTES = 4;
	Stream stream;
	bool is_json;
};
