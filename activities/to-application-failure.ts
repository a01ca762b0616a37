// The one place that knows both the table of failures and Temporal's form of them.

import { ApplicationFailure } from '@temporalio/common';
import { HoldfastError } from '../domain/failure.js';

export function toApplicationFailure(error: unknown): unknown {
  if (!(error instanceof HoldfastError)) return error;
  return ApplicationFailure.create({
    message: error.message,
    type: error.code,
    nonRetryable: !error.retryable,
    cause: error,
  });
}
