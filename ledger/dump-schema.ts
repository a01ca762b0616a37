// Schema dump
// -----------
// The whole schema as one text, made from the catalog, the same on every supported Postgres: what
// `ledger/schema.sql` holds, so that a review sees what a migration changes.

import pg from 'pg';

const QUERIES = [
  `select format('table %s%s  %s %s%s%s', c.relname, E'\\n', a.attname, format_type(a.atttypid, a.atttypmod),
                 case when a.attnotnull then ' not null' else '' end,
                 case when a.attidentity <> '' then ' identity' when a.attgenerated <> '' then ' generated' else '' end
                   || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')) as line
   from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
   left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
   where c.relnamespace = 'ledger'::regnamespace and c.relkind = 'r' and c.relname <> 'migration'
   order by c.relname, a.attnum`,
  `select format('constraint %s on %s: %s', conname, conrelid::regclass, pg_get_constraintdef(oid)) as line
   from pg_constraint
   where connamespace = 'ledger'::regnamespace and contype in ('c', 'f', 'p', 'u') and conrelid <> 'ledger.migration'::regclass
   order by conrelid::regclass::text, conname`,
  `select indexdef as line from pg_indexes where schemaname = 'ledger' and tablename <> 'migration' order by 1`,
  `select pg_get_triggerdef(t.oid) as line from pg_trigger t join pg_class c on c.oid = t.tgrelid
   where c.relnamespace = 'ledger'::regnamespace and not t.tgisinternal order by 1`,
  `select format('view %s: %s', c.relname, string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum)) as line
   from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
   where c.relnamespace = 'ledger'::regnamespace and c.relkind = 'v' group by c.relname order by 1`,
  `select format('function %s(%s) returns %s%s%s%s%s', proname, pg_get_function_identity_arguments(oid), pg_get_function_result(oid),
                 case when prosecdef then ' security definer' else '' end, E'\\n', btrim(prosrc, E'\\n'), E'\\n') as line
   from pg_proc where pronamespace = 'ledger'::regnamespace order by proname, 1`,
] as const;

export async function dumpSchema(adminUrl: string): Promise<string> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    const lines: string[] = ['-- Made from a migrated database; do not edit.'];
    for (const query of QUERIES) {
      const { rows } = await client.query<{ line: string }>(query);
      lines.push('', ...rows.map((row) => row.line));
    }
    return `${lines.join('\n')}\n`;
  } finally {
    await client.end();
  }
}
