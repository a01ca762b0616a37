import type { OperationSnapshot } from '../domain/snapshot.js';
import type { ActivityDependencies } from './dependencies.js';

/** One `info` line a state change: ids, amounts and phases, never a body or a key. */
export function logState(dependencies: ActivityDependencies, snapshot: OperationSnapshot): void {
  const { logger } = dependencies;
  tellAlerts(dependencies, snapshot);
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

/** One `warn` line an alert, from whoever made the step that raised it. */
export function tellAlerts(
  { logger, telemetry }: Pick<ActivityDependencies, 'logger' | 'telemetry'>,
  snapshot: OperationSnapshot,
): void {
  const { accountId, operationId, operationKey, workflowId } = snapshot;
  for (const alert of snapshot.alerts) {
    if (!alert.isNew) continue;
    const { kind, attemptNo, detail } = alert;
    telemetry.alerted(kind);
    logger.warn(
      { alert: kind, accountId, operationId, operationKey, workflowId, attemptNo, detail },
      `alert ${kind}: see docs/runbook.md`,
    );
  }
}
