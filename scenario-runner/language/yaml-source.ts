// YAML source
// -----------
// The part of YAML that a scenario may use: mappings, lists, text and decimal whole numbers. Anchors, aliases, tags
// and directives make a file mean more than it says, and a float is not exact.

import {
  type Document,
  isAlias,
  isNode,
  isScalar,
  LineCounter,
  parseDocument,
  type Scalar,
  visit,
  type YAMLError,
} from 'yaml';
import type { Problem } from './unusable.js';

export interface Source {
  readonly document: Document;
  readonly lines: LineCounter;
  readonly problems: Problem[];
}

export type Path = readonly PropertyKey[];

const DEPTH_MAX = 40;

export function parseSource(text: string): Source {
  const lines = new LineCounter();
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
    const source: Source = { document, lines, problems: [] };
    for (const error of [...document.errors, ...document.warnings]) complainOfYaml(source, error);
    refuseDirectives(source, text);
    refuseNodes(source);
    return source;
  } catch (error) {
    // The parser calls itself for every level.
    if (error instanceof RangeError) return tooDeep(lines);
    throw error;
  }
}

function tooDeep(lines: LineCounter): Source {
  const problems = [{ line: 1, message: `is nested deeper than ${DEPTH_MAX} levels` }];
  return { document: parseDocument(''), lines, problems };
}

function complainOfYaml({ document, lines, problems }: Source, error: YAMLError): void {
  // It is told with all other tags.
  if (error.code === 'TAG_RESOLVE_FAILED') return;
  if (error.message.includes('call stack')) throw new RangeError(error.message);
  const [offset] = error.pos;
  const message =
    error.code === 'DUPLICATE_KEY'
      ? `the key "${keyAt(document, offset)}" stands twice in one mapping`
      : (YAML_ERRORS[error.code] ?? `is not YAML: ${error.message}`);
  problems.push({ line: lines.linePos(offset).line, message });
}

const YAML_ERRORS: Partial<Record<YAMLError['code'], string>> = {
  MULTIPLE_DOCS: 'a second document begins here; a file is one scenario',
  TAB_AS_INDENT: 'a tab cannot indent; use spaces',
};

function keyAt(document: Document, offset: number): string {
  let found = '';
  visit(document, {
    Scalar(key, node) {
      if (key === 'key' && node.range?.[0] === offset) found = String(node.value);
    },
  });
  return found;
}

/** `%YAML 1.1` would give another meaning to words such as `yes`. */
function refuseDirectives({ problems }: Source, text: string): void {
  const [before = ''] = text.split(/^---/m, 1);
  const index = before.split('\n').findIndex((line) => line.startsWith('%'));
  if (index >= 0) {
    problems.push({ line: index + 1, message: 'directives are not part of the language' });
  }
}

function refuseNodes({ document, lines, problems }: Source): void {
  visit(document, (key, node, ancestors) => {
    if (!isNode(node)) return undefined;
    const { line } = lines.linePos(node.range?.[0] ?? 0);
    const refuse = (message: string): void => void problems.push({ line, message });
    // A mapping lies between each key and its value, so levels are about half of the ancestors.
    if (ancestors.length > 2 * DEPTH_MAX) {
      refuse(`is nested deeper than ${DEPTH_MAX} levels`);
      return visit.BREAK;
    }
    if (isAlias(node)) refuse('aliases are not part of the language; write it out');
    else if (node.anchor !== undefined) refuse('anchors are not part of the language');
    if (node.tag !== undefined) refuse(`tags are not part of the language: ${shortTag(node.tag)}`);
    else if (isScalar(node)) refuseScalar(node, key === 'key', refuse);
    return undefined;
  });
}

function shortTag(tag: string): string {
  return tag.replace('tag:yaml.org,2002:', '!!');
}

function refuseScalar(node: Scalar, isKey: boolean, refuse: (message: string) => void): void {
  const { value, source = '' } = node;
  // JavaScript would take it for the prototype, and nothing of it would be seen.
  if (isKey && value === '__proto__') refuse('unknown word "__proto__"');
  if (isKey || typeof value !== 'number' || /^[-+]?\d+$/.test(source)) {
    if (isKey || typeof value !== 'number' || Number.isSafeInteger(value)) return;
    refuse(`${source} is beyond 2^53 and would not be exact; give less, or a figure in quotes`);
  } else if (/^0[xo]/.test(source)) {
    refuse(`${source} is not decimal; give a whole number such as ${value}`);
  } else {
    refuse(`${source} is a float; figures are exact: give a whole number, or a decimal in quotes`);
  }
}

/** The line of the node at `path`, or of the nearest one above it that is there. */
export function lineOf({ document, lines }: Omit<Source, 'problems'>, path: Path): number {
  for (let length = path.length; length > 0; length -= 1) {
    const part = path.slice(0, length);
    const parent: unknown =
      length === 1 ? document.contents : document.getIn(part.slice(0, -1), true);
    const key = part.at(-1);
    const pair = (
      parent as {
        items?: { key?: { value?: unknown; range?: number[] }; range?: number[] }[];
      } | null
    )?.items;
    // A key such as `3` is a number in YAML, and text in the value that was read from it.
    const found =
      typeof key === 'number'
        ? pair?.[key]
        : pair?.find((item) => String(item.key?.value) === key)?.key;
    const offset = (found as { range?: number[] } | undefined)?.range?.[0];
    if (offset !== undefined) return lines.linePos(offset).line;
  }
  return 1;
}
