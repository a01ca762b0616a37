/** The migrated database that test databases are copied from, and the role they are used with. */
export const TEMPLATE_DATABASE = 'holdfast_test_template';
export const APPLICATION_ROLE = { name: 'holdfast_test_app', password: 'for-tests-only' } as const;
