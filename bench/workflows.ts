// What a call costs without us: an empty workflow, and one with three plain activities.

import { proxyActivities } from '@temporalio/workflow';

const { step } = proxyActivities<{ step(name: string): Promise<string> }>({
  startToCloseTimeout: '10 seconds',
});

export function empty(): Promise<string> {
  return Promise.resolve('done');
}

export async function bare(): Promise<string> {
  await step('reserve');
  await step('dispatch');
  return step('settle');
}
