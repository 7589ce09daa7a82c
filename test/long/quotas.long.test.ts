// Twelve kills under a quota, where the shorter suite has two.
process.env.SVC3_TEST_ALL = 'yes'
await import('../e2e/quotas.full.test.ts')
