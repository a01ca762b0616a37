/** The whole job service is down, and says so before any work. */
export const OUTAGE = {
  kind: 'refused',
  status: 503,
  message: 'The job service is out of order.',
} as const;
