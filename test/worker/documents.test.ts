import { readFileSync } from 'node:fs';
import { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createMetricFamilies } from '../../worker/metric-families.js';

const text = (name: string): string =>
  readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');

interface Family {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
}

function exported(): Family[] {
  const registry = new Registry();
  createMetricFamilies(registry);
  const metrics = registry.getMetricsAsArray() as unknown as {
    name: string;
    type: string;
    labelNames: string[];
  }[];
  return metrics.map(({ name, type, labelNames }) => ({ name, type, labels: labelNames }));
}

function documented(): Family[] {
  const rows = text('metrics.md').matchAll(/^\| `(holdfast_\w+)` \| (\w+) \| ([^|]*)\|/gm);
  return [...rows].map(([, name = '', type = '', labels = '']) => ({
    name,
    type,
    labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label),
  }));
}

const byName = (one: Family, other: Family): number => one.name.localeCompare(other.name);

describe('docs/metrics.md', () => {
  test('has exactly the families of a worker, with their types and labels', () => {
    expect(exported().length).toBeGreaterThan(20);
    expect(documented().sort(byName)).toEqual(exported().sort(byName));
  });
});

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

describe('docs/alerts.yml', () => {
  const { groups } = parse(text('alerts.yml')) as { groups: { rules: Rule[] }[] };
  const rules = groups.flatMap((group) => group.rules);

  test('has a rule, and a page of the runbook, for each thing that must wake somebody', () => {
    const pages = new Map(rules.map((rule) => [rule.alert, rule.annotations['runbook_url']]));
    expect(Object.fromEntries(pages)).toEqual({
      StuckHold: 'docs/runbook.md#stuck-hold',
      UnknownExposure: 'docs/runbook.md#unknown-exposure',
      Overrun: 'docs/runbook.md#overrun',
      LedgerDrift: 'docs/runbook.md#ledger-drift',
      OwnerlessHolds: 'docs/runbook.md#supervisor-restarted',
      CancelNotConfirmed: 'docs/runbook.md#cancel-not-confirmed',
    });
  });

  test('asks only for names and labels that a worker exports, and shows only labels it kept', () => {
    const families = new Map(exported().map((family) => [family.name, family.labels]));
    for (const { alert, expr, annotations } of rules) {
      const names = expr.match(/holdfast_\w+/g) ?? [];
      expect(names, alert).not.toEqual([]);
      for (const name of names) expect([...families.keys()], alert).toContain(name);
      const has = new Set(names.flatMap((name) => families.get(name) ?? []));
      const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) =>
        list.split(/,\s*/),
      );
      const selected = [...expr.matchAll(/\{(\w+)/g)].map(([, label = '']) => label);
      for (const label of [...grouped, ...selected]) expect([...has], alert).toContain(label);
      const shown = annotations['summary']?.matchAll(/\$labels\.(\w+)/g) ?? [];
      for (const [, label = ''] of shown) expect(grouped, alert).toContain(label);
    }
  });
});
