/* Codecs of the driver `c`: what makes bytes of an object of a word, `kind`, and bytes, `data`, and the data of them again,
 * by cJSON and msgpack-c. JSON has no bytes: there they are base64, by OpenSSL. Where a host lacks these libraries the
 * driver is built without HAS_CODECS, and has none. */

#ifndef CODEC_H
#define CODEC_H

#ifndef HAS_CODECS

#define CODECS ""
static void send_object(int fd, size_t bytes)
{
	(void)fd, (void)bytes;
	fail("this driver is built without codecs");
}
static void receive_object(int fd, size_t bytes)
{
	send_object(fd, bytes);
}

#else

#include <cjson/cJSON.h>
#include <msgpack.h>
#include <openssl/evp.h>

#define CODECS "\"json\",\"msgpack\""
static const char KIND[] = "message";
enum { HEAD_BYTES = 4 };

/* What is being made or was received, the length of the object's bytes before them. */
static uint8_t *frame;
static size_t room;

static void make_room(size_t bytes)
{
	if (bytes <= room)
		return;
	room = bytes;
	frame = realloc(frame, room);
	if (frame == NULL)
		fail("there is no memory for an object of %zu bytes", bytes);
}

static _Noreturn void refuse(void)
{
	fail("an object came that is none, or has other data");
}

/* Puts `bytes` behind the head of the frame, and sends it. */
static void send_frame(int fd, const void *bytes, size_t count)
{
	make_room(HEAD_BYTES + count);
	for (int k = 0; k < HEAD_BYTES; k++)
		frame[k] = count >> 8 * k;
	memcpy(frame + HEAD_BYTES, bytes, count);
	write_all(fd, frame, HEAD_BYTES + count);
}

static void send_json(int fd, size_t bytes)
{
	char *text = malloc(4 * ((bytes + 2) / 3) + 1);
	if (text == NULL)
		fail("there is no memory for a message of %zu bytes", bytes);
	EVP_EncodeBlock((unsigned char *)text, outgoing, bytes);
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "kind", KIND);
	cJSON_AddStringToObject(object, "data", text);
	char *printed = cJSON_PrintUnformatted(object);
	if (printed == NULL)
		fail("there is no memory for a message of %zu bytes", bytes);
	send_frame(fd, printed, strlen(printed));
	cJSON_free(printed);
	cJSON_Delete(object);
	free(text);
}

static void decode_json(const uint8_t *body, size_t length, size_t bytes)
{
	cJSON *object = cJSON_ParseWithLength((const char *)body, length);
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "data"));
	size_t written = text == NULL ? 0 : strlen(text), whole = written / 4 * 3;
	/* A block is decoded whole, with a zero for each sign that fills it up. */
	size_t filled = written < 4 ? 0 : (text[written - 1] == '=') + (text[written - 2] == '=');
	uint8_t *data = malloc(whole + 1);
	if (data == NULL)
		fail("there is no memory for a message of %zu bytes", bytes);
	if (written % 4 != 0 || whole - filled != bytes ||
		EVP_DecodeBlock(data, (const unsigned char *)text, written) != (int)whole)
		refuse();
	memcpy(incoming, data, bytes);
	free(data);
	cJSON_Delete(object);
}

static void pack_word(msgpack_packer *packer, const char *word)
{
	msgpack_pack_str(packer, strlen(word));
	msgpack_pack_str_body(packer, word, strlen(word));
}

static void send_msgpack(int fd, size_t bytes)
{
	static msgpack_sbuffer buffer;
	msgpack_packer packer;
	msgpack_sbuffer_clear(&buffer);
	msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
	msgpack_pack_map(&packer, 2);
	pack_word(&packer, "kind");
	pack_word(&packer, KIND);
	pack_word(&packer, "data");
	msgpack_pack_bin(&packer, bytes);
	if (msgpack_pack_bin_body(&packer, outgoing, bytes) != 0)
		fail("there is no memory for a message of %zu bytes", bytes);
	send_frame(fd, buffer.data, buffer.size);
}

static bool is_data(const msgpack_object *key)
{
	return key->type == MSGPACK_OBJECT_STR && key->via.str.size == 4 && memcmp(key->via.str.ptr, "data", 4) == 0;
}

static void decode_msgpack(const uint8_t *body, size_t length, size_t bytes)
{
	static msgpack_unpacked object;
	const msgpack_object_bin *data = NULL;
	if (msgpack_unpack_next(&object, (const char *)body, length, NULL) != MSGPACK_UNPACK_SUCCESS ||
		object.data.type != MSGPACK_OBJECT_MAP)
		refuse();
	const msgpack_object_map *map = &object.data.via.map;
	for (size_t k = 0; k < map->size; k++)
		if (is_data(&map->ptr[k].key) && map->ptr[k].val.type == MSGPACK_OBJECT_BIN)
			data = &map->ptr[k].val.via.bin;
	if (data == NULL || data->size != bytes)
		refuse();
	memcpy(incoming, data->ptr, bytes);
}

static bool is_json(void)
{
	return strcmp(codec, "json") == 0;
}

/* Sends the message of so many bytes in `outgoing` as an object. */
static void send_object(int fd, size_t bytes)
{
	if (is_json())
		send_json(fd, bytes);
	else
		send_msgpack(fd, bytes);
}

/* Receives an object, and puts its data, of so many bytes, into `incoming`. */
static void receive_object(int fd, size_t bytes)
{
	uint8_t head[HEAD_BYTES];
	if (!read_all(fd, head, sizeof head))
		fail("the peer has closed");
	size_t length = head[0] | head[1] << 8 | head[2] << 16 | (size_t)head[3] << 24;
	/* More is no object of that size in any codec. */
	if (length > 2 * bytes + 1024)
		refuse();
	make_room(length);
	if (!read_all(fd, frame, length))
		fail("the peer has closed");
	if (is_json())
		decode_json(frame, length, bytes);
	else
		decode_msgpack(frame, length, bytes);
}

#endif
#endif
