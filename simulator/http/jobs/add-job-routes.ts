import type { Hono } from 'hono';
import type { JobQuestion } from '../../book/jobs-state.js';
import type { World } from '../../world.js';
import type { SimulatorEnv } from '../delivery.js';
import { cancelJob } from './cancel-route.js';
import { createJob } from './create-route.js';
import { answerJobQuestion } from './question-routes.js';

const questions: readonly { readonly question: JobQuestion; readonly tail: string }[] = [
  { question: 'status', tail: '' },
  { question: 'charge', tail: '/charge' },
];

export function addJobRoutes(app: Hono<SimulatorEnv>, world: World): void {
  app.post('/v1/jobs', (context) => createJob(context, world));
  for (const { question, tail } of questions) {
    app.get(`/v1/jobs/by-key/:key${tail}`, (context) =>
      answerJobQuestion(context, world, { question, wanted: { key: context.req.param('key') } }),
    );
  }
  // Behind those by key: "by-key" is no id.
  for (const { question, tail } of questions) {
    app.get(`/v1/jobs/:id${tail}`, (context) =>
      answerJobQuestion(context, world, { question, wanted: { id: context.req.param('id') } }),
    );
  }
  app.post('/v1/jobs/:id/cancel', (context) => cancelJob(context, world, context.req.param('id')));
}
