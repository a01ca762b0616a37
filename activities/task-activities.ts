// Task activities
// ---------------
// What a task needs besides its operations: a budget of its own, a look at where they stand, and the
// end of one that somebody else supervises.

import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { parseAmount } from '../domain/money.js';
import { openTaskBudget } from '../ledger/administer.js';
import { compareTerms } from '../ledger/admit.js';
import { readOperation } from '../ledger/read.js';
import type { FollowActivities, NotKnownYet, TaskActivities } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { termsOf } from './prepare.js';
import type { Supervisors } from './sweep.js';
import { toApplicationFailure } from './to-application-failure.js';

const FOLLOW_PAUSE_MS = 5_000;

export function createTaskActivities({ ledger }: ActivityDependencies): TaskActivities {
  return {
    async openTask({ accountId, taskId, budget }) {
      try {
        const status = await openTaskBudget(ledger, {
          ...{ accountId, taskId, unit: budget.unit },
          limitAmount: parseAmount(budget.limit, budget.unit),
        });
        return { problem: status === 'exists_otherwise' ? sayOther(taskId) : null };
      } catch (error) {
        throw toApplicationFailure(error);
      }
    },
    async readTask({ accountId, operationIds }) {
      try {
        const snapshots = [];
        for (const operationId of operationIds) {
          snapshots.push((await readOperation(ledger, { accountId, operationId })) ?? null);
        }
        return snapshots;
      } catch (error) {
        throw toApplicationFailure(error);
      }
    },
  };
}

function sayOther(taskId: string): string {
  return `the task "${taskId}" has a budget with another limit or unit, or of another account, already; give the same one, or another taskId`;
}

export function createFollowActivities(
  { ledger }: ActivityDependencies,
  supervisors: Supervisors,
): FollowActivities {
  return {
    async followOperation({ workflowId, accountId, operationId, ...asked }) {
      const stored = await compareTerms(ledger, {
        ...{ account: accountId, operation: operationId },
        terms: termsOf(asked),
      }).catch((error: unknown) => {
        throw toApplicationFailure(error);
      });
      switch (stored.status) {
        case 'other':
          return { kind: 'refused', refusal: stored.refusal };
        case 'same':
          if (stored.snapshot.outcome === null) throw notEnded(operationId);
          return { kind: 'ended', snapshot: stored.snapshot };
        case 'not_found': {
          const { supervisor } = await supervisors.look(workflowId);
          if (supervisor === 'missing') return { kind: 'missing' };
          throw notEnded(operationId);
        }
      }
    },
  };
}

function notEnded(operationId: string): ApplicationFailure {
  const details: NotKnownYet = { nextDelayMs: FOLLOW_PAUSE_MS };
  return ApplicationFailure.create({
    type: 'CHARGE_NOT_KNOWN_YET',
    message: `operation "${operationId}" has not ended`,
    category: ApplicationFailureCategory.BENIGN,
    nextRetryDelay: FOLLOW_PAUSE_MS,
    details: [details],
  });
}
