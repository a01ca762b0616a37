/** What `work` brings, or the failure when it takes longer; the work itself is not ended. */
export async function withLimit<T>(
  work: Promise<T>,
  limitMs: number,
  failure: () => Error,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(failure());
    }, limitMs);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
