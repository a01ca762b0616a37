import { describe, expect, test } from 'vitest';
import { type AttemptFacts, decide } from '../../domain/decide.js';
import { readLlmCallInput } from '../../domain/call-input.js';
import { operationIdOf, problemOfId } from '../../domain/identity.js';
import { amount } from '../../domain/money.js';
import type { Observation } from '../../domain/observation.js';
import { ATTEMPT_PHASES, computeOperationState, isEnded } from '../../domain/operation.js';

const evidence = { source: 'lookup', reference: 'r' } as const;
const held: AttemptFacts = {
  phase: 'sending',
  heldAmount: amount(40n),
  floorAmount: amount(0n),
  hasTrace: false,
  isFreeRoute: false,
};
const final = (usage: Record<string, number> = { output_tokens: 1 }): Observation => ({
  kind: 'charge',
  basis: 'final',
  usage,
  evidence,
});

describe('decide', () => {
  test('O2: no answer of any reason keeps the whole hold', () => {
    for (const reason of [
      'no_answer',
      'local_end',
      'not_found',
      'retention_lapsed',
      'inconsistent_usage',
    ] as const) {
      expect(decide(held, { kind: 'no_answer', reason, detail: '', evidence }, undefined)).toEqual({
        action: 'retain',
        phase: 'unknown',
        reason,
      });
    }
  });

  test('O3: the end of the remote work is not the charge for it', () => {
    for (const status of ['completed', 'cancelled', 'failed'] as const) {
      expect(decide(held, { kind: 'status', status, evidence }, undefined)).toMatchObject({
        phase: 'unknown',
        reason: 'terminal_without_charge',
      });
    }
  });

  test('O1: only a final charge or a proof without a contradiction ends the hold', () => {
    const rejection: Observation = {
      kind: 'not_accepted',
      proof: 'documented_rejection',
      detail: '',
      evidence,
    };
    expect(decide(held, final(), amount(55n))).toEqual({
      action: 'capture',
      amount: 55n,
      overrun: 15n,
    });
    expect(decide(held, rejection, undefined)).toEqual({
      action: 'end_free',
      proof: 'documented_rejection',
    });
    expect(decide({ ...held, hasTrace: true }, rejection, undefined)).toMatchObject({
      action: 'retain',
      reason: 'inconsistent_usage',
    });
    expect(decide({ ...held, floorAmount: amount(1n) }, rejection, undefined)).toMatchObject({
      action: 'retain',
    });
    expect(decide(held, final(), undefined)).toMatchObject({
      action: 'retain',
      reason: 'price_missing',
    });
  });

  test('a total of 0 is free without work on a priced route, a charge on a free one, and no price with work', () => {
    expect(decide(held, final({ output_tokens: 0 }), amount(0n))).toEqual({
      action: 'end_free',
      proof: 'charged_zero',
    });
    expect(decide(held, final(), amount(0n))).toMatchObject({
      action: 'retain',
      reason: 'inconsistent_usage',
    });
    expect(decide({ ...held, isFreeRoute: true }, final(), amount(0n))).toMatchObject({
      action: 'capture',
      amount: 0n,
    });
  });
});

describe('computeOperationState', () => {
  test('an unknown attempt makes the operation unknown, whatever stands beside it', () => {
    for (const phase of ATTEMPT_PHASES)
      expect(computeOperationState(['unknown', phase])).toBe('unknown');
  });

  test('an operation is closed exactly when every attempt has ended', () => {
    for (const one of ATTEMPT_PHASES) {
      for (const two of ATTEMPT_PHASES) {
        const state = computeOperationState([one, two]);
        expect([one, two, state === 'settled' || state === 'released']).toEqual([
          one,
          two,
          isEnded(one) && isEnded(two),
        ]);
      }
    }
  });
});

describe('bad input', () => {
  const good = {
    accountId: 'acme',
    route: 'gpt',
    maxTokens: 10,
    request: { messages: [{ role: 'user', content: 'hi' }] },
  };

  test.each([
    ['nothing', undefined, 'input is missing'],
    ['a text', 'call me', 'input is "call me"'],
    [
      'no maxTokens',
      { ...good, maxTokens: undefined },
      'maxTokens is missing; give a whole number, 1 or more',
    ],
    ['maxTokens of zero', { ...good, maxTokens: 0 }, 'maxTokens is 0'],
    ['a float', { ...good, maxTokens: 1.5 }, 'maxTokens is 1.5'],
    ['an empty account', { ...good, accountId: '' }, 'accountId is empty'],
    ['a long id', { ...good, operationId: 'x'.repeat(201) }, 'operationId is 201 characters long'],
    [
      'a control character',
      { ...good, operationId: 'a\nb' },
      'operationId is a text with control characters',
    ],
    ['an unknown field', { ...good, max_tokens: 3 }, 'max_tokens is not a field of llmCall'],
    [
      'a smuggled bound',
      { ...good, request: { ...good.request, n: 8 } },
      'request.n is set by the route',
    ],
    [
      'an image',
      { ...good, request: { messages: [{ role: 'user', content: [{ type: 'image_url' }] }] } },
      'only text has a known bound',
    ],
    [
      'a body over the limit',
      { ...good, request: { messages: [{ role: 'user', content: 'x'.repeat(70_000) }] } },
      'at most 65536 are taken',
    ],
    [
      'both request and reference',
      { ...good, requestRef: `sha256:${'0'.repeat(64)}` },
      'give exactly one of them',
    ],
    ['a wrong reference', { ...good, request: undefined, requestRef: 'x' }, 'requestRef is "x"'],
  ])('%s is refused with the field, the value and what would be right', (_name, input, message) => {
    const read = readLlmCallInput(input);
    if (read.kind !== 'problems') throw new Error('it was taken');
    expect(
      read.problems.map((problem) => `${problem.field} ${problem.message}`).join('; '),
    ).toContain(message);
  });

  test('a good input is taken, and a workflow id is the operation id where none was given', () => {
    expect(readLlmCallInput(good).kind).toBe('input');
    expect(operationIdOf('call', 'call/acme/op-1', 'acme')).toBe('op-1');
    expect(operationIdOf('call', 'my-own-id', 'acme')).toBe('my-own-id');
    expect(problemOfId('op-1')).toBeUndefined();
  });
});
