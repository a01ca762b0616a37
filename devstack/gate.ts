// Gate
// ----
// A TCP gate before a server, to make outages and kill windows from outside.
// 1. What is held is neither lost nor reordered: an end or a reset waits its turn behind the bytes before it.
// 2. A cut destroys connections on both sides, and whatever was held for them is gone.

import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';

export type GateDirection = 'to_server' | 'to_client';

export interface GateOptions {
  target: { host: string; port: number };
  /** A free one by default. */
  port?: number;
}

export interface Gate {
  host: '127.0.0.1';
  port: number;
  /** Forwards again, first what was held; after a cut, lets new connections through. */
  pass: () => void;
  /** Keeps connections open, accepts new ones, and keeps their bytes in this direction, beside one held already. */
  hold: (direction?: GateDirection | 'both') => void;
  /** Destroys all connections, and new ones as they come. */
  cut: () => void;
  connectionCount: () => number;
  /** How many bytes were forwarded so far. */
  bytesToServer: () => number;
  bytesToClient: () => number;
  /** How many bytes wait. */
  heldBytes: (direction: GateDirection) => number;
  close: () => Promise<void>;
}

/** What a connection said in one direction. */
type Piece = { kind: 'bytes'; bytes: Buffer } | { kind: 'end' } | { kind: 'reset' };

interface Lane {
  receive: (piece: Piece) => void;
  flush: () => void;
  heldByteCount: () => number;
}

interface Pair {
  lanes: Record<GateDirection, Lane>;
  destroy: () => void;
}

interface GateState {
  target: GateOptions['target'];
  isCut: boolean;
  held: Set<GateDirection>;
  pairs: Set<Pair>;
  forwardedByteCount: Record<GateDirection, number>;
}

const DIRECTIONS = ['to_server', 'to_client'] as const;

export async function createGate(options: GateOptions): Promise<Gate> {
  const state: GateState = {
    target: options.target,
    isCut: false,
    held: new Set(),
    pairs: new Set(),
    forwardedByteCount: { to_server: 0, to_client: 0 },
  };
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    accept(state, client);
  });
  const port = await listen(server, options.port ?? 0);
  return {
    host: '127.0.0.1',
    port,
    ...createControls(state),
    close: () =>
      new Promise((resolve) => {
        destroyAll(state);
        state.isCut = true;
        server.close(() => {
          resolve();
        });
      }),
  };
}

function createControls(state: GateState): Omit<Gate, 'host' | 'port' | 'close'> {
  return {
    pass: () => {
      state.isCut = false;
      state.held.clear();
      for (const pair of state.pairs) for (const name of DIRECTIONS) pair.lanes[name].flush();
    },
    hold: (direction = 'both') => {
      state.isCut = false;
      for (const name of direction === 'both' ? DIRECTIONS : [direction]) state.held.add(name);
    },
    cut: () => {
      state.isCut = true;
      state.held.clear();
      destroyAll(state);
    },
    connectionCount: () => state.pairs.size,
    bytesToServer: () => state.forwardedByteCount.to_server,
    bytesToClient: () => state.forwardedByteCount.to_client,
    heldBytes: (direction) => {
      let byteCount = 0;
      for (const pair of state.pairs) byteCount += pair.lanes[direction].heldByteCount();
      return byteCount;
    },
  };
}

function destroyAll(state: GateState): void {
  for (const pair of state.pairs) pair.destroy();
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}

function accept(state: GateState, client: Socket): void {
  if (state.isCut) {
    client.on('error', ignoreBrokenSocket);
    client.resetAndDestroy();
    return;
  }
  const upstream = connect({ ...state.target, allowHalfOpen: true, noDelay: true });
  const pair: Pair = {
    lanes: {
      to_server: createLane(state, 'to_server', { from: client, to: upstream }),
      to_client: createLane(state, 'to_client', { from: upstream, to: client }),
    },
    destroy: () => {
      reset(client);
      reset(upstream);
      state.pairs.delete(pair);
    },
  };
  state.pairs.add(pair);
  listenTo(client, pair.lanes.to_server);
  listenTo(upstream, pair.lanes.to_client);
  const forgetWhenBothClosed = (): void => {
    if (client.closed && upstream.closed) state.pairs.delete(pair);
  };
  client.once('close', forgetWhenBothClosed);
  upstream.once('close', forgetWhenBothClosed);
}

function listenTo(socket: Socket, lane: Lane): void {
  socket.on('data', (bytes: Buffer) => {
    lane.receive({ kind: 'bytes', bytes });
  });
  socket.once('end', () => {
    lane.receive({ kind: 'end' });
  });
  // Also a target that refuses the connection: the client sees a reset.
  socket.once('error', () => {
    lane.receive({ kind: 'reset' });
  });
  socket.on('error', ignoreBrokenSocket);
}

/** A broken socket was told to its lane already; a second error has nothing to add. */
function ignoreBrokenSocket(): void {
  return undefined;
}

function createLane(
  state: GateState,
  direction: GateDirection,
  { from, to }: { from: Socket; to: Socket },
): Lane {
  const queue: Piece[] = [];
  const forward = (piece: Piece): void => {
    if (piece.kind === 'reset') reset(to);
    else if (to.destroyed) return;
    else if (piece.kind === 'end') to.end();
    else {
      state.forwardedByteCount[direction] += piece.bytes.length;
      if (to.write(piece.bytes) || from.isPaused()) return;
      from.pause();
      to.once('drain', () => from.resume());
    }
  };
  return {
    receive: (piece) => {
      if (state.held.has(direction)) queue.push(piece);
      else forward(piece);
    },
    flush: () => {
      for (const piece of queue.splice(0)) forward(piece);
    },
    heldByteCount: () =>
      queue.reduce((sum, piece) => sum + (piece.kind === 'bytes' ? piece.bytes.length : 0), 0),
  };
}

/** A socket that is not connected yet cannot send a reset; it is merely dropped. */
function reset(socket: Socket): void {
  if (socket.destroyed) return;
  if (socket.connecting) socket.destroy();
  else socket.resetAndDestroy();
}
