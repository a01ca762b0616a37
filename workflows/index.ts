// Everything exported here is registered with the worker.
export { agentTask } from './agent-task.js';
export { llmCall } from './llm-call.js';
export { remoteJob } from './remote-job.js';
export { sweepHolds } from './sweep-holds.js';
