import type { Logger } from 'pino';
import type { OperationSnapshot } from '../domain/snapshot.js';

/** One `info` line a state change: ids, amounts and phases, never a body or a key. */
export function logState(logger: Logger, snapshot: OperationSnapshot): void {
  const attempt = snapshot.attempts.at(-1);
  logger.info(
    {
      accountId: snapshot.accountId,
      operationId: snapshot.operationId,
      operationKey: snapshot.operationKey,
      state: snapshot.state,
      outcome: snapshot.outcome,
      attemptNo: attempt?.attemptNo,
      route: attempt?.route,
      phase: attempt?.phase,
      heldAmount: attempt?.heldAmount,
      chargedAmount: attempt?.chargedAmount,
      unit: attempt?.unit,
    },
    'operation changed',
  );
}
