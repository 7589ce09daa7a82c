// Ten jobs in real guests, where the shorter suite has four.
process.env.SVC3_TEST_ALL = 'yes'
await import('../e2e/runner-pools.full.test.ts')
