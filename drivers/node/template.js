// An endpoint of ipcmark: the whole of what docs/reference/protocol.md asks of one, over a pair of pipes, whose ends
// are read and written by calls that wait. Make it yours.
'use strict';

const fs = require('node:fs');

const GOLDEN = 0x9e3779b97f4a7c15n;
const MECHANISMS = [{ name: 'pipe', workloads: ['latency', 'transfer', 'throughput'] }];

function writeAll(descriptor, bytes) {
  for (let written = 0; written < bytes.length; ) written += fs.writeSync(descriptor, bytes, written);
}

// Whether all of `bytes` has been read; not so where the other side has closed.
function readAll(descriptor, bytes) {
  for (let read = 0; read < bytes.length; ) {
    const count = fs.readSync(descriptor, bytes, read, bytes.length - read);
    if (count === 0) return false;
    read += count;
  }
  return true;
}

function say(message) {
  const body = Buffer.from(JSON.stringify(message));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(body.length);
  writeAll(1, Buffer.concat([length, body]));
}

// The next message: its name, and its value if it has one.
function hear() {
  const length = Buffer.alloc(4);
  if (!readAll(0, length)) process.exit();
  const body = Buffer.alloc(length.readUInt32LE());
  if (!readAll(0, body)) process.exit(1);
  const message = JSON.parse(body);
  if (message === 'goodbye') process.exit();
  return Object.entries(message)[0];
}

function fail(why) {
  say({ failed: why });
  process.exit(1);
}

// The message of that number. Only where everything is checked, all of it matters.
function made(number, size, check) {
  const message = Buffer.alloc(Math.max(size, 8));
  message.writeBigUInt64LE(BigInt(number));
  for (let k = 8; check && k < size; k += 1) {
    message[k] = Number((((BigInt(number) + BigInt(k)) * GOLDEN) >> 56n) & 0xffn);
  }
  return message.subarray(0, size);
}

hear();
say({ hello: { protocol: 'ipcmark-endpoint', version: 3, program: "NAME", mechanisms: MECHANISMS } });
const [, orders] = hear();
if (orders.mechanism !== 'pipe' || Object.keys(orders.parameters).length > 0) {
  fail('this endpoint has pipes without parameters');
}
const [source, sink] = orders.descriptors;
const isClient = orders.role === 'client';
const size = orders.size_bytes;
const answer = orders.workload === 'latency' ? size : 1;

function send(number, bytes, check) {
  writeAll(sink, made(number, bytes, check));
}

function receive(number, bytes, check) {
  const message = Buffer.allocUnsafe(bytes);
  if (!readAll(source, message)) fail('the peer has closed');
  const held = check ? bytes : Math.min(bytes, 8);
  if (message.compare(made(number, bytes, check), 0, held, 0, held) !== 0) {
    fail(`message ${number} came changed, or another in its place`);
  }
}

const [first, second] = isClient ? [send, receive] : [receive, send];
say('connected');
for (;;) {
  const [, { check, stretches }] = hear();
  if (!isClient) say('ready');
  let [number, elapsedNs] = [0, 0n];
  for (const { messages, timed, acknowledged } of stretches) {
    const start = process.hrtime.bigint();
    for (const end = number + messages; number < end; number += 1) {
      first(number, size, check);
      if (orders.workload !== 'throughput') second(number, answer, check);
    }
    if (acknowledged) second(number, 1, check);
    if (timed) elapsedNs = process.hrtime.bigint() - start;
  }
  say({ done: { elapsed_ns: Number(elapsedNs) } });
}
