// Codecs of the driver of Node.js: what makes bytes of an object of a word, `kind`, and bytes, `data`, and the object's
// bytes of them again. JSON has no bytes: there they are base64. Those are here whose packages are installed.
'use strict';

const KIND = 'message';
const CODECS = {
  json: {
    encode: (data) => Buffer.from(JSON.stringify({ kind: KIND, data: data.toString('base64') })),
    decode: (body) => Buffer.from(JSON.parse(body).data, 'base64'),
  },
};

try {
  const { Encoder, Decoder } = require('@msgpack/msgpack');
  // One of each for all messages, as its documentation advises; what it encodes is copied before the next.
  const [encoder, decoder] = [new Encoder(), new Decoder()];
  CODECS.msgpack = {
    encode: (data) => encoder.encodeSharedRef({ kind: KIND, data }),
    decode: (body) => {
      const { buffer, byteOffset, length } = decoder.decode(body).data;
      return Buffer.from(buffer, byteOffset, length);
    },
  };
} catch (error) {
  if (error.code !== 'MODULE_NOT_FOUND') throw error;
}

module.exports = { CODECS };
