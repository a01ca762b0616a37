import eslint from '@eslint/js';
import tseslint from 'typescript-eslint';

const restrictedSyntax = [
  { selector: 'TSEnumDeclaration', message: 'Use a union of strings instead of an enum.' },
  { selector: 'ExportDefaultDeclaration', message: 'Use a named export.' },
  {
    selector: "CallExpression[callee.name='parseFloat']",
    message: 'Use parseAmount of domain/money.ts.',
  },
  {
    selector: "MemberExpression[property.name='toFixed']",
    message: 'Use formatAmount of domain/money.ts for money, Math.round for times.',
  },
];

const nodeGlobals = [
  'Buffer',
  'URL',
  'clearInterval',
  'clearTimeout',
  'console',
  'module',
  'process',
  'setInterval',
  'setTimeout',
];

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', '.holdfast/', 'test/histories/'] },
  {
    files: ['**/*.ts'],
    extends: [eslint.configs.recommended, tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/strict-boolean-expressions': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-import-type-side-effects': 'error',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      'no-console': 'error',
      'no-warning-comments': ['error', { terms: ['fixme'] }],
      'no-restricted-syntax': ['error', ...restrictedSyntax],
      'max-lines': ['error', { max: 300, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
      'max-params': ['error', 3],
      complexity: ['error', 15],
    },
  },
  {
    files: ['domain/**/*.ts', 'workflows/**/*.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: 'Pass the time in as an argument.' },
        { object: 'Math', property: 'random', message: 'Pass the random value in as an argument.' },
      ],
      'no-restricted-imports': ['error', { patterns: ['node:*', 'pg', 'pino', 'zod'] }],
    },
  },
  {
    files: ['test/**/*.ts', 'bench/**/*.ts'],
    rules: {
      'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': 'off',
      'max-params': ['error', 4],
      complexity: 'off',
    },
  },
  {
    files: ['vitest.config.ts'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  {
    files: ['**/*.{js,mjs,cjs}'],
    extends: [eslint.configs.recommended, tseslint.configs.disableTypeChecked],
    languageOptions: { globals: Object.fromEntries(nodeGlobals.map((name) => [name, 'readonly'])) },
  },
);
