// The core of an endpoint of ipcmark in Node.js, by the document docs/reference/protocol.md: messages, phases and payload.
// What connects two endpoints is the driver's own.
'use strict';

const WORKLOADS = ['latency', 'transfer', 'throughput'];
const GOLDEN = 0x9e3779b97f4a7c15n;

// Bytes that come by events, taken in parts of a wanted length.
class Incoming {
  constructor(stream) {
    this.parts = [];
    this.length = 0;
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
    if (this.waiting && (this.length >= this.waiting.count || this.hasEnded)) {
      const { count, use, resolve, reject } = this.waiting;
      this.waiting = undefined;
      try {
        resolve(use(this.cut(count)));
      } catch (error) {
        reject(error);
      }
    }
  }

  // What `use` makes of so many bytes, or of undefined where the stream ends before: at once where they are here, else
  // something to await. It is no promise: that would take a twentieth of a round trip.
  take(count, use = (bytes) => bytes) {
    if (this.length >= count || this.hasEnded) return use(this.cut(count));
    return {
      then: (resolve, reject) => {
        this.waiting = { count, use, resolve, reject };
      },
    };
  }

  cut(count) {
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

async function ticket() {
  const [name, value] = await hear();
  if (name !== 'ticket') throw new Failed(`${name} came instead of the ticket`);
  return Buffer.from(value);
}

// Runs `steps`, which yields what it waits for, and goes on at once when that is over: an `await` goes on in a microtask.
function driven(steps) {
  return new Promise((resolve, reject) => {
    const goOn = (waited) => {
      try {
        let due = { value: waited };
        while (!due.done && !due.value?.then) due = steps.next();
        if (due.done) resolve();
        else due.value.then(goOn, reject);
      } catch (error) {
        reject(error);
      }
    };
    goOn();
  });
}

// Does one phase, and says what it came to.
function* run(orders, channel, { check, each, stretches }) {
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
      const isOver = first(number, size, check);
      if (isOver) yield isOver;
      const isAnswered = !streams && second(number, answer, check);
      if (isAnswered) yield isAnswered;
      if (each && timed) {
        const now = process.hrtime.bigint();
        eachNs.push(Number(now - before));
        before = now;
      }
    }
    if (streams && acknowledged) {
      const isOver = second(number, 1, check);
      if (isOver) yield isOver;
    }
    if (timed) elapsedNs += process.hrtime.bigint() - start;
  }
  say({ done: { elapsed_ns: Number(elapsedNs), each_ns: eachNs } });
}

async function trial(program, mechanisms, connect) {
  await hear();
  const hello = { protocol: 'ipcmark-endpoint', version: 3, program, capabilities: ['each'] };
  say({ hello: { ...hello, runtime: `Node.js ${process.version}`, mechanisms } });
  const [name, orders] = await hear();
  if (name !== 'orders') return;
  const offered = mechanisms.find((one) => one.name === orders.mechanism);
  for (const [parameter, value] of Object.entries(orders.parameters)) {
    if (parameter !== 'codec' || !offered?.codecs?.includes(value)) {
      throw new Failed(`this driver has no parameter ${parameter}=${value} here`);
    }
  }
  const channel = await connect(orders);
  say('connected');
  for (;;) {
    const [due, phase] = await hear();
    if (due !== 'phase') return;
    if (orders.role === 'server') say('ready');
    await driven(run(orders, channel, phase));
  }
}

// Takes part in a trial as `program`. `connect` connects as the orders say, and returns the channel.
function takePart(program, mechanisms, connect) {
  trial(program, mechanisms, connect).then(
    () => process.exit(0),
    (error) => {
      say({ failed: error instanceof Failed ? error.message : String(error) });
      process.stdout.write('', () => process.exit(1));
    },
  );
}

module.exports = { Failed, Incoming, WORKLOADS, made, say, takePart, ticket, verify };
