import type { Hono } from 'hono';
import type { z } from 'zod';
import { readWith } from '../script/read-script.js';
import type { Read } from '../script/read-script.js';
import type { World } from '../world.js';
import { deliver, errorReply } from './delivery.js';
import type { Reply, SimulatorContext, SimulatorEnv } from './delivery.js';

type Act<T> = (value: T, world: World) => Reply;

type Order<T> = { readonly path: string; readonly schema: z.ZodType<T>; readonly act: Act<T> };

export function addOrder<T>(app: Hono<SimulatorEnv>, world: World, order: Order<T>): void {
  app.post(order.path, (context) =>
    obey(context, world, {
      read: (body) => readWith(order.schema, body),
      act: order.act,
    }),
  );
}

type Handling<T> = { readonly read: (body: unknown) => Read<T>; readonly act: Act<T> };

export async function obey<T>(
  context: SimulatorContext,
  world: World,
  handling: Handling<T>,
): Promise<Response> {
  const text = await context.req.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return deliver(context, world.book, errorReply(400, { message: 'The body is not JSON.' }));
  }
  const read = handling.read(body);
  const reply =
    read.status === 'unreadable' ? errorReply(400, read) : handling.act(read.value, world);
  return deliver(context, world.book, reply);
}

export function noWork(key: string): Reply {
  return errorReply(404, { message: `Nothing was accepted under "${key}".` });
}
