import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createGate } from '../../devstack/gate.js';
import type { Gate } from '../../devstack/gate.js';

interface Peer {
  socket: Socket;
  received: () => string;
}

let server: Server;
let gate: Gate;
let accepted: Peer[];
let opened: Socket[];

function watch(socket: Socket): Peer {
  let text = '';
  socket.on('data', (bytes: Buffer) => (text += bytes.toString()));
  socket.on('error', () => undefined);
  return { socket, received: () => text };
}

/** Unlike `once(socket, 'close')` not disturbed by the reset that comes before. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else
      socket.once('close', () => {
        resolve();
      });
  });
}

/** A client connected through the gate. */
async function open(): Promise<Peer> {
  const socket = connect(gate.port, gate.host);
  opened.push(socket);
  const peer = watch(socket);
  await once(socket, 'connect');
  return peer;
}

async function openBoth(): Promise<{ client: Peer; atServer: Peer }> {
  const count = accepted.length;
  const client = await open();
  await vi.waitFor(() => {
    expect(accepted).toHaveLength(count + 1);
  });
  const atServer = accepted[count];
  if (atServer === undefined) throw new Error('no connection reached the server');
  return { client, atServer };
}

beforeEach(async () => {
  accepted = [];
  opened = [];
  server = createServer({ allowHalfOpen: true }, (socket) => accepted.push(watch(socket)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  gate = await createGate({ target: { host: '127.0.0.1', port } });
});

afterEach(async () => {
  await gate.close();
  for (const socket of [...opened, ...accepted.map((peer) => peer.socket)]) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

test('an open gate forwards both ways and counts the bytes', async () => {
  const { client, atServer } = await openBoth();
  client.socket.write('question');
  await vi.waitFor(() => {
    expect(atServer.received()).toBe('question');
  });
  atServer.socket.write('the answer');
  await vi.waitFor(() => {
    expect(client.received()).toBe('the answer');
  });
  expect([gate.connectionCount(), gate.bytesToServer(), gate.bytesToClient()]).toEqual([1, 8, 10]);
});

test('an end goes through, and the other direction stays open', async () => {
  const { client, atServer } = await openBoth();
  client.socket.end('last words');
  await once(atServer.socket, 'end');
  atServer.socket.end('reply');
  await closed(client.socket);
  expect([atServer.received(), client.received()]).toEqual(['last words', 'reply']);
  await vi.waitFor(() => {
    expect(gate.connectionCount()).toBe(0);
  });
});

test('a held direction keeps its bytes while the other one flows', async () => {
  const { client, atServer } = await openBoth();
  gate.hold('to_server');
  client.socket.write('held');
  await vi.waitFor(() => {
    expect(gate.heldBytes('to_server')).toBe(4);
  });
  atServer.socket.write('free');
  await vi.waitFor(() => {
    expect(client.received()).toBe('free');
  });
  expect([atServer.received(), gate.bytesToServer(), gate.heldBytes('to_client')]).toEqual([
    '',
    0,
    0,
  ]);
});

test('answers can be held while questions arrive', async () => {
  const { client, atServer } = await openBoth();
  gate.hold('to_client');
  client.socket.write('question');
  await vi.waitFor(() => {
    expect(atServer.received()).toBe('question');
  });
  atServer.socket.write('answer');
  await vi.waitFor(() => {
    expect(gate.heldBytes('to_client')).toBe(6);
  });
  expect(client.received()).toBe('');
});

test('passing again forwards what was held in its order, then what comes', async () => {
  const { client, atServer } = await openBoth();
  gate.hold();
  for (const piece of ['a', 'b', 'c']) {
    client.socket.write(piece);
    await vi.waitFor(() => {
      expect(gate.heldBytes('to_server')).toBe(piece.charCodeAt(0) - 96);
    });
  }
  gate.pass();
  client.socket.write('d');
  await vi.waitFor(() => {
    expect(atServer.received()).toBe('abcd');
  });
  expect(gate.heldBytes('to_server')).toBe(0);
});

test('an end that is held comes after the bytes before it', async () => {
  const { client, atServer } = await openBoth();
  gate.hold();
  client.socket.end('words');
  await vi.waitFor(() => {
    expect(gate.heldBytes('to_server')).toBe(5);
  });
  expect([atServer.received(), atServer.socket.readableEnded]).toEqual(['', false]);
  gate.pass();
  await once(atServer.socket, 'end');
  expect(atServer.received()).toBe('words');
});

test('a holding gate accepts new connections and keeps what they say', async () => {
  gate.hold();
  const { client, atServer } = await openBoth();
  client.socket.write('new');
  await vi.waitFor(() => {
    expect(gate.heldBytes('to_server')).toBe(3);
  });
  expect(atServer.received()).toBe('');
  gate.pass();
  await vi.waitFor(() => {
    expect(atServer.received()).toBe('new');
  });
});

test('a cut resets both sides of every connection and forgets what was held', async () => {
  const pairs = [await openBoth(), await openBoth()];
  gate.hold();
  pairs[0]?.client.socket.write('lost');
  await vi.waitFor(() => {
    expect(gate.heldBytes('to_server')).toBe(4);
  });
  const failures = pairs.flatMap(({ client, atServer }) => [
    closed(client.socket),
    closed(atServer.socket),
  ]);
  gate.cut();
  await Promise.all(failures);
  gate.pass();
  expect(pairs[0]?.atServer.received()).toBe('');
  expect([gate.connectionCount(), gate.heldBytes('to_server')]).toEqual([0, 0]);
  const errors = pairs.map(({ client }) => client.socket.errored);
  expect(errors).toEqual([
    expect.objectContaining({ code: 'ECONNRESET' }),
    expect.objectContaining({ code: 'ECONNRESET' }),
  ]);
});

test('a cut gate lets no new connection reach the server until it passes again', async () => {
  gate.cut();
  const refused = connect(gate.port, gate.host);
  const watched = watch(refused);
  await closed(refused);
  expect([watched.received(), accepted.length, gate.connectionCount()]).toEqual(['', 0, 0]);
  gate.pass();
  const { client, atServer } = await openBoth();
  client.socket.write('again');
  await vi.waitFor(() => {
    expect(atServer.received()).toBe('again');
  });
});

test('a server that is not there looks like a reset to the client', async () => {
  await new Promise((resolve) => server.close(resolve));
  const client = await open();
  await closed(client.socket);
  expect(client.received()).toBe('');
  await vi.waitFor(() => {
    expect(gate.connectionCount()).toBe(0);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

test('many megabytes come through whole in both directions', async () => {
  const { client, atServer } = await openBoth();
  const block = Buffer.alloc(8 * 1024 * 1024, 'x');
  client.socket.write(block);
  atServer.socket.write(block);
  await vi.waitFor(
    () => {
      expect(gate.bytesToServer() + gate.bytesToClient()).toBe(2 * block.length);
      expect(client.received().length + atServer.received().length).toBe(2 * block.length);
    },
    { timeout: 20_000 },
  );
});
