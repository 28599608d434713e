// A ping-pong over two pipes, as one writes it to throw it away: what the driver `node` is held against.
// taskset -c 0 node pingpong.js SIZE ITERATIONS
'use strict';

const { execFileSync, spawn } = require('node:child_process');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');

const [size, iterations] = process.argv.slice(2).map(Number);

function made(number) {
  const message = Buffer.allocUnsafe(Math.max(size, 8));
  message.writeBigUInt64LE(BigInt(number));
  return message.subarray(0, size);
}

// Calls `take` with each message that comes, and its number.
function receive(source, take) {
  let [parts, length, number] = [[], 0, 0];
  new net.Socket({ fd: source, readable: true, writable: false }).on('data', (part) => {
    parts.push(part);
    length += part.length;
    if (length < size) return;
    const message = parts.length === 1 ? parts[0] : Buffer.concat(parts);
    const isRight = length === size && message.subarray(0, 8).equals(made(number).subarray(0, 8));
    if (!isRight) throw new Error('another message came');
    [parts, length] = [[], 0];
    take(number++);
  });
}

const writer = (fd) => new net.Socket({ fd, readable: false, writable: true });
if (process.argv[4]) {
  const sink = writer(4);
  const last = 2 * iterations - 1;
  receive(3, (number) => (number < last ? sink.write(made(number)) : sink.end(made(number), () => process.exit())));
} else {
  // Node makes no pipes but by their names: what it gives a child are sockets.
  const directory = fs.mkdtempSync(`${os.tmpdir()}/pingpong-`);
  const [there, back] = ['there', 'back'].map((name) => {
    const fifo = `${directory}/${name}`;
    execFileSync('mkfifo', [fifo]);
    const opened = fs.openSync(fifo, 'r+'); // so that the others do not wait for each other
    return [fs.openSync(fifo, 'r'), fs.openSync(fifo, 'w'), fs.closeSync(opened)];
  });
  fs.rmSync(directory, { recursive: true });
  const stdio = [0, 1, 2, there[0], back[1]];
  const child = spawn(process.execPath, [...process.argv.slice(1), 'child'], { stdio });
  child.on('exit', (code) => code === 0 || process.exit(1));
  const sink = writer(there[1]);
  let start;
  receive(back[0], (number) => {
    if (number === iterations - 1) start = process.hrtime.bigint();
    if (number < 2 * iterations - 1) sink.write(made(number + 1));
    else process.stdout.write(`${Number(process.hrtime.bigint() - start) / iterations}\n`, () => process.exit());
  });
  sink.write(made(0));
}
