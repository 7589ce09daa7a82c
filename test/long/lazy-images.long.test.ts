// Ten kills of agent and server while images arrive, where the shorter suite has three.
process.env.SVC3_TEST_ALL = 'yes'
await import('../e2e/lazy-images.full.test.ts')
