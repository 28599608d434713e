// An endpoint of ipcmark in Node.js, by the document docs/reference/protocol.md: sockets and pipes as net.Socket, read
// by events of its loop, and messages of JSON and of structured clones as child_process has them.
'use strict';

const net = require('node:net');
const path = require('node:path');
const v8 = require('node:v8');

const WORKLOADS = ['latency', 'transfer', 'throughput'];
const GOLDEN = 0x9e3779b97f4a7c15n;
const MECHANISMS = [
  ...['pipe', 'unix-stream', 'tcp'].map((name) => ({ name, workloads: WORKLOADS })),
  { name: 'node-messages', workloads: ['latency', 'transfer'] },
  { name: 'node-ipc-advanced', workloads: WORKLOADS },
];

// Bytes that come by events, taken in parts of a wanted length by whoever awaits them.
class Incoming {
  constructor(stream) {
    this.parts = [];
    this.length = 0;
    this.wanted = 0;
    this.hasEnded = false;
    stream.on('data', (part) => {
      this.parts.push(part);
      this.length += part.length;
      this.wake();
    });
    for (const event of ['end', 'close', 'error']) {
      stream.on(event, () => {
        this.hasEnded = true;
        this.wake();
      });
    }
  }

  wake() {
    if (this.resolve && (this.length >= this.wanted || this.hasEnded)) {
      const { resolve } = this;
      this.resolve = undefined;
      resolve();
    }
  }

  // So many bytes; undefined where the stream ends before.
  async take(count) {
    if (this.length < count && !this.hasEnded) {
      this.wanted = count;
      await new Promise((resolve) => {
        this.resolve = resolve;
      });
    }
    if (this.length < count) return undefined;
    const all = this.parts.length === 1 ? this.parts[0] : Buffer.concat(this.parts);
    this.parts = all.length > count ? [all.subarray(count)] : [];
    this.length -= count;
    return all.subarray(0, count);
  }
}

const control = new Incoming(process.stdin);

function say(message) {
  const body = Buffer.from(JSON.stringify(message));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(body.length);
  process.stdout.write(Buffer.concat([length, body]));
}

// The next message as its name and its value; goodbye where the coordinator is gone.
async function hear() {
  const length = await control.take(4);
  if (!length) return ['goodbye'];
  const message = JSON.parse(await control.take(length.readUInt32LE()));
  return typeof message === 'string' ? [message] : Object.entries(message)[0];
}

class Failed extends Error {}

function made(number, size, check) {
  const message = Buffer.allocUnsafe(Math.max(size, 8));
  message.writeUInt32LE(number % 2 ** 32, 0);
  message.writeUInt32LE(Math.floor(number / 2 ** 32), 4);
  for (let k = 8; check && k < size; k += 1) {
    message[k] = Number(((BigInt(number) + BigInt(k)) * GOLDEN >> 56n) & 0xffn);
  }
  return message.subarray(0, size);
}

function verify(message, number, size, check) {
  if (message === undefined) throw new Failed('the peer has closed');
  const held = check ? size : Math.min(size, 8);
  const expected = made(number, size, check);
  if (message.length !== size || message.compare(expected, 0, held, 0, held) !== 0) {
    throw new Failed(`message ${number} came changed, or another came in its place`);
  }
}

// Whole messages over a stream of bytes.
function overStream(source, sink) {
  const incoming = new Incoming(source);
  sink.on('error', () => {});
  return {
    async send(number, size, check) {
      if (!sink.write(made(number, size, check))) await new Promise((drained) => sink.once('drain', drained));
    },
    async receive(number, size, check) {
      verify(await incoming.take(size), number, size, check);
    },
  };
}

// Messages as process.send has them: an object as JSON, and a line's end.
function overLines(socket) {
  let rest = '';
  let ended = false;
  let resolve;
  const lines = [];
  const wake = () => resolve && resolve();
  socket.setEncoding('utf8');
  socket.on('data', (text) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop();
    lines.push(...parts);
    wake();
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    ended = true;
    wake();
  });
  return {
    async send(number, size, check) {
      socket.write(`${JSON.stringify({ data: made(number, size, check).toString('latin1') })}\n`);
    },
    async receive(number, size, check) {
      while (lines.length === 0 && !ended) {
        await new Promise((woken) => {
          resolve = woken;
        });
      }
      const line = lines.shift();
      verify(line && Buffer.from(JSON.parse(line).data, 'latin1'), number, size, check);
    },
  };
}

// Messages as process.send has them with the serialisation 'advanced': an object as a structured clone, and its length
// before it.
function overClones(socket) {
  const incoming = new Incoming(socket);
  return {
    async send(number, size, check) {
      const clone = v8.serialize({ data: made(number, size, check) });
      const message = Buffer.allocUnsafe(4 + clone.length);
      message.writeUInt32BE(clone.length);
      clone.copy(message, 4);
      if (!socket.write(message)) await new Promise((drained) => socket.once('drain', drained));
    },
    async receive(number, size, check) {
      const length = await incoming.take(4);
      const clone = length && (await incoming.take(length.readUInt32BE()));
      verify(clone && v8.deserialize(clone).data, number, size, check);
    },
  };
}

async function ticket() {
  const [name, value] = await hear();
  if (name !== 'ticket') throw new Failed(`${name} came instead of the ticket`);
  return Buffer.from(value);
}

function connected(options) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(options, () => resolve(socket));
    socket.on('error', reject);
  });
}

// A socket that shows the token within two seconds, and undefined for a stranger.
function admitted(socket, token) {
  return new Promise((resolve) => {
    const refuse = () => {
      socket.destroy();
      resolve(undefined);
    };
    const timer = setTimeout(refuse, 2000);
    socket.on('error', refuse);
    socket.on('readable', function shown() {
      const found = socket.read(token.length);
      if (!found) return;
      clearTimeout(timer);
      socket.removeListener('readable', shown);
      if (found.equals(token)) resolve(socket);
      else refuse();
    });
  });
}

async function tcp(orders) {
  const token = Buffer.from(orders.network.token);
  const host = orders.network.server;
  if (orders.role === 'client') {
    const socket = await connected({ host, port: (await ticket()).readUInt16BE(), noDelay: true });
    socket.write(token);
    return socket;
  }
  return new Promise((resolve) => {
    const server = net.createServer({ noDelay: true }, async (socket) => {
      const client = await admitted(socket, token);
      if (!client) return;
      server.close();
      resolve(client);
    });
    server.listen(0, host, () => {
      const { port } = server.address();
      say({ ticket: [port >> 8, port & 255] });
    });
  });
}

async function named(orders) {
  if (orders.role === 'client') return connected({ path: (await ticket()).toString() });
  const name = path.join(orders.directory, `${orders.number}.node`);
  return new Promise((resolve) => {
    const server = net.createServer((socket) => {
      server.close();
      resolve(socket);
    });
    server.listen(name, () => say({ ticket: [...Buffer.from(name)] }));
  });
}

async function connect(orders) {
  const [first, second] = orders.descriptors;
  switch (orders.mechanism) {
    case 'pipe':
      return overStream(
        new net.Socket({ fd: first, readable: true, writable: false }),
        new net.Socket({ fd: second, readable: false, writable: true }),
      );
    case 'unix-stream': {
      const socket = new net.Socket({ fd: first, readable: true, writable: true });
      return overStream(socket, socket);
    }
    case 'tcp': {
      const socket = await tcp(orders);
      return overStream(socket, socket);
    }
    case 'node-messages':
      return overLines(await named(orders));
    case 'node-ipc-advanced':
      return overClones(await named(orders));
    default:
      throw new Failed(`this driver has no ${orders.mechanism}`);
  }
}

// Does one phase, and says what it came to.
async function run(orders, channel, { check, each, stretches }) {
  const size = orders.size_bytes;
  const answer = orders.workload === 'latency' ? size : 1;
  const streams = orders.workload === 'throughput';
  const isClient = orders.role === 'client';
  const first = isClient ? channel.send : channel.receive;
  const second = isClient ? channel.receive : channel.send;
  const eachNs = [];
  let [number, elapsedNs] = [0, 0n];
  for (const { messages, timed, acknowledged } of stretches) {
    const start = process.hrtime.bigint();
    let before = start;
    for (const end = number + messages; number < end; number += 1) {
      await first(number, size, check);
      if (!streams) await second(number, answer, check);
      if (each && timed) {
        const now = process.hrtime.bigint();
        eachNs.push(Number(now - before));
        before = now;
      }
    }
    if (streams && acknowledged) await second(number, 1, check);
    if (timed) elapsedNs += process.hrtime.bigint() - start;
  }
  say({ done: { elapsed_ns: Number(elapsedNs), each_ns: eachNs } });
}

async function main() {
  await hear();
  const hello = { protocol: 'ipcmark-endpoint', version: 3, program: 'node', capabilities: ['each'] };
  say({ hello: { ...hello, runtime: `Node.js ${process.version}`, mechanisms: MECHANISMS } });
  const [name, orders] = await hear();
  if (name !== 'orders') return;
  if (Object.keys(orders.parameters).length > 0) throw new Failed('this driver has no parameters');
  const channel = await connect(orders);
  say('connected');
  for (;;) {
    const [due, phase] = await hear();
    if (due !== 'phase') return;
    if (orders.role === 'server') say('ready');
    await run(orders, channel, phase);
  }
}

main().then(
  () => process.exit(0),
  (error) => {
    say({ failed: error instanceof Failed ? error.message : String(error) });
    process.stdout.write('', () => process.exit(1));
  },
);
