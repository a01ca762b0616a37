// The simulated clock
// -------------------
// It runs beside the real one and can be pushed forward. A wait ends when the simulated instant is reached, be it
// by waiting or by a push, so that a lag of ten minutes can be seen at once.

export type Clock = {
  readonly nowMs: () => number;
  readonly offsetMs: () => number;
  readonly advance: (byMs: number) => void;
  readonly at: (dueMs: number, action: () => void) => void;
  readonly stop: () => void;
};

type Wait = { readonly dueMs: number; readonly action: () => void; timer?: NodeJS.Timeout };

const LONGEST_TIMER_MS = 2_147_000_000;

export function createClock(startOffsetMs: number): Clock {
  let offset = startOffsetMs;
  const waits = new Set<Wait>();
  const nowMs = (): number => Date.now() + offset;

  function arm(wait: Wait): void {
    clearTimeout(wait.timer);
    const leftMs = wait.dueMs - nowMs();
    if (leftMs <= 0) {
      waits.delete(wait);
      wait.action();
      return;
    }
    wait.timer = setTimeout(arm, Math.min(leftMs, LONGEST_TIMER_MS), wait);
    wait.timer.unref();
  }

  return {
    nowMs,
    offsetMs: () => offset,
    advance(byMs) {
      offset += byMs;
      for (const wait of [...waits].sort((a, b) => a.dueMs - b.dueMs)) arm(wait);
    },
    at(dueMs, action) {
      const wait: Wait = { dueMs, action };
      waits.add(wait);
      arm(wait);
    },
    stop() {
      for (const wait of waits) clearTimeout(wait.timer);
      waits.clear();
    },
  };
}
