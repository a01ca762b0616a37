import {
  createMeteredJobsProvider,
  type MeteredJobsOptions,
} from './metered-jobs/metered-jobs-provider.js';
import { createMeteredProvider, type MeteredOptions } from './metered/metered-provider.js';
import {
  createOpenAiChatProvider,
  type OpenAiChatOptions,
} from './openai-chat/openai-chat-provider.js';
import type { ProviderPort } from './port.js';

export type ProviderOptions =
  | ({ readonly kind: 'metered' } & MeteredOptions)
  | ({ readonly kind: 'metered_jobs' } & MeteredJobsOptions)
  | ({ readonly kind: 'openai_chat' } & OpenAiChatOptions);

export function createProvider(options: ProviderOptions): ProviderPort {
  switch (options.kind) {
    case 'metered':
      return createMeteredProvider(options);
    case 'metered_jobs':
      return createMeteredJobsProvider(options);
    case 'openai_chat':
      return createOpenAiChatProvider(options);
  }
}
