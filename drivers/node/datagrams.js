// The mechanism udp of the driver of Node.js: sockets of node:dgram, in a window, so that nothing is lost.
'use strict';

const dgram = require('node:dgram');
const { Failed, made, say, ticket, verify } = require('./endpoint.js');

// Datagrams that come by events, taken one by one by whoever awaits them.
class Datagrams {
  constructor() {
    this.waiting = [];
    this.socket = dgram.createSocket('udp4');
    this.socket.on('message', (message, from) => {
      this.waiting.push({ message, from });
      this.wake();
    });
    this.socket.on('error', (error) => {
      this.error = error;
      this.wake();
    });
  }

  wake() {
    const { resolve } = this;
    this.resolve = undefined;
    if (resolve) resolve();
  }

  async take() {
    while (this.waiting.length === 0) {
      if (this.error) throw new Failed(`the peer has closed: ${this.error.message}`);
      await new Promise((resolve) => {
        this.resolve = resolve;
      });
    }
    return this.waiting.shift();
  }

  // What the kernel does not take, it says to the event of errors.
  put(bytes) {
    return new Promise((sent) => this.socket.send(bytes, (error) => sent(error && this.socket.emit('error', error))));
  }

  bind(address) {
    return new Promise((bound) => this.socket.bind({ address, port: 0 }, bound));
  }

  connect(port, address) {
    return new Promise((connected) => this.socket.connect(port, address, connected));
  }
}

function word(orders, kind) {
  return Buffer.from([...orders.network.token, kind.charCodeAt(0)]);
}

// The next word: its kind, and whom it is from. What is none is dropped.
async function nextWord(datagrams, orders) {
  const token = Buffer.from(orders.network.token);
  for (;;) {
    const { message, from } = await datagrams.take();
    if (message.length === token.length + 1 && message.subarray(0, token.length).equals(token)) {
      return { kind: String.fromCharCode(message[token.length]), from };
    }
  }
}

// Connects a client. Returns how many messages fit in its server's buffer.
async function greet(datagrams, orders) {
  const reached = await ticket();
  if (reached.length !== 6) throw new Failed('the ticket of udp has six bytes');
  await datagrams.connect(reached.readUInt16BE(), orders.network.server);
  await datagrams.put(word(orders, 'h'));
  for (let kind; kind !== 'w'; ) ({ kind } = await nextWord(datagrams, orders));
  await datagrams.put(word(orders, 'r'));
  return reached.readUInt32BE(2);
}

// Connects a server. Returns how many messages fit in its buffer.
async function welcome(datagrams, orders) {
  await datagrams.bind(orders.network.server);
  const fitting = Math.floor(datagrams.socket.getRecvBufferSize() / 2 / (2 * orders.size_bytes + 1024));
  const shown = Buffer.alloc(6);
  shown.writeUInt16BE(datagrams.socket.address().port);
  shown.writeUInt32BE(fitting, 2);
  say({ ticket: [...shown] });
  let client;
  while (client?.kind !== 'h') client = await nextWord(datagrams, orders);
  await datagrams.connect(client.from.port, client.from.address);
  do await datagrams.put(word(orders, 'w'));
  while ((await nextWord(datagrams, orders)).kind === 'h');
  return fitting;
}

// The channel. In a stream, of which an endpoint sends or receives, the server acknowledges each half of what its buffer
// holds, and so much is on its way at most.
async function udp(orders) {
  const datagrams = new Datagrams();
  const isClient = orders.role === 'client';
  const streams = orders.workload === 'throughput';
  const fitting = await (isClient ? greet : welcome)(datagrams, orders);
  const half = Math.max(Math.floor(fitting / 2), 1);
  const most = fitting < 2 ? 1 : 2 * half;
  let open = 0;
  const waitForRoom = async (left) => {
    for (; open > left; open -= half) await datagrams.take();
  };
  return {
    async send(number, size, check) {
      if (streams && isClient) {
        await waitForRoom(most - 1);
        open += 1;
      }
      await datagrams.put(made(number, size, check));
    },
    async receive(number, size, check) {
      if (streams && isClient) await waitForRoom(half - 1);
      verify((await datagrams.take()).message, number, size, check);
      if (streams && !isClient) {
        open += 1;
        if (open < half) return;
        open = 0;
        await datagrams.put(Buffer.alloc(1));
      }
    },
  };
}

module.exports = { udp };
