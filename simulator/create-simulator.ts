// The simulator
// -------------
// An HTTP provider that charges by script and keeps its own true bill. As a function (`app.fetch`) it has no
// socket, so dropping and hanging need `listen`.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { openBook } from './book/book.js';
import { createPriceList } from './book/prices.js';
import { describeTruth } from './book/truth.js';
import { createExecutions } from './executions.js';
import { answerChat } from './http/chat-route.js';
import { addControlRoutes } from './http/control-routes.js';
import { deliver, errorReply, jsonReply } from './http/delivery.js';
import type { SimulatorEnv } from './http/delivery.js';
import { documentContract } from './http/document.js';
import { addJobRoutes } from './http/jobs/add-job-routes.js';
import { answerReceipt } from './http/receipt-route.js';
import { createJobs } from './jobs.js';
import { createBehaviours } from './script/behaviours.js';
import type { World } from './world.js';

export type SimulatorOptions = {
  /** Where the bill is kept; left out, it ends with the process. */
  readonly truthFile?: string;
  /** Laid over the default list, as `MODEL=N`, `MODEL=N/request` or `MODEL=N/tick`. */
  readonly prices?: readonly string[];
  /** How long a tick of the jobs is; left out, ticks pass by order alone. */
  readonly tickMs?: number | undefined;
};

export type Address = { readonly port: number; readonly url: string };

export type Simulator = {
  readonly app: Hono<SimulatorEnv>;
  readonly listen: (port?: number) => Promise<Address>;
  readonly close: () => Promise<void>;
};

/** Long enough that an idle connection is never closed in the middle of a story. */
const KEEP_ALIVE_MS = 600_000;
const HOST = '127.0.0.1';

export function createSimulator(options: SimulatorOptions = {}): Simulator {
  const book = openBook(options.truthFile);
  const prices = createPriceList(options.prices);
  const executions = createExecutions(book, prices);
  const jobs = createJobs(book);
  const app = createApp({ book, prices, executions, jobs, behaviours: createBehaviours() });
  const ticking =
    options.tickMs === undefined
      ? undefined
      : setInterval(jobs.tickByItself, options.tickMs).unref();
  const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false });
  const server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MS },
    (incoming, outgoing) => void listener(incoming, outgoing),
  );
  server.on('clientError', (_error, socket) => socket.destroy());
  return {
    app,
    listen: (port = 0) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, HOST, () => {
          server.off('error', reject);
          const { port: bound } = server.address() as AddressInfo;
          resolve({ port: bound, url: `http://${HOST}:${bound}` });
        });
      }),
    close: () =>
      new Promise((resolve) => {
        book.clock.stop();
        clearInterval(ticking);
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

function createApp(world: World): Hono<SimulatorEnv> {
  const { book, prices } = world;
  const app = new Hono<SimulatorEnv>();
  app.get('/', (context) => deliver(context, book, jsonReply(200, documentContract(prices))));
  app.get('/truth', (context) => deliver(context, book, jsonReply(200, describeTruth(book))));
  app.post('/v1/chat/completions', (context) => answerChat(context, world));
  app.get('/v1/receipts/by-key/:key', (context) =>
    answerReceipt(context, world, { key: context.req.param('key') }),
  );
  app.get('/v1/receipts/:id', (context) =>
    answerReceipt(context, world, { id: context.req.param('id') }),
  );
  addJobRoutes(app, world);
  addControlRoutes(app, world);
  app.notFound((context) => {
    const message = `There is no ${context.req.method} ${context.req.path}.`;
    return deliver(context, book, errorReply(404, { message }));
  });
  app.onError((error, context) => {
    process.stderr.write(`${error.stack ?? error.message}\n`);
    return deliver(context, book, errorReply(500, { message: 'The simulator itself failed.' }));
  });
  return app;
}
