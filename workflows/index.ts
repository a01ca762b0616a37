// Everything exported here is registered with the worker.
export { llmCall } from './llm-call.js';
