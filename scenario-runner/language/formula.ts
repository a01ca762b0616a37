// Formula
// -------
// `"= limit - 2 * price * tokens"`: whole numbers, the scenario's own names, + - * and parentheses.
// Exact, and without a word that could run code.

/** Parentheses are read by a call for each level: a length is a bound on the depth. */
const LENGTH_MAX = 500;
const TOKEN = /\s*(\d+|[a-z][a-z0-9_]*|[-+*()])/y;

export function isFormula(value: unknown): value is `=${string}` {
  return typeof value === 'string' && value.startsWith('=');
}

/** Throws RangeError that names the formula and what is wrong with it. */
export function evaluate(formula: string, numbers: Readonly<Record<string, number>>): bigint {
  const tokens = tokenize(formula);
  let at = 0;
  const fail = (what: string): never => {
    throw new RangeError(`the formula "${formula}" ${what}`);
  };
  const value = (): bigint => {
    const token = tokens[at];
    at += 1;
    if (token === undefined) return fail('ends too early');
    if (token === '-') return -value();
    if (token === '(') {
      const inner = sum();
      if (tokens[at] !== ')') return fail('misses a closing parenthesis');
      at += 1;
      return inner;
    }
    if (/^\d/.test(token)) return BigInt(token);
    if (!/^[a-z]/.test(token)) return fail(`has "${token}" where a number should stand`);
    const number = Object.hasOwn(numbers, token) ? numbers[token] : undefined;
    if (number === undefined) {
      return fail(`names "${token}"; known are ${Object.keys(numbers).join(', ') || 'none'}`);
    }
    return BigInt(number);
  };
  const product = (): bigint => {
    let result = value();
    while (tokens[at] === '*') {
      at += 1;
      result *= value();
    }
    return result;
  };
  const sum = (): bigint => {
    let result = product();
    while (tokens[at] === '+' || tokens[at] === '-') {
      const isPlus = tokens[at] === '+';
      at += 1;
      const next = product();
      result = isPlus ? result + next : result - next;
    }
    return result;
  };
  const result = sum();
  return at < tokens.length ? fail(`goes on after its end with "${tokens[at] ?? ''}"`) : result;
}

function tokenize(formula: string): string[] {
  if (formula.length > LENGTH_MAX) {
    throw new RangeError(
      `the formula "${formula.slice(0, 20)}…" is ${formula.length} characters long; at most are ${LENGTH_MAX}`,
    );
  }
  const text = formula.slice(1);
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (text.slice(TOKEN.lastIndex).trim() !== '') {
    const from = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (match?.[1] === undefined) {
      throw new RangeError(
        `the formula "${formula}" cannot be read from "${text.slice(from).trim()}" on`,
      );
    }
    tokens.push(match[1]);
  }
  return tokens;
}
