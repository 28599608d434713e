// The driver of Node.js: sockets and pipes as net.Socket, read by events of its loop, datagrams (datagrams.js), and
// messages of JSON and of structured clones as child_process has them.
'use strict';

const net = require('node:net');
const path = require('node:path');
const v8 = require('node:v8');
const { CODECS } = require('./codec.js');
const { udp } = require('./datagrams.js');
const { Failed, Incoming, WORKLOADS, made, say, takePart, ticket, verify } = require('./endpoint.js');

const MECHANISMS = [
  ...['pipe', 'unix-stream', 'tcp'].map((name) => ({ name, workloads: WORKLOADS, codecs: Object.keys(CODECS) })),
  { name: 'udp', workloads: WORKLOADS },
  { name: 'node-messages', workloads: ['latency', 'transfer'] },
  { name: 'node-ipc-advanced', workloads: WORKLOADS },
];

// Writes `bytes`; a promise where they have to wait.
function write(sink, bytes) {
  return sink.write(bytes) ? undefined : new Promise((drained) => sink.once('drain', drained));
}

// Whole messages over a stream of bytes.
function overStream(source, sink) {
  const incoming = new Incoming(source);
  sink.on('error', () => {});
  return {
    send(number, size, check) {
      return write(sink, made(number, size, check));
    },
    receive(number, size, check) {
      return incoming.take(size, (message) => verify(message, number, size, check));
    },
  };
}

// The same, of objects, each with its length before it.
function overObjects(source, sink, { encode, decode }) {
  const incoming = new Incoming(source);
  sink.on('error', () => {});
  return {
    send(number, size, check) {
      const body = encode(made(number, size, check));
      const frame = Buffer.allocUnsafe(4 + body.length);
      frame.writeUInt32LE(body.length);
      frame.set(body, 4);
      return write(sink, frame);
    },
    receive(number, size, check) {
      const use = (body) => verify(body && decode(body), number, size, check);
      return incoming.take(4, (length) => (length ? incoming.take(length.readUInt32LE(), use) : use()));
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
    send(number, size, check) {
      const clone = v8.serialize({ data: made(number, size, check) });
      const message = Buffer.allocUnsafe(4 + clone.length);
      message.writeUInt32BE(clone.length);
      clone.copy(message, 4);
      return write(socket, message);
    },
    receive(number, size, check) {
      const use = (clone) => verify(clone && v8.deserialize(clone).data, number, size, check);
      return incoming.take(4, (length) => (length ? incoming.take(length.readUInt32BE(), use) : use()));
    },
  };
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
  const codec = CODECS[orders.parameters.codec];
  const over = (source, sink) => (codec ? overObjects(source, sink, codec) : overStream(source, sink));
  switch (orders.mechanism) {
    case 'pipe':
      return over(
        new net.Socket({ fd: first, readable: true, writable: false }),
        new net.Socket({ fd: second, readable: false, writable: true }),
      );
    case 'unix-stream': {
      const socket = new net.Socket({ fd: first, readable: true, writable: true });
      return over(socket, socket);
    }
    case 'tcp': {
      const socket = await tcp(orders);
      return over(socket, socket);
    }
    case 'udp':
      return udp(orders);
    case 'node-messages':
      return overLines(await named(orders));
    case 'node-ipc-advanced':
      return overClones(await named(orders));
    default:
      throw new Failed(`this driver has no ${orders.mechanism}`);
  }
}

takePart('node', MECHANISMS, connect);
