// The one place that knows both the table of failures and Temporal's form of them. Every one may be
// retried: what is wrong is the world, or this worker's configuration, and a supervisor that failed
// for it would leave a hold without an owner.

import { ApplicationFailure } from '@temporalio/common';
import { HoldfastError } from '../domain/failure.js';

export function toApplicationFailure(error: unknown): unknown {
  if (!(error instanceof HoldfastError)) return error;
  return ApplicationFailure.create({
    message: error.message,
    type: error.code,
    cause: error,
  });
}
