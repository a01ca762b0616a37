import { type DestinationStream, type Logger, pino } from 'pino';

export const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** JSON lines on stderr. Bodies are never handed to it; what could be a secret is cut out. */
export function createLogger(level: LogLevel, destination?: DestinationStream): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: ['authorization', 'apiKey', 'password', '*.authorization', '*.apiKey', '*.password'],
        censor: '[secret]',
      },
    },
    destination ?? pino.destination({ fd: 2, sync: true }),
  );
}
