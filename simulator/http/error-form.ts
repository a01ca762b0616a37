export type ErrorForm = {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly code: string | null;
    readonly param: string | null;
  };
};

const typesByStatus: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'idempotency_error',
  422: 'idempotency_error',
  429: 'rate_limit_error',
  503: 'overloaded_error',
};

export type ErrorDetail = {
  readonly message: string;
  /** Where the status alone would say the wrong one. */
  readonly type?: string;
  readonly code?: string;
  readonly param?: string;
};

/** The one form of every error of the provider. */
export function errorForm(status: number, detail: ErrorDetail): ErrorForm {
  const fallback = status >= 500 ? 'server_error' : 'invalid_request_error';
  return {
    error: {
      message: detail.message,
      type: detail.type ?? typesByStatus[status] ?? fallback,
      code: detail.code ?? null,
      param: detail.param ?? null,
    },
  };
}
