import { PATIENT_ROUTE, STORY_ROUTE } from './props.js';

/** The workers' configuration for the story: one provider, short timings. */
export function storyConfig(providerUrl: string): string {
  const short =
    '{ dispatch_limit_ms: 1000, heartbeat_ms: 1000, question_first_ms: 300, question_max_ms: 2000 }';
  const patient =
    '{ dispatch_limit_ms: 20000, heartbeat_ms: 1000, question_first_ms: 300, question_max_ms: 2000 }';
  return `# Written for the story: the workers of this checkout read it.
allow_short_timings: true
providers:
  metered:
    kind: metered
    base_url: ${providerUrl}
    api_key_env: SIMULATOR_API_KEY
routes:
  ${STORY_ROUTE}: { provider: metered, max_tokens_max: 4096, timings: ${short} }
  ${PATIENT_ROUTE}: { provider: metered, max_tokens_max: 4096, timings: ${patient} }
`;
}
